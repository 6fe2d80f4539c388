// The pool's rules: who may call, quotas, shares; demands of grains; and whole answers to queries.
#include "pool.h"
#include "support/about.h"

using namespace dcs;
using namespace dcs::core;

namespace {
std::string code_of(const Lines &lines) {
    REQUIRE_FALSE(lines.empty());
    const std::string &line = lines.front();
    const auto at = line.find("error ");
    return at == std::string::npos ? "" : line.substr(at + 6, line.find(": ", at) - at - 6);
}
}  // namespace

TEST_CASE("with a list of users only these call, and those with privilege") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find"), bob = pool.begin("bob", "find");
    pool.open(ann, 1);
    Policy p;
    p.users = {"ann"};
    CHECK(pool.rules(p).empty());
    CHECK_FALSE(pool.touched_disk());
    CHECK(code_of(pool.open(bob, 1)) == "REFUSED");
    CHECK(code_of(pool.call(bob, wire::Query{})) == "REFUSED");
    CHECK(code_of(pool.call(pool.stranger("bob"), GetAuth{"x", {}, {}, 0})) == "REFUSED");
    CHECK(pool.changes.empty());
    CHECK(pool.gexec(ann, 1, 0).front() == "ann: done");
    CHECK(code_of(pool.call(pool.stranger("root", true), wire::Query{})) == "");
    pool.rules(Policy());
    CHECK(pool.open(bob, 1) == Lines{"bob: opened fresh"});
}

TEST_CASE("a denied user may not call and starts no grain until the policy allows it again") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find"), bob = pool.begin("bob", "find");
    pool.open(ann, 1);
    pool.open(bob, 1);
    pool.gexec(bob, 1, 0);  // runs
    pool.gexec(bob, 1, 1);
    pool.gexec(ann, 1, 0);
    Policy p;
    p.denied = {"bob"};
    pool.rules(p);
    CHECK(code_of(pool.call(bob, wire::Query{})) == "REFUSED");
    CHECK(code_of(pool.call(pool.stranger("bob"), GetAuth{"x", {}, {}, 0})) == "REFUSED");
    CHECK(code_of(pool.call(pool.stranger("root", true), wire::Query{})) == "");
    CHECK(pool.session("bob/1").grains.at(0).status() == GrainStatus::running);
    pool.end("h1", "bob/1:0");
    CHECK(pool.session("ann/1").grains.at(0).status() == GrainStatus::running);
    pool.end("h1", "ann/1:0");
    CHECK(pool.session("bob/1").grains.at(1).status() == GrainStatus::ready);
    pool.gexec(ann, 1, 1);
    CHECK(pool.explain("bob/1:1", true).summary == about("policy denies its user bob not start"));
    pool.hosts[0].users = {"ann"};  // whatever else is against it
    pool.table();
    CHECK(pool.explain("bob/1:1", true).summary == about("policy denies its user bob not start"));
    CHECK_FALSE(pool.explain("bob/1:1", true).can_run);
    pool.rules(Policy());
    CHECK(pool.explain("bob/1:1", true).summary == about("no configured host can run"));
    pool.hosts[0].users.clear();
    pool.table();
    pool.end("h1", "ann/1:1");
    CHECK(pool.session("bob/1").grains.at(1).status() == GrainStatus::running);
}

TEST_CASE("a user's active sessions are limited where they become active") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find"), again = pool.begin("ann", "find"), bob = pool.begin("bob", "b");
    Policy p;
    p.sessions_per_user = 2;
    pool.rules(p);
    pool.open(ann, 1);
    pool.open(ann, 2);
    CHECK(code_of(pool.open(ann, 3)) == "LIMIT");
    CHECK(code_of(pool.open(ann, 3, wire::OpenMode::resume)) == "LIMIT");
    CHECK(pool.changes.empty());
    CHECK(pool.open(again, 2, wire::OpenMode::resume) == Lines{"ann: opened resumed"});
    CHECK(pool.open(bob, 3) == Lines{"bob: opened fresh"});
    pool.close(again, 2);
    CHECK(pool.open(ann, 3) == Lines{"ann: opened fresh"});
    CHECK(code_of(pool.open(ann, 2, wire::OpenMode::reopen)) == "LIMIT");
    CHECK(pool.changes.empty());
    CHECK(pool.open(ann, 2, wire::OpenMode::resume, true) == Lines{"ann: opened replay"});  // is not active
}

