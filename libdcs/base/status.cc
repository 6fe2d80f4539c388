#include "base/status.h"

#include <cerrno>
#include <cstring>

namespace dcs {
namespace {
struct CodeWords {
    const char *name;
    const char *advice;
};
constexpr CodeWords words[] = {
    {"", "No error."},
    {"UNREACHABLE",
     "No scheduler answers: start a private pool with `dcs up`, or set DCS_DIR to the pool's directory."},
    {"BROKEN",
     "The connection to the scheduler broke and was not restored in time: run the program again, and it continues."},
    {"NO_AUTH", "Call d_get_auth first; if it was called, the token has expired: run the program again."},
    {"REFUSED", "This needs the owner of the session, the scheduler's owner or root."},
    {"INVALID", "An argument is invalid: the text says which one."},
    {"SESSION_ACTIVE", "An active session has this number: use another number, or d_resume_ses."},
    {"SESSION_CLOSED", "The session is terminated: d_reopen_ses makes it active again, d_clean_ses removes it."},
    {"SESSION_UNKNOWN", "No session has this number: open it first."},
    {"SESSION_TAKEN",
     "The session belongs to another control program, or to another run of this one: run one at a time (the later one "
     "goes on with the session), or use another session number. d_get_auth with another ident makes another program."},
    {"GRAIN_EXISTS",
     "The grain number is in use: open the session with d_resume_ses to repeat submissions, or use another number."},
    {"GRAIN_DIFFERS",
     "A grain with this number was submitted with other parameters: a control program must repeat its run exactly, or "
     "use a new session; `dcs session close N` and `dcs session clean N` remove the old one, with its results."},
    {"GRAIN_UNKNOWN", "The session has no grain with this number."},
    {"NOTHING_YET", "No further grain has finished yet: call again later, or wait with D_BLOCK."},
    {"NOTHING_LEFT", "Every grain of the session has been reported: submit more, or close the session."},
    {"CANNOT_RUN",
     "No configured host can run the remaining grains; the text says why: correct that, or what the grains demand, "
     "then run the control program again, or wait again. Another command needs another grain number."},
    {"NO_SPACE", "The scheduler's disk is full, and the call changed nothing: free disk space and repeat the call."},
    {"IO_ERROR",
     "A disk failed: the text names the file; the scheduler's log has more if it is one of the scheduler's."},
    {"LIMIT", "A limit of the installation is exceeded: the text says which one."},
    {"PROTOCOL", "The peers have no form of the protocol in common: upgrade the older one."},
    {"REPLAY_END", "The session is closed and replays its record: new work needs d_reopen_ses or another session."},
    {"NOT_FOUND", "The program, file or directory does not exist."},
    {"INTERNAL", "An error inside DCS: please report it with the scheduler's log."},
};
static_assert(sizeof words / sizeof words[0] == static_cast<int>(Code::last) + 1);
const CodeWords &words_of(Code code) {
    const int i = static_cast<int>(code);
    return words[i >= 0 && i <= static_cast<int>(Code::last) ? i : static_cast<int>(Code::internal)];
}
}  // namespace

const char *code_name(Code code) { return words_of(code).name; }
const char *code_advice(Code code) { return words_of(code).advice; }

Status fail_errno(Code code, const std::string &what, int error) {
    char buffer[128];
    std::string text = what + ": " + ::strerror_r(error, buffer, sizeof buffer);
    if (error == EFBIG) text += " (the process's limit, as `ulimit -f` sets it, or the file system's)";
    return fail(code, text);
}
}  // namespace dcs
