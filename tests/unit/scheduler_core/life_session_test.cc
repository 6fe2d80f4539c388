// The life of a session: every state x every call.
#include "life.h"

using namespace dcs;
using namespace dcs::core;

namespace {

struct SessionStage {
    Pool pool{1};
    Program find = pool.begin("ann", "find"), again = pool.begin("ann", "find"), other = pool.begin("ann", "other");
    void fill() {  // 0 finished, 1 runs, 2 ready
        pool.open(find, 1, wire::OpenMode::resume);
        for (int i = 0; i < 3; ++i) pool.gexec(find, 1, i);
        pool.end("h1", "ann/1:0");
    }
    void closed() {
        fill();
        pool.close(find, 1);
    }
    Lines open(const Program &p, wire::OpenMode mode, bool reset = false) { return pool.open(p, 1, mode, reset); }
};

std::string look_at_session(SessionStage &s) {
    const SessionKey key{"ann", 1};
    if (s.pool.state.set_aside.count(key) != 0) return "set aside";
    const Session *session = s.pool.state.session(key);
    if (!session) return "none";
    return name_of(session->info.status) + std::string(" sent ") + std::to_string(session->info.sent);
}

const Doing<SessionStage> session_states = {
    {"none", [](SessionStage &) { return Lines(); }},
    {"active",
     [](SessionStage &s) {
         s.fill();
         return Lines();
     }},
    {"closed",
     [](SessionStage &s) {
         s.closed();
         return Lines();
     }},
    {"replayed",
     [](SessionStage &s) {
         s.closed();
         return s.open(s.find, wire::OpenMode::resume, true);
     }},
    {"set aside",
     [](SessionStage &s) {
         s.pool.state.set_aside[{"ann", 1}] = "info: bad";
         return Lines();
     }},
};

const Doing<SessionStage> session_inputs = {
    {"open", [](SessionStage &s) { return s.open(s.find, wire::OpenMode::open); }},
    {"resume", [](SessionStage &s) { return s.open(s.again, wire::OpenMode::resume); }},
    {"resume with sent_reset", [](SessionStage &s) { return s.open(s.again, wire::OpenMode::resume, true); }},
    {"resume by another program", [](SessionStage &s) { return s.open(s.other, wire::OpenMode::resume, true); }},
    {"reopen", [](SessionStage &s) { return s.open(s.again, wire::OpenMode::reopen); }},
    {"reopen with sent_reset", [](SessionStage &s) { return s.open(s.again, wire::OpenMode::reopen, true); }},
    {"reopen by another program", [](SessionStage &s) { return s.open(s.other, wire::OpenMode::reopen); }},
    {"close", [](SessionStage &s) { return s.pool.close(s.find, 1); }},
    {"close by another program", [](SessionStage &s) { return s.pool.close(s.other, 1); }},
    {"close by its user",
     [](SessionStage &s) {
         return s.pool.call(s.other, wire::CloseSession{"ann", 1, -1});
     }},
    {"clean",
     [](SessionStage &s) {
         return s.pool.call(s.find, wire::CleanSession{"", 1});
     }},
    {"submit a new grain", [](SessionStage &s) { return s.pool.gexec(s.find, 1, 9); }},
    {"submit the same", [](SessionStage &s) { return s.pool.gexec(s.find, 1, 0); }},
    {"submit another in its place", [](SessionStage &s) { return s.pool.gexec(s.find, 1, 0, 2); }},
    {"submit by a newer run", [](SessionStage &s) { return s.pool.gexec(s.again, 1, 9); }},
    {"wait for the first", [](SessionStage &s) { return s.pool.gwait(s.find, 1, 0); }},
    {"wait for the next", [](SessionStage &s) { return s.pool.gwait(s.find, 1, 1); }},
    {"wait too far", [](SessionStage &s) { return s.pool.gwait(s.find, 1, 2); }},
    {"kill a finished grain", [](SessionStage &s) { return s.pool.gkill(s.find, 1, 0); }},
    {"kill a running grain", [](SessionStage &s) { return s.pool.gkill(s.find, 1, 1); }},
    {"kill a ready grain", [](SessionStage &s) { return s.pool.gkill(s.find, 1, 2); }},
    {"restart a running grain", [](SessionStage &s) { return s.pool.restart(s.find, "ann/1:1"); }},
    {"explain",
     [](SessionStage &s) {
         return s.pool.call(s.find, wire::Explain{"ann", 1, 2});
     }},
    {"query its grains",
     [](SessionStage &s) {
         return s.pool.call(s.find, wire::Query{wire::QueryType::grains, "", 1});
     }},
    {"fetch an output",
     [](SessionStage &s) {
         return s.pool.call(s.find, wire::Fetch{"", 1, 0});
     }},
    {"export",
     [](SessionStage &s) {
         return s.pool.call(s.find, wire::ExportPage{"", 1});
     }},
};

}  // namespace

TEST_CASE("a session's life: every state x every call") {
    compare<SessionStage>("session", session_states, session_inputs, look_at_session);
}
