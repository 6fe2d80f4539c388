// Records between releases: fields of a newer one are skipped, what an older one must know is refused, and what release
// 0.1 wrote is read.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "places.h"
#include "pool.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

const record::HostIds one_host = [](const std::string &) { return core::HostId{0}; };

std::string body_of(std::string_view file) { return std::string(*record::next_body(file)); }

// A record as a newer release would write it: more fields behind the known ones, of every kind.
std::string with_new_fields(const std::string &file) {
    const std::string body = body_of(file);
    ByteWriter w;
    w.raw(std::string_view(body).substr(0, body.size() - 1));  // without its end
    put_tag(w, 1000, FieldKind::natural);
    w.var(7);
    put_tag(w, 1001, FieldKind::bytes);
    put_bytes(w, "new");
    put_tag(w, 1002, FieldKind::fields);
    put_tag(w, 3, FieldKind::real);
    w.u64(5);
    end_fields(w);
    put_tag(w, 1003, FieldKind::list);
    w.u8(static_cast<std::uint8_t>(FieldKind::integer));
    w.var(2);
    w.svar(-1);
    w.svar(1);
    end_fields(w);
    return record::framed(w.bytes());
}

std::string of_version(const std::string &file, std::uint8_t version) {
    std::string body = body_of(file);
    body[0] = static_cast<char>(version);
    return record::framed(body);
}

core::State some_state() {
    core::State state;
    core::Undo undo;
    core::Host h;
    core::HostConfig config;
    config.name = "h1";
    h.config = config;
    h.setting.slots = 3;
    h.setting.interval = seconds(7);
    h.totals.cpu_us = -1;
    core::apply(state, core::SetHost{core::HostId{0}, h}, undo);
    return state;
}

// Gives each number of a list of fields the value after its own, and each text a resource.
struct OneMore {
    template <class T> OneMore &operator&(const wire::FieldOf<T> &field) {
        if constexpr (std::is_same_v<T, std::string>) field.value() = "gpu=1";
        else field.value() = static_cast<T>(field.value() + 1);
        return *this;
    }
    void walk(wire::Demands &demands) { wire::walk_fields(*this, demands); }
};

core::DurableGrain full_grain() {
    core::DurableGrain g;
    g.phase = core::Ready{INT64_MIN};
    g.fingerprint[3] = 9;
    g.request = core::RequestId{~std::uint64_t{0}};
    g.params_sum = g.course.edit().checkpoint_sum = 0xffffffff;
    g.params_length = 5;
    g.course.edit().checkpoint_length = std::uint64_t{1} << 40;
    g.incarnation = 5;
    g.lease = 4;
    g.course.edit().skipped = 1;
    g.lessee = core::HostId{0};
    g.own_tree = true;
    wire::Demands demands;
    demands.attempts = 255;
    demands.wall_s = INT32_MAX;
    g.demands = demands;
    g.course.edit().past.edit().max_rss_kb = -7;
    g.course.edit().kept.edit().saved = 8;
    g.course.edit().nogo.edit() = {core::HostId{0}};
    g.files.edit().digests = {std::string(32, 'a'), std::string(32, 'b')};
    g.files.edit().binary_classes = {"x86"};
    g.files.edit().outputs = {{wire::FileRole::output, "out/x", "", 77, ""}};
    g.course.edit().old_lease = {core::HostId{0}, 3};
    g.course.edit().moves.edit() = {{core::MoveReason::usurped, core::HostId{0}, 2, "for ann/1:2"}, {}};
    return g;
}

// What release 0.1 left (tests/process/daemons/state_0_1), unpacked.
struct Left {
    std::filesystem::path directory;
    Left() {
        char name[] = "/tmp/dcs-state-XXXXXX";
        REQUIRE(::mkdtemp(name));
        directory = name;
        const std::string archive = std::string(DCS_SOURCE_DIR) + "/tests/process/daemons/state_0_1/state.tar.xz";
        REQUIRE(std::system(("tar -xJf '" + archive + "' -C " + directory.string()).c_str()) == 0);
    }
    ~Left() { std::filesystem::remove_all(directory); }
    std::string read(const std::string &path) const {
        std::ifstream in(directory / "scheduler/state" / path, std::ios::binary);
        INFO(path);
        REQUIRE(in);
        return std::string((std::istreambuf_iterator<char>(in)), {});
    }
};

}  // namespace

TEST_CASE("every field of a grain comes back as it went") {
    const core::State state = some_state();
    const core::DurableGrain grain = full_grain();
    const std::string bytes = record::encode_grain(state, 5, grain);
    const auto back = record::decode_grain(bytes, one_host);
    REQUIRE(back);
    CHECK(record::encode_grain(state, 5, back->grain) == bytes);
    CHECK(back->grain.files.get() == grain.files.get());
    CHECK(back->grain.course->moves.get() == grain.course->moves.get());
    CHECK(back->grain.course->old_lease == grain.course->old_lease);
    CHECK(back->grain.demands == grain.demands);
    CHECK(back->grain.course->kept.get() == grain.course->kept.get());
    CHECK(back->grain.as<core::Ready>().queue_position == INT64_MIN);
    CHECK(back->grain.request == core::RequestId{~std::uint64_t{0}});
}

