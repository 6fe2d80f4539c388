// Export and import of whole sessions through real frames and the real store: round trips, refusals,
// every kill in the middle, and streams that a party wrote who means harm.
#include "import_stream.h"

#include "scheduler/record/paths.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

wire::ExportedGrain &find(Exported &session, int number) {
    for (wire::ExportedGrain &g : session.grains)
        if (g.grain == number) return g;
    FAIL("grain " << number << " is not in the export");
    return session.grains[0];
}

std::string kill_report(SimDisk &disk) {
    SimDisk copy = disk.killed();
    store::StoreOptions options;
    options.inline_limit = 4096;
    options.reserve_bytes = 64 * 1024;
    auto store = store::Store::open(copy, record::forest(), options, nullptr);
    REQUIRE(store);
    auto rebuilt = record::rebuild(**store, Instant{seconds(1000).ns});
    REQUIRE(rebuilt);
    REQUIRE(rebuilt->reports.empty());
    rebuilt->state.next_seniority = 0;
    return Pool::durable_text(rebuilt->state);
}

}  // namespace

TEST_CASE("an exported session is the same in another pool, and goes on there") {
    Worked a;
    Exported session = export_session(a.pool, a.control, 1);
    REQUIRE(session.grains.size() == 10);
    Pool other({host("h1", 2), host("h2", 1)});
    const ConnId control = other.control("ann", "prog");
    const std::size_t commits = other.commits;
    CHECK(import_session(other, control, stream_of(session), 4) == Code::ok);
    CHECK(other.commits == commits + 1);  // one turn: whole or not at all
    other.verify();
    Exported back = export_session(other, control, 4);
    back.head.session = 1;
    // Another pool has its own order of the queue, but it is the same order.
    for (Exported *e : {&session, &back}) rank_queue(*e);
    // Nor can a lease of before be taken up there.
    for (const int g : {1, 8, 9}) {
        CHECK(find(session, g).host == "h1");
        find(session, g).host = "";
    }
    const bool same = stream_of(back) == stream_of(session);
    CHECK(same);

    other.restart();
    const ConnId again = other.control("ann", "prog");
    CHECK(other.ask<wire::OpenReply>(again, wire::OpenSession{4, wire::OpenMode::reopen, true}).completed == 3);
    // The same call again is recognised by its parameters, with another label even.
    wire::GrainSpec spec = copying_grain("some input");
    other.ask<wire::Done>(again, wire::Gexec{4, 0, spec});
    CHECK(other.refusal(again, wire::Gexec{4, 0, copying_grain("other")}) == Code::grain_differs);
    ModelServer server(other, "h1");
    server.connect();
    for (int round = 0; round < 8; ++round) {
        server.read();
        std::vector<GrainKey> running;
        for (const auto &[key, held] : server.held) running.push_back(key);
        for (const GrainKey &key : running) server.finish(key);
    }
    server.read();
    other.verify();
    std::map<int, std::string> outs;
    for (std::int32_t next = 0;;) {
        const auto reply = other.call(again, wire::Gwait{4, next, false});
        const auto *result = std::get_if<wire::GrainResult>(&reply);
        if (!result) break;
        outs[result->grain] = result->out;
        next = result->sent;
    }
    CHECK(outs.size() == 8);
    CHECK(outs[1] == "what comes after the checkpoint");
    CHECK(outs[0] == "some input");
    CHECK(outs[4] == "later");
    CHECK(outs[3] == big_text().substr(0, limits::gwait_text_bytes));
}

TEST_CASE("grains that ran come first in the queue, then the others in their order") {
    Worked a(false);
    Exported session = export_session(a.pool, a.control, 1);
    CHECK(session.head.state == "active");
    Pool other({host("h1", 1)});
    const ConnId control = other.control("ann", "prog");
    REQUIRE(import_session(other, control, stream_of(session), 1) == Code::ok);
    std::vector<GrainNumber> queue;
    std::map<std::int64_t, GrainNumber> places;
    for (const auto &[shape, of_shape] : other.turn->state().session(ann1)->ready)
        for (const auto &[position, number] : of_shape.grains) places.emplace(position, number);
    for (const auto &[position, number] : places) queue.push_back(number);
    CHECK(queue == std::vector<GrainNumber>{1, 8, 9, 5, 4});
    other.verify();
}

