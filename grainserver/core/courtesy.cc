// Evaluates the looks at the host. If a grain gets no processor, or the host runs out of memory, this
// server withdraws a grain; a host without capacity for grains states so in its call-ins.
#include <algorithm>

#include "base/planted.h"
#include "base/require.h"
#include "base/text.h"
#include "grainserver/core/turn.h"

namespace dcs::server {
namespace {
using namespace courtesy;
using wire::GivenBack;

// The difference between two looks.
struct Between {
    Duration time;
    double room = 0;  // processor time left by others, in cores
    bool low = false, gone = false, pages = false, quiet = false;
    std::string memory_words, paging_words, room_words;
};

std::int64_t of(const Part &part, std::int64_t memory_kb) { return std::min(memory_kb / part.divisor, part.most_kb); }

std::string megabytes(std::int64_t kb) { return formatted("%.0f", static_cast<double>(kb) / 1024) + " MB"; }

Duration patience(const State &s) { return std::clamp(s.interval * 2, patience_min, patience_max); }
Duration calm_needed(const State &s) { return std::clamp(s.interval * 2, calm_min, calm_max); }

// Bounded by the deciding duration, so that a condition of hours does not take hours to fade.
void lean(Duration &sum, bool so, Duration time, Duration decides) {
    sum = so ? std::min(sum + time, decides) : std::max(Duration{}, Duration{sum.ns - time.ns});
}

void look_at_memory(Between &b, const HostSample &was, const HostSample &is) {
    DCS_REQUIRE(b.time.ns > 0, "the time between two looks is positive");
    const double seconds = b.time.seconds();
    if (was.stalled_us >= 0 && is.stalled_us >= was.stalled_us) {
        const double part = static_cast<double>(is.stalled_us - was.stalled_us) / 1e6 / seconds;
        b.pages = part >= stalled_most;
        b.quiet = part < stalled_again;
        b.paging_words =
            "the host pages: processes waited for memory " + formatted("%.0f", part * 100) + " % of the time";
    } else {
        const double rate = static_cast<double>(is.swapped_pages - was.swapped_pages) / seconds;
        b.pages = rate >= swapped_most;
        b.quiet = rate < swapped_again;
        b.paging_words = "the host pages: " + formatted("%.0f", rate) + " pages swapped per second";
    }
    if (is.memory_kb <= 0) return;
    b.low = is.free_kb <= of(low, is.memory_kb);
    b.quiet = b.quiet && is.free_kb > of(low, is.memory_kb) * 2;
    const double rate = static_cast<double>(was.free_kb - is.free_kb) / seconds;
    b.gone = is.free_kb <= of(courtesy::gone, is.memory_kb) ||
             (b.low && b.time <= pace_known && static_cast<double>(is.free_kb) < rate * no_time.seconds());
    b.memory_words = "memory is short: " + megabytes(is.free_kb) + " of " + megabytes(is.memory_kb) + " of " +
                     is.memory_of + " left";
}

void look_at_processors(Between &b, const HostSample &was, const HostSample &is, std::int64_t ours_us) {
    const double total = static_cast<double>(is.total_us - was.total_us);
    const std::int64_t give_way = std::max(ours_us, is.yielding_us - was.yielding_us);
    const double others = static_cast<double>(std::max<std::int64_t>(0, is.busy_us - was.busy_us - give_way));
    const double busy = total > 0 ? std::min(1.0, others / total) : 0;
    b.room = is.cores * (1 - busy);
    b.room_words =
        "other work keeps the processors busy: " + formatted("%.0f", busy * 100) + " % of " + std::to_string(is.cores);
}

std::int64_t got_since(const Grain &g, const GrainSample &is) {
    return g.courtesy.last ? std::max<std::int64_t>(0, is.cpu_us - g.courtesy.last->cpu_us) : 0;
}

// Adds up the time in which it was runnable without a processor.
void look_at_grain(Grain &g, const GrainSample &is, Duration time, bool others_take_it, Duration decides) {
    const std::int64_t got = got_since(g, is);
    const std::optional<GrainSample> was = std::exchange(g.courtesy.last, is);
    if (!was || time.ns <= 0) return;
    const double all = time.seconds() * 1e6;
    double waited = is.ready ? std::max(0.0, all - static_cast<double>(got)) : 0;
    if (is.waited_us >= 0 && was->waited_us >= 0)
        waited = static_cast<double>(std::max<std::int64_t>(0, is.waited_us - was->waited_us));
    const double wanted = static_cast<double>(got) + waited;
    lean(g.courtesy.starved,
         others_take_it && wanted >= wanted_least * all && static_cast<double>(got) < share_least * wanted, time,
         decides);
}

bool runs(const Grain &g) { return g.phase == Phase::running; }

// Compares memory in steps, so that small differences do not decide; of equals, the latest arrival.
std::map<GrainId, Grain>::iterator largest(State &s, bool to_kill) {
    auto found = s.grains.end();
    const auto rank = [](const Grain &g) {
        return std::pair{g.courtesy.last ? g.courtesy.last->memory_kb >> 12 : 0, g.order};
    };
    for (auto it = s.grains.begin(); it != s.grains.end(); ++it) {
        const Grain &g = it->second;
        const bool may = to_kill ? !g.courtesy.killed && g.ending != Ending::overrun && g.ending != Ending::discard
                                 : g.ending == Ending::none;
        if (runs(g) && may && (found == s.grains.end() || rank(g) > rank(found->second))) found = it;
    }
    return found;
}

void shut(Turn &t, const std::string &why) {
    DCS_REQUIRE(!why.empty(), "a shut host has a reason");
    Courtesy &c = t.state.courtesy;
    c.calm = Duration{};
    if (!c.shut.empty()) return;
    c.shut = why;
    t.log(Level::info, "accepting no grains: " + why);
    drop_queued(t, why);
    if (t.state.with_scheduler()) t.emit(Gauge{});
}

void open_again(Turn &t) {
    DCS_REQUIRE(!t.state.courtesy.shut.empty(), "only a host that is shut opens again");
    t.state.courtesy.shut.clear();
    t.log(Level::info, "accepting grains again");
    if (t.state.with_scheduler()) t.emit(Gauge{});
}

// There is no time for a checkpoint: the kernel would kill a process, perhaps not a grain's.
void kill_largest(Turn &t, const std::string &why) {
    Courtesy &c = t.state.courtesy;
    if (t.now < c.settled_at) return;
    const auto it = largest(t.state, true);
    if (it == t.state.grains.end()) return;
    auto &[id, g] = *it;
    t.touched.push_back(id);
    DCS_REQUIRE(runs(g) && g.ending != Ending::overrun && g.ending != Ending::discard, "it is not being killed yet");
    t.log(Level::warning, to_text(id) + " is killed: " + why);
    c.settled_at = t.now + kill_settles;
    g.courtesy.killed = true;
    if (g.ending == Ending::none) {
        g.given_back = GivenBack::thrashing;
        g.reason = why;
    }
    g.ending = Ending::terminated;
    g.act_at = t.now + kill_after;
    t.emit(WriteEnding{id, Ending::terminated, g.reason, 0, g.given_back});
    t.emit(KillGrain{id});
    shut(t, why);
}

void warn_all(Turn &t) {
    t.state.courtesy.warned = true;
    t.for_each([&](const GrainId &id, Grain &g) {
        if (!runs(g) || g.ending != Ending::none) return;
        if (g.facts.announced) {
            t.emit(ThrashSignal{id});
        } else {  // it may have been announced since the last look
            g.want_warning = true;
            t.emit(Look{id});
        }
    });
}

void give_back(Turn &t, const GrainId &id, Grain &g, GivenBack kind, const std::string &why) {
    DCS_REQUIRE(kind != GivenBack::no, "a grain that is given back has a reason");
    t.log(Level::info, to_text(id) + " is returned: " + why);
    shut(t, why);
    t.touched.push_back(id);
    ask_to_end(t, id, g, why, kind);
}

// One grain at a time; the next one only if the host is short of memory for the same time again.
void relieve(Turn &t, const Between &b) {
    Courtesy &c = t.state.courtesy;
    const std::string &why = b.low || b.gone ? b.memory_words : b.paging_words;
    if (b.gone) kill_largest(t, why);
    const bool leaving = std::any_of(t.state.grains.begin(), t.state.grains.end(), [](const auto &entry) {
        return runs(entry.second) && entry.second.given_back == GivenBack::thrashing;
    });
    if (leaving) {
        c.strained = Duration{};
        return;
    }
    lean(c.strained, b.low || b.pages, b.time, strain_patience);
    if (c.strained == Duration{}) c.warned = false;
    if (c.strained >= warn_after && !c.warned) warn_all(t);
    if (c.strained < strain_patience || !(b.low || b.pages)) return;
    shut(t, why);
    const auto it = largest(t.state, false);
    if (it != t.state.grains.end()) give_back(t, it->first, it->second, GivenBack::thrashing, why);
}

// True: at least one grain starves.
bool release(Turn &t, const Between &b) {
    Courtesy &c = t.state.courtesy;
    bool any = false;
    lean(c.crowded, b.room < room_least, b.time, patience(t.state));
    for (auto &[id, g] : t.state.grains) {
        if (!runs(g)) continue;
        any = any || g.courtesy.starved > Duration{};
        if (g.ending != Ending::none || g.courtesy.starved < patience(t.state)) continue;
        give_back(t, id, g, GivenBack::shut_out, b.room_words);
    }
    if (b.room < room_least && c.crowded >= patience(t.state)) shut(t, b.room_words);
    return any;
}

void judge(Turn &t, const Between &b) {
    Courtesy &c = t.state.courtesy;
    relieve(t, b);
    const bool starving = release(t, b);
    const bool calm = !starving && b.quiet && b.room >= room_again && c.strained == Duration{};
    c.calm = calm ? c.calm + b.time : Duration{};
    if (!c.shut.empty() && c.calm >= calm_needed(t.state) && t.state.job.leaving.empty() &&
        !planted("server.stays_shut"))
        open_again(t);
}

bool any_runs(const State &s) {
    return std::any_of(s.grains.begin(), s.grains.end(), [](const auto &entry) { return runs(entry.second); });
}
bool worth_looking(const State &s) { return !s.courtesy.shut.empty() || any_runs(s); }

// Sooner if memory fills quickly or little is left.
void plan_look(Turn &t, const std::optional<HostSample> &was, Duration time) {
    Courtesy &c = t.state.courtesy;
    c.look_at = Instant::never();
    if (!worth_looking(t.state)) return;
    if (!any_runs(t.state)) {
        c.look_at = t.now + c.every * slower_without_grains;
        return;
    }
    Duration wait = c.every;
    DCS_REQUIRE(c.last.has_value(), "a look precedes the planning of the next");
    const HostSample &is = *c.last;
    if (is.memory_kb > 0 && is.free_kb <= of(tight, is.memory_kb)) wait = std::min(wait, look_soon);
    if (was && time.ns > 0 && is.free_kb < was->free_kb) {
        const double lasts_s =
            time.seconds() * static_cast<double>(is.free_kb) / static_cast<double>(was->free_kb - is.free_kb);
        wait = std::min(wait, std::max(look_soon, seconds_of(std::min(lasts_s, 1e6) / looks_before_full)));
    }
    c.look_at = t.now + wait;
}

void look(Turn &t) {
    WatchHost effect;
    for (const auto &[id, g] : t.state.grains)
        if (runs(g)) effect.grains.push_back(id);
    t.state.courtesy.look_at = t.now + t.state.courtesy.every;  // rescheduled by the answer
    t.emit(std::move(effect));
}
}  // namespace

void watched(Turn &t, const Watched &x) {
    Courtesy &c = t.state.courtesy;
    if (!c.on) return;
    const std::optional<HostSample> was = std::exchange(c.last, x.host);
    Between b{.time = t.now - std::exchange(c.last_at, t.now)};
    // After a longer pause, as when the server was stopped, the sample is only a new start.
    const Duration longest = std::max(t.state.interval, c.every * slower_without_grains) * 2;
    const bool first = !was || b.time.ns <= 0 || b.time > longest;
    if (first) b.time = Duration{};
    std::int64_t ours = 0;
    for (const auto &[id, is] : x.grains)
        if (const Grain *g = t.find(id)) ours += got_since(*g, is);
    // Others use at least half of the busy time; otherwise the grains compete with each other.
    const std::int64_t total = was ? x.host.total_us - was->total_us : 0;
    const bool others_take_it = !first && total > 0 && (x.host.busy_us - was->busy_us - ours) * 2 >= total;
    for (const auto &[id, is] : x.grains)
        if (Grain *g = t.find(id); g != nullptr && runs(*g))
            look_at_grain(*g, is, b.time, others_take_it, patience(t.state));
    if (!first) {
        look_at_memory(b, *was, x.host);
        look_at_processors(b, *was, x.host, ours);
        judge(t, b);
    }
    plan_look(t, first ? std::nullopt : was, b.time);
}

void courtesy_tick(Turn &t) {
    if (t.state.courtesy.on && t.now >= t.state.courtesy.look_at) look(t);
}

void courtesy_idle(Turn &t) {
    if (t.state.courtesy.on && !worth_looking(t.state)) look(t);
}

void courtesy_begins(Turn &t) {
    Courtesy &c = t.state.courtesy;
    if (c.on) c.look_at = std::min(c.look_at, std::max(t.now, c.last_at + look_soon));  // short ones begin all the time
}

}  // namespace dcs::server
