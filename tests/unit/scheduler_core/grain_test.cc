// Life cycle of a grain: every status x every event.
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

// Host h1 of one slot, and a grain ann/1:0 brought into the named status. h2 is another class.
struct OneGrainStage {
    Pool pool;
    Program find;

    explicit OneGrainStage(const std::string &status) {
        pool.add_host("h1");
        pool.add_host("h2", 2);
        pool.table();
        find = pool.begin("ann", "find");
        pool.open(find, 1, wire::OpenMode::resume);
        if (status != "ready") {
            pool.first_call("h1");
            pool.first_call("h2");
        }
        pool.gexec(find, 1, 0, 1);
        if (status == "finished" || status == "shown") pool.end("h1", "ann/1:0");
        if (status == "shown") pool.gwait(find, 1, 0);
        if (status == "killed") pool.gkill(find, 1, 0);
        if (status == "ready") {  // with a lease that ended, and a host that has no slot for it
            pool.first_call("h1");
            pool.wait(seconds(61));
        }
        REQUIRE(pool.status("ann/1:0") == (status == "shown" ? "finished" : status));
    }
};

std::string joined(const Lines &lines) {
    std::string text;
    for (const std::string &line : lines) text += (text.empty() ? "" : " | ") + line;
    return text;
}

std::string run(const std::string &status, const std::string &event) {
    OneGrainStage s(status);
    Pool &p = s.pool;
    // In status "ready" h1 is dead; what it sends comes over a new connection.
    const bool calls = event != "gexec same" && event != "gexec differs" && event != "gkill" && event != "gwait" &&
                       event != "close" && event != "host dies";
    if (status == "ready" && calls && event.find("call") == std::string::npos) {
        p.hosts[0].slots = 0;
        p.table();
        p.first_call("h1");
        REQUIRE(p.status("ann/1:0") == "ready");
    }
    Lines lines;
    if (event == "gexec same") lines = p.gexec(s.find, 1, 0, 1);
    if (event == "gexec differs") lines = p.gexec(s.find, 1, 0, 3);
    if (event == "gkill") lines = p.gkill(s.find, 1, 0);
    if (event == "gwait") lines = p.gwait(s.find, 1, 0);
    if (event == "checkpoint") lines = p.checkpoint("h1", "ann/1:0");
    if (event == "end") lines = p.end("h1", "ann/1:0");
    if (event == "failure") lines = p.end("h1", "ann/1:0", 3);
    if (event == "innocent end") lines = p.end("h1", "ann/1:0", 0, 15, true);
    if (event == "end from h2") lines = p.end("h2", "ann/1:0");
    if (event == "launched") lines = p.launched("h1", "ann/1:0");
    if (event == "not found") lines = p.launched("h1", "ann/1:0", Code::not_found);
    if (event == "no room") lines = p.launched("h1", "ann/1:0", Code::limit);
    if (event == "first call with it") lines = p.first_call("h1", {{"ann/1:0", 1}});
    if (event == "first call without") lines = p.first_call("h1");
    if (event == "first call with older") lines = p.first_call("h1", {{"ann/1:0", 0}});
    if (event == "host dies") lines = p.wait(seconds(61));
    if (event == "close") lines = p.close(s.find, 1);
    const Grain &g = p.at("ann/1:0");
    return std::string(name_of(g.status())) + (g.lessee == no_host ? "" : " " + p.state.host(g.lessee)->config->name) +
           " inc " + std::to_string(g.incarnation) + ": " + joined(lines);
}

struct Cell {
    const char *status, *event, *expected;
};
const char configure[] = "h1: configure interval 10000ms slots 1";

}  // namespace