TEST_CASE("who may export, and what cannot be imported as it is") {
    Worked a;
    const ConnId bob = a.pool.control("bob", "prog");
    CHECK(a.pool.refusal(bob, wire::ExportPage{"ann", 1, -1, 0}) == Code::refused);
    CHECK(a.pool.refusal(bob, wire::ExportPage{"", 1, -1, 0}) == Code::session_unknown);
    const std::string stream = stream_of(export_session(a.pool, a.control, 1));
    const std::string before = Pool::durable_text(a.pool.turn->state());
    CHECK(import_session(a.pool, a.control, stream, 1) == Code::session_closed);
    CHECK(import_session(a.pool, a.control, stream, -3) == Code::invalid);
    CHECK(Pool::durable_text(a.pool.turn->state()) == before);
    a.pool.ask<wire::OpenReply>(a.control, wire::OpenSession{1, wire::OpenMode::reopen, false});
    CHECK(import_session(a.pool, a.control, stream, 1, true) == Code::session_active);
    // A session of bob's own; ann's is not touched by it.
    CHECK(import_session(a.pool, bob, stream, 1) == Code::ok);
    CHECK(a.pool.turn->state().session({"bob", 1}) != nullptr);
    a.pool.verify();
}

TEST_CASE("pieces belong to one upload of one connection") {
    Pool pool({host("h1", 1)});
    const ConnId control = pool.control("ann", "prog"), second = pool.control("ann", "prog");
    Exported empty;
    empty.head.ident = "prog";
    const std::string stream = stream_of(empty);
    const auto finish = [&](ConnId conn, const std::string &bytes) {
        return pool.refusal(conn, wire::ImportSession{1, false, bytes.size(), crc32c(bytes)});
    };
    CHECK(finish(control, stream) == Code::not_found);
    CHECK(pool.refusal(control, wire::ImportPiece{5, 10, "bytes"}) == Code::not_found);
    CHECK(pool.refusal(control, wire::ImportPiece{0, limits::import_bytes + 1, ""}) == Code::limit);
    CHECK(pool.refusal(control, wire::ImportPiece{0, 4, "12345"}) == Code::invalid);
    // Begun here, gone on elsewhere; a new beginning drops the old one.
    pool.ask<wire::Done>(control, wire::ImportPiece{0, 10, "12345"});
    CHECK(pool.refusal(second, wire::ImportPiece{5, 10, "67890"}) == Code::not_found);
    CHECK(pool.refusal(control, wire::ImportPiece{4, 10, "67890"}) == Code::not_found);
    CHECK(pool.refusal(control, wire::ImportPiece{5, 11, "67890"}) == Code::not_found);
    pool.ask<wire::Done>(second, wire::ImportPiece{0, stream.size(), stream});
    CHECK(pool.refusal(control, wire::ImportPiece{5, 10, "67890"}) == Code::not_found);
    CHECK(finish(second, stream + "x") == Code::invalid);
    CHECK(finish(second, stream) == Code::not_found);
    pool.ask<wire::Done>(second, wire::ImportPiece{0, stream.size(), stream});
    CHECK(pool.refusal(second, wire::ImportSession{1, false, stream.size(), crc32c(stream) ^ 1}) == Code::invalid);
    // The connection closes, and with it the upload.
    pool.ask<wire::Done>(second, wire::ImportPiece{0, stream.size(), stream});
    pool.hang_up(second);
    pool.pump();
    CHECK(finish(control, stream) == Code::not_found);
    CHECK(pool.turn->state().sessions.empty());
    CHECK(import_session(pool, control, stream, 1) == Code::ok);  // no grains, but a session
    pool.verify();
}

