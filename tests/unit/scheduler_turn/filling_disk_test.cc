// A disk that fills up while the scheduler works: whatever room is left when, calls are refused in
// words, what was acknowledged is there, also after a start on the full disk, and service resumes
// by itself.
#include <set>

#include "pool.h"
#include "scheduler/record/read_blob.h"
#include "scheduler/record/paths.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

const SessionKey session{"ann", 1};

std::string input_of(GrainNumber number) {
    const std::size_t size = number % 5 == 4 ? 40'000 : 700;  // some have files of their own
    return std::string(size, static_cast<char>('a' + number % 26)) + std::to_string(number);
}

struct Filling {
    Pool pool{{host("h1", 1)}};
    ModelServer server{pool, "h1"};
    ConnId control{};
    GrainNumber next = 0;
    std::set<GrainNumber> acknowledged;
    std::string refusal;  // the last one

    Filling() {
        begin();
        server.connect();
        submit();
        server.read();
        REQUIRE(server.held.size() == 1);
    }
    void begin() {
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});
    }
    bool submit() {
        const GrainNumber number = next++;
        const auto reply = pool.call(control, wire::Gexec{1, number, copying_grain(input_of(number))});
        if (const auto *error = std::get_if<wire::ErrorReply>(&reply)) {
            CHECK(error->code == static_cast<int>(Code::no_space));
            refusal = error->text;
            CHECK(pool.turn->state().grain({session, number}) == nullptr);
            return false;
        }
        REQUIRE(std::holds_alternative<wire::Done>(reply));
        acknowledged.insert(number);
        return true;
    }
    // Everything that was acknowledged is known, with its bytes.
    void check_all() {
        REQUIRE(pool.outside->died.empty());
        for (const GrainNumber number : acknowledged) {
            const GrainKey key{session, number};
            const core::Grain *grain = pool.turn->state().grain(key);
            REQUIRE(grain);
            const auto packed = record::read_params(*pool.store, key, *grain);
            REQUIRE(packed);
            const auto spec = wire::unpack_spec(*packed);
            REQUIRE(spec);
            CHECK(spec->input == input_of(number));
        }
        pool.verify();
    }
};

}  // namespace

