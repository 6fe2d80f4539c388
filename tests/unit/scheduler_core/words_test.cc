// Calls that make no sense where they come: who sent them learns why, word for word.
#include "base/text.h"
#include "base/confinement.h"
#include "pool.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {

struct Refusals : Pool {
    Program ann = begin("ann", "find");
    Program root = stranger("root", true);
    Refusals() : Pool(1) { open(ann, 1); }
    void refused(const Program &who, UserRequest order, const std::string &words) {
        const Lines said = call(who, std::move(order));
        REQUIRE(said.size() == 1);
        CHECK(said[0] == about(who.user + " error " + words));
        CHECK(changes.empty());
    }
};

}  // namespace

TEST_CASE("calls without sense are refused in words, and change nothing") {
    Refusals pool;
    pool.refused(pool.ann, wire::OpenSession{-1, wire::OpenMode::open, false}, "INVALID session number -1 must 0");
    pool.refused(pool.ann, ImportSession{-1, false, nullptr}, "INVALID session number -1 must 0");
    pool.refused(pool.ann, ImportSession{1, true, std::make_shared<const ImportContent>()},
                 "SESSION_ACTIVE session ann/1 active close choose number --number N");
    pool.refused(pool.root, ApproveHost{},
                 "INVALID host? Give words shows machine ask under name dcs host approve lists waiting hosts");
    wire::Query query;
    query.type = static_cast<wire::QueryType>(99);
    pool.refused(pool.ann, query, "INVALID query unknown type");
    SubmitGrain large = Pool::grain(1, 1);
    large.params.bytes = std::make_shared<const std::string>(limits::user_frame_bytes + 1, 'x');
    pool.refused(pool.ann, large, "LIMIT program arguments environment input long together");
}

TEST_CASE("a file of a grain that runs is not there yet") {
    Refusals pool;
    SubmitGrain grain = Pool::grain(1, 1);
    GrainFiles files;
    files.outputs.push_back({wire::FileRole::output, "result", {}, 0, {}});
    grain.files = files;
    REQUIRE(pool.call(pool.ann, grain).front() == "ann: done");
    wire::Fetch fetch;
    fetch.session = 1;
    fetch.grain = 1;
    fetch.stream = wire::Stream::file;
    fetch.file = "result";
    pool.refused(pool.ann, fetch, "NOT_FOUND grain ann/1:1 not ended files arrive ends");
}

TEST_CASE("the doctor says what to do about a host that is more open than demanded") {
    Pool pool;
    pool.add_host("h1").require_confinement = rung_filter;
    pool.table();
    pool.first_call("h1");
    pool.call(pool.stranger("ann"), wire::Doctor{});
    const auto *reply = std::get_if<ReplyDoctor>(&pool.effects.back());
    REQUIRE(reply);
    REQUIRE(reply->problems.size() == 1);
    CHECK(reply->problems[0].problem == about("open grains confined"));
    CHECK(reply->problems[0].advice == about("--confine --grain-network require_confinement"));
}

TEST_CASE("the doctor and the row of a host have its warning") {
    Pool pool;
    pool.add_host("h1");
    pool.table();
    pool.first_call("h1");
    const auto problems = [&] {
        pool.call(pool.stranger("ann"), wire::Doctor{});
        return std::get<ReplyDoctor>(pool.effects.back()).problems;
    };
    const auto note = [&] {
        return pool.answer<wire::QueryReply>(pool.stranger("ann"), wire::Query{wire::QueryType::hosts})
            .hosts.at(0)
            .note;
    };
    wire::CallIn call;
    pool.feed(ServerCallIn{pool.conn("h1"), pool.id("h1"), call});
    CHECK((problems().empty() && note().empty()));
    call.warning = "it counts";
    pool.feed(ServerCallIn{pool.conn("h1"), pool.id("h1"), call});
    REQUIRE(problems().size() == 1);
    CHECK(problems()[0].problem == about("warning: it counts"));
    CHECK(problems()[0].advice == about("GRAIN_HOSTS.md launcher.log"));
    CHECK(note() == about("it counts"));
}