TEST_CASE("imports take room by the bytes that came, and where it ends the largest gives way to smaller ones") {
    turn::Uploads uploads;
    const Instant now{seconds(1000).ns};
    const auto add = [&](std::uint64_t conn, const std::string &user, std::uint64_t offset, std::size_t bytes,
                         Instant at, std::uint64_t room) {
        return uploads
            .add(ConnId{conn}, user, at, {offset, limits::import_bytes, std::string(bytes, 'x')},
                 limits::import_bytes_of_all - room)
            .code;
    };
    // What is only announced is in no party's way.
    CHECK(add(1, "ann", 0, 1, now, 1000) == Code::ok);
    CHECK(add(2, "bob", 0, 1, now, 1000) == Code::ok);
    CHECK(add(3, "cat", 0, 100, now, 1000) == Code::ok);
    CHECK(add(1, "ann", 1, 599, now, 1000) == Code::ok);  // 701 bytes in all
    // Who has the most gets no more, and begins again where others, with less, need the room.
    CHECK(add(2, "bob", 1, 199, now, 1000) == Code::ok);
    CHECK(add(3, "cat", 100, 200, now, 1000) == Code::ok);
    CHECK(add(1, "ann", 600, 1, now, 1000) == Code::not_found);
    CHECK(add(1, "ann", 0, 600, now, 1000) == Code::limit);
    CHECK(add(2, "bob", 200, 1, now, 1000) == Code::ok);
    // One that is suspended gives way to a party that comes.
    const Instant later = now + seconds(61);
    CHECK(add(2, "bob", 201, 1, later, 1000) == Code::ok);
    CHECK(add(1, "ann", 0, 700, later, 1000) == Code::ok);
    CHECK(add(3, "cat", 300, 1, later, 1000) == Code::not_found);
}

TEST_CASE("much that is answered on the spot does not use up a turn") {
    Pool pool({host("h1", 1)});
    const ConnId control = pool.control("ann", "prog");
    const std::string bytes(limits::fetch_chunk_bytes, 'x');
    wire::ImportPiece piece{0, limits::bytes_per_turn + 4 * bytes.size(), bytes};
    for (; piece.offset < piece.total; piece.offset += bytes.size()) pool.ask<wire::Done>(control, piece);
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
}

TEST_CASE("the last call of an import comes again after its reply was lost") {
    Worked a;
    const std::string stream = stream_of(export_session(a.pool, a.control, 1));
    upload(a.pool, a.control, stream);
    const wire::ImportSession call{7, false, stream.size(), crc32c(stream)};
    a.pool.ask<wire::Done>(a.control, call, 4711);
    const std::string after = Pool::durable_text(a.pool.turn->state());
    const std::size_t commits = a.pool.commits;
    const ConnId later = a.pool.control("ann", "prog");
    a.pool.ask<wire::Done>(later, call, 4711);
    CHECK(a.pool.refusal(later, call, 4712) == Code::not_found);
    CHECK(a.pool.turn->state().session({"ann", 7}) != nullptr);
    CHECK(a.pool.commits == commits + 1);  // the token of `later`
    a.pool.ask<wire::OpenReply>(later, wire::OpenSession{7, wire::OpenMode::reopen, true});
}

TEST_CASE("killed at any moment of an import, the scheduler has the old or the new session") {
    for (const bool replace : {false, true}) {
        CAPTURE(replace);
        Worked a;
        Exported session = export_session(a.pool, a.control, 1);
        session.grains[4].spec.argv = {"/bin/other"};
        const std::string stream = stream_of(session);
        upload(a.pool, a.control, stream);
        const std::string before = kill_report(a.pool.disk);
        std::vector<std::string> seen;
        SimDisk &disk = a.pool.disk;
        disk.after_operation = [&] {
            const auto visit = std::exchange(disk.after_operation, nullptr);
            seen.push_back(kill_report(disk));
            disk.after_operation = visit;
        };
        a.pool.ask<wire::Done>(a.control, wire::ImportSession{replace ? 1 : 2, replace, stream.size(), crc32c(stream)});
        disk.after_operation = nullptr;
        const std::string after = kill_report(disk);
        CHECK(before != after);
        REQUIRE(seen.size() > 10);
        std::size_t old = 0, fresh = 0;
        for (const std::string &state : seen) old += state == before, fresh += state == after;
        CHECK(old > 0);
        CHECK(fresh > 0);
        CHECK(old + fresh == seen.size());
        a.pool.verify();
    }
}