TEST_CASE("a user's unfinished grains are limited, over all sessions") {
    Pool pool(1);
    const Program ann = pool.begin("ann", "find"), bob = pool.begin("bob", "b");
    Policy p;
    p.grains_per_user = 3;
    pool.rules(p);
    pool.open(ann, 1, wire::OpenMode::resume);
    pool.open(ann, 2);
    pool.open(bob, 1);
    pool.gexec(ann, 1, 0);  // runs
    pool.gexec(ann, 1, 1);
    pool.gexec(ann, 2, 0);
    CHECK(code_of(pool.gexec(ann, 2, 1)) == "LIMIT");
    CHECK(pool.changes.empty());
    CHECK(pool.gexec(ann, 1, 0) == Lines{"ann: done"});  // nothing new
    CHECK(pool.gexec(bob, 1, 0) == Lines{"bob: done"});
    pool.end("h1", "ann/1:0");
    CHECK(pool.gexec(ann, 2, 1) == Lines{"ann: done"});
}

TEST_CASE("a user's running grains are limited, and higher limits take effect at once") {
    Pool pool(1, 4);
    const Program ann = pool.begin("ann", "find"), bob = pool.begin("bob", "b");
    Policy p;
    p.running_per_user = 2;
    pool.rules(p);
    pool.open(ann, 1);
    pool.open(bob, 1);
    for (int i = 0; i < 4; ++i) pool.gexec(ann, 1, i);
    CHECK(pool.session("ann/1").counts[1] == 2);
    CHECK(pool.gexec(bob, 1, 0).size() == 2);  // ann's waiting grains are not in the way
    CHECK(pool.end("h1", "ann/1:0").back() == "h1: launch ann/1:2 inc 1 next 1");
    p.running_per_user = 3;
    CHECK(pool.rules(p) == Lines{"h1: launch ann/1:3 inc 1 next 1"});
    CHECK(pool.rules(p).empty());
    CHECK(pool.changes.empty());
}

TEST_CASE("fair share: a party that has less goes first, then the older session") {
    Pool pool(0);
    pool.add_host("h1", 1, 4);
    pool.table();
    Policy p;
    p.fair_share = true;
    pool.rules(p);
    const Program ann = pool.begin("ann", "find"), bob = pool.begin("bob", "b");
    pool.open(ann, 1);
    pool.open(bob, 1);
    for (int i = 0; i < 4; ++i) pool.gexec(ann, 1, i);
    for (int i = 0; i < 4; ++i) pool.gexec(bob, 1, i);
    const Lines lines = pool.first_call("h1");
    CHECK(Lines(lines.begin() + 1, lines.end()) ==
          Lines{"h1: launch ann/1:0 inc 1 next 1", "h1: launch bob/1:0 inc 1 next 1", "h1: launch ann/1:1 inc 1 next 1",
                "h1: launch bob/1:1 inc 1 next 1"});
    CHECK(pool.boundary("h1").empty());
}

TEST_CASE("demands are checked and kept, and do not fit where they cannot") {
    Pool pool(1, 3);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    const auto code = [&](std::int32_t cores, std::int32_t memory_mb, std::int32_t wall_s) {
        SubmitGrain g = Pool::grain(1, 0);
        g.demands.cores = cores;
        g.demands.memory_mb = memory_mb;
        g.demands.wall_s = wall_s;
        const std::string c = code_of(pool.call(ann, g));
        CHECK(pool.changes.empty());
        return c;
    };
    CHECK(code(-1, 0, 0) == "INVALID");
    CHECK(code(65537, 0, 0) == "INVALID");
    CHECK(code(0, -1, 0) == "INVALID");
    CHECK(code(0, 0, -1) == "INVALID");
    SubmitGrain g = Pool::grain(1, 0);
    g.demands.cores = 2;
    g.demands.wall_s = 60;
    g.program = 7;
    CHECK(pool.call(ann, g).front() == "ann: done");
    CHECK(pool.at("ann/1:0").demands.get() == g.demands);
    CHECK(pool.at("ann/1:0").program == 7);
    const auto *launch = std::get_if<SendLaunch>(&pool.effects.back());
    REQUIRE(launch);
    CHECK(launch->head.demands.wall_s == 60);
    g.grain = 1;
    CHECK(pool.call(ann, g) == Lines{"ann: done"});  // one core is left, of three
    g.grain = 2;
    g.demands.cores = 0;
    CHECK(pool.call(ann, g).size() == 2);
}