TEST_CASE("every demand of the messages' list is recorded") {
    const core::State state = some_state();
    core::DurableGrain grain = full_grain();
    wire::Demands demands;
    OneMore{}.walk(demands);
    grain.demands = demands;
    const auto back = record::decode_grain(record::encode_grain(state, 5, grain), one_host);
    REQUIRE(back);
    CHECK(back->grain.demands == grain.demands);
    grain.demands = wire::Demands();
    const std::string none = record::encode_grain(state, 5, grain);
    CHECK(record::decode_grain(none, one_host)->grain.demands == grain.demands);
}

TEST_CASE("fields of a newer release are skipped") {
    const core::State state = some_state();
    const std::string grain = record::encode_grain(state, 5, full_grain());
    const auto read = record::decode_grain(with_new_fields(grain), one_host);
    REQUIRE(read);
    CHECK(record::encode_grain(state, 5, read->grain) == grain);
    std::string_view log = grain;
    CHECK(record::next_grain(log)->number == 5);

    core::SessionInfo info;
    info.ident = "prog";
    const auto session = record::decode_session(with_new_fields(record::encode_session(info)));
    REQUIRE(session);
    CHECK(session->ident == "prog");
    const record::AuthTable tokens = {
        {{TokenHash{1}, {"ann", "x", 5, "", {}}}, {TokenHash{2}, {"ann", "x", 5, "desk1", TokenHash{6}}}},
        {{"ann", 7}}};
    CHECK(*record::decode_auth(with_new_fields(record::encode_auth(tokens))) == tokens);
    const auto hosts = record::decode_hosts(with_new_fields(record::encode_hosts(state)));
    REQUIRE(hosts);
    CHECK(hosts->at("h1") == static_cast<const core::DurableHost &>(state.hosts[0]));
    core::Trust trust;
    trust.codes[TokenHash{3}] = {"h1", "root", 7, false, TokenHash{8}, core::HostRole::backup};
    trust.keys["h1"] = trust.clients["desk1"] = trust.backups["vault"] = TokenHash{1};
    CHECK(*record::decode_trust(with_new_fields(record::encode_trust(trust))) == trust);
    const record::HandedOver handed = {{"h1", {7, 3}}};
    CHECK(*record::decode_handed_over(with_new_fields(record::encode_handed_over(handed))) == handed);
}

TEST_CASE("a value outside of its field's range does not decode") {
    const core::State state = some_state();
    const auto bad = [&](const std::function<void(core::DurableGrain &)> &change) {
        core::DurableGrain grain = full_grain();
        change(grain);
        return !record::decode_grain(record::encode_grain(state, 5, grain), one_host);
    };
    CHECK_FALSE(bad([](auto &) {}));
    CHECK(bad([](auto &g) { g.course.edit().skipped = 6; }));
    CHECK(bad([](auto &g) { g.course.edit().kept.edit().held = -1; }));
    CHECK(bad([](auto &g) { std::swap(g.files.edit().digests[0], g.files.edit().digests[1]); }));
    CHECK(bad([](auto &g) { g.files.edit().digests[0].pop_back(); }));
    CHECK(bad([](auto &g) { g.files.edit().outputs[0].digest = "short"; }));
    CHECK(bad([](auto &g) { g.course.edit().moves.edit().resize(limits::moves_kept + 1); }));
    CHECK(bad(
        [](auto &g) { g.course.edit().moves.edit()[0].reason = static_cast<core::MoveReason>(core::move_reasons); }));
    for (const std::int32_t attempts : {0, 256})
        CHECK(bad([&](auto &g) {
            wire::Demands demands;
            demands.attempts = attempts;
            g.demands = demands;
        }));
    core::DurableGrain running = full_grain();
    running.phase = core::Running{};
    std::string body = body_of(record::encode_grain(state, 5, running));
    REQUIRE(body.substr(2, 2) == "\x08\x01");  // field 1, the status
    CHECK(record::decode_grain(record::framed(body), one_host));
    body[3] = 4;
    CHECK_FALSE(record::decode_grain(record::framed(body), one_host));
}

TEST_CASE("a record of a grain that runs where it may not be tried is read as one that may be tried there") {
    core::DurableGrain running = full_grain();
    running.phase = core::Running{};
    running.course.edit().nogo = std::vector<core::HostId>{running.lessee};
    const auto back = record::decode_grain(record::encode_grain(some_state(), 5, running), one_host);
    REQUIRE(back);
    CHECK(back->grain.lessee == running.lessee);
    CHECK(back->grain.course->nogo->empty());
}