TEST_CASE("the doctor names an active host that is not connected, or whose disk is full, or whose launcher is gone") {
    Pool pool;
    pool.add_host("h1");
    pool.table();
    pool.first_call("h1");
    const Program ann = pool.stranger("ann");
    const auto problem = [&] {
        pool.call(ann, wire::Doctor{});
        const auto *reply = std::get_if<ReplyDoctor>(&pool.effects.back());
        REQUIRE(reply);
        return reply->problems.empty() ? std::string() : reply->problems[0].problem + ": " + reply->problems[0].advice;
    };
    CHECK(problem().empty());
    const auto says = [&](const char *shut) {
        pool.feed(ServerCallIn{pool.conn("h1"), pool.id("h1"), wire::CallIn{0.5, 1 << 20, false, shut}});
    };
    says("others leave no room");
    CHECK(problem() == about("no host takes grains"));  // its owner's matter, and the pool's if it is the only one
    says("the disk of its grains is full");
    CHECK(problem() == about("accepts no grains disk full make room --dir"));
    says("its launcher does not run");
    CHECK(problem() == about("accepts no grains its launcher does not run start log"));
    says("it has worked for epoch 2, and this scheduler is in epoch 1");
    pool.hang_up("h1");  // it calls again and again, and stays for no time
    CHECK(problem() == about("refuses this scheduler epoch 2 promoted stop this scheduler"));
    pool.first_call("h1");
    says("");
    pool.hang_up("h1");
    CHECK(problem().empty());  // it may only connect again
    pool.now = pool.now + seconds(21);
    CHECK(problem() == about("not connected 21 s"));
}

TEST_CASE("the doctor says why the last call in a silent host's name was refused, and what to do") {
    Pool pool;
    pool.add_host("h1");
    pool.table();
    const Program ann = pool.stranger("ann");
    const auto problem = [&] {
        pool.call(ann, wire::Doctor{});
        const auto *reply = std::get_if<ReplyDoctor>(&pool.effects.back());
        REQUIRE(reply);
        return reply->problems.empty() ? std::string() : reply->problems[0].problem + ": " + reply->problems[0].advice;
    };
    CHECK(problem().empty());  // it has a moment to call
    pool.now = pool.now + seconds(21);
    CHECK(problem() == about("not called in 21 s ago check that its grain server runs"));
    pool.state.trust.keys["h2"] = {};
    CHECK(problem() == about("not called in 21 s ago no machine joined dcs token create --host h1"));
    pool.state.trust.keys.clear();
    pool.feed(ServerRefused{"h1", "10.0.0.7", "the certificate of h1 was issued by another authority", false});
    pool.feed(ServerRefused{"h2", "10.0.0.8", "unknown here", false});
    pool.now = pool.now + seconds(3);
    CHECK(problem() ==
          about("not called in 3 s ago name from 10.0.0.7 refused another authority join again --host h1"));
    CHECK(problem().find("check that") == std::string::npos);
    pool.feed(ServerRefused{"h1", "10.0.0.7", "the certificate of h1 is not valid before 2027-01-01", true});
    CHECK(problem() == about("refused not valid before set clocks right"));
    pool.first_call("h1");
    CHECK(problem().empty());
    pool.hang_up("h1");
    pool.now = pool.now + seconds(21);
    CHECK(problem().find("refused") == std::string::npos);  // that was before
    ServerFirstCall call;
    call.conn = ConnId{77};
    call.certified = {"h1", {}, 0};
    call.address = "10.0.0.7";
    wire::FirstCall first;
    first.host = "h1";
    call.call = std::make_shared<const wire::FirstCall>(first);
    pool.feed(call);
    CHECK(problem() == about("not connected 21 s ago name from 10.0.0.7 refused revoked join again --host h1"));
}

TEST_CASE("a pilot without a job is no problem, unless grains run there") {
    Pool pool;
    pool.add_host("h1").pilot = true;
    pool.table();
    const Program ann = pool.stranger("ann");
    const auto problems = [&] {
        pool.call(ann, wire::Doctor{});
        const auto *reply = std::get_if<ReplyDoctor>(&pool.effects.back());
        REQUIRE(reply);
        return reply->problems.size();
    };
    const auto shown = [&] {
        const auto ask = [&](wire::QueryType type) { return pool.answer<wire::QueryReply>(ann, wire::Query{type}); };
        const wire::SystemRow system = ask(wire::QueryType::system).system;
        return ask(wire::QueryType::hosts).hosts.at(0).state + " " + std::to_string(system.hosts_active) + "/" +
               std::to_string(system.hosts);
    };
    CHECK(problems() == 0);  // it has never called
    CHECK(shown() == "no_job 0/0");
    pool.first_call("h1");
    CHECK(shown() == "active 1/1");
    pool.wait(seconds(31));
    CHECK(shown() == "delinquent 0/1");  // its job hangs
    pool.call_in("h1");
    pool.hang_up("h1");
    CHECK(shown() == "no_job 0/0");  // at once: its server has left
    CHECK(problems() == 0);
    pool.wait(seconds(31));
    CHECK(shown() == "no_job 0/0");
    pool.wait(seconds(31));
    CHECK(problems() == 0);  // dead
    CHECK(shown() == "no_job 0/0");
    pool.hosts[0].pilot = false;
    pool.table();
    CHECK(problems() == 1);
    CHECK(shown() == "dead 0/1");
}