TEST_CASE("a full disk: nothing of an import stays, and what it was to replace is still there") {
    Worked a;
    const std::string stream = stream_of(export_session(a.pool, a.control, 1));
    const std::string before = Pool::durable_text(a.pool.turn->state());
    a.pool.store->flush();
    a.pool.disk.set_capacity(a.pool.disk.used_bytes());
    CHECK(import_session(a.pool, a.control, stream, 1, true) == Code::no_space);
    CHECK(import_session(a.pool, a.control, stream, 2) == Code::no_space);
    CHECK(Pool::durable_text(a.pool.turn->state()) == before);
    a.pool.verify();
    a.pool.disk.set_capacity(~0ull);
    CHECK(import_session(a.pool, a.control, stream, 1, true) == Code::ok);
    a.pool.verify();
}

TEST_CASE("a stream that is not what it should be is refused by name") {
    Worked a;
    const Exported good = export_session(a.pool, a.control, 1);
    struct Case {
        const char *about;
        std::function<void(Exported &)> spoil;
    };
    const std::vector<Case> cases = {
        {"ident", [](Exported &e) { e.head.ident = "../x"; }},
        {"grains", [](Exported &e) { e.head.grains += 1; }},
        {"results", [](Exported &e) { e.head.results = INT32_MAX; }},
        {"results", [](Exported &e) { e.head.results = 0; }},
        {"acknowledged", [](Exported &e) { e.head.acknowledged = -1; }},
        {"handed out", [](Exported &e) { e.head.acknowledged = e.head.handed_out + 1; }},
        {"twice", [](Exported &e) { e.grains[1].grain = e.grains[0].grain; }},
        {"ascending", [](Exported &e) { std::swap(e.grains[0], e.grains[1]); }},
        {"negative", [](Exported &e) { e.grains[0].grain = -1; }},
        {"state", [](Exported &e) { e.grains[0].state = "done"; }},
        {"result", [](Exported &e) { e.grains[0].result_index = e.grains[3].result_index; }},
        {"result", [](Exported &e) { e.grains[0].result_index = 99; }},
        {"result", [](Exported &e) { e.grains[0].result_index = -1; }},
        {"result", [](Exported &e) { e.grains[1].result_index = 1; }},
        {"queue", [](Exported &e) { e.grains[4].queue = e.grains[5].queue; }},
        {"queue", [](Exported &e) { e.grains[0].queued = true; }},
        {"argv", [](Exported &e) { e.grains[0].spec.argv.clear(); }},
        {"argv", [](Exported &e) { e.grains[0].spec.argv[0] = std::string("a\0b", 3); }},
        {"NAME=value", [](Exported &e) { e.grains[0].spec.env = {"novalue"}; }},
        {"attempts", [](Exported &e) { e.grains[0].spec.demands.attempts = 0; }},
        {"failures", [](Exported &e) { e.grains[0].failures = 4; }},
        {"attempt", [](Exported &e) { e.grains[4].failures = 3; }},
        {"failures", [](Exported &e) { e.grains[0].failures = -1; }},
        {"thrash", [](Exported &e) { e.grains[0].spec.demands.thrash = -1; }},
        {"sequence", [](Exported &e) { e.grains[0].sequence = UINT32_MAX; }},
        {"usage", [](Exported &e) { e.grains[0].usage.user_us = -1; }},
        {"input_position", [](Exported &e) { e.grains[1].input_position = 1u << 30; }},
        {"out", [](Exported &e) { e.grains[0].out.length += 1; }},
        {"err", [](Exported &e) { e.grains[0].err.whole = false; }},
        {"twice", [](Exported &e) { e.grains[0].spec.input = "x"; }},
        {"host", [](Exported &e) { e.grains[0].host = "a/b"; }},
        {"nogo",
         [](Exported &e) {
             e.grains[0].nogo = {"h1", "h1"};
         }},
        {"nogo", [](Exported &e) { e.grains[0].nogo = {""}; }},
        {"message",
         [](Exported &e) {
             e.grains[0].message = {5000, true, std::string(5000, 'x')};
         }},
    };
    for (const Case &c : cases) {
        Exported bad = good;
        c.spoil(bad);
        const std::string stream = stream_of(bad);
        upload(a.pool, a.control, stream);
        const auto reply = a.pool.call(a.control, wire::ImportSession{2, false, stream.size(), crc32c(stream)});
        CAPTURE(c.about);
        const auto *error = std::get_if<wire::ErrorReply>(&reply);
        REQUIRE(error);
        CHECK(error->code == static_cast<int>(Code::invalid));
        CHECK(error->text.find(c.about) != std::string::npos);
    }
    CHECK(a.pool.turn->state().session({"ann", 2}) == nullptr);
}

