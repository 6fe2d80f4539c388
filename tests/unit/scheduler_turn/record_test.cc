// State on disk: names, records, the log of grains and its renewal, what happens to damage.
#include "pool.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "store/tree_template.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::test;

TEST_CASE("the forest is one that the store takes") { CHECK(store::check_forest(record::forest())); }

TEST_CASE("every login name has a directory name of its own, and back") {
    const std::vector<std::string> logins = {
        "ann",      "Ann", ".ann", "a.b",     "..",       ".",           "",
        "%",        "%2E", "a/b",  "uid1234", "dom\\ann", "ann@example", std::string("a\0b", 3),
        "\xc3\xa4", "-x",  "turns"};
    std::map<std::string, std::string> seen;
    for (const std::string &login : logins) {
        const std::string name = record::encode_login(login);
        CHECK(name.find('/') == std::string::npos);
        CHECK(name != "");
        CHECK(name[0] != '.');
        CHECK(seen.emplace(name, login).second);
        const auto back = record::decode_login(name);
        REQUIRE(back);
        CHECK(*back == login);
    }
    for (const char *name : {"", ".ann", "%", "%4", "%4g", "%61", "a b", "%2e"}) {
        if (std::string(name) == "%") continue;  // the empty login
        CHECK_FALSE(record::decode_login(name));
    }
    CHECK(record::session_directory({"../etc", 3}) == "sessions/%2E.%2Fetc/3");
    CHECK(record::grain_directory({{"ann", 3}, 17}) == "sessions/ann/3/g/17");
    CHECK(record::number_of("17") == 17);
    for (const char *name : {"", "017", "+1", "1x", "99999999999", " 1"}) CHECK_FALSE(record::number_of(name));
}

TEST_CASE("records come back as they went, and damage is noticed at every byte") {
    core::State state;
    core::Undo undo;
    core::Host h;
    core::HostConfig config;
    config.name = "h1";
    h.config = config;
    core::apply(state, core::SetHost{core::HostId{0}, h}, undo);
    core::Grain grain;
    grain.phase = core::Finished{12, -1, 0};
    grain.own_tree = true;
    wire::Demands demands;
    demands.urgent = true;
    demands.attempts = 7;
    demands.memory_mb = 300;
    grain.demands = demands;
    grain.course.edit().failures = 2;
    grain.incarnation = 0xfffffffe;
    grain.lessee = core::HostId{0};
    grain.course.edit().nogo = std::vector<core::HostId>{core::HostId{0}};
    grain.fingerprint[3] = 9;
    grain.course.edit().out_length = std::uint64_t{1} << 40;
    grain.course.edit().past.edit().user_us = -3;
    grain.course.edit().current.out_blocks = 17;
    grain.course.edit().skipped = 153;
    grain.course.edit().returns = 9;
    const std::string bytes = record::encode_grain(state, 5, grain);
    const record::HostIds ids = [&](const std::string &name) { return state.host_id(name); };
    auto back = record::decode_grain(bytes, ids);
    REQUIRE(back);
    CHECK(back->number == 5);
    CHECK(back->grain.lessee == core::HostId{0});
    CHECK(back->grain.demands == grain.demands);
    CHECK(back->grain.course->skipped == 153);
    CHECK(int{back->grain.course->returns} == 9);
    CHECK(back->grain.course->nogo.get() == std::vector<core::HostId>{core::HostId{0}});
    CHECK(record::encode_grain(state, 5, back->grain) == bytes);

    core::SessionInfo info;
    info.ident = "prog";
    info.shown = 4;
    info.queue_front = -9;
    const std::string session = record::encode_session(info);
    auto session_back = record::decode_session(session);
    REQUIRE(session_back);
    CHECK(record::encode_session(*session_back) == session);
    CHECK(session_back->shown == 4);

    for (const std::string *record : {&bytes, &session}) {
        for (std::size_t i = 0; i < record->size(); ++i) {
            std::string bad = *record;
            bad[i] = static_cast<char>(bad[i] ^ 1);
            CHECK_FALSE((record == &bytes ? bool(record::decode_grain(bad, ids)) : bool(record::decode_session(bad))));
            bad = record->substr(0, i);
            CHECK_FALSE((record == &bytes ? bool(record::decode_grain(bad, ids)) : bool(record::decode_session(bad))));
        }
        const std::string twice = *record + *record;
        CHECK_FALSE((record == &bytes ? bool(record::decode_grain(twice, ids)) : bool(record::decode_session(twice))));
    }
}

