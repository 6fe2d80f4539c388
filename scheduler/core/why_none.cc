// Why what remains of a session can run nowhere.
#include <algorithm>
#include <initializer_list>
#include <map>

#include "scheduler/core/placement.h"
#include "wire/archives.h"

namespace dcs::core {
namespace {

bool fits_one_of(const State &state, const std::vector<HostId> &hosts, const SessionKey &key, const Grain &g) {
    return std::any_of(hosts.begin(), hosts.end(), [&](HostId id) { return could_run(state, id, key, g); });
}

std::vector<HostId> suited(const State &state, const SessionKey &key, const Shape &shape) {
    std::vector<HostId> hosts;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const HostConfig &config = state.hosts[i].config;
        if (state.hosts[i].configured && config.slots > 0 && class_fits(shape.host_class, config.host_class) &&
            permits(config, key.user))
            hosts.push_back(static_cast<HostId>(i));
    }
    return hosts;
}

// The grains of a queue differ in nothing that counts here but their memory and their nogo sets. Of those without a
// nogo set the hosts are asked about the one that demands the least.
bool some_host_could_run_one(const State &state, const SessionKey &key, const Shape &shape, const ReadyQueue &queue,
                             std::size_t &looked_at) {
    const std::vector<HostId> hosts = suited(state, key, shape);
    if (hosts.empty()) return false;
    const Session &session = *state.session(key);
    const Grain *least = nullptr;
    for (const auto &[position, number] : queue.grains) {
        const Grain &g = session.grains.at(number);
        ++looked_at;
        if (!g.course->nogo->empty()) {
            if (fits_one_of(state, hosts, key, g)) return true;
            continue;
        }
        if (least == nullptr && fits_one_of(state, hosts, key, g)) return true;  // mostly
        if (least == nullptr || g.demands->memory_mb < least->demands->memory_mb) least = &g;
        if (shape.memory_bits == 0) break;
    }
    return least != nullptr && fits_one_of(state, hosts, key, *least);
}

GrainNumber first_ready(const Session &session) {
    GrainQueue::Place first = session.ready.begin()->second.grains.front();
    for (const auto &[shape, queue] : session.ready)
        if (queue.grains.front().position < first.position) first = queue.grains.front();
    return first.grain;
}

struct Counted {
    std::initializer_list<Why> whys;
    const char *text;
};
const Counted counted[] = {{{Why::other_class}, "of another class"},
                           {{Why::no_binary}, "of a binary class without a program"},
                           {{Why::too_old}, "of an older release"},
                           {{Why::not_permitted}, "not for this user"},
                           {{Why::no_slots}, "without slots"},
                           {{Why::too_few_cores}, "with too few cores"},
                           {{Why::too_little_memory}, "with too little memory"},
                           {{Why::memory_limited}, "whose limit for a grain's memory is too low"},
                           {{Why::no_resource}, "without the resources"},
                           {{Why::no_program, Why::cannot_start}, "could not start it"},
                           {{Why::failed_there}, "where it failed repeatedly"},
                           {{Why::host_limit}, "whose limit for a grain it exceeded"},
                           {{Why::nogo}, "where it must not be tried (could not start it, or it failed there)"}};

std::string hosts_in_words(const State &state, const GrainKey &key, const Grain &g) {
    int configured = 0;
    std::map<Why, int> why_not;
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        if (!state.hosts[i].configured) continue;
        ++configured;
        if (const auto why = for_ever_not(state, static_cast<HostId>(i), key, g)) ++why_not[*why];
    }
    std::string text = std::to_string(configured) + (configured == 1 ? " host configured" : " hosts configured");
    for (const Counted &all : counted) {
        int hosts = 0;
        for (const Why why : all.whys) hosts += why_not[why];
        if (hosts > 0) text += ", " + std::to_string(hosts) + " " + all.text;
    }
    return text;
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

std::optional<Why> for_ever_not(const State &state, HostId id, const GrainKey &key, const Grain &grain) {
    const Host &host = *state.host(id);
    if (!class_fits(grain.demands->host_class, host.config->host_class)) return Why::other_class;
    if (!binary_fits(host, grain.files->binary_classes)) return Why::no_binary;
    if (!form_fits(host, wire::form_needed(grain.demands))) return Why::too_old;
    if (!permits(host.config, key.session.user)) return Why::not_permitted;
    if (host.config->slots <= 0) return Why::no_slots;
    if (is_nogo(grain, id)) return why_nogo(grain, id);
    if (!resources_ever_fit(state, id, grain.demands->resources)) return Why::no_resource;
    if (ever_fits(host, grain)) return {};
    if (std::max(1, grain.demands->cores) > cores_of(host.config)) return Why::too_few_cores;
    return limit_permits(host, need_of(grain)) ? Why::too_little_memory : Why::memory_limited;
}

std::string too_old(const Host &host, const wire::Needed &needed) {
    const std::string what = needed.what.empty() ? "the grain's demands" : needed.what;
    return "host " + host.config->name + " speaks protocol form " + std::to_string(host.form) +
           ", which cannot carry " + what + ": the grain needs a host that speaks form " + std::to_string(needed.form);
}

std::string too_old(const State &state, const wire::Demands &demands) {
    const wire::Needed needed = wire::needed_for(demands);
    for (const Host &host : state.hosts)
        if (host.configured && !form_fits(host, needed.form)) return too_old(host, needed);
    return {};
}

std::string why_none_can_run(const State &state, const SessionKey &key, std::size_t *looked_at) {
    const Session &session = *state.session(key);
    std::size_t looked = 0;
    const bool some = std::any_of(session.ready.begin(), session.ready.end(), [&](const auto &waiting) {
        return some_host_could_run_one(state, key, waiting.first, waiting.second, looked);
    });
    if (looked_at != nullptr) *looked_at += looked;
    if (session.ready.empty() || some) return {};
    const GrainNumber first = first_ready(session);
    const Grain &g = session.grains.at(first);
    const std::string why = said(state, g), old = too_old(state, g.demands);
    return "no host can run the remaining grains of session " + to_text(key) + "; for grain " + std::to_string(first) +
           ": " + hosts_in_words(state, GrainKey{key, first}, g) + resources_in_words(state, g, {}) +
           (old.empty() ? "" : "; " + old) + (why.empty() ? "" : "; " + why);
}

}  // namespace dcs::core