TEST_CASE("a grain's life cycle: ready") {
    const std::string hello = configure;
    const std::vector<std::array<std::string, 2>> cells = {
        {"gexec same", "ready h1 inc 1: ann: done"},
        {"gexec differs", "ready h1 inc 1: ann: difference from ann/1:0"},
        {"gkill", "killed inc 1: ann: done"},
        {"gwait", "ready h1 inc 1: ann: error NOTHING_YET: no further grain of session ann/1 has finished yet"},
        {"checkpoint", "ready h1 inc 1: h1: ack ann/1:0 inc 1 last 1 stale"},
        {"end", "ready h1 inc 1: h1: ack ann/1:0 inc 1 last 1 ended stale"},
        {"failure", "ready h1 inc 1: h1: ack ann/1:0 inc 1 last 1 ended stale"},
        {"innocent end", "ready h1 inc 1: h1: ack ann/1:0 inc 1 last 1 ended stale"},
        {"launched", "ready h1 inc 1: h1: withdraw ann/1:0 inc 1 discard because it is no longer leased to this host"},
        {"not found", "ready h1 inc 1: "},
        {"no room", "ready h1 inc 1: "},
        // still queued: all is forgiven
        {"first call with it", "running h1 inc 1: " + hello},
        {"first call without", "running h1 inc 2: " + hello + " | h1: launch ann/1:0 inc 2 next 1"},
        {"first call with older", "running h1 inc 2: " + hello +
                                      " | h1: withdraw ann/1:0 discard because it is no longer leased to this host | "
                                      "h1: launch ann/1:0 inc 2 next 1"},
        {"host dies", "ready h1 inc 1: "},
        {"close", "ready h1 inc 1: ann: done"},
    };
    for (const auto &[event, expected] : cells) {
        CAPTURE(event);
        CHECK(run("ready", event) == expected);
    }
}

TEST_CASE("a grain's life cycle: running") {
    const std::string hello = configure;
    const std::vector<std::array<std::string, 2>> cells = {
        {"gexec same", "running h1 inc 1: ann: done"},
        {"gexec differs", "running h1 inc 1: ann: difference from ann/1:0"},
        {"gkill",
         "killed h1 inc 1: h1: withdraw ann/1:0 inc 1 discard because killed by its control program "
         "| ann: done"},
        {"gwait", "running h1 inc 1: ann: error NOTHING_YET: no further grain of session ann/1 has finished yet"},
        {"checkpoint", "running h1 inc 1: h1: ack ann/1:0 inc 1 last 1 taken"},
        {"end", "finished h1 inc 1: h1: ack ann/1:0 inc 1 last 1 ended taken"},
        {"failure", "running h1 inc 2: h1: ack ann/1:0 inc 1 last 1 ended taken | h1: launch ann/1:0 inc 2 next 1"},
        {"innocent end", "ready inc 1: h1: ack ann/1:0 inc 1 last 1 ended taken"},
        {"end from h2", "running h1 inc 1: h2: ack ann/1:0 inc 1 last 1 ended stale"},
        {"launched", "running h1 inc 1: "},
        {"not found", "ready inc 1: "},
        {"no room", "ready inc 1: "},
        {"first call with it", "running h1 inc 1: close h1 | " + hello},
        {"first call without", "running h1 inc 2: close h1 | " + hello + " | h1: launch ann/1:0 inc 2 next 1"},
        {"first call with older", "running h1 inc 2: close h1 | " + hello +
                                      " | h1: withdraw ann/1:0 discard because it is no longer leased to this host | "
                                      "h1: launch ann/1:0 inc 2 next 1"},
        {"host dies", "ready h1 inc 1: close h1 | close h2"},
        {"close", "ready h1 inc 1: h1: withdraw ann/1:0 inc 1 discard because the session was closed | ann: done"},
    };
    for (const auto &[event, expected] : cells) {
        CAPTURE(event);
        CHECK(run("running", event) == expected);
    }
}

