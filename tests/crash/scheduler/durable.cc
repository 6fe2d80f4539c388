#include "crash/scheduler/durable.h"

#include <set>

#include "scheduler/record/paths.h"
#include "scheduler/record/read_blob.h"
#include "unit/scheduler_core/dump.h"
#include "wire/history.h"

namespace dcs::test {
namespace {

const Bytes no_bytes = std::make_shared<const std::string>();

Bytes joined(const Bytes &front, const std::string &back) {
    return back.empty() ? front : std::make_shared<const std::string>(*front + back);
}

void forget_volatile(core::Grain &g) {
    g = core::Grain(core::DurableGrain(std::move(g)));
    // What a running incarnation used is only recorded together with something else.
    if (g.status() == core::GrainStatus::running) g.course.edit().current = wire::Usage();
}

// Built again from the durable parts only, with the hosts that grains remember in order of name.
core::State canonical(const core::State &state) {
    core::State out;
    core::Undo undo;
    std::set<std::string> names;
    for (const auto &[key, session] : state.sessions) {
        for (const auto &[number, g] : session.grains) {
            if (g.lessee != core::no_host) names.insert(state.host_name(g.lessee));
            for (const core::HostId id : g.course->nogo.get()) names.insert(state.host_name(id));
            for (const core::Move &move : g.course->moves.get()) names.insert(state.host_name(move.host));
            if (g.course->old_lease.host != core::no_host) names.insert(state.host_name(g.course->old_lease.host));
        }
    }
    for (const std::string &name : names) {
        core::Host host;
        core::HostConfig config;
        config.name = name;
        host.config = config;
        host.configured = false;
        core::apply(out, core::SetHost{static_cast<core::HostId>(out.hosts.size()), host}, undo);
    }
    const auto renamed = [&](core::HostId id) { return id == core::no_host ? id : out.host_id(state.host_name(id)); };
    for (const auto &[key, session] : state.sessions) {
        core::apply(out, core::SetSession{key, session.info}, undo);
        for (const auto &[number, grain] : session.grains) {
            core::Grain g = grain;
            forget_volatile(g);
            g.lessee = renamed(g.lessee);
            g.course.edit().old_lease.host = renamed(g.course.edit().old_lease.host);
            for (core::HostId &id : g.course.edit().nogo.edit()) id = renamed(id);
            for (core::Move &move : g.course.edit().moves.edit()) move.host = renamed(move.host);
            core::apply(out, core::SetGrain{{key, number}, std::move(g)}, undo);
        }
    }
    for (const auto &[hash, entry] : state.auth) core::apply(out, core::SetAuth{hash, entry}, undo);
    for (const auto &[user, number] : state.last_numbers)
        core::apply(out, core::SetLastNumber{user, number, state.last_leases.at(user)}, undo);
    core::apply(out, core::SetTrust{state.trust}, undo);
    for (const auto &[host, up_to] : state.handed_over) core::apply(out, core::SetHandedOver{host, up_to}, undo);
    return out;
}

// One grain of the turn behind `before`: which report must it have taken in?
struct Step {
    const GrainKey &key;
    const core::Grain &grain;
    const Reported &reported;
    std::string host;  // where it is leased now
    std::string &wrong;

    void complain(const std::string &what) const {
        if (wrong.empty()) wrong = "grain " + to_text(key) + ": " + what;
    }

    void begin(Snapshot::Known &now) const {
        now.checkpoint = now.message = now.out = now.err = no_bytes;
        const auto spec = reported.params.find({grain.request, key.grain});
        if (spec == reported.params.end()) {
            now.params = no_bytes;
            return complain("it was never submitted");
        }
        now.params = spec->second;
    }

