// Life cycle of a session: every state x every call, who may call, retries.
#include "pool.h"

using namespace dcs;
using namespace dcs::core;
using wire::OpenMode;

namespace {

// A pool with one session of program `find` of ann, in the named state.
struct OneSessionStage {
    Pool pool{1};
    Program find, again, other, bob;

    explicit OneSessionStage(const std::string &where) {
        find = pool.begin("ann", "find");
        again = pool.begin("ann", "find");
        other = pool.begin("ann", "other");
        bob = pool.begin("bob", "find");
        if (where == "none") return;
        pool.open(find, 1, OpenMode::resume);
        pool.gexec(find, 1, 0);
        pool.end("h1", "ann/1:0");
        pool.gexec(find, 1, 1);  // running
        pool.gexec(find, 1, 2);  // ready
        if (where == "active") return;
        pool.close(find, 1);
        if (where == "closed") return;
        pool.open(find, 1, OpenMode::resume, true);  // replay
    }
};

struct CallCell {
    const char *state, *call, *expected;
};

std::string answer_to(const std::string &where, const std::string &call) {
    OneSessionStage s(where);
    Pool &p = s.pool;
    Lines lines;
    if (call == "open") lines = p.open(s.find, 1);
    if (call == "resume") lines = p.open(s.again, 1, OpenMode::resume);
    if (call == "resume sent_reset") lines = p.open(s.again, 1, OpenMode::resume, true);
    if (call == "resume other ident") lines = p.open(s.other, 1, OpenMode::resume, true);
    if (call == "reopen") lines = p.open(s.again, 1, OpenMode::reopen);
    if (call == "reopen other ident") lines = p.open(s.other, 1, OpenMode::reopen);
    if (call == "close") lines = p.close(s.find, 1);
    if (call == "close by other") lines = p.close(s.other, 1);
    if (call == "clean") lines = p.call(s.find, wire::CleanSession{"", 1});
    if (call == "gexec new") lines = p.gexec(s.find, 1, 9);
    if (call == "gexec same") lines = p.gexec(s.find, 1, 0);
    if (call == "gexec differs") lines = p.gexec(s.find, 1, 0, 2);
    if (call == "gexec by newer") lines = p.gexec(s.again, 1, 9);
    if (call == "gwait 0") lines = p.gwait(s.find, 1, 0);
    if (call == "gwait 1") lines = p.gwait(s.find, 1, 1);
    if (call == "gkill ready") lines = p.gkill(s.find, 1, 2);
    if (call == "gkill finished") lines = p.gkill(s.find, 1, 0);
    std::string text;
    for (const std::string &line : lines) text += (text.empty() ? "" : " | ") + line;
    const auto end = text.find(": ", text.find("error "));
    return text.find("error ") == std::string::npos ? text : text.substr(0, end);
}

}  // namespace