TEST_CASE("a session has only so many kinds of grains waiting") {
    Pool pool(0);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    SubmitGrain g = Pool::grain(1, 0);
    const auto most = static_cast<int>(limits::shapes_per_session);
    for (int i = 0; i < most; ++i) {
        g.grain = i;
        g.demands.cores = i;
        REQUIRE(decide(pool.state, pool.now, UserCall{pool.caller(ann), g}).changes.size() > 1);
        Undo undo;
        for (const Change &c : decide(pool.state, pool.now, UserCall{pool.caller(ann), g}).changes)
            apply(pool.state, c, undo);
    }
    CHECK(check(pool.state).empty());
    g.grain = most;
    g.demands.cores = most;
    CHECK(code_of(pool.call(ann, g)) == "LIMIT");
    CHECK(pool.changes.empty());
    g.demands.cores = 5;  // a kind that is there
    CHECK(pool.call(ann, g) == Lines{"ann: done"});
}

TEST_CASE("hosts by status, with all that is known of them") {
    Pool pool;
    HostConfig &c = pool.add_host("h1", 1, 2);
    c.check = {"h1"};
    c.users = {"ann", "bob"};
    c.cores = 4;
    c.memory_mb = 1000;
    pool.add_host("h2");
    pool.add_host("h3");
    pool.table();
    pool.first_call("h1");
    pool.first_call("h2");
    const Program ann = pool.begin("ann", "find"), root = pool.stranger("root", true);
    pool.open(ann, 1);
    SubmitGrain g = Pool::grain(1, 0, 1);
    g.demands.cores = 3;
    g.demands.memory_mb = 400;
    pool.call(ann, g);
    wire::SetHost drain;
    drain.host = "h1";
    drain.drained = 1;
    pool.set(root, drain);
    const auto names = [&](const std::string &status) {
        wire::Query q;
        q.type = wire::QueryType::hosts;
        q.status = status;
        Lines found;
        for (const auto &row : pool.answer<wire::QueryReply>(ann, q).hosts) found.push_back(row.name);
        return found;
    };
    CHECK(names("") == Lines{"h1", "h2", "h3"});
    CHECK(names("active") == Lines{"h1", "h2"});
    CHECK(names("unknown") == Lines{"h3"});
    pool.now = pool.now + seconds(20);
    pool.call_in("h1");
    pool.now = pool.now + seconds(20);
    pool.feed(Tick{});
    CHECK(names("delinquent") == Lines{"h2", "h3"});
    CHECK(code_of(pool.call(ann, wire::Query{wire::QueryType::hosts, "", -1, -1, -1, "lost", ""})) == "INVALID");
    const auto h1 = [&] { return pool.answer<wire::QueryReply>(ann, wire::Query{wire::QueryType::hosts}).hosts[0]; };
    wire::HostRow row = h1();
    CHECK(row.alert_s == 30);
    CHECK(row.limit_s == 60);
    CHECK(row.extended_s == 120);
    CHECK(row.cores == 4);
    CHECK(row.cores_used == 3);
    CHECK(row.memory_mb == 1000);
    CHECK(row.memory_used_mb == 400);
    CHECK(row.connected);
    CHECK(row.drained);
    CHECK(row.settings == "drained");
    CHECK(row.note.empty());
    CHECK(row.users == Lines{"ann", "bob"});
    pool.now = pool.now + seconds(45);
    pool.feed(Tick{});
    CHECK(h1().note == about("probing whether alive"));
    pool.probed("h1", true);
    CHECK(h1().note == about("alive grains 55"));
    pool.hang_up("h1");
    CHECK_FALSE(h1().connected);
}

