// A state directory with foreign bytes in some of its files: the store recovers or says what is wrong, the scheduler
// rebuilds a state whose cross references hold and works on it; once more, it finds nothing new.
#include <memory>

#include "base/bytes.h"
#include "fuzz.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "store/names.h"
#include "store/stamp.h"
#include "store/turn_root.h"
#include "unit/scheduler_turn/pool.h"

namespace dcs::fuzz {
namespace {

// Sessions with grains of every state, some turns not synced yet.
const test::SimDisk &populated() {
    static const test::SimDisk disk = [] {
        test::Pool pool({test::host("h1", 3)});
        test::ModelServer server(pool, "h1");
        test::three_grains(pool, server, 1);
        expect(pool.store->flush().answer == store::Answer::done, "the store is flushed");
        const ConnId bob = pool.control("bob", "prog");
        pool.ask<wire::OpenReply>(bob, wire::OpenSession{2, wire::OpenMode::open, false});
        pool.ask<wire::Done>(bob, wire::Gexec{2, 0, test::copying_grain(std::string(3000, 'x'))});
        server.read();
        return pool.disk.killed();
    }();
    return disk;
}

std::vector<std::string> files_of(const test::SimDisk &disk) {
    std::vector<std::string> names;
    for (const auto &[name, bytes] : disk.files())
        if (name.back() != '/' && name != store::reserve_file) names.push_back(name);
    return names;
}

enum How : std::uint8_t { replace, overwrite, framed, stamped, removed, cut, last };

void damage(test::SimDisk &disk, const std::string &name, How how, std::uint32_t at, std::string_view piece) {
    const auto current = disk.read(name, 0, ~0ull);
    std::string bytes = current ? *current : std::string();
    if (how == replace) bytes = piece;
    if (how == overwrite && !bytes.empty()) bytes.replace(at % bytes.size(), piece.size(), piece);
    if (how == framed) bytes = record::framed(std::string(piece));
    if (how == stamped) bytes = store::encode_stamp(at, 512);
    if (how == cut) bytes.resize(bytes.empty() ? 0 : at % bytes.size());
    (void)disk.remove(name);
    if (how != removed) (void)disk.create(name, bytes);
}

void work(test::SimDisk disk) {
    store::RecoveryReport report;
    auto opened = store::Store::open(disk, record::forest(), test::Pool::options(), &report);
    if (!opened) return expect(!opened.status().text.empty(), "who cannot start says why");
    const auto rebuilt = record::rebuild(**opened, Instant{seconds(1000).ns});
    if (!rebuilt) return expect(!rebuilt.status().text.empty(), "who cannot start says why");
    expect(core::check(rebuilt->state).empty(), core::check(rebuilt->state));
    opened->reset();
    test::Pool pool({test::host("h1", 3)}, disk.killed());
    test::ModelServer server(pool, "h1");
    server.strangers = true;
    server.connect();
    server.read();
    const ConnId root = pool.open(turn::Door::user, "root", true);
    pool.ask<wire::Welcome>(root, wire::Hello{});
    (void)pool.call(root, wire::Doctor{});
    for (const char *user : {"ann", "bob"}) (void)pool.call(root, wire::Query{wire::QueryType::grains, user, -1, -1});
    for (int i = 0; i < 3; ++i) {
        pool.outside->clock = pool.outside->clock + seconds(1);
        pool.turn->tidy();
        pool.pump();
    }
    expect(core::check(pool.turn->state()).empty(), core::check(pool.turn->state()));
    if (pool.outside->died.empty()) pool.restart();
}

}  // namespace

void run(std::string_view bytes) {
    static const std::vector<std::string> names = files_of(populated());
    test::SimDisk disk = populated().killed();
    Choices input(bytes);
    for (int n = 0; n < 4 && !input.empty(); ++n) {
        const std::string &name = names[input.byte() % names.size()];
        const auto how = static_cast<How>(input.byte() % last);
        const std::uint32_t at = input.number();
        damage(disk, name, how, at, input.piece());
    }
    work(std::move(disk));
}

std::vector<Seed> seeds() {
    std::vector<Seed> list{{"whole", ""}};
    test::SimDisk disk = populated().killed();
    const std::vector<std::string> names = files_of(disk);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto bytes = disk.read(names[i], 0, 4096);
        const std::string front{static_cast<char>(i)};
        list.push_back({"same-" + std::to_string(i), front + '\0' + std::string(2, '\0') + piece_of(*bytes)});
        list.push_back({"byte-" + std::to_string(i), front + '\1' + std::string{5, 0} + piece_of("?")});
        std::string_view log = *bytes;
        if (const auto body = record::next_body(log))
            list.push_back({"body-" + std::to_string(i), front + '\2' + std::string(2, '\0') + piece_of(*body)});
        list.push_back({"gone-" + std::to_string(i), front + '\4' + std::string(4, '\0')});
    }
    return list;
}

}  // namespace dcs::fuzz
