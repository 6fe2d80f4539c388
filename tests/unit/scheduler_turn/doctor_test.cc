// What `dcs doctor` reports, and sessions that are set aside.
#include "import_stream.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

// As time passes; a process that woke up late would give every host its limit again.
void pass(Pool &pool, int whole_seconds) {
    for (; whole_seconds > 0; --whole_seconds) {
        pool.outside->clock = pool.outside->clock + seconds(1);
        pool.pump();
    }
}

}  // namespace

TEST_CASE("a damaged session is listed, told about, and removed or replaced by its owner") {
    Worked a;
    const std::string stream = stream_of(export_session(a.pool, a.control, 1));
    REQUIRE(a.pool.store->flush().answer == store::Answer::done);
    a.pool.disk.flip("sessions/ann/1/grains", 20, 0x40);
    a.pool.restart();
    const ConnId ann = a.pool.control("ann", "prog"), bob = a.pool.control("bob", "prog");
    wire::Query query;
    query.type = wire::QueryType::sessions;
    const auto rows = a.pool.ask<wire::QueryReply>(ann, query).sessions;
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].state == "damaged");
    pass(a.pool, 25);
    const auto problems = a.pool.ask<wire::DoctorReply>(bob, wire::Doctor{}).problems;
    REQUIRE(problems.size() == 2);  // and a host that has not called in yet
    CHECK(problems[0].entity == "session ann/1");
    CHECK(problems[0].file == "sessions/ann/1/grains");
    CHECK(problems[0].advice.find("dcs session clean ann/1") != std::string::npos);
    CHECK(problems[0].affects == about("no unused file leaves the library"));
    CHECK(problems[1].entity == "host h1");
    CHECK(a.pool.refusal(ann, wire::ExportPage{"", 1, -1, 0}) == Code::io_error);
    CHECK(a.pool.refusal(bob, wire::CleanSession{"ann", 1}) == Code::refused);
    CHECK(a.pool.refusal(bob, wire::CleanSession{"", 1}) == Code::session_unknown);
    CHECK(import_session(a.pool, ann, stream, 1) == Code::session_closed);
    REQUIRE(!a.pool.disk.files("sessions/ann/1").empty());

    SECTION("removed") {
        // On a full disk, too: it makes room.
        a.pool.disk.set_capacity(a.pool.disk.used_bytes());
        a.pool.ask<wire::Done>(ann, wire::CleanSession{"ann", 1});
        CHECK(a.pool.disk.files("sessions/ann/1").empty());
        CHECK(a.pool.turn->state().set_aside.empty());
        a.pool.disk.set_capacity(~0ull);
        a.pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    }
    SECTION("replaced") {
        a.pool.disk.set_capacity(a.pool.disk.used_bytes());
        CHECK(import_session(a.pool, ann, stream, 1, true) == Code::no_space);
        CHECK(a.pool.turn->state().set_aside.count(ann1) == 1);
        a.pool.disk.set_capacity(~0ull);
        CHECK(import_session(a.pool, ann, stream, 1, true) == Code::ok);
        Exported back = export_session(a.pool, ann, 1);
        CHECK(back.grains.size() == 10);
    }
    a.pool.verify();
    a.pool.restart();
    CHECK(a.pool.reports.empty());
    pass(a.pool, 25);
    CHECK(a.pool.ask<wire::DoctorReply>(a.pool.control("ann", "prog"), wire::Doctor{}).problems.size() == 1);
}

TEST_CASE("the doctor names a connected host that misses its reports, long before it is late") {
    core::HostConfig slow = host("h1", 1);
    slow.interval = seconds(300), slow.alert = seconds(900), slow.limit = seconds(1800), slow.extended = seconds(7200);
    Pool pool({slow});
    ModelServer one(pool, "h1");
    const ConnId ann = pool.control("ann", "prog");
    const auto problems = [&] { return pool.ask<wire::DoctorReply>(ann, wire::Doctor{}).problems; };
    one.connect();
    pass(pool, 310);
    CHECK(problems().empty());
    pass(pool, 60);
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].entity == "host h1");
    CHECK(problems()[0].problem == "is connected, but last reported 370 s ago");
    one.call_in();
    CHECK(problems().empty());
}

