// d_gexec and d_gexec_many: checks, idempotence, the record; placing them is the follow-up.
#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/load_limits.h"
#include "base/planted.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

Status check_arguments(const SubmitGrain &call) {
    const auto bad = [](const char *what) { return fail(Code::invalid, what); };
    if (call.session < 0 || call.grain < 0) return bad("session and grain numbers must be 0 or more");
    if (std::string wrong = wire::out_of_range(call.demands); !wrong.empty())
        return fail(Code::invalid, std::move(wrong));
    if (call.params.size() == 0) return bad("the grain has no program");
    if (call.input_length > limits::content_bytes)
        return fail(Code::limit, "the input has " + std::to_string(call.input_length) + " bytes; the limit is " +
                                     std::to_string(limits::content_bytes));
    if (call.params.size() > limits::user_frame_bytes)
        return fail(Code::limit, "program, arguments, environment and input are too long together");
    return Status::ok();
}

// The grains of one call: everything that could refuse any of them is checked before one is recorded.
struct Submission {
    Draft &d;
    const Caller &caller;
    const SessionKey key;
    const bool batch;  // a refusal says which grain it is about
    std::set<GrainNumber> numbers{};
    std::set<Shape> shapes{};  // that the session has no ready grain of
    std::vector<const SubmitGrain *> fresh{};
    std::vector<const SubmitGrain *> amended{};  // ready grains that get other demands, or another environment
    std::vector<const SubmitGrain *> again{};    // those that failed or were killed, and begin again
    std::vector<GrainNumber> repeated{};
    wire::Done done{};
};

Shape shape_of(const SubmitGrain &call) {
    Grain g;
    g.program = call.program;
    g.demands = call.demands;
    g.files = call.files;
    return shape_of(g);
}

void note_shape(Submission &s, const SubmitGrain &call) {
    const auto &ready = s.d.state.session(s.key)->ready;
    if (const Shape shape = shape_of(call); ready.count(shape) == 0) s.shapes.insert(shape);
}

bool refuse(Draft &d, const Caller &caller, bool batch, const SubmitGrain &call, const Status &why) {
    if (batch)
        d.reply(caller,
                wire::error_reply(fail(why.code, "grain " + std::to_string(call.grain) + ": " + why.text), call.grain));
    else d.refuse(caller, why);
    return false;
}

// Grains were submitted when the program had this one's failure.
bool decided_after(const Submission &s, const Grain &failed) {
    const auto *end = std::get_if<Finished>(&failed.phase);  // or it was killed
    return end != nullptr && end->result_index < s.d.state.session(s.key)->info.decided &&
           !planted("core.begins_again_out_of_order");
}

Status depends_on(const GrainKey &key) {
    const std::string number = std::to_string(key.session.number) + ":" + std::to_string(key.grain);
    return fail(
        Code::refused,
        "grain " + to_text(key) +
            " failed, and does not begin again: when the program had got its failure it submitted others, which may "
            "depend on it; `dcs grain restart " +
            number + " --and-after --when-submitted` forgets it with them");
}

// The number is in use: the same call again, a different one, or a mistake.
bool meet_existing(Submission &s, const SubmitGrain &call, const GrainKey &key) {
    const Grain &grain = *s.d.state.grain(key);
    const bool repeats = s.d.state.session(key.session)->info.resumable || grain.request == s.caller.request;
    if (!repeats)
        return refuse(s.d, s.caller, s.batch, call,
                      fail(Code::grain_exists, "grain " + to_text(key) + " exists already"));
    const bool killed = grain.status() == GrainStatus::killed;
    const bool fixed = call.only_failed && in_replay(s.d.state.session(key.session)->info);  // nothing of it runs
    const bool begins = call.again && !fixed && (grain.has_failed() || (killed && !call.only_failed));
    if (begins && call.in_order && decided_after(s, grain))
        return refuse(s.d, s.caller, s.batch, call, depends_on(key));
    const bool amends = grain.fingerprint != call.fingerprint && grain.fingerprint == call.as_demanded;
    if (!begins && !amends && grain.fingerprint != call.fingerprint) {
        s.d.effect(ReplyDifference{s.caller.conn, s.caller.request, key, call.params});
        return false;
    }
    if (begins || (amends && grain.status() == GrainStatus::ready)) {
        (begins ? s.again : s.amended).push_back(&call);
        note_shape(s, call);
    }
    s.repeated.push_back(call.grain);
    if (grain.request != s.caller.request) {
        ++s.done.repeated;
        s.done.killed += !begins && killed;
    }
    return true;
}

