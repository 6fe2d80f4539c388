// Why what remains of a session can run nowhere.
#include "scheduler/core/placement.h"
#include "wire/needed.h"

namespace dcs::core {
namespace {

bool some_host_could_run_one(const State &state, const SessionKey &key) {
    const Session &session = *state.session(key);
    for (const auto &[shape, queue] : session.ready) {
        std::vector<HostId> suited;
        for (std::size_t i = 0; i < state.hosts.size(); ++i) {
            const HostConfig &config = state.hosts[i].config;
            if (state.hosts[i].configured && config.slots > 0 &&
                class_fits(shape.host_class, config.host_class) && permits(config, key.user))
                suited.push_back(static_cast<HostId>(i));
        }
        for (const auto &[position, number] : queue.grains) {
            const Grain &g = session.grains.at(number);
            bool only_by_itself = false;  // what is against it may not be against the next one
            for (const HostId id : suited) {
                if (could_run(*state.host(id), id, key, g)) return true;
                only_by_itself = only_by_itself || is_nogo(g, id);
            }
            if (!only_by_itself && shape.memory_bits == 0) break;
        }
    }
    return false;
}

GrainNumber first_ready(const Session &session) {
    const auto *first = &*session.ready.begin()->second.grains.begin();
    for (const auto &[shape, queue] : session.ready)
        if (queue.grains.begin()->first < first->first) first = &*queue.grains.begin();
    return first->second;
}

struct Counts {
    int configured = 0, other_class = 0, no_binary = 0, too_old = 0, other_users = 0, no_slots = 0, too_small = 0;
    int not_started = 0, failed = 0, nogo = 0;
};

int &nogo_count(Counts &n, Why why) {
    if (why == Why::no_program || why == Why::cannot_start) return n.not_started;
    return why == Why::failed_there ? n.failed : n.nogo;
}

Counts count_hosts(const State &state, const SessionKey &key, const Grain &g) {
    Counts n;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const Host &host = state.hosts[i];
        if (!host.configured) continue;
        ++n.configured;
        if (!class_fits(g.demands->host_class, host.config->host_class))
            ++n.other_class;
        else if (!binary_fits(host, g.files->binary_classes))
            ++n.no_binary;
        else if (!form_fits(host, wire::form_needed(g.demands)))
            ++n.too_old;
        else if (!permits(host.config, key.user))
            ++n.other_users;
        else if (host.config->slots <= 0)
            ++n.no_slots;
        else if (!ever_fits(host.config, g))
            ++n.too_small;
        else
            ++nogo_count(n, why_nogo(g, static_cast<HostId>(i)));
    }
    return n;
}

// What hosts said that could not start it. No more than a line can hold.
std::string said(const State &state, const Grain &g) {
    constexpr int most = 3;
    std::string text;
    int told = 0;
    for (const auto &[id, why] : failed_starts(g)) {
        if (!is_nogo(g, id) || ++told > most) continue;
        text += (text.empty() ? "" : "; ") + ("on " + state.host(id)->config->name + ": ") + why;
    }
    return told > most ? text + "; ..." : text;
}

}  // namespace

std::string too_old(const Host &host, const wire::Needed &needed) {
    const std::string what = needed.what.empty() ? "the grain's demands" : needed.what;
    return "host " + host.config->name + " speaks protocol form " + std::to_string(host.form) +
           ", which cannot carry " + what + ": it needs one that speaks form " + std::to_string(needed.form);
}

std::string too_old(const State &state, const wire::Demands &demands) {
    const wire::Needed needed = wire::needed_for(demands);
    for (const Host &host : state.hosts)
        if (host.configured && !form_fits(host, needed.form)) return too_old(host, needed);
    return {};
}

std::string why_none_can_run(const State &state, const SessionKey &key) {
    const Session &session = *state.session(key);
    if (session.ready.empty() || some_host_could_run_one(state, key)) return {};
    const GrainNumber first = first_ready(session);
    const Counts n = count_hosts(state, key, session.grains.at(first));
    const std::string why = said(state, session.grains.at(first));
    const std::string old = too_old(state, session.grains.at(first).demands);
    const auto part = [](int count, const std::string &what) {
        return count == 0 ? std::string() : ", " + std::to_string(count) + " " + what;
    };
    return "no host can run what remains of session " + to_text(key) + "; for grain " +
           std::to_string(first) + ": " + std::to_string(n.configured) + " hosts configured" +
           part(n.other_class, "of another class") + part(n.no_binary, "of a binary class without a program") +
           part(n.too_old, "of an older release") + part(n.other_users, "not for " + key.user) +
           part(n.no_slots, "without slots") + part(n.too_small, "with too few cores or too little memory") +
           part(n.not_started, "could not start it") + part(n.failed, "where it failed repeatedly") +
           part(n.nogo, "where it must not be tried (could not start it, or it failed there)") +
           (old.empty() ? "" : "; " + old) + (why.empty() ? "; `dcs grain explain` tells more" : "; " + why);
}

}  // namespace dcs::core