    void take(const Snapshot::Known &before, Snapshot::Known &now) const {
        const auto fits = [&](auto found) {
            return found != reported.reports.end() && found->second->first_seq == before.sequence + 1;
        };
        auto found = reported.reports.find({before.host, key, before.incarnation, grain.course->sequence});
        // An older lease may have been taken back in the same turn.
        if (!fits(found)) found = reported.reports.find({host, key, grain.lease, grain.course->sequence});
        if (!fits(found)) return complain("it advanced without a report that fits");
        const wire::GrainReport &r = *found->second;
        const bool failed = r.ended && (r.exit_code != 0 || r.signal != 0);
        const bool runs_again = r.innocent || (failed && before.failures + 1 < before.attempts);
        if (r.ended && !runs_again) {
            now.out = joined(before.out, r.out);
            now.err = joined(before.err, r.err);
            return;
        }
        now.checkpoint = std::make_shared<const std::string>(r.checkpoint);
        now.message = std::make_shared<const std::string>(r.message);
        now.out = joined(before.out, r.out);
        now.err = joined(before.err, r.err);
    }

    void compare_lengths(const Snapshot::Known &now) const {
        if (now.params->size() != grain.params_length) complain("wrong length of its parameters");
        if (now.checkpoint->size() != grain.course->checkpoint_length) complain("wrong length of its checkpoint");
        if (now.message->size() != grain.course->message_length) complain("wrong length of its message");
        if (now.out->size() != grain.course->out_length) complain("wrong length of its output");
        if (now.err->size() != grain.course->err_length) complain("wrong length of its error output");
    }
};

}  // namespace

std::string durable_text(const core::State &state) { return core::Dump::of(canonical(state)); }

SnapshotPtr next_snapshot(const Snapshot &before, const core::State &after, const Reported &reported,
                          std::string &wrong) {
    auto next = std::make_shared<Snapshot>();
    next->turn = before.turn + 1;
    next->text = durable_text(after);
    for (const auto &[session_key, session] : after.sessions) {
        next->seniority[session_key] = session.info.seniority;
        next->log_length[session_key] = session.info.grains_length;
        const auto old_session = before.seniority.find(session_key);
        const bool same_session =
            old_session != before.seniority.end() && old_session->second == session.info.seniority;
        for (const auto &[number, grain] : session.grains) {
            const GrainKey key{session_key, number};
            const Step step{key, grain, reported, after.host_name(grain.lessee), wrong};
            const auto old = before.grains.find(key);
            Snapshot::Known now;
            if (same_session && old != before.grains.end()) {
                now = old->second;
                if (grain.course->sequence != now.sequence) step.take(old->second, now);
            } else {
                step.begin(now);
            }
            now.status = grain.status();
            now.host = after.host_name(grain.lessee);
            now.incarnation = grain.lease;
            now.sequence = grain.course->sequence;
            now.failures = grain.course->failures;
            now.attempts = grain.demands->attempts;
            step.compare_lengths(now);
            next->grains.emplace(key, std::move(now));
        }
    }
    return next;
}

std::string compare_bytes(store::Store &store, const core::State &state, const Snapshot &expected) {
    for (const auto &[session_key, session] : state.sessions) {
        for (const auto &[number, grain] : session.grains) {
            const GrainKey key{session_key, number};
            const auto known = expected.grains.find(key);
            if (known == expected.grains.end()) return "grain " + to_text(key) + " should not be there";
            const auto piece = [&](wire::Stream stream) {
                return record::read_piece(store, key, grain, stream, 0, ~0ull);
            };
            const std::tuple<const char *, Result<std::string>, Bytes> parts[] = {
                {"parameters", record::read_params(store, key, grain), known->second.params},
                {"checkpoint", record::read_checkpoint(store, key, grain), known->second.checkpoint},
                {"message", record::read_message(store, key, grain), known->second.message},
                {"output", piece(wire::Stream::out), known->second.out},
                {"error output", piece(wire::Stream::err), known->second.err}};
            for (const auto &[name, read, right] : parts) {
                const std::string what = std::string(name) + " of grain " + to_text(key);
                if (!read) return what + ": " + read.status().text;
                if (*read != *right) return what + ": other bytes than were reported";
            }
        }
    }
    return {};
}

std::string compare_trees(const std::map<std::string, std::string> &files, const core::State &state) {
    std::map<std::string, std::uint64_t> lengths;  // of append files, and whether they must be there
    std::set<std::string> roots;
    for (const auto &[session_key, session] : state.sessions) {
        const std::string top = record::session_directory(session_key) + "/";
        roots.insert(top + record::status_file);
        lengths[top + record::grains_file] = session.info.grains_length;
        lengths[top + record::inputs_file] = session.info.inputs_length;
        lengths[top + record::results_file] = session.info.results_length;
        lengths[top + record::events_file] = session.info.events_length;
        for (const auto &[number, grain] : session.grains) {
            if (!grain.own_tree) continue;
            const std::string own = record::grain_directory({session_key, number}) + "/";
            roots.insert(own + record::status_file);
            lengths[own + record::out_file] = grain.course->out_length;
            lengths[own + record::err_file] = grain.course->err_length;
        }
    }
    for (const auto &[path, bytes] : files) {
        if (path.back() == '/') return path + ": an empty directory is left";
        const std::string directory = path.substr(0, path.rfind('/') + 1);
        if (roots.count(directory + record::status_file) == 0) return path + ": a file of no tree is left";
        const auto length = lengths.find(path);
        if (length != lengths.end() && length->second != bytes.size())
            return path + " has " + std::to_string(bytes.size()) + " bytes, recorded are " +
                   std::to_string(length->second);
    }
    return {};
}

namespace {

// What the log says of one grain against what the State knows. An import says itself how its grains are.
std::string compare_grain(const core::State &state, const core::Grain &g, const wire::GrainHistory &told) {
    using wire::GrainState;
    constexpr GrainState states[] = {GrainState::ready, GrainState::running, GrainState::finished, GrainState::killed};
    if (told.state == GrainState::unknown) return {};
    if (told.state != states[static_cast<int>(g.status())]) return std::string("it is ") + core::name_of(g.status());
    if (told.known != static_cast<std::uint32_t>(g.known)) return "what it could know of results";
    const auto *killed = std::get_if<core::Killed>(&g.phase);
    if (told.killed_after != static_cast<std::uint32_t>(killed ? killed->after : 0))
        return "after which results it was killed";
    if (const auto *end = std::get_if<core::Finished>(&g.phase))
        if (told.result != end->result_index || told.code != end->exit_code || told.signal != end->signal)
            return "its result";
    if (told.state != GrainState::running) return {};
    if (told.stays.back().host != state.host_name(g.lessee)) return "where it runs";
    if (told.stays.back().incarnation != g.lease) return "its incarnation";
    return told.sequence > g.course->sequence ? "its last checkpoint" : std::string();
}

std::string compare_history(const core::State &state, const core::Session &session, const wire::History &told) {
    const core::SessionInfo &info = session.info;
    if (told.active != (info.status == core::SessionStatus::active)) return "whether it is active";
    if (told.handed_out != static_cast<std::uint32_t>(info.shown)) return "which results were handed out";
    for (const auto &[number, grain] : session.grains) {
        const auto found = told.grains.find(number);
        if (found == told.grains.end()) {
            if (told.whole) return "grain " + std::to_string(number) + " is missing";
            continue;
        }
        if (const std::string what = compare_grain(state, grain, found->second); !what.empty())
            return "grain " + std::to_string(number) + ": " + what;
    }
    for (const auto &[number, grain] : told.grains)
        if (session.grains.count(number) == 0 && session.damaged.count(number) == 0)
            return "grain " + std::to_string(number) + " is not there";
    if (!told.whole) return {};
    std::vector<GrainNumber> results = told.results;  // killed ones at the end leave no trace in the log's row
    results.resize(session.results.size(), -1);
    return results == session.results.grains() ? std::string() : "the order of results";
}

}  // namespace

std::string compare_logs(store::Store &store, const core::State &state) {
    for (const auto &[key, session] : state.sessions) {
        const std::string name = "the event log of session " + to_text(key) + ": ";
        const auto log = record::read_events(store, key, session.info, 0, ~0ull);
        if (!log) return name + log.status().text;
        std::string_view left = *log;
        std::vector<wire::Event> events;
        if (Status s = wire::take_events(left, events); !s) return name + s.text;
        if (!left.empty()) return name + "it ends inside a frame";
        wire::History history;
        for (const wire::Event &event : events) {
            const std::string what = history.take(event);
            if (!what.empty()) return name + what + ", by " + wire::to_line(event);
        }
        if (events.empty()) return name + "it is empty";
        if (const std::string what = compare_history(state, session, history); !what.empty()) return name + what;
    }
    return {};
}

}  // namespace dcs::test