TEST_CASE("a second server with a host's name, perhaps a copy, takes no place from one that answers") {
    Pool pool;
    pool.add_host("h1");
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    const auto problem = [&]() -> std::string {
        pool.call(find, wire::Doctor{});
        const auto *reply = std::get_if<ReplyDoctor>(&pool.effects.back());
        REQUIRE(reply);
        return reply->problems.empty() ? "" : reply->problems[0].entity + " " + reply->problems[0].problem;
    };
    const auto calls = [&](std::uint64_t instance, bool has_grain = false) {
        pool.instances["h1"] = instance;
        const ConnId before = pool.conn("h1");
        pool.first_call("h1", has_grain ? std::vector<Pool::Held>{{"ann/1:0", 1}} : std::vector<Pool::Held>());
        return pool.conn("h1") != before;
    };
    const auto asked = [&] { return pool.effects.size() == 3 && std::holds_alternative<SendServer>(pool.effects[0]); };
    const auto later = [&](int s) { pool.now = pool.now + seconds(s); };
    const auto audits = [&] {
        std::size_t n = 0;
        for (const std::string &event : pool.events) n += event == about("audit two grain servers h1 another refused");
        return n;
    };
    CHECK(calls(1));
    CHECK(calls(1));  // the same on a new connection
    const bool busy = GENERATE(false, true);
    if (busy) pool.gexec(find, 1, 0);
    later(1);
    CHECK_FALSE(calls(2, busy));  // even if it has the grains, which were copied, too
    CHECK(asked());
    CHECK(problem().empty());
    CHECK(audits() == 0);
    for (int i = 0; i < 3; ++i) {
        later(1);
        pool.call_in("h1");
        later(6);
        CHECK_FALSE(calls(2, busy));
        CHECK(asked());
        CHECK(problem() == about("host h1 two grain servers"));
        CHECK(audits() == 1);
    }
    SECTION("two that want its place do not keep each other out when it is silent") {
        later(3);
        CHECK_FALSE(calls(3));
        CHECK_FALSE(asked());  // once
        later(2);
        CHECK(calls(4));
        if (busy) CHECK(pool.at("ann/1:0").incarnation == 2);
        CHECK_FALSE(calls(1));  // it was only slow: now it is the second
    }
    SECTION("the doctor says from where the refused one called") {
        const auto call = std::make_shared<wire::FirstCall>();
        call->host = "h1";
        call->instance = 2;
        later(1);
        pool.call_in("h1");
        later(6);
        pool.feed(ServerFirstCall{ConnId{7000}, call, {}, {}, false, wire::newest_form, "10.0.0.9"});
        CHECK(problem() == about("two grain servers another 10.0.0.9 was refused 0 s ago"));
    }
    SECTION("its connection was closed, as by the kernel when it is killed") {
        pool.hang_up("h1");
        CHECK(calls(2));
    }
    SECTION("what was said to an earlier one counts for a minute") {
        pool.call_in("h1");
        later(61);
        pool.call_in("h1");
        CHECK(problem().empty());
        CHECK_FALSE(calls(5));
        CHECK(problem().empty());
    }
}

TEST_CASE("the doctor names hosts that wait for approval, to operators, with the command that approves") {
    Pool pool;
    pool.add_host("h2");
    pool.table();
    JoinCall call;
    call.conn = ConnId{7000};
    call.host = "h2";
    call.address = "192.0.2.1";
    call.key[0] = 2;
    pool.feed(call);
    const auto advice_to = [&](const Program &who) {
        pool.call(who, wire::Doctor{});
        for (const auto &p : std::get<ReplyDoctor>(pool.effects.back()).problems)
            if (p.problem == "waits at 192.0.2.1 for approval to join; it asked 0 s ago") return p.advice;
        return std::string();
    };
    CHECK(advice_to(pool.stranger("root", true)).ends_with("dcs host approve h2 " + in_words(call.key)));
    CHECK(advice_to(pool.stranger("ann")).empty());
    pool.now = pool.now + seconds(61);  // it has given up
    CHECK(advice_to(pool.stranger("root", true)).empty());
    pool.feed(call);
    pool.state.trust.keys["h2"] = TokenHash{};  // another machine has joined as h2
    CHECK(advice_to(pool.stranger("root", true)).empty());
    pool.call(pool.stranger("root", true), wire::Doctor{});
    CHECK(std::ranges::any_of(std::get<ReplyDoctor>(pool.effects.back()).problems, [&](const auto &p) {
        return p.problem == about("has joined another machine 192.0.2.1 asks") && p.advice.ends_with(" --replace");
    }));
}

