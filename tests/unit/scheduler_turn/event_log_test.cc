// The event log of a session through real frames, the real store and a real restart; and what `dcs grain restart
// --and-after` makes of a session.
#include "crash/scheduler/durable.h"
#include "import_stream.h"
#include "support/catch.h"
#include "wire/history.h"

using namespace dcs;
using namespace dcs::test;

namespace {

std::string raw_log(Pool &pool, ConnId conn, std::int32_t session) {
    std::string log;
    for (;;) {
        const auto piece =
            pool.ask<wire::Piece>(conn, wire::Fetch{"ann", session, 0, wire::Stream::log, log.size(), 100, ""});
        if (piece.bytes.empty()) return log;
        log += piece.bytes;
    }
}

std::vector<wire::Event> events_of(const std::string &log) {
    std::vector<wire::Event> events;
    std::string_view left = log;
    REQUIRE(wire::take_events(left, events));
    REQUIRE(left.empty());
    return events;
}

// "submitted 3", "handed_out 1".
std::vector<std::string> short_log(Pool &pool, ConnId conn, std::int32_t session) {
    std::vector<std::string> lines;
    for (const wire::Event &e : events_of(raw_log(pool, conn, session))) {
        std::string line = wire::name_of(e.kind);
        if (e.grain >= 0) line += " " + std::to_string(e.grain);
        else if (e.number > 0) line += " " + std::to_string(e.number);
        if (!e.text.empty()) line += " " + e.text;
        lines.push_back(line);
    }
    return lines;
}
using Lines = std::vector<std::string>;

void check_logs(Pool &pool) {
    pool.verify();
    CHECK(compare_logs(*pool.store, pool.turn->state()) == "");
}

// A control program that decides: 1 and 2 at once, 3 after the first result, 4 after the second, and then it kills 5.
struct Decided {
    Pool pool{{host("h1", 5)}};
    ModelServer server{pool, "h1"};
    ConnId control{};
    Decided() {
        control = pool.control("ann", "prog");
        pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, true});
        server.connect();
        for (const int g : {1, 2, 5}) submit(g);
        finish(2);
        result(0);
        submit(3);
        server.checkpoint({ann1, 3}, 2);
        finish(1);
        result(1);
        submit(4);
        pool.ask<wire::Done>(control, wire::Gkill{"", 1, 5});
        server.read();
    }
    void submit(int grain) {
        pool.ask<wire::Done>(control, wire::Gexec{1, grain, copying_grain("grain " + std::to_string(grain))});
        server.read();
    }
    void finish(int grain) {
        server.finish({ann1, grain});
        server.read();
    }
    int result(int next) { return pool.ask<wire::GrainResult>(control, wire::Gwait{1, next, false}).grain; }
    Code forget(int grain, int forgets) {
        const ConnId person = pool.control("ann", "somebody");
        const Code code = pool.refusal(person, wire::RestartGrain{"ann", 1, grain, true, forgets});
        server.read();
        return code;
    }
    const core::Session &session() { return *pool.turn->state().session(ann1); }
};

}  // namespace

TEST_CASE("the log of a session has everything in order, and outlives the scheduler") {
    Decided d;
    const Lines wanted = {"opened prog", "submitted 1",  "started 1",    "submitted 2", "started 2", "submitted 5",
                          "started 5",   "finished 2",   "handed_out 1", "submitted 3", "started 3", "checkpoint 3",
                          "finished 1",  "handed_out 2", "submitted 4",  "started 4",   "killed 5"};
    CHECK(short_log(d.pool, d.control, 1) == wanted);
    check_logs(d.pool);
    d.pool.restart();
    d.server.connect();
    const ConnId again = d.pool.control("ann", "prog");
    d.pool.ask<wire::OpenReply>(again, wire::OpenSession{1, wire::OpenMode::resume, true});
    CHECK(d.pool.ask<wire::GrainResult>(again, wire::Gwait{1, 0, false}).grain == 2);
    Lines now = wanted;
    now.push_back("resumed");  // what was handed out before is no news
    CHECK(short_log(d.pool, again, 1) == now);
    check_logs(d.pool);
}

