// d_gexec (C7): checks, idempotence, the record; placing it is the follow-up (S3).
#include "base/checksum.h"
#include "base/limits.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

constexpr std::int32_t max_cores = 65536;

Status check_arguments(const SubmitGrain &call) {
    const auto bad = [](const char *what) { return fail(Code::invalid, what); };
    if (call.session < 0 || call.grain < 0)
        return bad("session and grain numbers are not negative");
    if (call.thrash < 0) return bad("thrash is not negative");
    if (call.notice < 0) return bad("notice is not negative");
    if (call.attempts < 1 || call.attempts > 255) return bad("attempts is between 1 and 255");
    if (call.demand.cores < 0 || call.demand.cores > max_cores)
        return bad("cores is between 0 and 65536");
    if (call.demand.memory_mb < 0) return bad("memory is not negative");
    if (call.demand.wall_s < 0) return bad("the wall-clock limit is not negative");
    if (call.params.size() == 0) return bad("a grain needs a program");
    if (call.input_length > limits::content_bytes)
        return fail(Code::limit, "the input has " + std::to_string(call.input_length) +
                                     " bytes, the limit is " + std::to_string(limits::content_bytes));
    if (call.params.size() > limits::user_frame_bytes)
        return fail(Code::limit, "program, arguments, environment and input are too long together");
    return Status::ok();
}

// The number is in use: the same call again, a different one, or a mistake.
void meet_existing(Draft &d, const Caller &caller, const SubmitGrain &call, const GrainKey &key) {
    const Grain &grain = *d.state.grain(key);
    const bool repeats =
        d.state.session(key.session)->info.resumable || grain.request == caller.request;
    if (!repeats)
        return d.refuse(caller,
                        fail(Code::grain_exists, "grain " + to_text(key) + " exists already"));
    if (grain.fingerprint == call.fingerprint) return d.reply(caller, wire::Done{});
    d.effect(ReplyDifference{caller.conn, caller.request, key, call.params});
}

// What one user and one session may have waiting.
Status check_room(const State &state, const SubmitGrain &call, const SessionKey &key) {
    if (Status s = check_grain_quota(state, key.user); !s) return s;
    const auto &ready = state.session(key)->ready;
    Grain g;
    g.host_class = call.host_class;
    g.thrash = call.thrash;
    g.program = call.program;
    g.demand = call.demand;
    g.files = call.files;
    if (ready.size() < limits::shapes_per_session || ready.count(shape_of(g)) != 0) return Status::ok();
    return fail(Code::limit, "grains of session " + to_text(key) + " wait with " + std::to_string(ready.size()) +
                                 " different combinations of class, cores, memory and program: let some finish, "
                                 "or make them more alike");
}

void record(Draft &d, const Caller &caller, const SubmitGrain &call, const GrainKey &key) {
    Grain &g = d.new_grain(key);
    SessionInfo &info = d.info(key.session);
    g.urgent = call.urgent;
    g.attempts = static_cast<std::uint8_t>(call.attempts);
    g.thrash = call.thrash;
    g.notice = call.notice;
    g.host_class = call.host_class;
    g.demand = call.demand;
    g.files = call.files;
    g.program = call.program;
    g.fingerprint = call.fingerprint;
    g.request = caller.request;
    g.input_length = call.input_length;
    g.params_length = static_cast<std::uint32_t>(call.params.size());
    g.params_sum = crc32c(*call.params.bytes);
    g.queue_position = call.urgent ? d.take_front(key.session) : d.take_back(key.session);
    if (call.params.size() > shared_bytes) {
        g.own_tree = true;
        g.params_own_file = true;
        d.write(key, File::grain_params, 0, call.params);
    } else {
        g.params_offset = info.inputs_length;
        d.write(key, File::session_inputs, info.inputs_length, call.params);
        info.inputs_length += call.params.size();
    }
}

}  // namespace

void submit_grain(Draft &d, const Caller &caller, const SubmitGrain &call) {
    if (Status s = check_arguments(call); !s) return d.refuse(caller, s);
    const Result<SessionKey> held = held_session(d.state, caller, call.session);
    if (!held) return d.refuse(caller, held.status());
    const GrainKey key{*held, call.grain};
    if (d.state.grain(key)) return meet_existing(d, caller, call, key);
    const Session &session = *d.state.session(*held);
    if (session.damaged.count(call.grain) != 0)
        return d.refuse(caller, missing_grain(d.state, key));
    if (in_replay(session.info))
        return d.refuse(caller,
                        fail(Code::replay_end, "session " + to_text(*held) +
                                                   " is closed and did not record a grain " +
                                                   std::to_string(call.grain)));
    if (Status s = check_room(d.state, call, *held); !s) return d.refuse(caller, s);
    record(d, caller, call, key);
    d.reply(caller, wire::Done{});
    d.follow_up(PlaceGrain{key});
}

}  // namespace dcs::core