// False: the call was refused.
bool look_at(Submission &s, const SubmitGrain &call) {
    const GrainKey key{s.key, call.grain};
    if (!s.numbers.insert(call.grain).second)
        return refuse(s.d, s.caller, s.batch, call, fail(Code::invalid, "it occurs twice in the batch"));
    if (s.d.state.grain(key)) return meet_existing(s, call, key);
    const Session &session = *s.d.state.session(s.key);
    if (session.damaged.count(call.grain) != 0)
        return refuse(s.d, s.caller, s.batch, call, missing_grain(s.d.state, key));
    if (in_replay(session.info))
        return refuse(s.d, s.caller, s.batch, call,
                      fail(Code::replay_end, "session " + to_text(s.key) + " is closed and did not record a grain " +
                                                 std::to_string(call.grain) +
                                                 "; if the program has changed, `dcs session clean " +
                                                 std::to_string(s.key.number) + "` lets it start over"));
    note_shape(s, call);
    s.fresh.push_back(&call);
    return true;
}

// What the submission adds to what its user has on the disk, but for its line in the session's list of grains.
std::uint64_t stored_by(const SubmitGrain &call) {
    return call.params.size() > shared_bytes ? on_disk(1) + on_disk(call.params.size()) : call.params.size();
}

// What a free slot has to look at.
Status check_shapes(const Submission &s) {
    if (s.shapes.empty()) return Status::ok();
    const auto refused = [](const std::string &whose, std::size_t shapes) {
        return fail(Code::limit, "grains of " + whose + " wait with " + std::to_string(shapes) +
                                     " different combinations of class, cores, memory, resources and program: let "
                                     "some finish, or make them more alike");
    };
    const std::size_t of_session = s.d.state.session(s.key)->ready.size();
    if (of_session + s.shapes.size() > limits::shapes_per_session)
        return refused("session " + to_text(s.key), of_session);
    const auto counts = s.d.state.users.find(s.key.user);
    const std::size_t of_user = counts == s.d.state.users.end() ? 0 : static_cast<std::size_t>(counts->second.shapes);
    const auto is_new = [&](const Shape &shape) {
        const auto waiting = s.d.state.waiting.find(shape);
        return waiting == s.d.state.waiting.end() || waiting->second.count(s.key.user) == 0;
    };
    const auto more = static_cast<std::size_t>(std::count_if(s.shapes.begin(), s.shapes.end(), is_new));
    if (of_user + more <= limits::shapes_per_user || planted("core.shapes_without_end")) return Status::ok();
    return refused("user " + s.key.user, of_user);
}

// What one user and one session may have waiting.
Status check_room(const Submission &s) {
    if (s.fresh.empty() && s.amended.empty() && s.again.empty()) return Status::ok();
    std::uint64_t bytes = 0;
    for (const auto *calls : {&s.fresh, &s.amended, &s.again})
        for (const SubmitGrain *call : *calls) bytes += stored_by(*call);
    if (Status status = check_stored(s.d.state, s.key.user, s.caller.privileged, bytes); !status) return status;
    const auto more = static_cast<std::int64_t>(s.fresh.size());
    if (Status status = check_grain_quota(s.d.state, s.key.user, more); !status) return status;
    return check_shapes(s);
}

void write_params(Draft &d, Grain &g, const SubmitGrain &call, const GrainKey &key) {
    g.fingerprint = call.fingerprint;
    g.params_length = static_cast<std::uint32_t>(call.params.size());
    g.params_sum = crc32c(*call.params.bytes);
    if (call.params.size() > shared_bytes || g.params_own_file) {
        g.own_tree = true;
        g.params_own_file = true;
        d.write(key, File::grain_params, 0, call.params);
    } else {
        SessionInfo &info = d.info(key.session);
        g.params_offset = info.inputs_length;
        d.write(key, File::session_inputs, info.inputs_length, call.params);
        info.inputs_length += call.params.size();
    }
}

