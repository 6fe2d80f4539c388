// The passive backup: told anything by grain servers, by who asks how it is, and by its scheduler, while its disk fills
// and it is started again; and a store of which foreign bytes have changed some files. What it holds is counted
// right, what it has promised it still has, and it hands over what it was given.
#include "unit/backupd/bench.h"

#include "backupd/record/record.h"
#include "base/bytes.h"
#include "script.h"

namespace dcs::fuzz {
namespace {

using namespace backup;

enum Who : std::uint8_t { h1, h2, asking, scheduler, other, disk, world, last_who };

struct Play {
    Bench bench{64 * 1024, 32 * 1024};

    void say(ConnId conn, const Item &item) {
        Arrival a;
        a.conn = conn;
        a.header = header_of(item.kind, item.payload, static_cast<std::uint64_t>(conn));
        a.payload = item.payload;
        bench.arrive(std::move(a));
    }
    void happen(const Item &item) {
        const std::uint64_t size = item.payload.empty() ? 0 : static_cast<unsigned char>(item.payload[0]);
        switch (item.kind % 5) {
        case 0: bench.clock = bench.clock + seconds(static_cast<std::int64_t>(size)); break;
        case 1:
            if (!bench.scheduler_there) bench.scheduler_comes();
            break;
        case 2:
            if (bench.scheduler_there) bench.scheduler_goes();
            break;
        case 3: bench.disk.set_capacity(size == 0 ? ~0ull : bench.disk.used_bytes() + size * 64); break;
        default: restart();
        }
    }
    // After a kill; or its files are not what it wrote any more.
    void restart() {
        bench.scheduler_there = false;
        bench.disk = bench.disk.killed();
        const std::string why = bench.start();
        stopped = !why.empty();
    }
    void damage(const Item &item) {
        std::vector<std::string> names;
        for (const auto &[name, bytes] : bench.disk.files())
            if (name.back() != '/' && name != "reserve") names.push_back(name);
        if (names.empty()) return;
        const std::string &name = names[item.kind % names.size()];
        Choices input(item.payload);
        const std::uint8_t how = input.byte();
        const std::uint32_t at = input.number();
        std::string bytes = *bench.disk.read(name, 0, ~0ull), piece(input.rest());
        if ((how & 1) != 0 && piece.size() >= record::prefix_bytes) resum(piece);
        if ((how & 2) != 0 || bytes.empty()) bytes = piece;
        else bytes.replace(at % bytes.size(), piece.size(), piece);
        (void)bench.disk.remove(name);
        (void)bench.disk.create(name, bytes);
        restart();
        damaged = true;
    }
    // A head whose checksum is right.
    static void resum(std::string &head) {
        const std::string_view body = std::string_view(head).substr(record::prefix_bytes);
        const std::uint32_t length = static_cast<std::uint32_t>(body.size()), sum = crc32c(body);
        for (std::size_t i = 0; i < 4; ++i) {
            head[i] = static_cast<char>(length >> (8 * i));
            head[4 + i] = static_cast<char>(sum >> (8 * i));
        }
    }
    void check() {
        std::uint64_t bytes = 0, reports = 0;
        for (const auto &[name, host] : bench.state().hosts) {
            std::uint64_t number = host.forgotten;
            for (const Held &held : host.held) {
                expect(held.number > number && held.number <= host.last, "reports are in their order");
                number = held.number;
                expect(held.offset + held.length <= host.log_length, "a report is in its log");
                bytes += held.length, ++reports;
            }
        }
        if (!damaged) expect(bytes <= 64 * 1024 + limits::report_bytes, "it holds no more than it may");
        bench.sent.clear();
    }
    bool stopped = false, damaged = false;
};

}  // namespace

void run(std::string_view bytes) {
    Play play;
    for (const Item &item : items_of(bytes)) {
        switch (item.who % last_who) {
        case world: play.happen(item); break;
        case disk: play.damage(item); break;
        case scheduler:
            if (!play.bench.scheduler_there) play.bench.scheduler_comes();
            play.say(Bench::scheduler_conn, item);
            break;
        default: play.say(ConnId{1u + item.who % last_who}, item);
        }
        if (play.stopped) return;
        play.bench.run();
        if (!play.bench.fatal_words.empty()) return;
        play.check();
    }
}

namespace {

Item happens(Who who, std::uint8_t kind, const std::string &how) {
    Item item = action(who, kind);
    item.payload = how;
    return item;
}

std::vector<Item> life() {
    wire::FirstCall first;
    first.host = "h1";
    std::vector<Item> play = {item(h1, first), item(h1, report_of(1, 1)), item(h1, report_of(1, 2)),
                              item(h1, report_of(2, 1, true))};
    first.host = "h2";
    play.push_back(item(h2, first));
    play.push_back(item(h2, report_of(3, 1, true, 3000)));
    play.push_back(item(asking, wire::AskBackup{}));
    play.push_back(happens(world, 4, ""));
    play.push_back(happens(world, 1, ""));
    play.push_back(item(scheduler, wire::HandOverTaken{"h1", 2}));
    play.push_back(item(scheduler, wire::HandOverTaken{"h2", 1}));
    play.push_back(happens(world, 2, ""));
    play.push_back(happens(world, 3, "\5"));
    play.push_back(item(h2, report_of(4, 1, true, 3000)));
    play.push_back(happens(world, 0, "\x3c"));
    return play;
}

}  // namespace

std::vector<Seed> seeds() {
    std::vector<Seed> list{{"life", bytes_of(life())}};
    for (std::uint8_t file = 0; file < 12; ++file) {
        std::vector<Item> play = life();
        play.resize(7);
        play.push_back(happens(disk, file, std::string("\0\11\0?", 4)));
        play.push_back(happens(world, 1, ""));
        list.push_back({"damage-" + std::to_string(file), bytes_of(play)});
    }
    for (std::size_t first = 0; first < kinds; first += 16) {
        std::vector<Item> play = life();
        for (std::size_t kind = first; kind < std::min(first + 16, kinds); ++kind)
            for (const Who who : {h1, other, scheduler}) play.push_back(item(who, samples()[kind]));
        list.push_back({"all-kinds-" + std::to_string(first), bytes_of(play)});
    }
    return list;
}

}  // namespace dcs::fuzz
