// The server's answer to a launch (a failed start makes the host nogo, and the search continues).
#include "base/planted.h"
#include "scheduler/core/ahead.h"
#include "scheduler/core/placement.h"

namespace dcs::core {
namespace {

constexpr int exit_cannot_start = 126;  // as a shell says it

// The next of a million grains of the same program need not be tried there at once. But where no host is left
// without a mark, each of them is to be tried itself: the marks then only keep what is surely in vain to about a
// thousand starts a second in the whole pool.
void mark_program(Draft &d, const GrainKey &key, const Grain &grain, HostId here) {
    if (grain.program == 0) return;
    const ProgramOf program{key.session.user, grain.program};
    d.host(here).missing[program] = d.now + d.state.host(here)->config->interval;
    Grain untried = grain;
    untried.course.edit().nogo = std::vector<HostId>();
    for (std::size_t i = 0; i < d.state.hosts.size(); ++i) {
        const Host &host = d.state.hosts[i];
        const auto id = static_cast<HostId>(i);
        const bool marked = id == here || lacks_program(host, program.user, program.program, d.now);
        if (!marked && could_run(d.state, id, key.session, untried)) return;
    }
    std::set<HostId> all{here};
    if (const auto known = d.state.lacking.find(program); known != d.state.lacking.end())
        all.insert(known->second.begin(), known->second.end());
    const Instant soon = d.now + milliseconds(static_cast<std::int64_t>(all.size()));
    for (const HostId id : all) {
        Instant &until = d.host(id).missing[program];
        until = std::min(until, soon);
    }
}

bool runs_somewhere(const State &state, const GrainKey &key, const Grain &grain) {
    for (std::size_t i = 0; i < state.hosts.size(); ++i)
        if (could_run(state, static_cast<HostId>(i), key.session, grain)) return true;
    return false;
}

std::string all_said(const State &state, const Grain &grain, HostId last, const std::string &text) {
    std::map<HostId, std::string> said;  // so that grains with the same troubles have the same words
    for (const auto &[id, why] : failed_starts(grain)) said[id] = why;
    said[last] = text;
    std::string words;
    for (const auto &[id, why] : said)
        words += (words.empty() ? "it could not be started on " : "; on ") + state.host(id)->config->name + ": " + why;
    return words;
}

// For a reason that this host will give again: the search goes on elsewhere. Where no elsewhere is left, a program
// may still be put there, so the grain waits; what the grain itself asks for does not change, so that is its end.
void cannot_start(Draft &d, const GrainKey &key, HostId id, const std::string &text, MoveReason reason) {
    note_move(d, key, reason, text);
    Grain &g = d.grain(key);
    DCS_REQUIRE(!is_nogo(g, id), "nogo names a host once");
    g.course.edit().nogo.edit().push_back(id);
    const bool elsewhere = runs_somewhere(d.state, key, g);
    bool own = false;
    for (const Move &m : g.course->moves.get())
        own = own || (m.reason == MoveReason::cannot_start && is_nogo(g, m.host));
    if (!elsewhere && own) return give_up(d, key, id, exit_cannot_start, all_said(d.state, g, id, text));
    requeue_front(d, key, false);
    // Grains that no host can start block no others at the end of their queue.
    if (!elsewhere) g.as<Ready>().queue_position = d.take_back(key.session);
    if (reason == MoveReason::no_program) mark_program(d, key, g, id);
}

// A temporary refusal. ordered: the host has something else to do, or had the order to end it.
void not_now(Draft &d, const GrainKey &key, HostId id, const std::string &text, bool ordered, bool ran) {
    const bool own = ran && !ordered;  // it was given up on the way
    if (own && last_return(*d.state.grain(key)))
        return give_up(d, key, id, exit_given_up,
                       "hosts returned it repeatedly, most recently " + d.state.host_name(id) + ": " + text);
    note_move(d, key, own ? MoveReason::given_back : MoveReason::start_failed, text);
    if (own) come_back(d, key, id);
    else if (ordered) requeue_front(d, key, false);
    else refuse_start(d, key, id);
    hold_back(d, id, key);
}

}  // namespace

void launch_result(Draft &d, const ServerLaunchResult &in) {
    const Host *host = d.state.host(in.host);
    if (!host || host->conn != in.conn) return;
    hear_from(d, in.host);
    const wire::LaunchResult &result = in.result;
    const GrainKey key = wire::key_of(result.key);
    const Grain *grain = d.state.grain(key);
    const bool leased = grain && grain->status() == GrainStatus::running && grain->runs_on() == in.host &&
                        grain->lease == result.incarnation;
    if (!leased) {
        if (result.ok || result.staged)
            d.withdraw(in.host, key, result.incarnation, true, "it is no longer leased to this host");
        return;
    }
    if (result.ok || result.staged) {
        if (result.uid >= 0) d.host(in.host).uids[key.session.user] = result.uid;
        if (grain->program != 0) d.host(in.host).missing.erase(ProgramOf{key.session.user, grain->program});
        Grain &g = d.grain(key);
        g.launched = result.ok;
        if (result.ok) g.ahead = false;
        if (result.ok) g.recent.edit().started = d.now;
        if (result.ok && g.recent->refusals != 0) g.recent.edit().refusals = 0;
        d.volatile_only(key);
        return result.staged ? staged(d, key, in.host) : void();
    }
    const auto code = static_cast<Code>(result.code);
    // It becomes a grain's status message: no host fills the disk of the scheduler with it.
    const std::string text = shortened(result.text, limits::message_bytes);
    const bool ordered = code == Code::limit || code == Code::refused;
    const bool ran = grain->launched;
    if (!ran) d.grain(key).course.edit().skipped += 1;  // nothing ran under this number
    if (code == Code::not_found || code == Code::invalid)
        cannot_start(d, key, in.host, text,
                     code == Code::not_found ? MoveReason::no_program : MoveReason::cannot_start);
    else if (code == Code::refused && called_back(d, in.host, *grain)) requeue_front(d, key, false);
    else if (code == Code::limit && grain->ahead && !planted("core.old_pace")) slowed_down(d, key, in.host);
    else not_now(d, key, in.host, text, ordered, ran);
    d.follow_up(PlaceGrain{key});
    d.follow_up(FillHost{in.host});
    d.event("grain " + to_text(key) + " could not be started on " + host->config->name + ": " + text);
}

}  // namespace dcs::core
