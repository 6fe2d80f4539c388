#include "base/status.h"

#include <cstring>

namespace dcs {
namespace {
struct CodeWords {
    const char *name;
    const char *advice;
};
constexpr CodeWords words[] = {
    {"",
     "No error."},
    {"UNREACHABLE",
     "No scheduler answers there: start a private pool with `dcs up`, or set DCS_DIR to the "
     "pool's directory."},
    {"BROKEN",
     "The connection to the scheduler broke and did not come back in time: run the program "
     "again, it resumes where it was."},
    {"NO_AUTH",
     "Call d_get_auth first; if it was called, the token has aged out: run the program "
     "again."},
    {"REFUSED",
     "This needs the owner of the session, the scheduler's owner or root."},
    {"INVALID",
     "An argument is out of its range: see the text for which one."},
    {"SESSION_ACTIVE",
     "The session number is in use by an active session: take another number, or "
     "d_resume_ses."},
    {"SESSION_CLOSED",
     "The session is terminated: d_reopen_ses makes it active again, d_clean_ses removes it."},
    {"SESSION_UNKNOWN",
     "There is no session of that number: open it first."},
    {"SESSION_TAKEN",
     "The session belongs to another control program: use another session number, or the "
     "same control ident."},
    {"GRAIN_EXISTS",
     "The grain number is in use: open the session with d_resume_ses to repeat submissions, "
     "or take another number."},
    {"GRAIN_DIFFERS",
     "A grain of that number was submitted with other parameters: a control program must "
     "repeat its run exactly, or use a new session."},
    {"GRAIN_UNKNOWN",
     "There is no grain of that number in the session."},
    {"NOTHING_YET",
     "No further grain has finished yet: ask again later, or wait with block."},
    {"NOTHING_LEFT",
     "Every grain of the session has been reported: submit more, or close the session."},
    {"CANNOT_RUN",
     "No configured host can run what remains, and the text says why: put that right, then run the control "
     "program again, or wait again."},
    {"NO_SPACE",
     "The scheduler's disk is full and the call changed nothing: make room and repeat it."},
    {"IO_ERROR",
     "The scheduler's disk failed: look at the scheduler's log."},
    {"LIMIT",
     "A limit of the installation is exceeded: see the text for which one."},
    {"PROTOCOL",
     "The two sides have no form of the protocol in common: upgrade the older one."},
    {"REPLAY_END",
     "The session is closed and replays what it recorded: something new needs d_reopen_ses "
     "or another session."},
    {"NOT_FOUND",
     "The program, file or directory does not exist there."},
    {"INTERNAL",
     "An error inside DCS: please report it with the scheduler's log."},
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
    return fail(code, what + ": " + ::strerror_r(error, buffer, sizeof buffer));
}
}  // namespace dcs
