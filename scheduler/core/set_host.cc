// d_sethost: what a host may do, set while the pool runs; and places in nogo sets cleared.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "scheduler/core/ahead.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// As the host table's.
constexpr std::int32_t max_slots = 65536;
constexpr double min_seconds = 0.001, max_seconds = 1e9;

Status check_numbers(const wire::SetHost &call) {
    if (call.slots > max_slots) return fail(Code::invalid, "slots must be from 0 to " + std::to_string(max_slots));
    for (const double s : {call.interval_s, call.alert_s, call.limit_s, call.extended_s}) {
        if (std::isnan(s) || s > max_seconds || (s >= 0 && s < min_seconds))
            return fail(Code::invalid, "a host's times must be from 0.001 to 1e9 seconds");
    }
    if (!call.drain_reason.empty() && call.drained != 1)
        return fail(Code::invalid, "drain_reason is for a host that is drained: set drained to 1");
    if (call.drained > 1) return fail(Code::invalid, "drained must be 1, 0, or negative to leave it unchanged");
    const bool names_grain = call.session >= 0 || call.grain >= 0;
    if (names_grain && !call.clear_nogo) return fail(Code::invalid, "a grain is named, but clear_nogo is not set");
    if (names_grain && (call.session < 0 || call.grain < 0))
        return fail(Code::invalid, "a grain needs both a session number and a grain number");
    return Status::ok();
}

std::string seconds_text(Duration d) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", d.seconds());
    return text;
}

// Of what was asked for; with_setting() would make the times grow by itself.
Status check_order(const HostConfig &table, const HostSetting &set) {
    HostConfig c = table;
    if (set.interval.ns >= 0) c.interval = set.interval;
    if (set.alert.ns >= 0) c.alert = set.alert;
    if (set.limit.ns >= 0) c.limit = set.limit;
    if (set.extended.ns >= 0) c.extended = set.extended;
    if (c.interval <= c.alert && c.alert <= c.limit && c.limit <= c.extended) return Status::ok();
    return fail(Code::invalid, "the times of host " + c.name +
                                   " must grow: interval <= alert <= limit <= extended; they would be " +
                                   seconds_text(c.interval) + ", " + seconds_text(c.alert) + ", " +
                                   seconds_text(c.limit) + ", " + seconds_text(c.extended) + " s");
}

HostSetting changed(HostSetting old, const wire::SetHost &call) {
    HostSetting next = call.reset ? HostSetting() : old;
    if (call.slots >= 0) next.slots = call.slots;
    if (call.interval_s >= 0) next.interval = seconds_of(call.interval_s);
    if (call.alert_s >= 0) next.alert = seconds_of(call.alert_s);
    if (call.limit_s >= 0) next.limit = seconds_of(call.limit_s);
    if (call.extended_s >= 0) next.extended = seconds_of(call.extended_s);
    if (call.host_class != 0) next.host_class = call.host_class;
    if (call.drained >= 0) next.drained = call.drained == 1;
    if (!call.drain_reason.empty()) next.drain_reason = call.drain_reason;
    if (!next.drained) next.drain_reason.clear();
    return next;
}

bool allow_again(Draft &d, const GrainKey &key, const Grain &old, HostId id) {
    const std::vector<HostId> &nogo = old.course->nogo;
    if (old.is_over()) return false;
    if (std::find(nogo.begin(), nogo.end(), id) == nogo.end()) return false;
    Grain &g = d.grain(key);
    std::vector<HostId> rest = nogo;
    rest.erase(std::remove(rest.begin(), rest.end(), id), rest.end());
    g.course.edit().nogo = std::move(rest);
    if (g.recent->failed_on == id)
        g.recent.edit().failures_there = 0;  // it may fail there as often before it is nogo again
    return true;
}

