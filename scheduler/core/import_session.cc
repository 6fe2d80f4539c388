// `dcs session import`: an export becomes a terminated session of the caller, in one turn, alone
// or in the place of one that is terminated or damaged.
#include "scheduler/core/decisions.h"
#include "scheduler/state/derived.h"

namespace dcs::core {
namespace {

// The call comes again because its reply was lost.
bool is_repetition(const Caller &caller, const Session *session) {
    return session && session->info.status == SessionStatus::terminated &&
           session->info.open_request == caller.request && session->info.token == TokenHash{};
}

Status may_take_its_place(const State &state, const SessionKey &key, bool replace) {
    const std::string name = "session " + to_text(key);
    const Session *session = state.session(key);
    if (session && session->info.status == SessionStatus::active)
        return fail(Code::session_active, name + " is active: close it, or choose another number with --number N");
    if (replace || (!session && state.set_aside.count(key) == 0)) return Status::ok();
    return fail(Code::session_closed, name + " exists" + (session ? "" : " (damaged)") +
                                          ": replace it with --replace, or choose another number with --number N");
}

SessionInfo info_of(const State &state, const Caller &caller, const SessionKey &key, const ImportContent &content) {
    const Session *old = state.session(key);
    SessionInfo info = content.info;
    info.status = SessionStatus::terminated;
    info.seniority = old ? old->info.seniority : state.next_seniority;
    info.token = TokenHash{};
    info.open_request = caller.request;
    info.resumable = false;
    info.grains_length = info.events_length = 0;
    return info;
}

}  // namespace

namespace {
// More on the disk than what it takes the place of.
std::uint64_t stored_more(const ImportContent &content, const Session *old) {
    std::uint64_t bytes = on_disk(1) + on_disk(content.inputs.size()) + on_disk(content.results.size());
    for (const ImportedFile &file : content.files) bytes += on_disk(1) + on_disk(file.bytes.size());
    const std::uint64_t before = old ? stored_by(old->info) + old->own_trees : 0;
    return bytes > before ? bytes - before : 0;
}
}  // namespace

Status may_import(const State &state, const Caller &caller, const ImportSession &call) {
    if (call.number < 0) return bad_session_number(call.number);
    const SessionKey key{caller.user, call.number};
    if (is_repetition(caller, state.session(key))) return Status::ok();
    return may_take_its_place(state, key, call.replace);
}

void import_session(Draft &d, const Caller &caller, const ImportSession &call) {
    if (call.number < 0) return d.refuse(caller, bad_session_number(call.number));
    const SessionKey key{caller.user, call.number};
    const Session *old = d.state.session(key);
    if (is_repetition(caller, old)) return d.reply(caller, wire::Done{});
    if (!call.content)
        return d.refuse(caller,
                        fail(Code::not_found, "nothing was uploaded on this connection: start the import again"));
    if (Status s = may_take_its_place(d.state, key, call.replace); !s) return d.refuse(caller, s);
    const ImportContent &content = *call.content;
    if (Status s = check_stored(d.state, caller.user, caller.privileged, stored_more(content, old)); !s)
        return d.refuse(caller, s);
    const SessionInfo info = info_of(d.state, caller, key, content);
    if (old) {
        raise_fences(d, key, *old);
        d.change(EraseSession{key});
    } else if (d.state.set_aside.count(key) != 0) {
        d.change(EraseDamaged{key});
    }
    d.change(SetSession{key, info});
    d.change(AddGrains{key, content.grains});
    if (content.inputs.size() > 0) d.write({key, 0}, File::session_inputs, 0, content.inputs);
    if (content.results.size() > 0) d.write({key, 0}, File::session_results, 0, content.results);
    if (content.events.size() > 0) d.write({key, 0}, File::session_events, 0, content.events);
    for (const ImportedFile &file : content.files) d.write({key, file.grain}, file.file, 0, file.bytes);
    d.reply(caller, wire::Done{});
    d.event("session " + to_text(key) + " imported with " + std::to_string(content.grains->size()) + " grains");
}

}  // namespace dcs::core
