// `dcs grain restart --and-after`: a result is forgotten, and with it all that was decided after it was handed out,
// so that the control program, run again, goes on from before it.
#include <algorithm>
#include <set>

#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {

namespace {

void erase(Draft &d, const GrainKey &key, const Grain &old, std::set<HostId> &freed) {
    if (old.status() == GrainStatus::running) {
        d.withdraw(old.runs_on(), key, old.lease, true, "its submission was forgotten");
        freed.insert(old.runs_on());
    }
    d.change(EraseGrain{key});
}

Status may_forget(const Session &session, const GrainKey &key, const Grain &grain) {
    const std::string name = "grain " + to_text(key);
    if (!grain.is_over())
        return fail(Code::refused, name + " is " + name_of(grain.status()) +
                                       ": it has no result to forget (`dcs grain restart` alone restarts it)");
    if (session.damaged.empty()) return Status::ok();
    return fail(Code::io_error,
                "session " + to_text(key.session) + " has damaged grains: what was decided after them is not known");
}

// What was decided when more than `stand` results had been handed out: submissions, and kills. Returns how far the
// results had been handed out at the latest submission that stays.
std::int32_t choose(Draft &d, const GrainKey &key, std::int32_t stand, std::vector<GrainNumber> &gone,
                    std::vector<GrainNumber> &again) {
    const Session &session = *d.state.session(key.session);
    d.looked_at(session.grains.size());
    std::int32_t decided = 0;
    for (const auto &[number, g] : session.grains) {
        const bool killed_later = g.status() == GrainStatus::killed && g.as<Killed>().after > stand;
        const bool goes = g.known > stand && number != key.grain;
        if (goes) gone.push_back(number);
        else if (number == key.grain || killed_later) again.push_back(number);
        if (!goes) decided = std::max(decided, g.known);
    }
    return decided;
}

// No program holds the session until its control program resumes it; a running one has seen what is forgotten.
void set_back(Draft &d, const SessionKey &key, std::int32_t shown, std::int32_t decided, const std::string &by) {
    dismiss_waiters(d, key,
                    fail(Code::session_taken, "results of session " + to_text(key) + " were forgotten by " + by +
                                                  ": run the control program again"));
    SessionInfo &info = d.info(key);
    info.shown = std::min(info.shown, shown);
    info.sent = std::min(info.sent, shown);
    info.decided = decided;
    info.status = SessionStatus::active;
    info.token = TokenHash{};
}

}  // namespace

void forget_after(Draft &d, const Caller &caller, const GrainKey &key, std::int32_t forgets, bool erases) {
    const Session &session = *d.state.session(key.session);
    const Grain &grain = *d.state.grain(key);
    if (Status s = may_forget(session, key, grain); !s) return d.refuse(caller, s);
    const bool opens = session.info.status == SessionStatus::terminated;
    if (opens)
        if (Status s = check_session_quota(d.state, key.session.user); !s) return d.refuse(caller, s);
    // So many results stand; whatever was decided with more of them goes.
    const bool killed = grain.status() == GrainStatus::killed;
    const std::int32_t end = killed ? grain.as<Killed>().after : grain.as<Finished>().result_index;
    const std::int32_t stand = std::min(end, session.info.shown);
    std::vector<GrainNumber> gone, again;
    const std::int32_t decided = choose(d, key, stand, gone, again);
    const auto others = static_cast<std::int32_t>(gone.size());
    if (others != forgets)
        return d.refuse(
            caller, fail(Code::refused, "session " + to_text(key.session) + " has changed: " + std::to_string(others) +
                                            " submissions would be forgotten, expected " + std::to_string(forgets)));
    if (erases) {
        gone.push_back(key.grain);
        again.erase(std::find(again.begin(), again.end(), key.grain));
    }
    if (!gone.empty()) raise_fences(d, key.session, session);  // for leases of those that are not there any more
    set_back(d, key.session, stand, decided, caller.user);
    std::set<HostId> freed;
    for (auto it = again.rbegin(); it != again.rend(); ++it) begin_again(d, {key.session, *it});
    for (const GrainNumber number : gone)
        if (!planted("core.forget_no_submission")) erase(d, {key.session, number}, session.grains.at(number), freed);
    for (const GrainNumber number : again) d.follow_up(PlaceGrain{{key.session, number}});
    if (opens)
        for (const auto &[host_class, hosts] : d.state.open_hosts) freed.insert(hosts.begin(), hosts.end());
    for (const HostId id : freed) d.follow_up(FillHost{id});
    d.reply(caller, wire::Done{});
    d.event("grain " + to_text(key) + " and what was decided after it forgotten by " + caller.user + ": " +
            std::to_string(others) + " submissions, " + std::to_string(again.size()) + " grains run again");
}

}  // namespace dcs::core