TEST_CASE("what an unfinished grain shows to its control program is in the log, once for each increment") {
    Decided d;
    const std::size_t before = short_log(d.pool, d.control, 1).size();
    const wire::Fetch checkpoint{"", 1, 3, wire::Stream::checkpoint, 0, 100, ""};
    const std::size_t commits = d.pool.commits;
    for (int i = 0; i < 3; ++i) d.pool.ask<wire::Piece>(d.control, checkpoint);
    CHECK(d.pool.commits == commits + 1);
    CHECK(short_log(d.pool, d.control, 1).size() == before + 1);
    CHECK(short_log(d.pool, d.control, 1).back() == "shown 3");
    const ConnId somebody = d.pool.control("ann", "somebody");  // not of this session
    d.pool.ask<wire::Piece>(somebody, checkpoint);
    d.pool.ask<wire::Piece>(d.control, wire::Fetch{"", 1, 2, wire::Stream::out, 0, 100, ""});
    CHECK(short_log(d.pool, d.control, 1).size() == before + 1);
    d.server.checkpoint({ann1, 3}, 1);
    d.pool.ask<wire::Piece>(d.control, checkpoint);
    CHECK(short_log(d.pool, d.control, 1).size() == before + 3);
    check_logs(d.pool);
}

TEST_CASE("an import brings the log along, and a damaged one is refused") {
    Worked a;
    Exported session = export_session(a.pool, a.control, 1);
    session.head.log = raw_log(a.pool, a.control, 1);
    const std::size_t before = events_of(session.head.log).size();
    Pool other({host("h1", 2)});
    const ConnId control = other.control("ann", "prog");
    REQUIRE(import_session(other, control, stream_of(session), 4) == Code::ok);
    check_logs(other);
    const Lines now = short_log(other, control, 4);
    REQUIRE(now.size() == before + 2);
    CHECK(Lines(now.end() - 2, now.end()) == Lines{"imported", "handed_out 1"});
    session.head.log[session.head.log.size() / 2] ^= 1;
    CHECK(import_session(other, control, stream_of(session), 5) == Code::invalid);
    session.head.log = session.head.log.substr(0, 5);
    CHECK(import_session(other, control, stream_of(session), 5) == Code::invalid);
}

TEST_CASE("a session is packed and cleaned with its log") {
    Worked a;
    const Lines before = short_log(a.pool, a.control, 1);
    CHECK(before.back() == "left 9 session_closed");
    for (int i = 0; i < 20; ++i) {
        a.pool.outside->clock = a.pool.outside->clock + seconds(1);
        a.pool.turn->tidy();
        a.pool.pump();
    }
    CHECK(short_log(a.pool, a.control, 1) == before);
    check_logs(a.pool);
    a.pool.ask<wire::Done>(a.control, wire::CleanSession{"", 1});
    for (const auto &[path, bytes] : a.pool.disk.files("sessions")) FAIL(path << " is left");
}

TEST_CASE("a result is forgotten with all that was decided after it") {
    Decided d;
    CHECK(d.forget(2, 1) == Code::refused);  // as if another submission had come meanwhile
    CHECK(d.forget(2, 2) == Code::ok);
    check_logs(d.pool);
    CHECK(d.session().grains.size() == 3);
    CHECK(d.session().info.shown == 0);
    // 1 keeps its result; 2 and 5, which was killed after the second result, run again.
    CHECK(d.session().grains.at(1).status() == core::GrainStatus::finished);
    CHECK(d.session().grains.at(2).status() == core::GrainStatus::running);
    CHECK(d.session().grains.at(5).status() == core::GrainStatus::running);
    CHECK(d.server.held.count({ann1, 4}) == 0);
    // Who ran it has seen what is forgotten.
    CHECK(d.pool.refusal(d.control, wire::Gwait{1, 0, false}) == Code::session_taken);
    d.pool.restart();
    d.server.connect();
    check_logs(d.pool);
    d.control = d.pool.control("ann", "prog");
    d.pool.ask<wire::OpenReply>(d.control, wire::OpenSession{1, wire::OpenMode::resume, true});
    for (const int g : {1, 2, 5}) d.submit(g);
    CHECK(d.result(0) == 1);  // now the first
    d.pool.ask<wire::Done>(d.control, wire::Gexec{1, 3, copying_grain("something else")});
    d.server.read();
    d.finish(2);
    CHECK(d.result(2) == 2);
    check_logs(d.pool);
}