TEST_CASE("one grain's row tells its demands, its nogo hosts and where it has been") {
    Pool pool(2);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    SubmitGrain g = Pool::grain(1, 0);
    g.demands.cores = 1;
    g.demands.memory_mb = 20;
    g.demands.wall_s = 300;
    g.demands.notice = 2;
    g.demands.urgent = true;
    g.demands.attempts = 5;
    pool.hosts[0].memory_mb = pool.hosts[1].memory_mb = 100;
    pool.table();
    pool.call(ann, g);
    pool.now = pool.now + seconds(1);
    wire::GrainReport failed = pool.end_report("ann/1:0", 3);
    failed.err = "starting\nno such curve\n\n";  // its last line with something in it is kept
    pool.send("h1", failed);
    pool.now = pool.now + seconds(1);
    pool.end("h1", "ann/1:0", 0, 11);
    pool.now = pool.now + seconds(1);
    pool.call(ann, wire::Query{wire::QueryType::grain, "", 1, 0});
    const auto *detail = std::get_if<ReplyGrainDetail>(&pool.effects.at(0));
    REQUIRE(detail);
    const wire::GrainRow &row = detail->rows.at(0);
    CHECK(row.demands.cores == 1);
    CHECK(row.demands.memory_mb == 20);
    CHECK(row.demands.wall_s == 300);
    CHECK(row.demands.notice == 2);
    CHECK(row.demands.attempts == 5);
    CHECK(row.demands.urgent);
    CHECK(row.nogo == Lines{"h1"});
    CHECK(row.cpu_s == 0.002);
    CHECK(row.user_s + row.system_s == 0.002);
    CHECK(row.run_cpu_s == 0);
    REQUIRE(row.moves.size() == 2);
    CHECK(row.moves[0].reason == "failed");
    CHECK(row.moves[0].host == "h1");
    CHECK(row.moves[0].detail == "code 3: no such curve");
    CHECK(row.moves[0].incarnation == 1);
    CHECK(row.moves[0].age_s == 2);
    CHECK(row.moves[1].detail == "signal 11");
    // lists of grains leave these two out
    const auto list = pool.answer<wire::QueryReply>(ann, wire::Query{wire::QueryType::grains, "", 1});
    CHECK(list.grains.at(0).nogo.empty());
    CHECK(list.grains.at(0).demands.memory_mb == 20);
}

TEST_CASE("sessions come page by page, damaged ones in their place, and none is left out or twice") {
    Pool pool(0);
    const int count = 2 * static_cast<int>(limits::query_rows) + 10;
    SessionInfo info;
    for (int i = 0; i < count; ++i) {
        info.seniority = static_cast<std::uint64_t>(i) + 1;
        const SessionKey key{i % 2 ? "ann" : "bob", i / 2};
        if (i % 1000 == 500) pool.state.set_aside[key] = "session: its checksum differs";
        else load_session(pool.state, key, {info});
    }
    const Program eve = pool.stranger("eve");
    for (const std::string user : {"", "ann", "nobody"}) {
        wire::Query q;
        q.type = wire::QueryType::sessions;
        q.user = user;
        std::vector<SessionKey> found;
        std::size_t damaged = 0;
        for (bool more = true; more;) {
            const auto reply = pool.answer<wire::QueryReply>(eve, q);
            CHECK(reply.sessions.size() <= limits::query_rows);
            for (const auto &row : reply.sessions) {
                found.push_back({row.user, row.session});
                damaged += row.state == "damaged";
            }
            more = reply.more;
            if (more) q.after_user = found.back().user, q.after = found.back().number;
        }
        CHECK(std::is_sorted(found.begin(), found.end()));
        CHECK(std::adjacent_find(found.begin(), found.end()) == found.end());
        const std::size_t expected = user.empty() ? count : user == "ann" ? count / 2 : 0;
        CHECK(found.size() == expected);
        CHECK((damaged > 0) == user.empty());  // all of them are bob's
    }
    wire::Query last;
    last.type = wire::QueryType::sessions;
    last.after_user = "ann";
    last.after = 2147483647;
    CHECK(pool.answer<wire::QueryReply>(eve, last).sessions.at(0).user == "bob");
    last.session = 7;
    CHECK(pool.answer<wire::QueryReply>(eve, last).sessions.size() == 1);
}

TEST_CASE("an answer that is cut says so") {
    Pool pool(0);
    const Program ann = pool.begin("ann", "find");
    pool.open(ann, 1);
    pool.open(ann, 2);
    GrainList list;
    for (int i = 0; i < 10'000; ++i) {
        Grain g;
        g.as<core::Ready>().queue_position = i;
        list.emplace_back(i, g);
    }
    Undo undo;
    for (const int n : {1, 2}) {
        SessionInfo info = pool.session("ann/" + std::to_string(n)).info;
        info.queue_back = 10'000;
        apply(pool.state, SetSession{{"ann", n}, info}, undo);
        apply(pool.state, AddGrains{{"ann", n}, std::make_shared<const GrainList>(list)}, undo);
    }
    wire::Query q;
    q.type = wire::QueryType::grains;
    auto reply = pool.answer<wire::QueryReply>(ann, q);
    CHECK(reply.grains.size() == 16384);
    CHECK(reply.more);
    q.status = "running";
    reply = pool.answer<wire::QueryReply>(ann, q);
    CHECK(reply.grains.empty());
    CHECK_FALSE(reply.more);
    q.status = "";
    q.session = 1;
    std::size_t rows = 0;
    do {
        reply = pool.answer<wire::QueryReply>(ann, q);
        rows += reply.grains.size();
        q.after = reply.grains.back().grain;
    } while (reply.more);
    CHECK(rows == 10'000);
}
