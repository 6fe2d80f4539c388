#include "scheduler/state/missing.h"

namespace dcs::core {

Status missing_session(const State &state, const SessionKey &key) {
    if (const auto damaged = state.set_aside.find(key); damaged != state.set_aside.end())
        return fail(Code::io_error, "session " + to_text(key) + " is set aside, " + damaged->second +
                                        "; use another number, or restore the file while the scheduler is stopped, or "
                                        "import an export of it (dcs session import DIR --replace), or remove it (dcs "
                                        "session clean)");
    return fail(Code::session_unknown, key.user + " has no session " + std::to_string(key.number));
}

Status missing_grain(const State &state, const GrainKey &key) {
    static const std::map<GrainNumber, std::string> none;
    const Session *session = state.session(key.session);
    const auto &damaged = session ? session->damaged : none;
    if (const auto found = damaged.find(key.grain); found != damaged.end())
        return fail(Code::io_error, "grain " + to_text(key) + " is set aside, " + found->second +
                                        "; kill it to continue without it, or restore the file while the scheduler is "
                                        "stopped");
    return fail(Code::grain_unknown, "session " + to_text(key.session) + " has no grain " + std::to_string(key.grain));
}

}  // namespace dcs::core