TEST_CASE("a grain's life cycle: finished is final, handed out or not") {
    const std::string hello = "close h1 | " + std::string(configure);
    for (const char *status : {"finished", "shown"}) {
        const std::vector<std::array<std::string, 2>> cells = {
            {"gexec same", "finished h1 inc 1: ann: done"},
            {"gexec differs", "finished h1 inc 1: ann: difference from ann/1:0"},
            {"gwait", "finished h1 inc 1: ann: result ann/1:0 completed 1 sent 1 out 6"},
            {"checkpoint", "finished h1 inc 1: h1: ack ann/1:0 inc 1 last 2 ended have_it"},
            {"end", "finished h1 inc 1: h1: ack ann/1:0 inc 1 last 2 ended have_it"},
            {"failure", "finished h1 inc 1: h1: ack ann/1:0 inc 1 last 2 ended have_it"},
            {"innocent end", "finished h1 inc 1: h1: ack ann/1:0 inc 1 last 2 ended have_it"},
            {"end from h2", "finished h1 inc 1: h2: ack ann/1:0 inc 1 last 2 ended have_it"},
            {"launched",
             "finished h1 inc 1: h1: withdraw ann/1:0 inc 1 discard because it is no longer leased to "
             "this host"},
            {"not found", "finished h1 inc 1: "},
            {"no room", "finished h1 inc 1: "},
            {"first call with it",
             "finished h1 inc 1: " + hello +
                 " | h1: withdraw ann/1:0 inc 1 discard because it is no longer leased to this host"},
            {"first call without", "finished h1 inc 1: " + hello},
            {"host dies", "finished h1 inc 1: close h1 | close h2"},
            {"close", "finished h1 inc 1: ann: done"},
        };
        for (const auto &[event, expected] : cells) {
            CAPTURE(status, event);
            CHECK(run(status, event) == expected);
        }
    }
    CHECK(run("finished", "gkill") == "killed h1 inc 1: ann: done");
    CHECK(run("shown", "gkill") == "finished h1 inc 1: ann: done");
}

TEST_CASE("a grain's life cycle: killed stays killed") {
    const std::string hello = "close h1 | " + std::string(configure);
    const std::vector<std::array<std::string, 2>> cells = {
        {"gexec same", "killed h1 inc 1: ann: done repeated 1 killed 1"},
        {"gexec differs", "killed h1 inc 1: ann: difference from ann/1:0"},
        {"gkill", "killed h1 inc 1: ann: done"},
        {"gwait",
         "killed h1 inc 1: ann: error NOTHING_LEFT: session ann/1 has no unfinished grain and every "
         "result was handed out"},
        {"checkpoint", "killed h1 inc 1: h1: ack ann/1:0 inc 1 last 1 stale"},
        {"end", "killed h1 inc 1: h1: ack ann/1:0 inc 1 last 1 ended stale"},
        {"failure", "killed h1 inc 1: h1: ack ann/1:0 inc 1 last 1 ended stale"},
        {"innocent end", "killed h1 inc 1: h1: ack ann/1:0 inc 1 last 1 ended stale"},
        {"launched", "killed h1 inc 1: h1: withdraw ann/1:0 inc 1 discard because it is no longer leased to this host"},
        {"not found", "killed h1 inc 1: "},
        {"no room", "killed h1 inc 1: "},
        {"first call with it", "killed h1 inc 1: " + hello +
                                   " | h1: withdraw ann/1:0 inc 1 discard because it is no longer leased to this host"},
        {"first call without", "killed h1 inc 1: " + hello},
        {"host dies", "killed h1 inc 1: close h1 | close h2"},
        {"close", "killed h1 inc 1: ann: done"},
    };
    for (const auto &[event, expected] : cells) {
        CAPTURE(event);
        CHECK(run("killed", event) == expected);
    }
}

TEST_CASE("what no session knows is stale") {
    Pool pool(1);
    wire::GrainReport r;
    r.key = wire::WireGrain{"ann", 1, 5};
    r.incarnation = 3;
    r.first_seq = r.last_seq = 1;
    CHECK(pool.send("h1", r) == Lines{"h1: ack ann/1:5 inc 3 last 1 stale"});
    CHECK_FALSE(pool.touched_disk());
}
