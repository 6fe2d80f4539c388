// `dcs grain explain`: why a grain is where it is, in words and with what to do about it.
#include "scheduler/core/explain.h"

#include <algorithm>
#include <cstdio>

#include "scheduler/core/ahead.h"

namespace dcs::core {
namespace {

// Of hosts, sessions or users that one reason names.
constexpr std::size_t names_shown = 8;
// Grains before this one are counted up to here: a session may have a million of them.
constexpr std::int32_t most_ahead = 65536;

// Hosts that are looked at for the older sessions of one answer.
constexpr std::size_t most_looked_at = 2000;

// Of a running grain: when its use of the processor says something, which part of the time is little, and the load by
// others that explains it.
constexpr Duration known_after = seconds(5);
constexpr double little = 0.5, busy_load = 0.5;

// The first of the session's ready grains of this shape waits for nothing that it could get, as things are configured.
bool waits_for_no_host(const State &state, const SessionKey &key, const Shape &shape, std::size_t &looked_at) {
    const Session &session = *state.session(key);
    const auto queue = session.ready.find(shape);
    if (queue == session.ready.end() || queue->second.grains.empty()) return false;
    const Grain &first = session.grains.at((*queue->second.grains.begin()).grain);
    for (std::size_t i = 0; i < state.hosts.size(); ++i)
        if (++looked_at > most_looked_at ||
            (state.hosts[i].configured && could_run(state, static_cast<HostId>(i), key, first)))
            return false;
    return true;
}

std::string decimal(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

std::optional<Why> why_away(const Host &host) {
    if (host.setting.drained) return Why::drained;
    if (host.config->pilot && host.conn == no_connection) return Why::no_job;
    if (host.status == HostStatus::unknown) return Why::never_called;
    if (host.status == HostStatus::dead) return Why::dead;
    if (host.checked != Checked::no) return Why::being_checked;
    if (host.status == HostStatus::delinquent) return Why::delinquent;
    if (host.conn == no_connection) return Why::not_connected;
    if (too_open(host)) return Why::too_open;
    if (!host.shut.empty()) return Why::host_shut;
    return {};
}

// What is said about a grain, put together.
class Report {
public:
    Report(const State &state, Instant now, const GrainKey &key) : state_(state), now_(now), key_(key) {}

    wire::Explanation out;
    void about_grain(Why why, std::vector<std::string> names = {}) {
        if (names.size() > names_shown) names.resize(names_shown);
        put(why, 0, std::move(names));
    }
    void about_host(Why why, HostId id) {
        put(why, 1, {state_.host(id)->config->name});
        if (why == Why::host_shut) add_said(why, state_.host(id)->shut);
        if (why == Why::drained) add_said(why, state_.host(id)->setting.drain_reason);
    }
    void settled_or_running(const Grain &g);
    void waiting(const Grain &g);

private:
    void put(Why why, std::int32_t hosts, std::vector<std::string> names);
    void add_said(Why why, const std::string &said);
    void order(const std::vector<HostId> &hosts);
    void count_ahead(const Grain &g, const std::vector<HostId> &hosts);
    std::string summary(const Grain &g, std::optional<HostId> busy) const;

    const State &state_;
    const Instant now_;
    const GrainKey &key_;
};

void Report::put(Why why, std::int32_t hosts, std::vector<std::string> names) {
    const Reason &reason = reason_of(why);
    for (wire::WhyRow &row : out.reasons) {
        if (row.reason != reason.word) continue;
        row.hosts += hosts;
        for (std::string &name : names)
            if (row.names.size() < names_shown) row.names.push_back(std::move(name));
        return;
    }
    out.reasons.push_back({reason.word, reason.sentence, reason.hint, hosts, std::move(names)});
}

// What the servers or the operators of these hosts say, each text once.
void Report::add_said(Why why, const std::string &said) {
    constexpr std::size_t most = 500;
    const Reason &reason = reason_of(why);
    for (wire::WhyRow &row : out.reasons) {
        if (said.empty() || row.reason != reason.word || row.text.size() + said.size() > most) continue;
        if (row.text.find(said) == std::string::npos) row.text += (row.text == reason.sentence ? ": " : "; ") + said;
    }
}

// What ended it, where that was not the program itself.
std::string why_ended(const Grain &g) {
    if (g.course->moves->empty()) return {};
    const Move &last = g.course->moves->back();
    const bool told = last.reason == MoveReason::over_limit || last.reason == MoveReason::given_up;
    return told ? ": " + last.detail : std::string();
}

// Of the process of a running grain.
struct Processor {
    std::string words;  // empty: not known
    bool starved = false;
};
Processor processor_of(const State &state, Instant now, const Grain &g) {
    const Instant began = g.recent->started, until = g.recent->used_at;
    if (began == Instant{} || until < began + known_after) return {};
    const Host &host = *state.host(g.runs_on());
    const double wall = (until - began).seconds(), got = static_cast<double>(cpu_us(g.course->current)) / 1e6;
    const double others = host.load - static_cast<double>(on_slots(state, g.runs_on()));
    Processor p;
    p.words = ": " + decimal(got) + " s of processor time in " + decimal(wall) + " s, as of " +
              decimal((now - until).seconds()) + " s ago";
    if (got >= little * wall) return p;
    p.starved = others >= busy_load;
    p.words += p.starved ? "; the host is busy (load " + decimal(host.load) + "), and other programs go first"
                         : "; the host's load is " + decimal(host.load) + ", so the grain itself waits for something";
    return p;
}

void Report::settled_or_running(const Grain &g) {
    if (g.status() == GrainStatus::killed) {
        about_grain(Why::killed);
        out.summary = "it was killed";
        return;
    }
    const Host *host = state_.host(g.lessee);
    const std::string where = host ? " on " + host->config->name : "";
    if (const auto *end = std::get_if<Finished>(&g.phase)) {
        const bool signalled = end->signal != 0;
        const auto &outputs = g.files->outputs;
        const auto lacks = std::ranges::find_if(outputs, [](const auto &output) { return output.digest.empty(); });
        const bool failed = g.has_failed();
        about_grain(failed ? Why::failed : Why::finished);
        out.summary = (failed ? "it failed" : "it finished") + where + (signalled ? " by signal " : ", code ") +
                      std::to_string(signalled ? end->signal : end->exit_code) + why_ended(g) +
                      (lacks == outputs.end() ? "" : ", without making the file " + lacks->name);
        return;
    }
    Why why = g.launched ? Why::running : Why::starting;
    for (const Usurpation &u : usurpations(state_, g.runs_on())) {
        if (u.by == key_) why = Why::staged;
        if (u.displaced == key_) why = Why::displaced;
    }
    const auto unrecorded = state_.unrecorded.of(state_, key_);
    if (unrecorded) why = Why::unrecorded;
    about_host(why, g.runs_on());
    if (const auto away = why_away(*host)) about_host(*away, g.runs_on());
    if (unrecorded) {
        out.summary = unrecorded_text(*unrecorded);
        return;
    }
    const char *verbs[] = {"runs", "starts", "is staged", "runs, but is about to leave,"};
    out.summary = std::string("it ") + verbs[static_cast<int>(why) - static_cast<int>(Why::running)] + where;
    if (why != Why::running) return;
    const Processor processor = processor_of(state_, now_, g);
    out.summary += processor.words;
    if (processor.starved) about_host(Why::starved, g.runs_on());
}

Why why_none(const State &state, const std::string &user) {
    return is_denied(state, user) ? Why::user_denied : Why::user_quota;
}

// Who else waits for one of these hosts and comes before this grain.
void Report::order(const std::vector<HostId> &hosts) {
    std::uint32_t classes = 0;
    bool any_user = false;
    std::set<std::string> users;
    for (const HostId id : hosts) {
        const HostConfig &config = state_.host(id)->config;
        classes |= config.host_class;
        any_user = any_user || config.users.empty();
        users.insert(config.users.begin(), config.users.end());
    }
    const std::uint64_t own = state_.session(key_.session)->info.seniority;
    const auto share = [&](const std::string &user) {
        const auto counts = state_.users.find(user);
        return state_.policy.fair_share && counts != state_.users.end() ? counts->second.running : 0;
    };
    const std::int64_t own_share = share(key_.session.user);
    std::map<std::uint64_t, std::string> older;
    std::size_t looked_at = 0;
    std::set<std::string> fewer;
    for (const auto &[shape, waiting] : state_.waiting) {
        if (!class_fits(shape.host_class, classes)) continue;
        for (const auto &[user, sessions] : waiting) {
            if ((!any_user && users.count(user) == 0) || may_start_none(state_, user)) continue;
            if (share(user) < own_share) fewer.insert(user);
            if (share(user) != own_share) continue;
            for (auto it = sessions.begin(); it != sessions.end() && it->first < own; ++it)
                if (!waits_for_no_host(state_, it->second, shape, looked_at))
                    older.emplace(it->first, to_text(it->second));
        }
    }
    std::vector<std::string> names;
    for (const auto &[seniority, name] : older) names.push_back(name);
    if (!names.empty()) about_grain(Why::older_first, names);
    if (!fewer.empty()) about_grain(Why::fewer_first, {fewer.begin(), fewer.end()});
}

void Report::count_ahead(const Grain &g, const std::vector<HostId> &hosts) {
    std::uint32_t classes = 0;
    for (const HostId id : hosts) classes |= state_.host(id)->config->host_class;
    out.ahead = 0;
    for (const auto &[shape, queue] : state_.session(key_.session)->ready) {
        if (!class_fits(shape.host_class, classes)) continue;
        for (const GrainQueue::Place &place : queue.grains) {
            if (place.position >= g.as<Ready>().queue_position) break;
            if (++out.ahead == most_ahead) return;
        }
    }
}

// Why hosts returned it repeatedly. (Its moves show what hosts said that could not start it.)
std::string own_trouble(const State &state, const Grain &g) {
    if (!circles(g) || g.course->moves->empty()) return {};
    const Host *host = state.host(g.course->moves->back().host);
    return "; it was returned " + std::to_string(std::max(g.course->returns, g.recent->refusals)) +
           " times in a row, most recently" + (host ? " from " + host->config->name : "") + ": " +
           g.course->moves->back().detail;
}

std::string Report::summary(const Grain &g, std::optional<HostId> busy) const {
    std::string counts;
    for (const wire::WhyRow &row : out.reasons)
        if (row.hosts > 0) counts += (counts.empty() ? "" : ", ") + std::to_string(row.hosts) + " " + row.reason;
    if (is_denied(state_, key_.session.user))
        return std::string(reason_of(Why::user_denied).sentence) + ", " + key_.session.user + ", so it does not start";
    std::string old = too_old(state_, g.demands);
    if (!old.empty()) old.insert(0, "; ");
    old = resources_in_words(state_, g, busy) + old;
    for (const wire::WhyRow &row : out.reasons)
        if (row.reason == reason_of(Why::host_limit).word)
            if (const std::string limit = exceeded_limit(state_, g); !limit.empty()) old += "; " + limit;
    if (!out.can_run)
        return "no configured host can run it" + (counts.empty() ? "" : ". Hosts by reason: " + counts) + old;
    for (const wire::WhyRow &row : out.reasons)
        if (row.reason == reason_of(Why::takes_it).word)
            return "it will start on " + row.names.front() + " at that host's next report";
    std::string text = "it waits for a host: " + counts + old + own_trouble(state_, g);
    if (out.ahead > 0)
        text += "; " + std::to_string(out.ahead) + (out.ahead == most_ahead ? " or more" : "") +
                " grains of its session are ahead of it";
    for (const wire::WhyRow &row : out.reasons)
        if (row.reason == reason_of(Why::older_first).word)
            text += "; older sessions, such as " + row.names.front() + ", go first";
    return text;
}

void Report::waiting(const Grain &g) {
    std::vector<std::vector<HostId>> by_reason(static_cast<std::size_t>(whys));
    std::vector<HostId> able, here;  // here: of those, for what waits now
    bool configured = false;
    out.can_run = false;
    for (std::size_t i = 0; i < state_.hosts.size(); ++i) {
        const auto id = static_cast<HostId>(i);
        const Host &host = state_.hosts[i];
        if (!host.configured) continue;
        configured = true;
        const Why why = why_not(state_, now_, id, key_, g);
        by_reason[static_cast<std::size_t>(why)].push_back(id);
        if (!for_ever(why)) able.push_back(id);
        if (!for_ever(why) && !why_away(host)) here.push_back(id);
        out.can_run = out.can_run || could_run(state_, id, key_.session, g);
    }
    if (!configured) about_grain(Why::no_hosts);
    if (may_start_none(state_, key_.session.user)) about_grain(why_none(state_, key_.session.user));
    order(here);
    count_ahead(g, able);
    if (out.ahead > 0) about_grain(Why::earlier_first);
    for (std::size_t w = 0; w < by_reason.size(); ++w)
        for (const HostId id : by_reason[w]) about_host(static_cast<Why>(w), id);
    const std::vector<HostId> &busy = by_reason[static_cast<std::size_t>(Why::resource_in_use)];
    out.summary = summary(g, busy.empty() ? std::optional<HostId>() : busy.front());
}

// The advice of a reason that holds for one host names it. What runs on a drained host needs none.
void name_hosts(wire::Explanation &out) {
    for (wire::WhyRow &row : out.reasons) {
        if (out.state == "running" && row.reason == reason_of(Why::drained).word) row.hint.clear();
        const std::size_t at = row.hint.find("NAME");
        if (row.hosts == 1 && at != std::string::npos) row.hint.replace(at, 4, row.names.front());
    }
}

}  // namespace

Why why_not(const State &state, Instant now, HostId id, const GrainKey &key, const Grain &grain) {
    const Host &host = *state.host(id);
    if (const auto why = for_ever_not(state, id, key, grain)) return *why;
    if (const auto why = why_away(host)) return *why;
    if (lacks_program(host, key.session.user, grain.program, now)) return Why::program_missing;
    if (held_back(host, key, now)) return Why::held_back;
    if (rests(grain, now)) return Why::resting;
    if (state.free_slots(id) == 0) return would_usurp(state, now, id) == key ? Why::usurps : Why::busy;
    if (may_start_none(state, key.session.user)) return why_none(state, key.session.user);
    if (!accepts_now(state, id)) return Why::probation;
    if (in_trouble(host, key.session.user, now)) return Why::trouble;
    if (!cores_fit(state, id, grain.demands->cores, {})) return Why::cores_in_use;
    if (!memory_fits(state, id, need_of(grain), {})) {
        const std::int32_t thrash = grain.demands->thrash;
        const bool short_now = thrash > 0 && host.free_memory_kb < std::int64_t{thrash} * 512;
        return short_now ? Why::thrash : Why::memory_in_use;
    }
    if (!resources_fit(state, id, grain.demands->resources, {})) return Why::resource_in_use;
    KeptFor kept;
    const auto first = first_for_host(state, now, id, {}, &kept);
    if (first != key && kept.touches(asked(grain.demands->resources))) return Why::kept_for_earlier;
    return first == key ? Why::takes_it : Why::others_first;
}

wire::Explanation explanation(const State &state, Instant now, const GrainKey &key) {
    const Session &session = *state.session(key.session);
    Report report(state, now, key);
    if (session.damaged.count(key.grain) != 0) {
        report.out.state = "damaged";
        report.out.summary = "its record is damaged: " + session.damaged.at(key.grain);
        report.out.can_run = false;
        report.about_grain(Why::damaged);
        return std::move(report.out);
    }
    const Grain &g = session.grains.at(key.grain);
    report.out.state = name_of(g.status());
    if (g.status() != GrainStatus::ready) {
        report.settled_or_running(g);
    } else if (session.info.status == SessionStatus::terminated) {
        report.about_grain(Why::session_closed);
        report.out.summary = "its session is closed";
    } else {
        report.waiting(g);
    }
    return std::move(report.out);
}

void explain(Draft &d, const Caller &caller, const wire::Explain &call) {
    const GrainKey key{{call.user.empty() ? caller.user : call.user, call.session}, call.grain};
    const Session *session = d.state.session(key.session);
    if (!session) return d.refuse(caller, missing_session(d.state, key.session));
    if (!d.state.grain(key) && session->damaged.count(key.grain) == 0)
        return d.refuse(caller, missing_grain(d.state, key));
    wire::Explanation out = explanation(d.state, d.now, key);
    name_hosts(out);
    d.reply(caller, std::move(out));
}

}  // namespace dcs::core