TEST_CASE("a disk fills up: calls are refused in words, what was acknowledged stays") {
    Filling w;
    w.pool.disk.set_capacity(w.pool.disk.used_bytes() + 700'000);
    while (w.submit()) REQUIRE(w.next < 200);
    CHECK(w.acknowledged.size() > 10);
    CHECK(w.refusal.find("nothing has changed") != std::string::npos);
    CHECK(w.refusal.find("bytes free") != std::string::npos);
    CHECK(w.refusal.find("free some space, then repeat") != std::string::npos);
    // Small ones find room a little longer; then nothing does.
    for (int i = 0; i < 400; ++i) w.submit();
    for (int i = 0; i < 5; ++i) CHECK_FALSE(w.submit());
    w.check_all();

    // The process is killed and starts on the disk as full as it is.
    const std::uint64_t full = w.pool.disk.used_bytes();
    w.server.disconnect();
    w.pool.restart(full);
    CHECK(w.pool.reports.empty());
    w.check_all();
    // Reading works; a control program that has no token yet learns why it gets none.
    const ConnId conn = w.pool.open(turn::Door::user, "ann");
    w.pool.ask<wire::Welcome>(conn, wire::Hello{});
    CHECK(w.pool.refusal(conn, wire::GetAuth{"prog"}) == Code::no_space);
    wire::Query query;
    query.type = wire::QueryType::sessions;
    CHECK(w.pool.ask<wire::QueryReply>(conn, query).sessions.size() == 1);

    // Room again: no party has to do anything but to repeat.
    w.pool.disk.set_capacity(~0ull);
    w.begin();
    CHECK(w.submit());
    w.server.connect();
    w.server.read();
    w.check_all();
}

TEST_CASE("on a full disk a report is kept by its server until there is room") {
    Filling w;
    const GrainKey key = w.server.held.begin()->first;
    w.server.checkpoint(key, 100);
    w.server.read();
    w.pool.store->flush();
    w.pool.disk.set_capacity(w.pool.disk.used_bytes());
    for (int i = 0; i < 3; ++i) {
        w.server.checkpoint(key, 100);
        w.server.repeat();
        w.server.read();
        w.server.call_in();
        REQUIRE(w.server.connected());
        REQUIRE(w.server.held[key].unacknowledged);
    }
    CHECK(w.pool.turn->state().grain(key)->course->sequence == 1);
    // Also across a start on the full disk. The server's first call is answered: nothing changed.
    w.server.disconnect();
    w.pool.restart(w.pool.disk.used_bytes());
    w.server.connect();
    w.server.read();
    REQUIRE(w.server.connected());
    w.server.repeat();
    w.server.read();
    CHECK(w.pool.turn->state().grain(key)->course->sequence == 1);
    w.pool.disk.set_capacity(~0ull);
    w.server.repeat();
    w.server.read();
    CHECK_FALSE(w.server.held[key].unacknowledged);
    CHECK(w.pool.turn->state().grain(key)->course->sequence == 2);
    w.server.finish(key);
    w.server.read();
    w.begin();
    const auto result = w.pool.ask<wire::GrainResult>(w.control, wire::Gwait{1, 0, false});
    CHECK(result.out == input_of(key.grain));
    w.check_all();
}

TEST_CASE("kill, close and the end of a grain are committed on a full disk, clean makes room") {
    Filling w;
    for (int i = 0; i < 40; ++i) REQUIRE(w.submit());
    w.pool.disk.set_capacity(w.pool.disk.used_bytes());
    for (int i = 0; i < 3; ++i) CHECK_FALSE(w.submit());
    const GrainKey running = w.server.held.begin()->first;

    // Together with a submission in one turn: that is refused, these are not.
    const auto submission = w.pool.post(w.control, wire::Gexec{1, 900, copying_grain("x")});
    const auto kill = w.pool.post(w.control, wire::Gkill{"", 1, 5});
    w.pool.pump();
    CHECK(std::holds_alternative<wire::ErrorReply>(w.pool.reply(w.control, submission)));
    CHECK(std::holds_alternative<wire::Done>(w.pool.reply(w.control, kill)));
    CHECK_FALSE(w.pool.turn->state().grain({session, 900}));

    w.server.finish(running);
    w.server.read();
    CHECK(w.server.held.count(running) == 0);  // acknowledged
    CHECK(w.pool.turn->state().grain(running)->status() == core::GrainStatus::finished);
    for (GrainNumber g = 6; g < 16; ++g) w.pool.ask<wire::Done>(w.control, wire::Gkill{"", 1, g});
    w.pool.restart(w.pool.disk.used_bytes());
    for (GrainNumber g = 5; g < 16; ++g)
        CHECK(w.pool.turn->state().grain({session, g})->status() == core::GrainStatus::killed);
    CHECK(w.pool.turn->state().grain(running)->status() == core::GrainStatus::finished);

    // No token is given out on a full disk, so it is a secure command of the operator's.
    const ConnId root = w.pool.open(turn::Door::user, "root", true);
    w.pool.ask<wire::Welcome>(root, wire::Hello{});
    wire::SetHost drain{"h1"};
    drain.drained = 1;
    w.pool.ask<wire::Done>(root, drain);
    CHECK(w.pool.turn->state().hosts[0].setting.drained);
    drain.drained = 0;
    w.pool.ask<wire::Done>(root, drain);
    w.pool.ask<wire::Done>(root, wire::CloseSession{"ann", 1, -1});
    w.pool.ask<wire::Done>(root, wire::CleanSession{"ann", 1});
    w.pool.disk.set_capacity(w.pool.disk.used_bytes() + 1'000'000);
    w.begin();
    w.next = 0;
    CHECK(w.submit());
}

namespace {

// Started where not a byte is left, not even of what the reserve had set aside: it says so and changes
// nothing, or works.
void starts_when_there_is_room(const SimDisk &disk, const core::State &expected) {
    SimDisk full = disk.killed();
    full.set_capacity(full.used_bytes());
    auto opened = store::Store::open(full, record::forest(), Pool::options(), nullptr);
    if (!opened) {
        CHECK(opened.status().code == Code::no_space);
        SimDisk freed = full.killed();
        full = std::move(freed);
        opened = store::Store::open(full, record::forest(), Pool::options(), nullptr);
    }
    REQUIRE(opened);
    const auto rebuilt = record::rebuild(**opened, Instant{});
    REQUIRE(rebuilt);
    CHECK(Pool::durable_text(rebuilt->state) == Pool::durable_text(expected));
}

}  // namespace

TEST_CASE("wherever the room ends in a commit, it is whole or refused") {
    // No other party takes any room while the commit checks for it and then uses it; a party does here,
    // at each of its operations in turn.
    int refused = 0, finished_with_reserve = 0;
    for (int at = 0; at < 60; ++at) {
        Filling w;
        w.next = 4;  // a big one, with files of its own
        const std::string before = Pool::durable_text(w.pool.turn->state());
        int operations = 0;
        std::uint64_t capacity = ~0ull;
        w.pool.disk.after_operation = [&] {
            if (operations++ == at) w.pool.disk.set_capacity(capacity = w.pool.disk.used_bytes());
        };
        const bool done = w.submit();
        w.pool.disk.after_operation = nullptr;
        const bool reached = operations > at;
        if (!done) {
            ++refused;
            CHECK(Pool::durable_text(w.pool.turn->state()) == before);
        }
        const auto files = w.pool.disk.files();
        const auto reserve = files.find("reserve");
        const bool whole = reserve != files.end() && reserve->second.size() == Pool::options().reserve_bytes;
        if (reached && done) finished_with_reserve += !whole;
        w.check_all();
        starts_when_there_is_room(w.pool.disk, w.pool.turn->state());
        w.server.disconnect();
        w.pool.restart(capacity);
        w.check_all();
        w.pool.disk.set_capacity(~0ull);
        w.begin();
        CHECK(w.submit());
        w.check_all();
        if (!reached) break;
        REQUIRE(at < 59);
    }
    CHECK(refused > 0);
    CHECK(finished_with_reserve > 0);
}
