#include "sim/checkers/leases.h"

namespace dcs::sim {

void Leases::process_begins(int host, const Process &p, std::size_t on_host, std::int32_t slots) {
    const std::string name = server::to_text(p.id) + " on " + host_name(host);
    if (p.run.broken) return clock_.complain("leases", name + " got an input that begins with no known line");
    if (!processes_.insert({p.id.key, p.id.incarnation, p.model.seed}).second)
        return clock_.complain("leases", name + " is the second process of its lease");
    if (on_host > static_cast<std::size_t>(std::max(slots, 0)))
        clock_.complain("slots", host_name(host) + " runs " + std::to_string(on_host) + " grains and has " +
                                     std::to_string(slots) + " slots");
}

void Leases::started(const core::State &state) {
    const auto gone = [&](const Grain &grain) {
        const core::Session *session = state.session(grain.second.session);
        return !session || session->info.seniority != grain.first;
    };
    std::erase_if(taken_, [&](const auto &entry) { return gone(entry.first); });
    std::erase_if(newest_, [&](const auto &entry) { return gone(entry.first); });
}

// Submitted again its numbers may be those of before, on hosts that know nothing of it, as after a session's removal.
void Leases::begin_anew(GrainKey key, std::uint64_t seniority) {
    newest_.erase({seniority, key});
    taken_.erase({seniority, key});
    std::erase_if(processes_, [&](const auto &process) { return std::get<0>(process) == key; });
    forgotten_.erase(key);
}

void Leases::sends(ConnId conn, const wire::AnyMessage &message, const core::State &state) {
    if (const auto *configure = std::get_if<wire::Configure>(&message)) slots_[conn] = configure->slots;
    if (const auto *launch = std::get_if<wire::Launch>(&message)) launched(conn, *launch, state);
    if (const auto *ack = std::get_if<wire::ReportAck>(&message)) acknowledged(*ack, state);
    if (std::holds_alternative<wire::HandOverTaken>(message)) handed_over(state);
}

// Reports that a backup held are acknowledged to it and not to their hosts. They may be of an older incarnation: what
// they brought is not what the newest one reports next.
void Leases::handed_over(const core::State &state) {
    for (const auto &[grain, newest] : newest_) {
        const core::Session *session = state.session(grain.second.session);
        const core::Grain *known = state.grain(grain.second);
        if (!session || session->info.seniority != grain.first || !known) continue;
        Taken &taken = taken_[grain];
        taken.sequence = std::max(taken.sequence, known->course->sequence);
    }
}

void Leases::launched(ConnId conn, const wire::Launch &launch, const core::State &state) {
    const GrainKey key = wire::key_of(launch.key);
    const core::Session *session = state.session(key.session);
    if (!session) return clock_.complain("leases", to_text(key) + " of no session is launched");
    if (forgotten_.count(key) != 0 && launch.incarnation <= newest_[{session->info.seniority, key}])
        begin_anew(key, session->info.seniority);
    Incarnation &newest = newest_[{session->info.seniority, key}];
    if (launch.incarnation <= newest)
        return clock_.complain("leases", to_text(key) + " is launched as incarnation " +
                                             std::to_string(launch.incarnation) + " after " + std::to_string(newest));
    newest = launch.incarnation;
    // What was taken until now is of older ones, also where its host did not live to see the acknowledgement.
    if (const core::Grain *known = state.grain(key)) {
        Taken &taken = taken_[{session->info.seniority, key}];
        taken.sequence = std::max(taken.sequence, known->course->sequence);
    }
    for (std::size_t i = 0; i < state.hosts.size(); ++i) {
        const core::Host &host = state.hosts[i];
        if (host.conn != conn) continue;
        // A turn may launch and then take a host table with fewer slots: the host had learned of more.
        const std::int32_t slots = std::max(host.config->slots, slots_[conn]);
        if (state.running[i].size() > static_cast<std::size_t>(slots) + host.usurping.size() +
                                          std::max(state.ahead[i].size(), static_cast<std::size_t>(host.pace.ahead)))
            clock_.complain("slots",
                            host.config->name + " is given a grain beyond its " + std::to_string(slots) + " slots");
        return;
    }
}

void Leases::acknowledged(const wire::ReportAck &ack, const core::State &state) {
    if (ack.verdict != wire::Verdict::taken) return;
    const GrainKey key = wire::key_of(ack.key);
    const core::Session *session = state.session(key.session);
    if (!session) return;
    // An older copy may win, but only as long as nothing of a newer one was taken.
    Taken &taken = taken_[{session->info.seniority, key}];
    if (ack.incarnation < taken.from && forgotten_.count(key) == 0)
        return clock_.complain("leases", to_text(key) + ": a report of incarnation " + std::to_string(ack.incarnation) +
                                             " is taken after one of incarnation " + std::to_string(taken.from));
    // What an innocent end brings after the last checkpoint is not kept.
    const core::Grain *grain = state.grain(key);
    if (!grain || (grain->course->sequence <= taken.sequence && grain->status() != core::GrainStatus::finished)) return;
    taken = {ack.incarnation, grain->course->sequence};
}

}  // namespace dcs::sim
