// The life of a host: every state x every input.
#include "life.h"

using namespace dcs;
using namespace dcs::core;

namespace {

// h1 with one grain that runs there (where it can) and one that waits.
struct HostStage {
    Pool pool;
    Program ann, root;
    HostStage() {
        HostConfig &c = pool.add_host("h1");
        c.check = {"h1"};
        c.gateway = {"gw"};
        pool.table();
        ann = pool.begin("ann", "a");
        root = pool.stranger("root", true);
        pool.open(ann, 1);
    }
    Lines work() {
        pool.first_call("h1");
        pool.gexec(ann, 1, 0);
        pool.gexec(ann, 1, 1);
        return pool.launched("h1", "ann/1:0");
    }
    // Grain servers that are not connected say nothing but their first call.
    template <class Act> Lines connected(Act act) {
        return pool.conn("h1") == no_connection ? Lines{"(not connected)"} : act();
    }
    Lines says_shut(const std::string &why) {
        return pool.feed(ServerCallIn{pool.conn("h1"), HostId{0}, wire::CallIn{0.5, 1 << 20, true, why}});
    }
    Lines set(wire::SetHost c) {
        c.host = "h1";
        return pool.set(root, c);
    }
};

std::string look_at_host(HostStage &s) {
    const Host &h = *s.pool.state.host(HostId{0});
    std::string text = h.configured ? name_of(h.status) : "removed";
    if (h.checked != Checked::no) text += h.checked == Checked::asked ? " asked" : " could be alive";
    if (h.conn == no_connection) text += " away";
    if (h.setting.drained) text += " drained";
    if (!h.shut.empty()) text += " shut";
    if (h.config->slots != 1) text += " slots " + std::to_string(h.config->slots);
    return text + " runs " + std::to_string(s.pool.state.running[0].size());
}

const Doing<HostStage> host_states = {
    {"unknown", [](HostStage &) { return Lines(); }},
    {"active", [](HostStage &s) { return s.work(); }},
    {"active, idle", [](HostStage &s) { return s.pool.first_call("h1"); }},
    {"away",
     [](HostStage &s) {
         s.work();
         return s.pool.hang_up("h1");
     }},
    {"delinquent",
     [](HostStage &s) {
         s.work();
         return s.pool.wait(seconds(31));
     }},
    {"asked",
     [](HostStage &s) {
         s.work();
         return s.pool.wait(seconds(61));
     }},
    {"could be alive",
     [](HostStage &s) {
         s.work();
         s.pool.wait(seconds(61));
         return s.pool.probed("h1", true);
     }},
    {"dead",
     [](HostStage &s) {
         s.work();
         s.pool.wait(seconds(61));
         return s.pool.probed("h1", false, {}, true);
     }},
    {"drained",
     [](HostStage &s) {
         s.work();
         wire::SetHost c;
         c.drained = 1;
         return s.set(c);
     }},
    {"without slots",
     [](HostStage &s) {
         s.work();
         wire::SetHost c;
         c.slots = 0;
         return s.set(c);
     }},
    {"shut",
     [](HostStage &s) {
         s.work();
         return s.says_shut("its owner is back");
     }},
    {"removed",
     [](HostStage &s) {
         s.work();
         s.pool.hosts.clear();
         return s.pool.table();
     }},
};

const Doing<HostStage> host_inputs = {
    {"first call", [](HostStage &s) { return s.pool.first_call("h1"); }},
    {"first call with its grain",
     [](HostStage &s) {
         return s.pool.first_call("h1", {{"ann/1:0", 1}});
     }},
    {"call-in", [](HostStage &s) { return s.connected([&] { return s.pool.call_in("h1"); }); }},
    {"says that it is shut", [](HostStage &s) { return s.connected([&] { return s.says_shut("no memory"); }); }},
    {"time slice ends", [](HostStage &s) { return s.connected([&] { return s.pool.boundary("h1"); }); }},
    {"its grain ends",
     [](HostStage &s) {
         return s.connected([&] {
             s.pool.gexec(s.ann, 1, 0);
             return s.pool.end("h1", "ann/1:0");
         });
     }},
    {"hangs up", [](HostStage &s) { return s.connected([&] { return s.pool.hang_up("h1"); }); }},
    {"silent for its alert", [](HostStage &s) { return s.pool.wait(seconds(31)); }},
    {"silent for its limit", [](HostStage &s) { return s.pool.wait(seconds(61)); }},
    {"silent for its extended limit", [](HostStage &s) { return s.pool.wait(seconds(121)); }},
    {"its address answers", [](HostStage &s) { return s.pool.probed("h1", true, {}, true); }},
    {"only its gateway answers", [](HostStage &s) { return s.pool.probed("h1", false, {}, true); }},
    {"nothing answers", [](HostStage &s) { return s.pool.probed("h1", false, {}, false); }},
    {"an older probe is answered",
     [](HostStage &s) {
         const std::uint32_t last = s.pool.state.host(HostId{0})->probe;
         return s.pool.feed(ProbeResult{HostId{0}, last - 1, false, {}, true});
     }},
    {"table reread", [](HostStage &s) { return s.pool.table(); }},
    {"taken out of the table",
     [](HostStage &s) {
         s.pool.hosts.clear();
         return s.pool.table();
     }},
    {"in the table with more slots",
     [](HostStage &s) {
         s.pool.hosts.clear();
         s.pool.add_host("h1", 1, 2);
         return s.pool.table();
     }},
    {"drained",
     [](HostStage &s) {
         wire::SetHost c;
         c.drained = 1;
         return s.set(c);
     }},
    {"set to 0 slots",
     [](HostStage &s) {
         wire::SetHost c;
         c.slots = 0;
         return s.set(c);
     }},
    {"settings reset",
     [](HostStage &s) {
         wire::SetHost c;
         c.reset = true;
         return s.set(c);
     }},
    {"a grain is submitted", [](HostStage &s) { return s.pool.gexec(s.ann, 1, 7); }},
    {"the session is closed", [](HostStage &s) { return s.pool.close(s.ann, 1); }},
};

}  // namespace

TEST_CASE("a host's life: every state x every input") {
    compare<HostStage>("host", host_states, host_inputs, look_at_host);
}
