// The life of a grain: every state x every input.
#include "life.h"

using namespace dcs;
using namespace dcs::core;

namespace {

// h1 of one slot, h2 of another class; ann/1:0 only goes to h1. bob's session is younger, eve's older.
struct GrainStage {
    Pool pool;
    Program eve, ann, bob, root;
    GrainStage() {
        pool.add_host("h1");
        pool.add_host("h2", 2);
        pool.table();
        eve = pool.begin("eve", "e");
        ann = pool.begin("ann", "a");
        bob = pool.begin("bob", "b");
        root = pool.stranger("root", true);
        pool.open(eve, 1);
        pool.open(ann, 1, wire::OpenMode::resume);
        pool.open(bob, 1);
    }
    void call() {
        pool.first_call("h1");
        pool.first_call("h2");
    }
    Lines start() {
        call();
        return pool.gexec(ann, 1, 0, 1);
    }
    Lines run() {
        start();
        return pool.launched("h1", "ann/1:0");
    }
    void fresh_call() {  // h1 is not connected: it calls, without slots
        if (pool.conn("h1") != no_connection) return;
        pool.hosts[0].slots = 0;
        pool.table();
        pool.first_call("h1");
    }
    wire::GrainReport old_report() const {
        wire::GrainReport r = pool.end_report("ann/1:0");
        r.incarnation = r.incarnation == 0 ? 7 : r.incarnation - 1;
        return r;
    }
};

std::string look_at_grain(GrainStage &s) {
    const Grain *g = s.pool.state.grain(Pool::key("ann/1:0"));
    if (!g) return "damaged";
    std::string text = name_of(g->status());
    if (g->lessee != no_host) text += " " + s.pool.state.host(g->lessee)->config->name;
    text += " inc " + std::to_string(g->incarnation);
    if (g->lease != g->incarnation) text += " lease " + std::to_string(g->lease);
    if (g->course->failures > 0) text += " failed " + std::to_string(g->course->failures);
    if (!g->course->nogo->empty()) text += " nogo";
    if (!g->course->moves->empty()) text += std::string(" moved ") + name_of(g->course->moves->back().reason);
    return text;
}

const Doing<GrainStage> grain_states = {
    {"ready", [](GrainStage &s) { return s.pool.gexec(s.ann, 1, 0, 1); }},
    {"ready, may be forgiven",
     [](GrainStage &s) {
         s.run();
         return s.pool.wait(seconds(61));
     }},
    {"starting", [](GrainStage &s) { return s.start(); }},
    {"running", [](GrainStage &s) { return s.run(); }},
    {"running, failed twice",
     [](GrainStage &s) {
         s.run();
         s.pool.end("h1", "ann/1:0", 1);
         return s.pool.end("h1", "ann/1:0", 1);
     }},
    {"sent tentatively",
     [](GrainStage &s) {
         s.call();
         s.pool.gexec(s.bob, 1, 0, 1);
         s.pool.gexec(s.ann, 1, 0, 1);
         return s.pool.boundary("h1");
     }},
    {"staged",
     [](GrainStage &s) {
         s.call();
         s.pool.gexec(s.bob, 1, 0, 1);
         s.pool.gexec(s.ann, 1, 0, 1);
         s.pool.boundary("h1");
         return s.pool.staged("h1", "ann/1:0");
     }},
    {"displaced",
     [](GrainStage &s) {
         s.run();
         s.pool.gexec(s.eve, 1, 0, 1);
         s.pool.boundary("h1");
         return s.pool.staged("h1", "eve/1:0");
     }},
    {"finished",
     [](GrainStage &s) {
         s.run();
         return s.pool.end("h1", "ann/1:0");
     }},
    {"handed out",
     [](GrainStage &s) {
         s.run();
         s.pool.end("h1", "ann/1:0");
         return s.pool.gwait(s.ann, 1, 0);
     }},
    {"killed",
     [](GrainStage &s) {
         s.run();
         return s.pool.gkill(s.ann, 1, 0);
     }},
    {"of a closed session",
     [](GrainStage &s) {
         s.run();
         return s.pool.close(s.ann, 1);
     }},
    {"damaged",
     [](GrainStage &s) {
         s.call();
         Session copy = s.pool.session("ann/1");
         s.pool.state.sessions.erase({"ann", 1});
         s.pool.state.by_seniority.erase(copy.info.seniority);
         s.pool.state.users.erase("ann");
         const auto has = static_cast<std::int64_t>(s.pool.state.stored.of("ann").sessions);
         s.pool.state.stored.add_session("ann", -has);
         load_session(s.pool.state, {"ann", 1}, {copy.info, {}, {{0, "grains: bad"}}});
         return Lines();
     }},
};

const Doing<GrainStage> grain_inputs = {
    {"submitted again", [](GrainStage &s) { return s.pool.gexec(s.ann, 1, 0, 1); }},
    {"submitted otherwise", [](GrainStage &s) { return s.pool.gexec(s.ann, 1, 0, 3); }},
    {"killed", [](GrainStage &s) { return s.pool.gkill(s.ann, 1, 0); }},
    {"waited for", [](GrainStage &s) { return s.pool.gwait(s.ann, 1, 0); }},
    {"restarted", [](GrainStage &s) { return s.pool.restart(s.root, "ann/1:0"); }},
    {"nogo cleared",
     [](GrainStage &s) {
         wire::SetHost c;
         c.host = "h1";
         c.clear_nogo = true;
         c.user = "ann";
         c.session = 1;
         c.grain = 0;
         return s.pool.set(s.root, c);
     }},
    {"its session closed", [](GrainStage &s) { return s.pool.close(s.ann, 1); }},
    {"host says launched",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.launched("h1", "ann/1:0");
     }},
    {"host says staged",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.staged("h1", "ann/1:0");
     }},
    {"host says not found",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.launched("h1", "ann/1:0", Code::not_found);
     }},
    {"host says no room",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.launched("h1", "ann/1:0", Code::limit);
     }},
    {"checkpoint",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.checkpoint("h1", "ann/1:0");
     }},
    {"end",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.end("h1", "ann/1:0");
     }},
    {"failure",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.end("h1", "ann/1:0", 3);
     }},
    {"limit met",
     [](GrainStage &s) {
         s.fresh_call();
         wire::GrainReport r = s.pool.end_report("ann/1:0", 0, 9);
         r.limit = true;
         return s.pool.send("h1", r);
     }},
    {"innocent end",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.end("h1", "ann/1:0", 0, 15, true);
     }},
    {"given back to the host's owner",
     [](GrainStage &s) {
         s.fresh_call();
         wire::GrainReport r = s.pool.end_report("ann/1:0", 0, 15, true);
         r.given_back = wire::GivenBack::shut_out;
         return s.pool.send("h1", r);
     }},
    {"given back for want of memory",
     [](GrainStage &s) {
         s.fresh_call();
         wire::GrainReport r = s.pool.end_report("ann/1:0", 0, 9, true);
         r.given_back = wire::GivenBack::thrashing;
         return s.pool.send("h1", r);
     }},
    {"report with a gap",
     [](GrainStage &s) {
         s.fresh_call();
         wire::GrainReport r = s.pool.end_report("ann/1:0");
         r.first_seq += 2;
         r.last_seq = r.first_seq;
         return s.pool.send("h1", r);
     }},
    {"end of an older lease",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.send("h1", s.old_report());
     }},
    {"end from another host",
     [](GrainStage &s) {
         if (s.pool.conn("h2") == no_connection) s.pool.first_call("h2");
         return s.pool.end("h2", "ann/1:0");
     }},
    {"host calls with it",
     [](GrainStage &s) {
         const Grain *g = s.pool.state.grain(Pool::key("ann/1:0"));
         return s.pool.first_call("h1", {{"ann/1:0", g ? g->lease : 1}});
     }},
    {"host calls without it", [](GrainStage &s) { return s.pool.first_call("h1"); }},
    {"host hangs up",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.hang_up("h1");
     }},
    {"time slice ends",
     [](GrainStage &s) {
         s.fresh_call();
         return s.pool.boundary("h1");
     }},
    {"host dies", [](GrainStage &s) { return s.pool.wait(seconds(61)); }},
    {"host taken out",
     [](GrainStage &s) {
         s.pool.hosts.erase(s.pool.hosts.begin());
         return s.pool.table();
     }},
    {"host set to 0 slots",
     [](GrainStage &s) {
         wire::SetHost c;
         c.host = "h1";
         c.slots = 0;
         return s.pool.set(s.root, c);
     }},
    {"host drained",
     [](GrainStage &s) {
         wire::SetHost c;
         c.host = "h1";
         c.drained = 1;
         return s.pool.set(s.root, c);
     }},
};

}  // namespace

TEST_CASE("a grain's life: every state x every input") {
    compare<GrainStage>("grain", grain_states, grain_inputs, look_at_grain);
}