// `near`: the demands of a grain that probably has the same. Returns the new grain's.
Shared<wire::Demands> record(Draft &d, const Caller &caller, const SubmitGrain &call, const GrainKey &key,
                             const Shared<wire::Demands> &near) {
    DCS_REQUIRE(d.state.session(key.session)->info.status == SessionStatus::active,
                "a session takes grains while it is active");
    Grain &g = d.new_grain(key);
    g.demands = {call.demands, near};
    g.files = call.files;
    g.program = call.program;
    g.request = caller.request;
    SessionInfo &info = d.info(key.session);
    g.known = info.shown;
    info.decided = std::max(info.decided, g.known);
    g.input_length = call.input_length;
    g.phase = Ready{call.demands.urgent ? d.take_front(key.session) : d.take_back(key.session)};
    write_params(d, g, call, key);
    return g.demands;
}

// What it has done counts further, but leaves it an attempt; and it keeps its place unless it has become urgent.
Shared<wire::Demands> amend(Draft &d, const SubmitGrain &call, const GrainKey &key, const Shared<wire::Demands> &near) {
    Grain &g = d.grain(key);
    if (call.demands.urgent && !g.demands->urgent) g.phase = Ready{d.take_front(key.session)};
    g.demands = {call.demands, near};
    g.files = call.files;  // these are other ones only if it begins again
    g.program = call.program;
    g.input_length = call.input_length;
    if (g.course->failures >= call.demands.attempts)
        g.course.edit().failures = static_cast<std::uint8_t>(call.demands.attempts - 1);
    write_params(d, g, call, key);
    return g.demands;
}

// Of the grain that has the next smaller number: most sessions are maps.
Shared<wire::Demands> near_demands(const State &state, const SessionKey &key,
                                   const std::vector<const SubmitGrain *> &fresh) {
    const auto &grains = state.session(key)->grains;
    const auto next = fresh.empty() ? grains.begin() : grains.lower_bound(fresh.front()->grain);
    return next == grains.begin() ? Shared<wire::Demands>() : std::prev(next)->second.demands;
}

// From its checkpoint only as the same work: with other words, files or variables it is another.
void run_again(Submission &s, const SubmitGrain &call) {
    const GrainKey key{s.key, call.grain};
    const Fingerprint recorded = s.d.state.grain(key)->fingerprint;
    const bool same = recorded == call.fingerprint;
    const bool same_work = same || (recorded == call.as_demanded && call.in_its_environment);
    if (same_work && !call.from_start) go_on_again(s.d, key);
    else begin_again(s.d, key);
    if (!same) s.amended.push_back(&call);
}

void submit(Submission s) {
    if (Status room = check_room(s); !room) return s.d.refuse(s.caller, room);
    Shared<wire::Demands> near = near_demands(s.d.state, s.key, s.fresh);
    for (const SubmitGrain *call : s.fresh) near = record(s.d, s.caller, *call, {s.key, call->grain}, near);
    for (auto call = s.again.rbegin(); call != s.again.rend(); ++call) run_again(s, **call);
    for (const SubmitGrain *call : s.amended) near = amend(s.d, *call, {s.key, call->grain}, near);
    for (const GrainNumber number : s.repeated) try_again(s.d, {s.key, number});
    for (const SubmitGrain *call : s.fresh) forgive_program(s.d, {s.key.user, call->program});
    s.d.reply(s.caller, s.done);
    if (!s.again.empty())
        s.d.event("session " + to_text(s.key) +
                  ": grains without success begin again: " + std::to_string(s.again.size()));
    for (const auto *calls : {&s.fresh, &s.amended, &s.again})
        for (const SubmitGrain *call : *calls) s.d.follow_up(PlaceGrain{{s.key, call->grain}});
}

}  // namespace

void submit_grain(Draft &d, const Caller &caller, const SubmitGrain &call) {
    if (Status s = check_arguments(call); !s) return d.refuse(caller, s);
    const Result<SessionKey> held = held_session(d.state, caller, call.session);
    if (!held) return d.refuse(caller, held.status());
    Submission submission{d, caller, *held, false};
    if (look_at(submission, call)) submit(std::move(submission));
}

void submit_grains(Draft &d, const Caller &caller, const SubmitGrains &call) {
    if (call.grains->empty()) return d.refuse(caller, fail(Code::invalid, "the batch has no grains"));
    for (const SubmitGrain &grain : *call.grains)
        if (Status s = check_arguments(grain); !s) return void(refuse(d, caller, true, grain, s));
    const Result<SessionKey> held = held_session(d.state, caller, call.session);
    if (!held) return d.refuse(caller, held.status());
    Submission submission{d, caller, *held, true};
    for (const SubmitGrain &grain : *call.grains)
        if (!look_at(submission, grain)) return;
    submit(std::move(submission));
}

}  // namespace dcs::core
