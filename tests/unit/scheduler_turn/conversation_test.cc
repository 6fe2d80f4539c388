// A control program, the scheduler and grain servers, in whole frames, end to end.
#include "pool.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

namespace {

ConnId open_session(Pool &pool, const std::string &user, std::int32_t number) {
    const ConnId control = pool.control(user, "prog");
    const auto reply = pool.ask<wire::OpenReply>(control, wire::OpenSession{number, wire::OpenMode::resume, true});
    CHECK(reply.sent == 0);
    return control;
}

}  // namespace

TEST_CASE("submit, launch, checkpoint, finish, wait: the output comes back once") {
    Pool pool({host("h1", 1)});
    pool.verify_each_turn = true;
    const ConnId control = open_session(pool, "ann", 3);
    pool.ask<wire::Done>(control, wire::Gexec{3, 7, copying_grain("hello grain")});

    ModelServer server(pool, "h1");
    server.connect();
    const GrainKey key{{"ann", 3}, 7};
    server.read();
    REQUIRE(server.held.count(key) == 1);
    CHECK(server.held[key].input == "hello grain");
    CHECK(server.held[key].incarnation == 1);

    CHECK(pool.refusal(control, wire::Gwait{3, 0, false}) == Code::nothing_yet);
    server.checkpoint(key, 5);
    server.read();
    CHECK(server.held[key].sequence == 1);
    const auto message = pool.ask<wire::Piece>(control, wire::Fetch{"ann", 3, 7, wire::Stream::message, 0, 100});
    CHECK(message.bytes == "copied 5");

    // A parked wait is answered by the end of the grain.
    const std::uint64_t wait = pool.post(control, wire::Gwait{3, 0, true});
    pool.pump();
    CHECK(pool.take_sent(control).empty());
    server.finish(key);
    server.read();
    CHECK(server.held.empty());
    REQUIRE(pool.outside->sent.size() == 1);
    CHECK(pool.outside->sent[0].request == wait);
    const auto result = std::get<wire::GrainResult>(pool.outside->sent[0].message);
    CHECK(result.grain == 7);
    CHECK(result.out == "hello grain");
    CHECK(result.out_length == 11);
    CHECK(result.err == "ifmmp!hsbjo");
    CHECK(result.sent == 1);
    pool.outside->sent.clear();

    CHECK(pool.refusal(control, wire::Gwait{3, 1, true}) == Code::nothing_left);
    CHECK(pool.turn->state().session({"ann", 3})->info.sent == 1);
}

TEST_CASE("a restarted grain gets its checkpoint and the rest of its input") {
    Pool pool({host("h1", 1), host("h2", 1)});
    pool.verify_each_turn = true;
    const ConnId control = open_session(pool, "ann", 0);
    const std::string input = std::string(5000, 'x') + std::string(9000, 'y');
    pool.ask<wire::Done>(control, wire::Gexec{0, 0, copying_grain(input)});
    const GrainKey key{{"ann", 0}, 0};
    ModelServer first(pool, "h1"), second(pool, "h2");
    first.connect();
    first.read();
    first.checkpoint(key, 6000);
    first.read();

    SECTION("because its host is dead") {
        pool.outside->clock = pool.outside->clock + seconds(50);
        second.connect();
        second.read();
        CHECK(second.held.empty());
        pool.outside->clock = pool.outside->clock + seconds(11);
        // In the daemon the loop wakes at the deadline; here no party promised to.
        pool.outside->clock = std::min(pool.outside->clock, pool.turn->next_wakeup());
        second.call_in();
        while (pool.turn->state().grain(key)->lessee == core::HostId{0}) {
            pool.outside->clock = pool.turn->next_wakeup();
            second.call_in();
        }
    }
    SECTION("because the whole pool was switched off") {
        pool.restart();
        CHECK(pool.turn->state().grain(key)->status() == core::GrainStatus::running);
        first.held.clear();
        ModelServer again(pool, "h1");
        again.connect();  // holds nothing: the grain is lost there and starts again
        second.connect();
        again.read();
        if (again.held.count(key)) {
            CHECK(again.held[key].incarnation == 2);
            again.disconnect();
            pool.pump();
            second.held = again.held;
            CHECK(second.held[key].base == 6000);
            CHECK(second.held[key].input == input.substr(6000));
            return;
        }
    }
    second.read();
    REQUIRE(second.held.count(key) == 1);
    CHECK(second.held[key].incarnation == 2);
    CHECK(second.held[key].base == 6000);
    second.finish(key);
    second.read();
    const auto &grain = *pool.turn->state().grain(key);
    REQUIRE(grain.status() == core::GrainStatus::finished);
    CHECK(grain.course->out_length == input.size());
    const auto middle = pool.ask<wire::Piece>(control, wire::Fetch{"ann", 0, 0, wire::Stream::out, 4999, 2});
    CHECK(middle.bytes == "xy");
    CHECK(middle.total == input.size());
    const auto result = pool.ask<wire::GrainResult>(control, wire::Gwait{0, 0, false});
    CHECK(result.out == input);

    // The old copy comes back: it must be ordered to stop.
    first.disconnect();
    first.connect();
    first.read();
    CHECK(first.held.empty());
}