void allow_all_again(Draft &d, HostId id) {
    std::int64_t n = 0;
    for (const auto &[seniority, key] : d.state.by_seniority)
        for (const auto &[number, g] : d.state.session(key)->grains) n += allow_again(d, GrainKey{key, number}, g, id);
    Host &host = d.host(id);
    host.missing.clear();
    host.held_back.clear();
    host.blamed_lately = 0;
    d.event("host " + host.config->name + " is allowed again for " + std::to_string(n) +
            " grains that were to avoid it");
}

void allow_one_again(Draft &d, HostId id, const GrainKey &key) {
    const Grain &old = *d.state.grain(key);
    allow_again(d, key, old, id);
    Host &host = d.host(id);
    host.missing.erase(ProgramOf{key.session.user, old.program});
    rest_no_more(d, key);
    auto &held = host.held_back;
    held.erase(std::remove_if(held.begin(), held.end(), [&](const HeldBack &h) { return h.key == key; }), held.end());
    d.event("host " + host.config->name + " is allowed again for grain " + to_text(key));
    d.follow_up(PlaceGrain{key});
}

// The grain that is named; nothing if none is.
Result<std::optional<GrainKey>> named_grain(const State &state, const Caller &caller, const wire::SetHost &call) {
    if (call.session < 0) return std::optional<GrainKey>();
    const GrainKey key{{call.user.empty() ? caller.user : call.user, call.session}, call.grain};
    if (!state.session(key.session)) return missing_session(state, key.session);
    if (!state.grain(key)) return missing_grain(state, key);
    return std::optional<GrainKey>(key);
}

}  // namespace

std::string to_text(const HostSetting &s) {
    std::string text;
    const auto put = [&](const std::string &word) { text += (text.empty() ? "" : " ") + word; };
    const auto time = [&](const char *name, Duration t) {
        if (t.ns < 0) return;
        std::string digits = std::to_string(t.seconds());
        digits.erase(digits.find_last_not_of('0') + 1);
        if (digits.back() == '.') digits.pop_back();
        put(name + std::string("=") + digits);
    };
    if (s.slots >= 0) put("slots=" + std::to_string(s.slots));
    time("interval", s.interval);
    time("alert", s.alert);
    time("limit", s.limit);
    time("extended", s.extended);
    if (s.host_class != 0) put("class=" + std::to_string(s.host_class));
    if (s.drained) put("drained");
    return text;
}

void set_host(Draft &d, const Caller &caller, const wire::SetHost &call) {
    if (Status s = check_numbers(call); !s) return d.refuse(caller, s);
    const HostId id = d.state.host_id(call.host);
    const Host *known = d.state.host(id);
    if (!known || !known->configured)
        return d.refuse(caller, fail(Code::not_found, "the host table has no host \"" + call.host +
                                                          "\": `dcs host ls` lists the names; to add a host, edit "
                                                          "the table and run `dcs reload`"));
    const HostSetting setting = changed(known->setting, call);
    if (Status s = check_order(known->table, setting); !s) return d.refuse(caller, s);
    const auto grain = named_grain(d.state, caller, call);
    if (!grain) return d.refuse(caller, grain.status());
    if (setting != known->setting) {
        const auto words = [](const HostSetting &s) {
            const std::string text = to_text(s);
            return (text.empty() ? "as in the host table" : text) +
                   (s.drain_reason.empty() ? "" : " (" + s.drain_reason + ")");
        };
        d.event("audit: " + caller.user + " asked to change a host, " + call.host + ": done, from " +
                words(known->setting) + " to " + words(setting));
        d.host_durably(id).setting = setting;
        configure_host(d, id, with_setting(known->table, setting));
        if (setting.drained) recall_all(d, id, "the host is drained");
    }
    if (call.clear_nogo && *grain) allow_one_again(d, id, **grain);
    else if (call.clear_nogo) allow_all_again(d, id);
    // What could run nowhere may have a host now, and the other way round.
    wake_all_waiters(d);
    d.follow_up(FillHost{id});
    d.reply(caller, wire::Done{});
}

}  // namespace dcs::core