TEST_CASE("a code for the backup lets no grain server in, and the backup asks as what it is") {
    Pool pool;
    pool.add_host("h1");
    pool.add_host("vault").backup_at = "vault:7002";
    pool.table();
    const Program root = pool.stranger("root", true);
    TokenHash code{}, key{};
    code[0] = 1, key[0] = 2;
    pool.call(root, CreateCode{"vault", HostRole::backup, 60, 1000, {}, code, "pool:7001", "hash"});
    JoinCall call;
    call.conn = ConnId{7000};
    call.own_name = "h1";
    call.address = "192.0.2.1";
    call.has_code = true;
    call.code = code;
    call.key = key;
    call.wall_s = 1000;
    CHECK(pool.feed(call).front() == about("code passive backup use --role backup"));
    call.has_code = false;
    call.role = HostRole::backup;
    call.own_name = "vault";
    pool.feed(call);
    CHECK(pool.events.back() == about("audit 192.0.2.1 passive"));
}

TEST_CASE("the doctor names sessions of which no host can take grains, and so does a session that is asked for alone") {
    Pool pool(2);
    const Program ann = pool.begin("ann", "find"), root = pool.stranger("root", true);
    pool.open(ann, 3);
    const auto rows = [&](const Program &who) {
        pool.call(who, wire::Doctor{});
        const auto *reply = std::get_if<ReplyDoctor>(&pool.effects.back());
        REQUIRE(reply);
        return reply->problems;
    };
    const auto stuck = [&](int session) {
        wire::Query query{wire::QueryType::sessions};
        query.session = session;
        return pool.answer<wire::QueryReply>(ann, query).sessions.at(0).stuck;
    };
    for (int i = 0; i < 4; ++i) pool.gexec(ann, 3, i);  // two run, two wait for a slot
    CHECK(rows(ann).empty());
    CHECK(stuck(3) == 0);
    for (int i = 10; i < 13; ++i) pool.gexec(ann, 3, i, 0x40);
    SubmitGrain large = Pool::grain(3, 20);
    large.demands.cores = 64;
    pool.call(ann, large);
    REQUIRE(rows(ann).size() == 1);
    const wire::ProblemRow row = rows(ann)[0];
    CHECK(row.entity == "session ann/3");
    CHECK(row.problem ==
          about("4 grains no host can take them: 2 hosts: the host is of a class that the grain does not accept"));
    CHECK(row.affects == about("grain 3:10 others dcs grain explain 3:10"));
    CHECK(row.advice == about("wider class mask dcs session close 3"));
    CHECK(rows(root).at(0).advice == about("dcs session close ann/3"));
    CHECK(rows(pool.stranger("bob")).empty());
    CHECK(stuck(3) == 4);
    CHECK(stuck(-1) == 0);
    pool.close(ann, 3);
    CHECK(rows(ann).empty());
    CHECK(stuck(3) == 0);
}

TEST_CASE("the scheduler knows the release and the address of a grain server") {
    Pool pool;
    pool.add_host("h1");
    pool.table();
    const Program look = pool.stranger("ann");
    const auto row = [&] {
        return pool.answer<wire::QueryReply>(look, wire::Query{wire::QueryType::hosts}).hosts.at(0);
    };
    auto call = std::make_shared<wire::FirstCall>();
    call->host = "h1";
    pool.feed(ServerFirstCall{ConnId{7000}, call, {}, {}, false, wire::newest_form, "10.0.0.7"});
    CHECK((row().version.empty() && row().address == "10.0.0.7"));
    wire::CallIn report;
    report.version = "0.2.0";
    pool.feed(ServerCallIn{ConnId{7000}, HostId{0}, report});
    CHECK((row().version == "0.2.0" && row().address == "10.0.0.7"));
    pool.hang_up("h1");
    CHECK((row().version == "0.2.0" && row().address.empty()));
    pool.first_call("h1");  // perhaps after a downgrade
    pool.call_in("h1");
    CHECK((row().version.empty() && row().address.empty()));
}
