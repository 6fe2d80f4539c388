// What happens to damage, and what idle moments do for what lies on disk.
#include <set>

#include "pool.h"
#include "scheduler/record/paths.h"
#include "scheduler/record/read_blob.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

TEST_CASE("one damaged session is set aside by name, the rest runs") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    three_grains(pool, server, 1);
    const ConnId other = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(other, wire::OpenSession{2, wire::OpenMode::open, false});
    REQUIRE(pool.store->flush().answer == store::Answer::done);

    std::string file;
    SECTION("its status") { file = "sessions/ann/1/status"; }
    SECTION("its log") { file = "sessions/ann/1/grains"; }
    pool.disk.flip(file, 20, 0x40);
    const auto before = pool.disk.files("sessions/ann/1");
    pool.restart();
    REQUIRE(pool.reports.size() == 1);
    CHECK(pool.reports[0].find(file) != std::string::npos);
    CHECK(pool.turn->state().session({"ann", 1}) == nullptr);
    CHECK(pool.turn->state().session({"ann", 2}) != nullptr);

    // No party writes over it, and its user learns which file it is.
    const ConnId control = pool.control("ann", "prog");
    const auto reply = pool.call(control, wire::OpenSession{1, wire::OpenMode::resume, false});
    REQUIRE(std::holds_alternative<wire::ErrorReply>(reply));
    CHECK(std::get<wire::ErrorReply>(reply).code == static_cast<int>(Code::io_error));
    CHECK(std::get<wire::ErrorReply>(reply).text.find(file) != std::string::npos);
    pool.ask<wire::OpenReply>(control, wire::OpenSession{3, wire::OpenMode::open, false});
    CHECK(pool.disk.files("sessions/ann/1") == before);
}

TEST_CASE("a grain whose own tree is damaged is set aside alone") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    three_grains(pool, server, 1);
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    const std::string file = "sessions/ann/1/g/1/status";
    SECTION("changed") { pool.disk.flip(file, 20, 0x40); }
    SECTION("gone") { REQUIRE(pool.disk.remove(file)); }
    pool.restart();
    REQUIRE(pool.reports.size() == 1);
    CHECK(pool.reports[0].find("grain ann/1:1 is set aside") == 0);
    CHECK(pool.reports[0].find(file) != std::string::npos);
    const GrainKey key{{"ann", 1}, 1};
    const ConnId control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});

    // The others' results come; then, and at every other call about it, it is named.
    CHECK(pool.ask<wire::GrainResult>(control, wire::Gwait{1, 0, false}).grain == 0);
    server.connect();
    server.read();
    server.finish({{"ann", 1}, 2});
    server.read();
    CHECK(pool.ask<wire::GrainResult>(control, wire::Gwait{1, 1, false}).grain == 2);
    CHECK(pool.refusal(control, wire::Gwait{1, 2, false}) == Code::io_error);
    CHECK(pool.refusal(control, wire::Gexec{1, 1, copying_grain("some input")}) == Code::io_error);
    CHECK(pool.refusal(control, wire::Fetch{"", 1, 1, wire::Stream::out, 0, 10}) == Code::io_error);

    // It stays so when its session goes on and the scheduler comes again; killed, it is gone.
    pool.restart();
    CHECK(pool.turn->state().session(key.session)->damaged.count(1) == 1);
    const ConnId again = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(again, wire::OpenSession{1, wire::OpenMode::resume, false});
    pool.ask<wire::Done>(again, wire::Gkill{"", 1, 1});
    CHECK(pool.refusal(again, wire::Gwait{1, 2, false}) == Code::nothing_left);
    CHECK(pool.disk.files("sessions/ann/1/g").empty());
    pool.restart();
    CHECK(pool.reports.empty());
    CHECK(pool.turn->state().grain(key)->status() == core::GrainStatus::killed);
}

TEST_CASE("a damaged authorization table costs the tokens and nothing else") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    three_grains(pool, server, 1);
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    pool.disk.flip("auth/table", 9, 1);
    pool.restart();
    REQUIRE(pool.reports.size() == 1);
    CHECK(pool.reports[0].find("auth/table") != std::string::npos);
    CHECK(pool.turn->state().session({"ann", 1}) != nullptr);
    const ConnId control = pool.control("ann", "prog");
    const auto open = pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});
    CHECK(open.as == wire::OpenedAs::resumed);
}

