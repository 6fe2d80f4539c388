#include "scheduler/record/plan.h"

#include <algorithm>

#include "scheduler/record/codec.h"
#include "scheduler/record/events.h"
#include "scheduler/record/paths.h"

namespace dcs::record {
namespace {

constexpr std::uint64_t log_slack = 64 * 1024;

store::NodeUpdate node(const char *file, std::string bytes, std::uint64_t old_length = 0) {
    return store::NodeUpdate{file, std::move(bytes), old_length};
}

const char *replaced_file(core::File file) {
    switch (file) {
    case core::File::grain_params: return params_file;
    case core::File::grain_checkpoint: return checkpoint_files[0];
    case core::File::grain_message: return message_file;
    default: return nullptr;
    }
}

// The records that the log would hold if it were written now.
std::string live_log(const core::State &state, const core::Session &session) {
    std::string log;
    for (const auto &[number, grain] : session.grains) log += encode_grain(state, number, grain);
    return log;
}

// Damage sets a grain aside alone only if it has a tree of its own.
bool is_damaged(const core::State &state, const GrainKey &key) {
    const core::Session *session = state.session(key.session);
    return session && session->damaged.count(key.grain) != 0;
}

}  // namespace

void TurnChanges::Append::add(std::uint64_t at, const core::Payload &payload) {
    if (!used) {
        used = true;
        old_length = at;
    }
    // A length that went back in mid-turn takes the bytes behind it along.
    if (at < old_length) {
        old_length = at;
        bytes.clear();
    }
    DCS_REQUIRE(at - old_length <= bytes.size(), "an append leaves a hole in its file");
    bytes.resize(at - old_length);
    if (payload.bytes) bytes += *payload.bytes;
}

void TurnChanges::write(const core::WriteFile &file) {
    SessionChanges &session = sessions_[file.key.session];
    if (file.file == core::File::session_inputs) return session.inputs.add(file.old_length, file.bytes);
    if (file.file == core::File::session_results) return session.results.add(file.old_length, file.bytes);
    if (file.file == core::File::session_events) {
        session.old_events = file.bytes;
        return;
    }
    GrainChanges &grain = session.grains[file.key.grain];
    DCS_REQUIRE(grain.seen, "the record of a grain changes before its files");
    if (!grain.files) grain.files = std::make_unique<Files>();
    Files &files = *grain.files;
    if (file.file == core::File::grain_out) return files.out.add(file.old_length, file.bytes);
    if (file.file == core::File::grain_err) return files.err.add(file.old_length, file.bytes);
    const char *replaced = replaced_file(file.file);
    DCS_REQUIRE(replaced != nullptr, "what is not appended to is replaced");
    files.replaced[replaced] = file.bytes;
}

void TurnChanges::add_grain(const core::State &before, const core::SetGrain &change) {
    if (change.volatile_only) return;
    SessionChanges &session = sessions_[change.key.session];
    note_grain(session.events, before, change);
    const core::Grain *old = before.grain(change.key);
    session.settled = session.settled || (change.grain.is_over() && !(old && old->is_over()));
    auto &grains = session.grains;
    const std::size_t known = grains.size();
    GrainChanges &changes = grains.try_emplace(grains.end(), change.key.grain)->second;
    if (grains.size() > known && old)
        changes.live_before = static_cast<std::uint32_t>(encode_grain(before, change.key.grain, *old).size());
    if (!std::exchange(changes.seen, true))
        changes.checkpoint_before = old && old->own_tree ? old->course->checkpoint_length : 0;
    const bool had = old ? old->own_tree : is_damaged(before, change.key);
    changes.own_tree = change.grain.own_tree;
    if (changes.own_tree && !had) changes.became_own_tree = true;
    if (!changes.own_tree && had) changes.left_own_tree = true;
}

// A tree that this very turn would have made is not on disk.
void TurnChanges::erase_grain(const core::State &before, const GrainKey &key) {
    DCS_REQUIRE(before.grain(key), "a grain that is there is erased");
    SessionChanges &session = sessions_[key.session];
    note_erased(session.events, core::EraseGrain{key});
    session.renewed = true;
    const auto changes = session.grains.find(key.grain);
    const bool fresh = changes != session.grains.end() && changes->second.became_own_tree;
    const bool left = changes != session.grains.end() && changes->second.left_own_tree;
    if ((before.grain(key)->own_tree && !fresh) || left) session.gone.push_back(key.grain);
    if (changes != session.grains.end()) session.grains.erase(changes);
}

void TurnChanges::add(const core::State &before, const core::Change &change) {
    if (std::holds_alternative<core::SetAuth>(change) || std::holds_alternative<core::EraseAuth>(change) ||
        std::holds_alternative<core::SetLastNumber>(change)) {
        auth_ = true;
    } else if (const auto *set = std::get_if<core::SetSession>(&change)) {
        sessions_[set->key].status = true;
        note_session(sessions_[set->key].events, before, *set);
    } else if (const auto *erase = std::get_if<core::EraseSession>(&change)) {
        sessions_[erase->key] = SessionChanges{};
        sessions_[erase->key].erased = true;
    } else if (const auto *damaged = std::get_if<core::EraseDamaged>(&change)) {
        sessions_[damaged->key].erased = true;
    } else if (const auto *many = std::get_if<core::AddGrains>(&change)) {
        SessionChanges &session = sessions_[many->key];
        session.renewed = true;
        for (const auto &[number, grain_of] : *many->grains)
            if (grain_of.own_tree) {
                GrainChanges &added = session.grains[number];
                added.own_tree = added.became_own_tree = added.seen = true;
            }
    } else if (const auto *grain = std::get_if<core::SetGrain>(&change)) {
        add_grain(before, *grain);
    } else if (const auto *gone = std::get_if<core::EraseGrain>(&change)) {
        erase_grain(before, gone->key);
    } else if (const auto *host = std::get_if<core::SetHost>(&change)) {
        const core::Host *old = before.host(host->id);
        hosts_ = hosts_ || (old && old->totals != host->host.totals);
        settings_ = settings_ || host->durable;
    } else if (std::holds_alternative<core::SetTrust>(change)) {
        trust_ = true;
    } else if (std::holds_alternative<core::SetHandedOver>(change)) {
        handed_over_ = true;
    } else if (const auto *file = std::get_if<core::WriteFile>(&change)) {
        write(*file);
    }
}

void TurnChanges::plan_grain(const core::State &after, const GrainKey &key, const core::Grain &grain, Files &files,
                             Plan &plan) {
    DCS_REQUIRE(grain.own_tree, "only a grain with a tree of its own has files");
    DCS_REQUIRE(!files.out.used || files.out.end() == grain.course->out_length, "output ends where its record says");
    DCS_REQUIRE(!files.err.used || files.err.end() == grain.course->err_length,
                "error output ends where its record says");
    store::TreeUpdate update{grain_directory(key), grain_tree, {}, false};
    for (const auto &[file, payload] : files.replaced) {
        const bool second = file == checkpoint_files[0] && grain.course->second_checkpoint;
        update.nodes.push_back(node(second ? checkpoint_files[1] : file.c_str(), {}));
        update.nodes.back().shared = payload.bytes;
    }
    if (files.out.used) update.nodes.push_back(node(out_file, std::move(files.out.bytes), files.out.old_length));
    if (files.err.used) update.nodes.push_back(node(err_file, std::move(files.err.bytes), files.err.old_length));
    update.nodes.push_back(node(status_file, encode_grain(after, key.grain, grain)));
    plan.updates.push_back(std::move(update));
}

// What the turn adds to the session's log of grains, or all of the log if it is to be rewritten;
// the new lengths in `info`. Records of grains with trees of their own count as live like the
// others, so the bound is a little generous there.
std::string TurnChanges::plan_log(const core::State &after, const SessionKey &key, const SessionChanges &changes,
                                  core::SessionInfo &info) {
    const core::Session &session = *after.session(key);
    std::string log;
    std::uint64_t live = info.grains_live;
    for (const auto &[number, grain_changes] : changes.grains) {
        const auto found = session.grains.find(number);
        DCS_REQUIRE(found != session.grains.end(), "a changed grain is not in the State");
        const core::Grain &grain = found->second;
        const std::string record = encode_grain(after, number, grain);
        live += record.size();
        live -= std::min<std::uint64_t>(live, grain_changes.live_before);
        if (!grain.own_tree || grain_changes.became_own_tree) log += record;
    }
    const std::uint64_t base = changes.erased ? 0 : info.grains_length;
    if (changes.renewed) {
        log = live_log(after, session);
        info.grains_length = info.grains_live = log.size();
        return log;
    }
    // The log must go on to name what was set aside.
    const bool renewable = session.damaged.empty();
    if (!log.empty() && renewable && base + log.size() > 2 * live + log_slack) {
        log = live_log(after, session);
        info.grains_length = live = log.size();
    } else {
        info.grains_length = base + log.size();
    }
    info.grains_live = live;
    return log;
}

void TurnChanges::plan_own_trees(const core::State &after, const SessionKey &key, SessionChanges &changes, Plan &plan) {
    const core::Session &session = *after.session(key);
    for (const GrainNumber number : changes.gone)
        plan.updates.push_back({grain_directory({key, number}), grain_tree, {}, true});
    for (auto &[number, of_grain] : changes.grains) {
        DCS_REQUIRE(of_grain.own_tree || !of_grain.files, "files for a grain without a tree of its own");
        if (of_grain.left_own_tree) plan.updates.push_back({grain_directory({key, number}), grain_tree, {}, true});
        if (!of_grain.own_tree) continue;
        if (!of_grain.files) of_grain.files = std::make_unique<Files>();
        plan_grain(after, {key, number}, session.grains.at(number), *of_grain.files, plan);
    }
}

void TurnChanges::plan_session(const core::State &after, const SessionKey &key, SessionChanges &changes,
                               std::int64_t wall_ms, Plan &plan) {
    const core::Session *session = after.session(key);
    DCS_REQUIRE(session, "a changed session is not in the State");
    plan_own_trees(after, key, changes, plan);
    core::SessionInfo info = session->info;
    if (changes.erased) info.grains_live = 0;
    std::string log = plan_log(after, key, changes, info);
    const std::uint64_t before_events = changes.erased ? 0 : info.events_length;
    std::string events = changes.old_events.bytes ? *changes.old_events.bytes : std::string();
    if (!changes.events.empty()) events += changes.events.framed(wall_ms);
    info.events_length = before_events + events.size();
    if (before_events == 0 && info.opened_ms == 0) info.opened_ms = wall_ms;
    if (changes.settled) info.settled_ms = wall_ms;
    const bool closed = info.status == core::SessionStatus::terminated;
    if (closed != (info.closed_ms != 0)) info.closed_ms = closed ? wall_ms : 0;
    if (info.grains_length != session->info.grains_length || info.events_length != session->info.events_length ||
        info.grains_live != session->info.grains_live || info.opened_ms != session->info.opened_ms ||
        info.settled_ms != session->info.settled_ms || info.closed_ms != session->info.closed_ms)
        plan.lengths.push_back(core::SetSession{key, info});
    Append &inputs = changes.inputs, &results = changes.results;
    DCS_REQUIRE(!inputs.used || inputs.end() == info.inputs_length, "the inputs end where their session's record says");
    DCS_REQUIRE(!results.used || results.end() == info.results_length, "and so do the results");
    if (log.empty() && events.empty() && !inputs.used && !results.used && !changes.status) return;

    store::TreeUpdate update{session_directory(key), session_tree, {}, false};
    // A shorter log than before is a new one: the store syncs away what is pending first.
    DCS_REQUIRE(info.grains_length >= log.size(), "a log is as long as what is in it");
    const std::uint64_t before_log = info.grains_length - log.size();
    if (!log.empty()) update.nodes.push_back(node(grains_file, std::move(log), before_log));
    if (inputs.used) update.nodes.push_back(node(inputs_file, std::move(inputs.bytes), inputs.old_length));
    if (results.used) update.nodes.push_back(node(results_file, std::move(results.bytes), results.old_length));
    if (!events.empty()) update.nodes.push_back(node(events_file, std::move(events), before_events));
    update.nodes.push_back(node(status_file, encode_session(info)));
    plan.updates.push_back(std::move(update));
}

std::vector<core::SetGrain> TurnChanges::turn_checkpoints(const core::State &after) const {
    std::vector<core::SetGrain> turned;
    for (const auto &[key, changes] : sessions_)
        for (const auto &[number, of_grain] : changes.grains) {
            if (of_grain.checkpoint_before == 0 || !of_grain.own_tree || !of_grain.files) continue;
            if (!of_grain.files->replaced.count(checkpoint_files[0])) continue;
            turned.push_back(core::SetGrain{{key, number}, *after.grain({key, number})});
            core::Course &course = turned.back().grain.course.edit();
            course.second_checkpoint = !course.second_checkpoint;
            course.other_checkpoint = static_cast<std::uint32_t>(of_grain.checkpoint_before);
        }
    return turned;
}

Plan TurnChanges::plan(const core::State &after, bool with_hosts, std::int64_t wall_ms) {
    Plan plan;
    for (auto &[key, changes] : sessions_) {
        if (changes.erased) plan.updates.push_back({session_directory(key), session_tree, {}, true});
        if (after.session(key) || !changes.erased) plan_session(after, key, changes, wall_ms, plan);
    }
    if (auth_)
        plan.updates.push_back({auth_directory,
                                auth_tree,
                                {node(auth_file, encode_auth({after.auth, after.last_numbers, after.last_leases}))},
                                false});
    if (trust_)
        plan.updates.push_back({trust_directory, trust_tree, {node(trust_file, encode_trust(after.trust))}, false});
    if (handed_over_)
        plan.updates.push_back({handed_over_directory,
                                handed_over_tree,
                                {node(handed_over_file, encode_handed_over(after.handed_over))},
                                false});
    if (with_hosts)
        plan.updates.push_back({hosts_directory, hosts_tree, {node(hosts_file, encode_hosts(after))}, false});
    for (const store::TreeUpdate &update : plan.updates)
        DCS_REQUIRE(update.remove == update.nodes.empty(), "a tree is removed, or has something to write");
    return plan;
}

}  // namespace dcs::record