TEST_CASE("a record has what a grain has where it stands, and only that is read") {
    const core::State state = some_state();
    const core::Phase phases[] = {core::Ready{-7}, core::Running{}, core::Finished{3, -1, 9}, core::Killed{4}};
    for (const core::Phase &phase : phases) {
        core::DurableGrain grain = full_grain();
        grain.phase = phase;
        const auto back = record::decode_grain(record::encode_grain(state, 5, grain), one_host);
        REQUIRE(back);
        CHECK(back->grain.phase == phase);
    }
    // A finished grain's fields in the record of a killed one, as an earlier program left them.
    core::DurableGrain finished = full_grain();
    finished.phase = core::Finished{3, -1, 9};
    std::string body = body_of(record::encode_grain(state, 5, finished));
    REQUIRE(body.substr(2, 2) == "\x08\x02");
    body[3] = 3;
    const auto back = record::decode_grain(record::framed(body), one_host);
    REQUIRE(back);
    CHECK(back->grain.phase == core::Phase(core::Killed{}));
}

TEST_CASE("a record of a newer version keeps the scheduler from starting, one of none only its session") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    three_grains(pool, server, 1);
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    const auto replace = [&](const std::string &path, std::uint8_t version) {
        REQUIRE(pool.disk.truncate_append(path, 0, of_version(*pool.disk.read(path, 0, 1u << 20), version)));
        REQUIRE(pool.disk.sync_file(path));
    };
    const std::string path = GENERATE("sessions/ann/1/status", "sessions/ann/1/g/1/status", "auth/table");
    replace(path, 8);
    auto rebuilt = record::rebuild(*pool.store, pool.outside->clock);
    REQUIRE_FALSE(rebuilt);
    CHECK(rebuilt.status().code == Code::protocol);
    CHECK(rebuilt.status().text == about(path + " format 8 written newer release scheduler reads formats up 7"));
    replace(path, 6);
    rebuilt = record::rebuild(*pool.store, pool.outside->clock);
    REQUIRE(rebuilt);
    CHECK(rebuilt->reports.size() == 1);
    CHECK(rebuilt->reports[0] == about("6 no release"));
}

TEST_CASE("each kind of record that release 0.1 wrote is read") {
    const Left left;
    std::map<core::GrainStatus, int> grains;
    int with_files = 0, with_checkpoint = 0, with_nogo = 0, with_demands = 0, with_moves = 0, sessions = 0;
    const auto take = [&](std::string_view file) {
        CHECK(int{static_cast<std::uint8_t>(body_of(file)[0])} == 5);
        const auto read = record::decode_grain(file, one_host);
        REQUIRE(read);
        const core::DurableGrain &g = read->grain;
        ++grains[g.status()];
        with_files += !g.files->digests.empty() && !g.files->outputs.empty();
        with_checkpoint += g.course->checkpoint_length > 0;
        with_nogo += !g.course->nogo->empty();
        with_demands += g.demands->wall_s != 0 && g.demands->thrash != 0;
        with_moves += !g.course->moves->empty();
        CHECK(g.params_length > 0);
        // Written again, it says the same.
        const std::string again = record::encode_grain(some_state(), read->number, g);
        const auto second = record::decode_grain(again, one_host);
        REQUIRE(second);
        CHECK(record::encode_grain(some_state(), read->number, second->grain) == again);
    };
    const auto state = left.directory / "scheduler/state";
    for (const auto &entry : std::filesystem::recursive_directory_iterator(state / "sessions")) {
        const std::string path = std::filesystem::relative(entry.path(), state);
        if (entry.path().filename() == record::status_file && path.find("/g/") != std::string::npos) {
            take(left.read(path));
        } else if (entry.path().filename() == record::status_file) {
            const auto info = record::decode_session(left.read(path));
            REQUIRE(info);
            CHECK(info->grains_length > 0);
            ++sessions;
            const std::string bytes = left.read(std::filesystem::path(path).parent_path() / record::grains_file);
            std::string_view log = bytes;
            while (!log.empty()) {
                const auto next = record::next_grain(log);
                REQUIRE(next);
                take(next->record);
            }
        }
    }
    CHECK(sessions == 2);
    for (const auto status :
         {core::GrainStatus::ready, core::GrainStatus::running, core::GrainStatus::finished, core::GrainStatus::killed})
        CHECK(grains[status] > 0);
    for (const int seen : {with_files, with_checkpoint, with_nogo, with_demands, with_moves}) CHECK(seen > 0);

    const auto tokens = record::decode_auth(left.read("auth/table"));
    REQUIRE(tokens);
    CHECK(tokens->tokens.size() == 2);
    CHECK(tokens->last_numbers.empty());
    for (const auto &[hash, token] : tokens->tokens) CHECK((token.ident == "first-release" || token.ident == "second"));
    const auto hosts = record::decode_hosts(left.read("hosts/table"));
    REQUIRE(hosts);
    CHECK(hosts->at("local1").setting.drained);
    CHECK(hosts->at("local1").setting.host_class == 5);
    CHECK(hosts->at("local2").setting.slots == 3);
    CHECK(hosts->at("local2").setting.interval == seconds(2));
    CHECK(hosts->at("local1").totals.launched > 0);
    const auto trust = record::decode_trust(left.read("trust/table"));
    REQUIRE(trust);
    CHECK(trust->codes.size() == 2);
    const auto handed = record::decode_handed_over(left.read("handed-over/table"));
    REQUIRE(handed);
    CHECK(!handed->empty());
    for (const auto &[host, up_to] : *handed) CHECK(up_to.number > 0);
}
