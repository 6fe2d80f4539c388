#include "grainserver/launcher/start_outcome.h"

#include <cerrno>
#include <cstring>

#include "base/require.h"
#include "base/resources.h"
#include "grainserver/starter/container.h"

namespace dcs::launcher {

using starter::Failure, starter::Step, starter::There;
namespace {

std::string exec_words(const std::string &program, const Failure &failure) {
    DCS_REQUIRE(failure.step == Step::exec || failure.step == Step::runner, "only these two steps execute anything");
    const int error = failure.error;
    const bool there = failure.program != There::nothing;
    if (failure.program == There::directory) return program + " is a directory, not a program";
    if (error == ENOENT && there) return program + " exists, but its interpreter or loader does not";
    if (error == EACCES && there) return program + " is not executable for this user";
    if (error == ENOEXEC) return program + " is neither a program of this kind of machine nor a script with a #! line";
    if (error == E2BIG)
        return "an argument or the environment is longer than this host's system accepts: " +
               std::string(std::strerror(error));
    return "cannot start " + program + ": " + std::strerror(error);
}

// A temporary error of the host, as opposed to a request that this host cannot fulfil.
bool host_trouble(int error) {
    for (const int passing :
         {ENOMEM, EAGAIN, EMFILE, ENFILE, EIO, ENOSPC, EDQUOT, ETXTBSY, ESTALE, ENOTCONN, ETIMEDOUT})
        if (error == passing) return true;
    return false;
}

// The cause of a failed step (wire::LaunchResult). not_found marks the program on this host for all of its user's
// grains; invalid concerns this grain alone: its arguments and environment, its working directory.
Code fault_of(const Failure &failure) {
    if (failure.error == ENOSPC || failure.error == EDQUOT) return Code::no_space;
    if (host_trouble(failure.error)) return Code::io_error;
    return failure.step == Step::exec && failure.error != E2BIG ? Code::not_found : Code::invalid;
}

// A grain runs seldom as the user who submits it.
std::string for_account(const Failure &failure, const files::Account &account) {
    if (failure.error != EACCES || !account.change) return "";
    return " for uid " + std::to_string(account.uid) +
           ", under which the grain runs; --cwd DIR names another directory";
}

}  // namespace

StartOutcome failed(Code code, std::string text, bool again) {
    StartOutcome outcome;
    outcome.code = code;
    outcome.again = again;
    outcome.text = std::move(text);
    return outcome;
}

StartOutcome told(const Failure &failure, const files::LaunchRecord &launch) {
    const std::string why = std::strerror(failure.error);
    const Code trouble = failure.error == ENOSPC || failure.error == EDQUOT ? Code::no_space : Code::io_error;
    const Code code = fault_of(failure);
    switch (failure.step) {
    case Step::exec: return failed(code, exec_words(launch.program, failure));
    case Step::runner:
        return failed(Code::io_error,
                      "the runner of this host: " +
                          exec_words(launch.runner.empty() ? starter::container_runner() : launch.runner[0], failure));
    case Step::directory:
        if (launch.directory.empty()) return failed(trouble, "working directory of the grain: " + why);
        return failed(code,
                      "working directory " + launch.directory + ": " + why + for_account(failure, launch.account));
    case Step::streams: return failed(trouble, "standard streams of the grain: " + why);
    case Step::group: return failed(trouble, "control group of the grain: " + why);
    case Step::cpus:
        return failed(Code::io_error, "the grain's CPUs, which this host offers as its resource " +
                                          std::string(cpu_resource) + ": " + why);
    case Step::confinement: return failed(trouble, "confinement of the grain: " + why);
    case Step::identity: return failed(trouble, "account of the grain: " + why);
    case Step::pid_file: return failed(trouble, "file pid of the grain: " + why);
    case Step::orphaned: break;
    }
    return failed(Code::io_error, "the launcher ended during the start");
}

}  // namespace dcs::launcher