TEST_CASE("a closed session is packed: its settled grains leave their own trees") {
    Pool pool({host("h1", 4)});
    ModelServer server(pool, "h1");
    const ConnId control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
    server.connect();
    wire::GrainSpec big = copying_grain(std::string(50'000, 'b'));
    pool.ask<wire::Done>(control, wire::Gexec{1, 0, big});  // own parameters
    pool.ask<wire::Done>(control, wire::Gexec{1, 1, copying_grain("checkpointed")});
    pool.ask<wire::Done>(control, wire::Gexec{1, 2, copying_grain("stays unfinished")});
    wire::GrainSpec huge = copying_grain(std::string(limits::packed_grain_bytes, 'h'));
    pool.ask<wire::Done>(control, wire::Gexec{1, 3, huge});
    server.read();
    for (const int g : {1, 2}) server.checkpoint({{"ann", 1}, g}, 4);
    server.read();
    for (const int g : {0, 1, 3}) server.finish({{"ann", 1}, g});
    server.read();
    pool.turn->tidy();
    CHECK(pool.turn->state().session({"ann", 1})->packable.size() == 2);  // open: not yet
    const auto answers = [&] {
        std::string all;
        const ConnId reader = pool.control("ann", "reader");
        for (const int g : {0, 1, 2, 3})
            for (const auto stream : {wire::Stream::out, wire::Stream::err, wire::Stream::checkpoint,
                                      wire::Stream::message, wire::Stream::input})
                all += pool.ask<wire::Piece>(reader, wire::Fetch{"ann", 1, g, stream, 0, 300'000}).bytes + "|";
        return all;
    };
    pool.ask<wire::Done>(control, wire::CloseSession{"", 1, -1});
    const std::string before = answers();
    CHECK(before.find("checkpointed") != std::string::npos);
    pool.turn->tidy();
    pool.pump();
    const auto files = pool.disk.files("sessions/ann/1/g");
    CHECK(files.count("sessions/ann/1/g/0/status") == 0);
    CHECK(files.count("sessions/ann/1/g/1/status") == 0);
    CHECK(files.count("sessions/ann/1/g/2/checkpoint") == 1);
    CHECK(files.count("sessions/ann/1/g/3/status") == 1);
    CHECK(pool.turn->state().unpacked.empty());
    CHECK(answers() == before);
    pool.restart();
    CHECK(answers() == before);
    pool.turn->tidy();
    CHECK(pool.disk.files("sessions/ann/1/g") == files);

    // Reopened, what was unfinished goes on from its checkpoint and the rest is still there.
    const ConnId again = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(again, wire::OpenSession{1, wire::OpenMode::reopen, true});
    ModelServer next(pool, "h1");
    next.connect();
    next.read();
    REQUIRE(next.held.count({{"ann", 1}, 2}) == 1);
    next.finish({{"ann", 1}, 2});
    next.read();
    std::set<int> results;
    for (int i = 0; i < 4; ++i) results.insert(pool.ask<wire::GrainResult>(again, wire::Gwait{1, i, false}).grain);
    CHECK(results == std::set<int>{0, 1, 2, 3});
}

TEST_CASE("scrubbing names damaged contents of every kind, and forgets what was restored") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    three_grains(pool, server, 1);
    const auto complaints = [&] {
        std::string all;
        pool.outside->lines.clear();
        for (int i = 0; i < 20; ++i) {
            pool.outside->clock = pool.outside->clock + seconds(24 * 3601);
            pool.turn->tidy();
            pool.pump();
        }
        for (const std::string &line : pool.outside->lines)
            if (line.find("is damaged") != std::string::npos) all += line + "\n";
        return all;
    };
    CHECK(complaints() == "");
    int kinds = 0;
    for (const auto &[path, bytes] : pool.disk.files("sessions/ann/1")) {
        if (path.ends_with("status") || path.ends_with("grains")) continue;
        ++kinds;
        pool.disk.flip(path, 0, 0x10);
        const std::string found = complaints();
        CHECK(found.find(path) != std::string::npos);
        pool.disk.flip(path, 0, 0x10);
        (void)complaints();
        pool.disk.flip(path, 0, 0x10);
        CHECK(complaints() == "");  // the log names each grain once
        pool.disk.flip(path, 0, 0x10);
        pool.restart();
        server.connect();
        server.read();
    }
    CHECK(kinds >= 5);
}

TEST_CASE("the doctor names a damaged checkpoint until it is restored or newer ones have replaced it") {
    Pool pool({host("h1", 1)});
    ModelServer server(pool, "h1");
    server.connect();
    const ConnId ann = pool.control("ann", "prog");
    const GrainKey key{{"ann", 1}, 0};
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    pool.ask<wire::Done>(ann, wire::Gexec{1, 0, copying_grain(std::string(100, 'x'))});
    server.read();
    server.checkpoint(key, 5);
    server.read();
    const auto named = [&] {
        std::string all;
        for (const wire::ProblemRow &row : pool.ask<wire::DoctorReply>(ann, wire::Doctor{}).problems)
            if (row.entity == "grain ann/1:0") all += row.file + ";";
        return all;
    };
    const record::Place place = record::place_of(key, *pool.turn->state().grain(key), record::Part::checkpoint);
    const auto damage = [&] {
        pool.disk.flip(place.path, place.offset, 0x10);
        pool.outside->clock = pool.outside->clock + seconds(24 * 3601);
        for (int i = 0; i < 20; ++i) {
            pool.outside->clock = pool.outside->clock + seconds(1);
            pool.turn->tidy();
            pool.pump();
        }
    };
    REQUIRE(pool.store->flush().answer == store::Answer::done);
    CHECK(named() == "");
    damage();
    CHECK(named() == place.path + ";");
    pool.disk.flip(place.path, place.offset, 0x10);
    CHECK(named() == "");
    damage();
    CHECK(named() == place.path + ";");
    server.disconnect();
    server.connect();
    for (int i = 0; i < 2; ++i) {
        server.read();
        server.checkpoint(key, 5);
    }
    REQUIRE(pool.turn->state().grain(key)->course->sequence == 3);
    CHECK(named() == "");
}

TEST_CASE("hosts' statistics are committed lazily and come back") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    three_grains(pool, server, 1);
    const core::HostTotals totals = pool.turn->state().host(core::HostId{0})->totals;
    CHECK(totals.launched == 3);
    CHECK(totals.finished == 1);
    const auto written = [&] { return pool.disk.files("hosts"); };
    const auto before = written();
    pool.turn->tidy();  // not yet: they were written a moment ago
    pool.pump();
    CHECK(written() == before);
    pool.outside->clock = pool.outside->clock + seconds(11);
    pool.turn->tidy();
    pool.pump();
    CHECK(written() != before);
    pool.hosts = {host("other", 1)};  // what is no longer configured is remembered all the same
    pool.restart();
    const core::HostId id = pool.turn->state().host_id("h1");
    REQUIRE(id != core::no_host);
    CHECK(pool.turn->state().host(id)->totals == totals);
    CHECK_FALSE(pool.turn->state().host(id)->configured);

    REQUIRE(pool.store->flush().answer == store::Answer::done);
    pool.disk.flip("hosts/table", 7, 2);
    pool.restart();
    REQUIRE(pool.reports.size() == 1);
    CHECK(pool.reports[0].find("hosts/table") != std::string::npos);
}

TEST_CASE("a damaged result is an error of that call") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    const ConnId control = three_grains(pool, server, 1);
    SECTION("cut") { pool.disk.cut("sessions/ann/1/results", 3); }
    SECTION("changed") { pool.disk.flip("sessions/ann/1/results", 3, 1); }
    CHECK(pool.refusal(control, wire::Gwait{1, 0, false}) == Code::io_error);
    CHECK(pool.refusal(control, wire::Gwait{1, 0, false}) == Code::io_error);
}
