#include "sim/checkers/grace.h"

namespace dcs::sim {

void Grace::after_turn(const core::State &state, Instant awake_since) {
    known_.resize(state.hosts.size());
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const core::Host &host = state.hosts[i];
        Known &known = known_[i];
        if (host.configured && !known.configured) known.configured_since = decided_;
        const bool died = host.configured && known.configured && host.status == core::HostStatus::dead &&
                          known.status != core::HostStatus::dead;
        if (died) {
            Instant since = std::max(awake_since, known.configured_since);
            if (const auto heard = heard_.find(known.conn); heard != heard_.end())
                since = std::max(since, heard->second);
            if (clock_.now - since < host.config->limit)
                clock_.complain("grace", host.config->name + " is given up after " +
                                             std::to_string((clock_.now - since).seconds()) + " s, its limit is " +
                                             std::to_string(host.config->limit.seconds()) + " s");
        }
        if (known.conn != host.conn && host.conn != no_connection) heard_.erase(known.conn);
        if (host.conn != no_connection) known.conn = host.conn;
        known.status = host.status;
        known.configured = host.configured;
    }
}

}  // namespace dcs::sim