TEST_CASE("the same submission again is nothing, another one is told apart") {
    Pool pool({host("h1", 1)});
    const ConnId control = open_session(pool, "ann", 1);
    wire::GrainSpec spec = copying_grain("abc");
    pool.ask<wire::Done>(control, wire::Gexec{1, 1, spec});
    pool.ask<wire::Done>(control, wire::Gexec{1, 1, spec});
    spec.label = "for people";
    pool.ask<wire::Done>(control, wire::Gexec{1, 1, spec});
    spec.argv[1] = "other";
    const wire::AnyMessage reply = pool.call(control, wire::Gexec{1, 1, spec});
    const auto &error = std::get<wire::ErrorReply>(reply);
    CHECK(error.code == static_cast<int>(Code::grain_differs));
    CHECK(error.text.find("argv[1]") != std::string::npos);
    CHECK(error.text.find("other") != std::string::npos);
    CHECK(pool.turn->state().session({"ann", 1})->grains.size() == 1);
}

TEST_CASE("a submission with new demands changes them for good, and nothing but them") {
    Pool pool({host("h1", 1)});
    ConnId control = open_session(pool, "ann", 1);
    wire::GrainSpec spec = copying_grain("abc");
    spec.label = "curve 12";
    pool.ask<wire::Done>(control, wire::Gexec{1, 1, spec});
    const Fingerprint before = pool.turn->state().grain({{"ann", 1}, 1})->fingerprint;
    spec.demands.wall_s = 10;
    const auto refused = [&](bool new_demands) {
        const wire::AnyMessage reply = pool.call(control, wire::Gexec{1, 1, spec, new_demands});
        const auto *error = std::get_if<wire::ErrorReply>(&reply);
        return error == nullptr ? std::string() : error->text.substr(error->text.find('\n') + 1);
    };
    CHECK(refused(false) == "wall_s: recorded 0, now 10");
    spec.argv[1] = "other";
    CHECK(refused(true).find("argv[1]") == 0);
    spec.argv = copying_grain("abc").argv;
    CHECK(refused(true) == "");
    pool.restart();
    control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, true});
    const core::Grain &grain = *pool.turn->state().grain({{"ann", 1}, 1});
    CHECK(grain.demands->wall_s == 10);
    CHECK(refused(false) == "");  // it is what was submitted
    spec.demands.wall_s = 0;
    CHECK(refused(false) == "wall_s: recorded 10, now 0");
    wire::GexecMany many{1, {{1, spec}, {2, spec}}, true};
    pool.ask<wire::Done>(control, many);
    CHECK(pool.turn->state().grain({{"ann", 1}, 1})->fingerprint == before);
    CHECK(pool.turn->state().session({"ann", 1})->grains.size() == 2);
}

TEST_CASE("a submission with a new environment changes it of a ready grain, with its demands") {
    Pool pool({host("h1", 1)});
    ConnId control = open_session(pool, "ann", 1);
    wire::GrainSpec spec = copying_grain(std::string(50'000, 'i'));  // a file of its own
    spec.label = "curve 12";
    pool.ask<wire::Done>(control, wire::Gexec{1, 1, spec});
    const auto refused = [&](bool new_environment) {
        const wire::AnyMessage reply = pool.call(control, wire::GexecMany{1, {{1, spec}}, true, new_environment});
        const auto *error = std::get_if<wire::ErrorReply>(&reply);
        return error == nullptr ? std::string() : error->text.substr(error->text.find('\n') + 1);
    };
    spec.env.push_back("COLOUR=red");
    spec.demands.wall_s = 10;
    CHECK(refused(false).find("env COLOUR: ") != std::string::npos);
    spec.argv[1] = "other";
    CHECK(refused(true).find("argv[1]") == 0);
    spec.argv = copying_grain("").argv;
    CHECK(refused(true) == "");
    pool.restart();
    control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, true});
    CHECK(pool.turn->state().grain({{"ann", 1}, 1})->demands->wall_s == 10);
    pool.ask<wire::Done>(control, wire::Gexec{1, 1, spec});  // it is what was submitted
}