TEST_CASE("a grain whose parameters cannot be read is not stuck on its host") {
    Pool pool({host("h1", 1)});
    ModelServer server(pool, "h1");
    const ConnId control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::open, false});
    pool.ask<wire::Done>(control, wire::Gexec{1, 0, copying_grain("abc")});
    const std::string inputs = pool.disk.files("sessions/ann/1").at("sessions/ann/1/inputs");
    pool.disk.cut("sessions/ann/1/inputs", 3);
    server.connect();
    server.read();
    CHECK(server.held.empty());
    const GrainKey key{{"ann", 1}, 0};
    CHECK(pool.turn->state().grain(key)->status() == core::GrainStatus::running);
    pool.outside->clock = pool.turn->next_wakeup();
    pool.pump();
    CHECK(pool.turn->state().grain(key)->status() == core::GrainStatus::ready);
    // The operator restored the file.
    REQUIRE(pool.disk.truncate_append("sessions/ann/1/inputs", 0, inputs));
    pool.outside->clock = pool.outside->clock + seconds(6);
    server.call_in();
    server.read();
    CHECK(server.held.count(key) == 1);
}

TEST_CASE("the log of grains is written again before it is more than twice what lives") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    const ConnId control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{1, wire::OpenMode::resume, false});
    server.connect();
    const GrainKey key{{"ann", 1}, 0};
    pool.ask<wire::Done>(control, wire::Gexec{1, 0, copying_grain("abc")});
    const auto log_length = [&] { return pool.disk.files("sessions/ann/1").at("sessions/ann/1/grains").size(); };
    std::size_t longest = 0, renewals = 0, last = 0;
    for (int i = 0; i < 2000; ++i) {
        server.read();
        REQUIRE(server.held.count(key) == 1);
        server.finish(key, 0, true);  // given back and placed again: two records
        server.read();
        pool.outside->clock = pool.outside->clock + seconds(6);
        server.call_in();
        const std::size_t now = log_length();
        CHECK(pool.turn->state().session(key.session)->info.grains_length == now);
        if (now < last) ++renewals;
        longest = std::max(longest, now);
        last = now;
        if (i % 100 == 7) {
            pool.verify();
            // A kill at any time replays the turns around a renewal.
            server.held.clear();
            server.disconnect();
            pool.restart();
            CHECK(pool.reports.empty());
            server.connect();
        }
    }
    CHECK(renewals >= 2);
    CHECK(longest < 72 * 1024);
    pool.verify();
}

TEST_CASE("a cleaned session leaves nothing, and its number can be used again") {
    Pool pool({host("h1", 2)});
    pool.verify_each_turn = true;
    ModelServer server(pool, "h1");
    const ConnId control = three_grains(pool, server, 1);
    pool.ask<wire::Done>(control, wire::CloseSession{"ann", 1, 1});
    // Cleaned, opened and filled again in one turn.
    pool.post(control, wire::CleanSession{"ann", 1});
    pool.post(control, wire::OpenSession{1, wire::OpenMode::open, false});
    pool.post(control, wire::Gexec{1, 9, copying_grain("new")});
    pool.pump();
    CHECK(pool.turn->state().session({"ann", 1})->grains.size() == 1);
    pool.restart();
    CHECK(pool.turn->state().session({"ann", 1})->grains.count(9) == 1);
    const ConnId again = pool.control("ann", "prog");
    pool.ask<wire::Done>(again, wire::CloseSession{"ann", 1, 0});
    pool.ask<wire::Done>(again, wire::CleanSession{"ann", 1});
    CHECK(pool.disk.files("sessions").empty());
}

TEST_CASE("a closed session is removed when the policy's session_age has passed since") {
    Pool pool({host("h1", 2)});
    ModelServer server(pool, "h1");
    const ConnId control = three_grains(pool, server, 1);
    core::Policy policy;
    policy.session_age_s = 3600;
    pool.turn->take_policy(policy);  // the first: as after a start
    pool.pump();
    const auto idle_for = [&](std::int64_t s) {
        pool.outside->clock = pool.outside->clock + seconds(s);
        pool.outside->wall += s;
        for (int i = 0; i < 4; ++i) {
            pool.turn->tidy();
            pool.pump();
        }
    };
    idle_for(10'000);  // its grains have ended long ago; it is active
    CHECK(pool.turn->state().session({"ann", 1}));
    pool.ask<wire::Done>(control, wire::CloseSession{"ann", 1, 1});
    pool.ask<wire::OpenReply>(control, wire::OpenSession{2, wire::OpenMode::open, false});
    idle_for(3'000);
    CHECK(pool.turn->state().session({"ann", 1}));
    const std::int64_t now = pool.outside->wall;
    pool.restart();
    pool.outside->wall = now;
    idle_for(3'000);  // it is old enough, but the scheduler has just started
    CHECK(pool.turn->state().session({"ann", 1}));
    pool.turn->take_policy(core::Policy());
    idle_for(100'000);  // without such a rule it stays
    CHECK(pool.turn->state().session({"ann", 1}));
    pool.turn->take_policy(policy);
    pool.pump();
    idle_for(23 * 3600);  // new, the rule may be a mistake
    CHECK(pool.turn->state().session({"ann", 1}));
    idle_for(2 * 3600);
    CHECK_FALSE(pool.turn->state().session({"ann", 1}));
    CHECK(pool.turn->state().session({"ann", 2}));
    CHECK(pool.disk.files("sessions/ann/1").empty());
    pool.verify();
}