TEST_CASE("a session's life cycle, cell by cell") {
    const CallCell cells[] = {
        {"none", "open", "ann: opened fresh"},
        {"none", "resume", "ann: opened fresh"},
        {"none", "resume sent_reset", "ann: opened fresh"},
        {"none", "resume other ident", "ann: opened fresh"},
        {"none", "reopen", "ann: error SESSION_UNKNOWN"},
        {"none", "reopen other ident", "ann: error SESSION_UNKNOWN"},
        {"none", "close", "ann: error SESSION_UNKNOWN"},
        {"none", "clean", "ann: error SESSION_UNKNOWN"},
        {"none", "gexec new", "ann: error SESSION_UNKNOWN"},
        {"none", "gwait 0", "ann: error SESSION_UNKNOWN"},
        {"none", "gkill ready", "ann: error SESSION_UNKNOWN"},

        {"active", "open", "ann: error SESSION_ACTIVE"},
        {"active", "resume", "ann: opened resumed completed 1"},
        {"active", "resume sent_reset", "ann: opened resumed completed 1"},
        {"active", "resume other ident", "ann: error SESSION_TAKEN"},
        {"active", "reopen", "ann: error SESSION_ACTIVE"},
        {"active", "reopen other ident", "ann: error SESSION_ACTIVE"},
        {"active", "close", "h1: withdraw ann/1:1 inc 1 discard because the session was closed | ann: done"},
        {"active", "close by other", "ann: error SESSION_TAKEN"},
        {"active", "clean", "ann: error SESSION_ACTIVE"},
        {"active", "gexec new", "ann: done"},
        {"active", "gexec same", "ann: done"},
        {"active", "gexec differs", "ann: difference from ann/1:0"},
        {"active", "gexec by newer", "ann: error SESSION_TAKEN"},
        {"active", "gwait 0", "ann: result ann/1:0 completed 1 sent 1 out 6"},
        {"active", "gwait 1", "ann: error NOTHING_YET"},
        {"active", "gkill ready", "ann: done"},
        {"active", "gkill finished", "ann: done"},

        {"closed", "open", "ann: error SESSION_CLOSED"},
        {"closed", "resume", "ann: error SESSION_CLOSED"},
        {"closed", "resume sent_reset", "ann: opened replay completed 1"},
        {"closed", "resume other ident", "ann: error SESSION_TAKEN"},
        {"closed", "reopen", "ann: opened resumed completed 1 | h1: launch ann/1:1 inc 2 next 1"},
        {"closed", "reopen other ident", "ann: error SESSION_TAKEN"},
        {"closed", "close", "ann: done"},
        {"closed", "close by other", "ann: done"},
        {"closed", "clean", "ann: done"},
        {"closed", "gexec new", "ann: error SESSION_CLOSED"},
        {"closed", "gexec same", "ann: error SESSION_CLOSED"},
        {"closed", "gwait 0", "ann: error SESSION_CLOSED"},
        {"closed", "gkill ready", "ann: error SESSION_CLOSED"},

        {"replay", "open", "ann: error SESSION_CLOSED"},
        {"replay", "resume", "ann: error SESSION_CLOSED"},
        {"replay", "resume sent_reset", "ann: opened replay completed 1"},
        {"replay", "resume other ident", "ann: error SESSION_TAKEN"},
        {"replay", "reopen", "ann: opened resumed completed 1 | h1: launch ann/1:1 inc 2 next 1"},
        {"replay", "close", "ann: done"},
        {"replay", "clean", "ann: done"},
        {"replay", "gexec new", "ann: error REPLAY_END"},
        {"replay", "gexec same", "ann: done"},
        {"replay", "gexec differs", "ann: difference from ann/1:0"},
        {"replay", "gexec by newer", "ann: error SESSION_CLOSED"},
        {"replay", "gwait 0", "ann: result ann/1:0 completed 1 sent 1 out 6"},
        {"replay", "gwait 1", "ann: error REPLAY_END"},
        {"replay", "gkill ready", "ann: error REPLAY_END"},
        {"replay", "gkill finished", "ann: done"},
    };
    for (const CallCell &cell : cells) {
        CAPTURE(cell.state, cell.call);
        CHECK(answer_to(cell.state, cell.call) == cell.expected);
    }
}

TEST_CASE("a session of another user is another session") {
    OneSessionStage s("active");
    CHECK(s.pool.gexec(s.bob, 1, 5) == Lines{"bob: error SESSION_UNKNOWN: bob has no session 1"});
    CHECK(s.pool.open(s.bob, 1) == Lines{"bob: opened fresh"});
    CHECK(s.pool.state.sessions.size() == 2);
}

TEST_CASE("a takeover names the program, answers the old one's waits and keeps the results") {
    OneSessionStage s("active");
    s.pool.gwait(s.find, 1, 1, true);
    REQUIRE(s.pool.silent());
    CHECK(s.pool.open(s.again, 1, OpenMode::resume, true) ==
          Lines{"ann: error SESSION_TAKEN: session ann/1 was taken over by a newer run of find",
                "ann: opened resumed completed 1"});
    CHECK(s.pool.gexec(s.find, 1, 5) ==
          Lines{"ann: error SESSION_TAKEN: session ann/1 was taken over by a newer run of find"});
    CHECK(s.pool.gexec(s.other, 1, 5) ==
          Lines{"ann: error SESSION_TAKEN: session ann/1 is bound to the control program find"});
    CHECK(s.pool.gwait(s.again, 1, 0) == Lines{"ann: result ann/1:0 completed 1 sent 1 out 6"});
    s.pool.gwait(s.again, 1, 1, true);
    const std::string taken =
        "ann: error SESSION_TAKEN: session ann/1 was taken over by a newer run of find, process 7";
    CHECK(s.pool.call(s.find, wire::OpenSession{.number = 1, .mode = OpenMode::resume, .run = "process 7"}) ==
          Lines{taken, "ann: opened resumed sent 1 completed 1"});
    CHECK(s.pool.gexec(s.again, 1, 5) == Lines{taken});
}

