#include "scheduler/core/state.h"

namespace dcs::core {

const char *name_of(GrainStatus s) {
    constexpr const char *names[] = {"ready", "running", "finished", "killed"};
    return names[static_cast<int>(s)];
}
const char *name_of(SessionStatus s) {
    return s == SessionStatus::active ? "active" : "terminated";
}
const char *name_of(HostStatus s) {
    constexpr const char *names[] = {"unknown", "active", "delinquent", "dead"};
    return names[static_cast<int>(s)];
}

const Session *State::session(const SessionKey &key) const {
    const auto it = sessions.find(key);
    return it == sessions.end() ? nullptr : &it->second;
}

const Grain *State::grain(const GrainKey &key) const {
    const Session *s = session(key.session);
    if (!s) return nullptr;
    const auto it = s->grains.find(key.grain);
    return it == s->grains.end() ? nullptr : &it->second;
}

const Host *State::host(HostId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= hosts.size()) return nullptr;
    return &hosts[static_cast<std::size_t>(id)];
}

HostId State::host_id(const std::string &name) const {
    const auto it = host_ids.find(name);
    return it == host_ids.end() ? no_host : it->second;
}

std::int32_t State::free_slots(HostId id) const {
    const Host *h = host(id);
    if (!h || !h->configured || h->status != HostStatus::active || h->conn == 0) return 0;
    const auto used = static_cast<std::int64_t>(running[static_cast<std::size_t>(id)].size());
    return used >= h->config.slots ? 0 : static_cast<std::int32_t>(h->config.slots - used);
}

}  // namespace dcs::core