TEST_CASE("what has no result has none to forget, and a closed session is active again") {
    Decided d;
    CHECK(d.forget(3, 0) == Code::refused);
    CHECK(d.forget(77, 0) == Code::grain_unknown);
    const ConnId bob = d.pool.control("bob", "prog");
    CHECK(d.pool.refusal(bob, wire::RestartGrain{"ann", 1, 1, true, 1}) == Code::refused);
    d.pool.ask<wire::Done>(d.control, wire::CloseSession{"", 1, 2});
    d.server.read();
    CHECK(d.forget(1, 1) == Code::ok);  // the second result: 4 was decided on it
    CHECK(d.session().info.status == core::SessionStatus::active);
    CHECK(d.session().info.shown == 1);
    CHECK(d.session().grains.count(4) == 0);
    CHECK(d.session().grains.at(3).status() == core::GrainStatus::running);
    check_logs(d.pool);
    d.control = d.pool.control("ann", "prog");
    d.pool.ask<wire::OpenReply>(d.control, wire::OpenSession{1, wire::OpenMode::resume, true});
    CHECK(d.result(0) == 2);
    d.finish(1);
    CHECK(d.result(1) == 1);
    // A number that was forgotten is free, under leases that no party had.
    d.submit(4);
    d.finish(4);
    check_logs(d.pool);
}

TEST_CASE("a grain that failed begins again alone, as the submission has it that says so") {
    Decided d;
    wire::GrainSpec spec = copying_grain("grain 6");
    spec.demands.attempts = 1;
    d.pool.ask<wire::Done>(d.control, wire::Gexec{1, 6, spec});
    d.server.read();
    d.server.finish({ann1, 6}, 1);
    CHECK(d.result(2) == 6);
    d.control = d.pool.control("ann", "prog");
    d.pool.ask<wire::OpenReply>(d.control, wire::OpenSession{1, wire::OpenMode::resume, true});
    spec.env.push_back("WELL=1");
    spec.demands.wall_s = 60;
    CHECK(d.pool.refusal(d.control, wire::Gexec{1, 6, spec, true, false, false}) == Code::grain_differs);
    spec.argv[1] = "other";
    spec.input = "another";
    CHECK(d.pool.refusal(d.control, wire::Gexec{1, 6, spec, true, true, true}) == Code::ok);
    d.server.read();
    CHECK(d.pool.refusal(d.control, wire::Gexec{1, 2, copying_grain("grain 2"), true, true, true}) == Code::ok);
    check_logs(d.pool);
    CHECK(d.session().grains.size() == 6);
    CHECK(d.session().info.shown == 3);
    CHECK(d.session().grains.at(5).status() == core::GrainStatus::killed);
    CHECK(d.session().grains.at(2).status() == core::GrainStatus::finished);
    CHECK(d.session().grains.at(6).status() == core::GrainStatus::running);
    wire::Query query;
    query.type = wire::QueryType::grain;
    query.session = 1;
    query.grain = 6;
    CHECK(d.pool.ask<wire::QueryReply>(d.control, query).grains.at(0).env == spec.env);
    CHECK(d.pool.refusal(d.control, wire::Gexec{1, 6, spec}) == Code::ok);  // it is what was submitted
    CHECK(d.result(0) == 2);
    CHECK(d.result(1) == 1);
    d.finish(6);
    CHECK(d.result(3) == 6);  // the third is a hole now
    check_logs(d.pool);
}

TEST_CASE("a grain with files of its own runs again from the beginning of its input") {
    Decided d;
    d.finish(3);
    REQUIRE(d.session().grains.at(3).own_tree);
    CHECK(d.result(2) == 3);
    CHECK(d.forget(3, 0) == Code::ok);
    check_logs(d.pool);
    CHECK(d.session().grains.at(3).course->checkpoint_length == 0);
    d.pool.restart();
    d.server.held.clear();
    d.server.connect();
    d.server.read();
    check_logs(d.pool);
}