TEST_CASE("an open that is repeated under its request id succeeds again") {
    Pool pool(0);
    const Program find = pool.begin("ann", "find");
    CHECK(pool.open(find, 1) == Lines{"ann: opened fresh"});
    CHECK(pool.repeat(find, wire::OpenSession{1, OpenMode::open, false}) == Lines{"ann: opened fresh"});
    CHECK(pool.changes.empty());
    CHECK(pool.open(find, 1) == Lines{"ann: error SESSION_ACTIVE: session ann/1 is active"});
    pool.close(find, 1);
    CHECK(pool.open(find, 1, OpenMode::reopen) == Lines{"ann: opened resumed"});
    CHECK(pool.repeat(find, wire::OpenSession{1, OpenMode::reopen, false}) == Lines{"ann: opened resumed"});
    pool.close(find, 1);
    CHECK(pool.open(find, 1, OpenMode::resume, true) == Lines{"ann: opened replay"});
    CHECK(pool.repeat(find, wire::OpenSession{1, OpenMode::resume, true}) == Lines{"ann: opened replay"});
}

TEST_CASE("closing commits what is running as ready, in order, at the front") {
    Pool pool(2);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    for (int i = 0; i < 4; ++i) pool.gexec(find, 1, i);
    CHECK(pool.close(find, 1) == Lines{"h1: withdraw ann/1:0 inc 1 discard because the session was closed",
                                       "h2: withdraw ann/1:1 inc 1 discard because the session was closed",
                                       "ann: done"});
    CHECK(pool.queue("ann/1") == std::vector<GrainNumber>{0, 1, 2, 3});
    CHECK(pool.state.by_seniority.empty());
    // neither a call-in nor a late report brings it back
    CHECK(pool.call_in("h1").empty());
    CHECK(pool.end("h1", "ann/1:0") == Lines{"h1: ack ann/1:0 inc 1 last 1 ended stale"});
    CHECK(pool.status("ann/1:0") == "ready");
}

TEST_CASE("a reopened session has its old seniority") {
    Pool pool(0);
    pool.add_host("h1");
    pool.table();
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.open(find, 2);
    pool.gexec(find, 2, 0);
    pool.close(find, 1);
    pool.open(find, 1, OpenMode::reopen);
    CHECK(pool.first_call("h1") == Lines{"h1: configure interval 10000ms slots 1", "h1: launch ann/1:0 inc 1 next 1"});
}

TEST_CASE("waits end when the session is closed, and closing acknowledges") {
    Pool pool(1);
    const Program find = pool.begin("ann", "find");
    pool.open(find, 1);
    pool.gexec(find, 1, 0);
    pool.end("h1", "ann/1:0");
    pool.gwait(find, 1, 0);
    pool.gexec(find, 1, 1);
    pool.gwait(find, 1, 1, true);
    pool.gwait(find, 1, 1, true);
    CHECK(pool.session("ann/1").waiters.size() == 2);
    CHECK(pool.call(find, wire::CloseSession{"", 1, 7}) ==
          Lines{"ann: error SESSION_CLOSED: session ann/1 was closed",
                "ann: error SESSION_CLOSED: session ann/1 was closed",
                "h1: withdraw ann/1:1 inc 1 discard because the session was closed", "ann: done"});
    CHECK(pool.session("ann/1").info.sent == 1);
}