TEST_CASE("a query of one grain shows its arguments and its label") {
    Pool pool({host("h1", 1)});
    const ConnId control = open_session(pool, "ann", 1);
    wire::GrainSpec spec = copying_grain(std::string(50'000, 'i'));  // a file of its own
    spec.label = "curve 12";
    pool.ask<wire::Done>(control, wire::Gexec{1, 2, spec});
    wire::Query query;
    query.type = wire::QueryType::grain;
    query.session = 1;
    query.grain = 2;
    const auto reply = pool.ask<wire::QueryReply>(control, query);
    REQUIRE(reply.grains.size() == 1);
    CHECK(reply.grains[0].argv == spec.argv);
    CHECK(reply.grains[0].label == "curve 12");
    CHECK(reply.system.turn == pool.store->turn());
    spec.label = "curve 13";
    pool.ask<wire::Done>(control, wire::Gexec{1, 3, spec});
    query.with = {9, 3};  // one that is not there is left out
    const auto both = pool.ask<wire::QueryReply>(control, query);
    REQUIRE(both.grains.size() == 2);
    CHECK(both.grains[0].label == "curve 12");
    CHECK((both.grains[1].grain == 3 && both.grains[1].label == "curve 13" && both.grains[1].argv == spec.argv));
    const auto piece = pool.ask<wire::Piece>(control, wire::Fetch{"", 1, 2, wire::Stream::input, 49'990, 100});
    CHECK(piece.bytes == "iiiiiiiiii");
}

TEST_CASE("one commit serves everything that waited") {
    Pool pool({host("h1", 4)});
    const ConnId control = open_session(pool, "ann", 1);
    const std::size_t before = pool.commits;
    for (int i = 0; i < 50; ++i) pool.post(control, wire::Gexec{1, i, copying_grain("x")});
    pool.pump();
    CHECK(pool.commits == before + 1);
    CHECK(pool.take_sent(control).size() == 50);
    pool.verify();
}

TEST_CASE("nothing leaves before the commit") {
    Pool pool({host("h1", 1)});
    const ConnId control = open_session(pool, "ann", 1);
    pool.post(control, wire::Gexec{1, 0, copying_grain("x")});
    pool.turn->run();
    REQUIRE(pool.turn->committing());
    CHECK(pool.outside->sent.empty());
    CHECK(pool.turn->next_wakeup() == Instant::never());
    pool.post(control, wire::Gexec{1, 1, copying_grain("y")});
    pool.turn->run();  // gathered, not decided
    CHECK(pool.turn->state().grain({{"ann", 1}, 1}) == nullptr);
    pool.pump();
    CHECK(pool.take_sent(control).size() == 2);
}

TEST_CASE("strangers and nonsense are refused and cut off") {
    Pool pool({host("h1", 1)});
    const ConnId user = pool.open(turn::Door::user, "ann");
    SECTION("before Hello") {
        CHECK(pool.refusal(user, wire::GetAuth{"prog"}) == Code::protocol);
        CHECK(pool.outside->closed == std::vector<ConnId>{user});
    }
    SECTION("a server's message from a user") {
        pool.ask<wire::Welcome>(user, wire::Hello{});
        CHECK(pool.refusal(user, wire::CallIn{}) == Code::protocol);
        CHECK(pool.outside->closed == std::vector<ConnId>{user});
    }
    SECTION("a payload that does not decode") {
        turn::Arrival a;
        a.conn = user;
        a.header.kind = 1;
        a.header.protocol = wire::opening_form;
        a.header.length = 3;
        a.payload = "abc";
        pool.turn->take(a);
        pool.pump();
        CHECK(pool.outside->closed == std::vector<ConnId>{user});
    }
    SECTION("a server that begins with a call-in") {
        const ConnId link = pool.open(turn::Door::server, "root");
        pool.post(link, wire::CallIn{});
        pool.post(link, wire::CallIn{});
        pool.pump();
        CHECK(pool.outside->closed == std::vector<ConnId>{link});
    }
    SECTION("a host that is not in the table") {
        ModelServer server(pool, "foreign");
        server.connect();
        const auto sent = pool.take_sent(server.conn());
        REQUIRE(sent.size() == 1);
        CHECK(std::holds_alternative<wire::Refused>(sent[0]));
        CHECK(pool.outside->closed == std::vector<ConnId>{server.conn()});
    }
    SECTION("calls without a token") {
        pool.ask<wire::Welcome>(user, wire::Hello{});
        CHECK(pool.refusal(user, wire::OpenSession{1}) == Code::no_auth);
        pool.ask<wire::Welcome>(user, wire::Hello{wire::opening_form, std::string(32, 'a')});
        CHECK(pool.refusal(user, wire::OpenSession{1}) == Code::no_auth);
        CHECK(pool.outside->closed.empty());
    }
    SECTION("submissions that no host could take") {
        const ConnId control = open_session(pool, "ann", 1);
        wire::GrainSpec spec;
        CHECK(pool.refusal(control, wire::Gexec{1, 0, spec}) == Code::invalid);
        spec.argv = {"a", std::string("b\0c", 3)};
        CHECK(pool.refusal(control, wire::Gexec{1, 0, spec}) == Code::invalid);
        spec.argv = {"a", std::string(limits::argv_env_bytes, 'x')};
        CHECK(pool.refusal(control, wire::Gexec{1, 0, spec}) == Code::limit);
        spec.argv = {"a"};
        spec.input = std::string(limits::input_bytes + 1, 'x');
        CHECK(pool.refusal(control, wire::Gexec{1, 0, spec}) == Code::limit);
        CHECK(pool.turn->state().session({"ann", 1})->grains.empty());
    }
}

TEST_CASE("connections are counted per user") {
    Pool pool({});
    std::vector<ConnId> conns;
    for (std::size_t i = 0; i < limits::connections_per_user; ++i) conns.push_back(pool.open(turn::Door::user, "ann"));
    CHECK(pool.outside->closed.empty());
    const ConnId refused = pool.open(turn::Door::user, "ann");
    CHECK(pool.outside->closed == std::vector<ConnId>{refused});
    const ConnId other = pool.open(turn::Door::user, "bob");
    pool.ask<wire::Welcome>(other, wire::Hello{});
    pool.hang_up(conns[0]);
    pool.pump();
    const ConnId next = pool.open(turn::Door::user, "ann");
    pool.ask<wire::Welcome>(next, wire::Hello{});
}

TEST_CASE("after a pause of the scheduler every host has its whole limit again") {
    Pool pool({host("h1", 1)});
    ModelServer server(pool, "h1");
    server.connect();
    server.read();
    pool.outside->clock = pool.outside->clock + seconds(3600);
    pool.pump();
    CHECK(pool.turn->state().hosts[0].status == core::HostStatus::active);
    pool.outside->clock = pool.turn->next_wakeup();
    pool.pump();
    CHECK(pool.turn->state().hosts[0].status == core::HostStatus::delinquent);
    pool.outside->clock = pool.turn->next_wakeup();
    pool.pump();
    CHECK(pool.turn->state().hosts[0].status == core::HostStatus::dead);
}

TEST_CASE("a pause in the middle of a commit is one too") {
    Pool pool({host("h1", 1)});
    ModelServer server(pool, "h1");
    server.connect();
    server.read();
    const ConnId ann = pool.control("ann", "prog");
    pool.post(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    pool.turn->run();
    REQUIRE(pool.turn->committing());
    pool.outside->clock = pool.outside->clock + seconds(3600);
    pool.pump();
    CHECK(pool.turn->state().hosts[0].status == core::HostStatus::active);
}

TEST_CASE("what a probe found before a pause makes no party dead after it") {
    core::HostConfig config = host("h1", 1);
    config.check = {"192.0.2.1"};
    Pool pool({config});
    ModelServer server(pool, "h1");
    server.connect();
    server.read();
    const ConnId ann = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(ann, wire::OpenSession{1, wire::OpenMode::open, false});
    pool.ask<wire::Done>(ann, wire::Gexec{1, 0, copying_grain("abc")});
    while (pool.turn->state().hosts[0].checked != core::Checked::asked) {
        pool.outside->clock = pool.turn->next_wakeup();
        pool.pump();
    }
    const std::uint32_t probe = pool.turn->state().hosts[0].probe;
    pool.outside->clock = pool.outside->clock + seconds(3600);
    pool.turn->take_probe_result({core::HostId{0}, probe, false, std::nullopt, std::nullopt});
    pool.pump();
    CHECK(pool.turn->state().hosts[0].status != core::HostStatus::dead);
}

TEST_CASE("grain servers go before users, in the ratio of their share, and no party waits for ever") {
    turn::Intake intake;
    const auto put = [&](turn::Door door, std::uint64_t conn, const std::string &user) {
        turn::Arrival a;
        a.conn = ConnId{conn};
        a.payload = "1234";
        intake.put(door, user, a);
    };
    for (int i = 0; i < 10; ++i) {
        put(turn::Door::server, 1, "");
        put(turn::Door::user, 11, "ann");
    }
    put(turn::Door::server, 2, "");
    put(turn::Door::user, 12, "bob");
    CHECK(intake.count() == 22);
    CHECK(intake.bytes() == 88);
    std::string order;
    while (auto a = intake.take()) order += std::string("?Ss        AB")[static_cast<std::size_t>(a->conn)];
    CHECK(order == "SsSSASSSSBSSSAAAAAAAAA");
    CHECK(intake.bytes() == 0);
}
