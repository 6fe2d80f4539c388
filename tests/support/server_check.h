#pragma once
// Whether the state of a grain server contradicts itself.
#include <string>

#include "grainserver/core/turn.h"

namespace dcs::server {

inline std::string check_contents(const State &state) {
    for (const auto &[id, g] : state.grains) {
        const GrainContents &c = g.content;
        const std::string who = to_text(id) + ": ";
        if (c.to_place && (g.written || g.phase != Phase::queued)) return who + "it starts without its files";
        if (c.placing && !c.missing.empty()) return who + "files are placed whose contents are missing";
        for (const std::string &digest : c.missing)
            if (state.fetches.count(digest) == 0) return who + "a content is missing and not being fetched";
        for (const std::string &digest : c.unsent)
            if (g.looked_after_end && state.puts.count(digest) == 0)
                return who + "an output is not sent and no transfer exists";
        if (g.outstanding && g.outstanding->ended && !c.unsent.empty() && !g.hold)
            return who + "its end was reported before its outputs were there";
    }
    for (const auto *transfers : {&state.fetches, &state.puts}) {
        int busy = 0;
        for (const auto &[digest, x] : *transfers) {
            if (x.now == Transfer::Now::waiting && !state.with_scheduler()) return "a transfer waits without a link";
            if ((x.now == Transfer::Now::waiting) != (x.until != Instant::never()))
                return "a transfer waits without a time limit";
            busy += x.now != Transfer::Now::idle;
        }
        if (busy > 1) return "two contents are on their way at a time";
    }
    return {};
}

// Empty: all cross references are consistent; otherwise the inconsistency.
inline std::string check(const State &state) {
    std::uint64_t in_flight = 0;
    int reports = 0;
    for (const auto &[id, g] : state.grains) {
        const std::string who = to_text(id) + ": ";
        if (g.acked + 1 < g.next_seq) return who + "acked lies before the first increment of this run";
        if ((g.phase == Phase::ended) != g.exit.has_value()) return who + "its end and its exit status disagree";
        if (g.outstanding && state.link != Link::ready) return who + "a report is on its way without a connection";
        if (g.ending == Ending::discard && g.outstanding) return who + "a discarded grain is reported";
        if (g.phase == Phase::queued && g.ending != Ending::none) return who + "a grain that never ran is being ended";
        if (g.held && (g.phase != Phase::queued || g.written || g.content.recorded))
            return who + "its launch is held, and its directory is made";
        if (g.staged && !g.tentative) return who + "it is staged without being tentative";
        if (g.phase == Phase::starting && g.tentative && !g.staged) return who + "started before it was verified";
        if (g.phase != Phase::starting && g.called_back) return who + "called back, and not at the launcher";
        if (g.phase != Phase::running && g.wall_at != Instant::never()) return who + "its time counts without a run";
        if (g.given_back != wire::GivenBack::no && g.ending != Ending::asked && g.ending != Ending::terminated)
            return who + "given back, but not being ended for that";
        if ((g.limit_signal != 0) != (g.ending == Ending::overrun)) return who + "its limit and its ending disagree";
        if (g.outstanding) {
            in_flight += g.outstanding->bytes;
            ++reports;
        }
    }
    if (reports > 1 && in_flight > in_flight_max) return "too many bytes of reports are on their way";
    if (std::string wrong = check_derived(state); !wrong.empty()) return wrong;
    return check_contents(state);
}

}  // namespace dcs::server