TEST_CASE("a replay leaves the record as it is, and ends with its close") {
    OneSessionStage s("closed");
    const SessionInfo before = s.pool.session("ann/1").info;
    s.pool.open(s.again, 1, OpenMode::resume, true);
    s.pool.gwait(s.again, 1, 0);
    s.pool.gwait(s.again, 1, 1, true);
    CHECK(s.pool.changes.empty());
    CHECK(s.pool.session("ann/1").waiters.empty());
    CHECK(s.pool.session("ann/1").info.sent == before.sent);
    CHECK(before.shown == 0);
    CHECK(s.pool.session("ann/1").info.shown == 1);  // from now on no kill takes it out of the order
    CHECK(s.pool.close(s.again, 1) == Lines{"ann: done"});
    CHECK(s.pool.gwait(s.again, 1, 0) == Lines{"ann: error SESSION_CLOSED: session ann/1 is closed"});
}

TEST_CASE("secure commands: the owner, or one with privilege, without a token") {
    OneSessionStage s("active");
    Pool &pool = s.pool;
    const Program eve = pool.stranger("eve"), ann = pool.stranger("ann"), root = pool.stranger("root", true);
    const std::string refused = "eve: error REFUSED: eve may not do this with a session of ann";
    CHECK(pool.call(eve, wire::CloseSession{"ann", 1, -1}) == Lines{refused});
    CHECK(pool.call(eve, wire::CleanSession{"ann", 1}) == Lines{refused});
    CHECK(pool.call(eve, wire::Gkill{"ann", 1, 2}) == Lines{refused});
    CHECK(pool.call(eve, wire::Query{wire::QueryType::grain, "ann", 1, 2, -1, ""}) == Lines{refused});
    CHECK(pool.call(eve, wire::Fetch{"ann", 1, 2, wire::Stream::out, 0, 0}) == Lines{refused});
    CHECK(pool.changes.empty());
    CHECK(pool.call(ann, wire::Gkill{"", 1, 2}) ==
          Lines{"ann: error NO_AUTH: the connection carries no authorization token"});
    CHECK(pool.call(ann, wire::Gkill{"ann", 1, 2}) == Lines{"ann: done"});
    CHECK(pool.status("ann/1:2") == "killed");
    CHECK(pool.call(root, wire::Gkill{"ann", 1, 7}) ==
          Lines{"root: error GRAIN_UNKNOWN: session ann/1 has no grain 7"});
    CHECK(pool.call(root, wire::CleanSession{"ann", 1}).back().find("SESSION_ACTIVE") != std::string::npos);
    CHECK(pool.call(root, wire::CloseSession{"ann", 1, -1}).back() == "root: done");
    CHECK(pool.call(ann, wire::CleanSession{"ann", 1}) == Lines{"ann: done"});
    CHECK(pool.state.sessions.empty());
}

TEST_CASE("a token is its user's, and unknown ones are no party's") {
    Pool pool(0);
    const Program find = pool.begin("ann", "find");
    Program thief = find;
    thief.user = "eve";
    CHECK(pool.open(thief, 1) == Lines{"ann: error NO_AUTH: the authorization token is not one of eve"});
    Program forged = find;
    forged.token[5] ^= 1;
    CHECK(pool.open(forged, 1) == Lines{"ann: error NO_AUTH: the authorization token is unknown or has been revoked"});
    CHECK(pool.state.sessions.empty());
}

TEST_CASE("authorization entries age out a day after they were seen without sessions") {
    Pool pool(0);
    const std::int64_t day = limits::token_age_s;
    const Program idle = pool.begin("ann", "idle", 1000);
    const Program busy = pool.begin("ann", "busy", 1000);
    pool.open(busy, 1);
    pool.begin("bob", "x", 1000 + day);
    CHECK(pool.state.auth.count(idle.token) == 1);
    pool.begin("bob", "x", 1001 + day);
    CHECK(pool.state.auth.count(idle.token) == 0);
    CHECK(pool.state.auth.count(busy.token) == 1);
    pool.close(busy, 1);
    pool.begin("bob", "x", 5000 + day);  // first seen without sessions
    pool.begin("bob", "x", 5000 + 2 * day);
    CHECK(pool.state.auth.count(busy.token) == 1);
    pool.begin("bob", "x", 5001 + 2 * day);
    CHECK(pool.state.auth.count(busy.token) == 0);
    CHECK(pool.call(pool.stranger("ann"), GetAuth{"-x", {}, {}, 0}).at(0).find("INVALID") != std::string::npos);
}