TEST_CASE("a pause of the scheduler is no sign of life of a host, to people") {
    Pool pool({host("h1", 1)});
    ModelServer server(pool, "h1");
    server.connect();
    pass(pool, 1);
    pool.outside->clock = pool.outside->clock + seconds(3600);
    pool.pump();
    CHECK(pool.turn->state().hosts[0].status == core::HostStatus::active);
    pass(pool, 600);
    wire::Query query;
    query.type = wire::QueryType::hosts;
    const ConnId ann = pool.control("ann", "prog");
    const auto rows = pool.ask<wire::QueryReply>(ann, query).hosts;
    CHECK((rows.at(0).state == "dead" && rows[0].last_call_in_s == 4201));
    CHECK(pool.ask<wire::DoctorReply>(ann, wire::Doctor{}).problems.at(0).problem ==
          about("is dead: it last reported 4201 s ago"));
}

TEST_CASE("of a host that has never called it is not said when it reported, nor that its grains have moved") {
    Pool pool({host("h1", 1)});
    pass(pool, 20000);
    REQUIRE(pool.turn->state().hosts[0].status == core::HostStatus::dead);
    const ConnId ann = pool.control("ann", "prog");
    const auto problem = pool.ask<wire::DoctorReply>(ann, wire::Doctor{}).problems.at(0);
    CHECK(problem.problem == about("has not called in since"));
    CHECK(problem.affects == "1 slot");
}

TEST_CASE("the doctor names hosts that are late or dead, and a disk that is nearly full") {
    Pool pool({host("h1", 1), host("h2", 1)});
    ModelServer one(pool, "h1"), two(pool, "h2");
    const ConnId ann = pool.control("ann", "prog");
    const auto problems = [&] { return pool.ask<wire::DoctorReply>(ann, wire::Doctor{}).problems; };
    one.connect();
    CHECK(problems().empty());  // after a start hosts need a moment
    pass(pool, 25);
    one.call_in();
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].problem.find("has not called in") != std::string::npos);
    two.connect();
    CHECK(problems().empty());
    pass(pool, 20);
    two.call_in();
    pass(pool, 15);
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].entity == "host h1");
    CHECK(problems()[0].problem.find("delinquent") != std::string::npos);
    two.call_in();
    pass(pool, 20);
    two.call_in();
    pass(pool, 20);
    two.call_in();
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].problem.find("dead") != std::string::npos);
    one.disconnect();
    one.connect();
    CHECK(problems().empty());
    pool.disk.set_capacity(pool.disk.used_bytes() + (3u << 20));
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].problem.find("3 MiB free") != std::string::npos);
    CHECK(problems()[0].affects == about("refused below 256 MiB every call"));
    CHECK(problems()[0].advice == about("dcs session clean this disk"));
    pool.disk.set_capacity(pool.disk.used_bytes() + limits::library_leaves_bytes - 1);  // images are refused by now
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].affects.ends_with("are refused below 256 MiB"));
}

TEST_CASE("on a disk that is nearly full the doctor tells operators, and no others, how much each user has there") {
    Worked a(false);
    a.pool.turn->take_policy(core::Policy());
    a.pool.pump();
    a.pool.disk.set_capacity(a.pool.disk.used_bytes() + (100u << 20));
    const auto told = [&](const std::string &user, bool privileged) {
        const ConnId asker = a.pool.open(turn::Door::user, user, privileged);
        a.pool.ask<wire::Welcome>(asker, wire::Hello{});
        std::string texts;
        for (const wire::ProblemRow &row : a.pool.ask<wire::DoctorReply>(asker, wire::Doctor{}).problems)
            if (row.problem.starts_with("its users")) texts += row.problem;
        return texts;
    };
    CHECK(told("root", true) == about("users sessions contents ann MiB"));
    CHECK(told("ben", false).empty());
}

TEST_CASE("the doctor names a host table without hosts") {
    Worked a(false);
    const auto problems = [&] { return a.pool.ask<wire::DoctorReply>(a.control, wire::Doctor{}).problems; };
    CHECK(problems().empty());
    a.pool.hosts.clear();
    a.pool.turn->take_host_table({});
    a.pool.pump();
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].problem == about("no hosts run grains"));
}