TEST_CASE("hosts that a pool does not know are forgotten") {
    Worked a;
    Exported session = export_session(a.pool, a.control, 1);
    session.grains[4].nogo = {"stranger", "h1", "other-stranger"};
    session.grains[0].host = "stranger";
    REQUIRE(import_session(a.pool, a.control, stream_of(session), 2) == Code::ok);
    CHECK(a.pool.turn->state().grain({{"ann", 2}, 4})->course->nogo->size() == 1);
    CHECK(a.pool.turn->state().grain({{"ann", 2}, 0})->lessee == core::no_host);
    CHECK(a.pool.turn->state().hosts.size() == 1);
    a.pool.verify();
}

TEST_CASE("hostile streams are refused or become a sound session") {
    Worked a;
    Exported small = export_session(a.pool, a.control, 1);
    std::erase_if(small.grains, [](const auto &g) { return g.grain == 3; });  // the long one
    small.head.grains = small.grains.size();
    const std::string good = stream_of(small);
    REQUIRE(import_session(a.pool, a.control, good, 1, true) == Code::ok);
    a.server.strangers = true;
    Random random(20240229);
    int accepted = 0, refused = 0;
    for (int i = 0; i < 4000; ++i) {
        std::string bad = good;
        for (std::uint64_t n = 1 + random.below(3); n > 0; --n)
            bad[random.below(bad.size())] =
                static_cast<char>(random.chance(50) ? random.next() : (random.chance(50) ? 0 : 0xff));
        if (random.chance(10)) bad.resize(random.below(bad.size()));
        if (random.chance(5)) bad += bad.substr(random.below(bad.size()));
        const Code code = import_session(a.pool, a.control, bad, 1, true);
        REQUIRE((code == Code::ok || code == Code::invalid));
        ++(code == Code::ok ? accepted : refused);
        REQUIRE(core::check(a.pool.turn->state()) == "");
        if (code != Code::ok || accepted % 20 != 0) continue;
        a.pool.verify();
        // What was accepted can be exported, reopened, started and closed.
        export_session(a.pool, a.control, 1);
        const auto reply = a.pool.call(a.control, wire::OpenSession{1, wire::OpenMode::reopen, true});
        if (!std::holds_alternative<wire::OpenReply>(reply)) continue;  // its ident was hit
        a.server.read();
        a.pool.ask<wire::Done>(a.control, wire::CloseSession{"", 1, -1});
        a.server.read();
        a.pool.verify();
    }
    INFO(accepted << " accepted, " << refused << " refused");
    CHECK(accepted > 100);
    CHECK(refused > 1000);
}