TEST_CASE("the policy says how long a token stays without sessions") {
    Pool pool(0);
    const Program idle = pool.begin("ann", "idle", 1000);
    pool.state.policy.token_age_s = 60;
    pool.begin("bob", "x", 1060);
    CHECK(pool.state.auth.count(idle.token) == 1);
    pool.begin("bob", "x", 1061);
    CHECK(pool.state.auth.count(idle.token) == 0);
}

TEST_CASE("a wall clock that was set by years makes no token old") {
    Pool pool(0);
    const std::int64_t day = limits::token_age_s, now = 1'800'000'000, years = 10 * 365 * day;
    const Program idle = pool.begin("ann", "idle", now);
    pool.begin("bob", "x", now + years);
    CHECK(pool.state.auth.count(idle.token) == 1);
    pool.begin("bob", "x", now);  // set right again
    CHECK(pool.state.auth.count(idle.token) == 1);
    const Program early = pool.begin("ann", "early", now - years);
    pool.begin("bob", "x", now);
    CHECK(pool.state.auth.count(early.token) == 1);
    pool.begin("bob", "x", now + day);
    CHECK(pool.state.auth.count(idle.token) == 1);
    pool.begin("bob", "x", now + day + 1);
    CHECK(pool.state.auth.count(idle.token) == 0);
    CHECK(pool.state.auth.count(early.token) == 0);
}

TEST_CASE("one user's abandoned tokens are bounded") {
    Pool pool(0);
    const Program first = pool.begin("ann", "find", 1000);
    const Program bob = pool.begin("bob", "find", 1000);
    for (int i = 0; i < 1100; ++i) pool.begin("ann", "find", 1001);
    CHECK(pool.state.auth.size() == 1025);
    CHECK(pool.state.auth.count(first.token) == 0);
    CHECK(pool.state.auth.count(bob.token) == 1);
}

TEST_CASE("the highest number of a user's removed sessions is kept") {
    Pool pool(0);
    const Program ann = pool.begin("ann", "find"), ben = pool.begin("ben", "find");
    const auto last = [&](const Program &who, const std::string &user = "") {
        wire::Query sessions;
        sessions.type = wire::QueryType::sessions;
        sessions.user = user;
        return pool.answer<wire::QueryReply>(who, sessions).last_number;
    };
    const auto remove = [&](int number) {
        pool.close(ann, number);
        CHECK(pool.call(ann, wire::CleanSession{"", number}) == Lines{"ann: done"});
    };
    for (int number : {1, 3, 7}) pool.open(ann, number);
    CHECK(last(ann) == -1);
    remove(3);
    CHECK(pool.touched_disk());
    CHECK(last(ann) == 3);
    remove(1);
    CHECK(last(ann) == 3);
    CHECK(last(ben) == -1);
    CHECK(last(ben, "ann") == 3);
    pool.open(ann, 3);  // who names a number gets it
    remove(7);
    CHECK(last(ann) == 7);
    pool.state.set_aside[{"ann", 9}] = "grains: its checksum differs";
    CHECK(pool.call(ann, wire::CleanSession{"", 9}) == Lines{"ann: done"});
    CHECK(last(ann) == 9);
}

TEST_CASE("a question about one session of a user costs no look at the user's others") {
    Pool pool;
    const Program find = pool.begin("ann", "find"), other = pool.begin("bob", "find");
    for (int i = 1; i <= 50; ++i) pool.open(find, i);
    pool.open(other, 30);
    wire::Query query;
    query.type = wire::QueryType::sessions;
    const auto asked = [&](const std::string &user, std::int32_t session) {
        query.user = user;
        query.session = session;
        return decide(pool.state, pool.now, UserCall{pool.caller(find), query}).looked_at;
    };
    CHECK(asked("ann", 30) == 1);
    CHECK(asked("ann", 99) == 0);
    CHECK(asked("ann", -1) == 50);
    CHECK(asked("", 30) == 51);  // of whomever
    CHECK(pool.answer<wire::QueryReply>(find, query).sessions.size() == 2);
    query.user = "ann";
    CHECK(pool.answer<wire::QueryReply>(find, query).sessions.at(0).session == 30);
}
