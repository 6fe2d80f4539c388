#include "failure.h"

#include <cstdio>

#include "client/pool.h"
#include "dcs.h"
#include "base/json.h"
#include "start_hint.h"
#include "pool_directory.h"
#include "table.h"

namespace dcs::commands {
namespace {

// "D_E_SESSION_UNKNOWN" -> "session_unknown"
std::string short_code(const char *name) {
    std::string code = name;
    if (code.rfind("D_E_", 0) == 0) code.erase(0, 4);
    for (char &c : code)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return code;
}

std::string hint_for(int d_error) {
    switch (d_error) {
    case D_E_UNREACHABLE:
    case D_E_BROKEN: return start_hint(this_pool().directory());
    case D_E_SESSION_UNKNOWN: return "`dcs session ls` lists your sessions";
    case D_E_GRAIN_UNKNOWN: return "`dcs grain ls SESSION` lists a session's grains";
    case D_E_CANNOT_RUN:
        return "correct that, then run the same command again; `dcs host ls` lists the hosts, `dcs grain explain` "
               "explains a grain";
    case D_E_NO_SPACE: return "`dcs session clean` and `dcs session close` work with a full disk, too";
    // Their texts say what is wrong, and with what.
    case D_E_INVALID:
    case D_E_REFUSED:
    case D_E_LIMIT:
    case D_E_NOT_FOUND: return "";
    // What d_strerror() advises here is for programs.
    case D_E_NO_AUTH: return "run the command again";
    case D_E_SESSION_ACTIVE: return "`dcs session close NUM` ends a session, `dcs session ls` shows them";
    case D_E_SESSION_CLOSED: return "`dcs session show NUM` shows its state";
    case D_E_SESSION_TAKEN: return "`dcs session ls` shows whose it is: IDENT names the program";
    case D_E_NOTHING_LEFT:
    case D_E_REPLAY_END: return "`dcs grain ls NUM` lists the session's grains and their states";
    default: return d_strerror(d_error);
    }
}

}  // namespace

int exit_of(int d_error) {
    switch (d_error) {
    case NO_ERROR: return exits::ok;
    case D_E_UNREACHABLE:
    case D_E_BROKEN: return exits::unreachable;
    case D_E_NO_AUTH:
    case D_E_REFUSED:
    case D_E_SESSION_TAKEN: return exits::refused;
    case D_E_INVALID: return exits::usage;
    case D_E_SESSION_UNKNOWN:
    case D_E_GRAIN_UNKNOWN:
    case D_E_NOT_FOUND: return exits::not_found;
    default: return exits::error;
    }
}

Failure usage_failure(const std::string &message, const std::string &hint) {
    return {exits::usage, "usage", message, hint};
}

Failure not_found_failure(const std::string &message, const std::string &hint) {
    return {exits::not_found, "not_found", message, hint};
}

Failure failure_of(const std::string &what, const Status &status, const std::string &hint) {
    // The numbers of Code are those of enum d_error; the client library asserts it.
    const int d_error = static_cast<int>(status.code);
    std::string message = what;
    if (!status.text.empty()) message += (message.empty() ? "" : ": ") + status.text;
    const bool silent = hint.empty() && exit_of(d_error) == exits::unreachable;
    return {exit_of(d_error), short_code(d_errorname(d_error)), message, silent ? hint_for(d_error) : hint};
}

Failure call_failure(const std::string &what, const Status &status) {
    const int d_error = static_cast<int>(status.code);
    const std::string why = status.text.empty() ? d_strerror(d_error) : status.text;
    Failure failure = failure_of(what, fail(status.code, why));
    failure.hint = hint_for(d_error);
    if (failure.hint == why) failure.hint.clear();
    return failure;
}

Failure call_failure(const std::string &what, int d_error) {
    return call_failure(what, fail(static_cast<Code>(d_error), d_errortext()));
}

std::string lost_session_hint(int d_error) {
    switch (d_error) {
    case D_E_SESSION_TAKEN: return "another run of the same command has taken the session over";
    case D_E_NO_AUTH:
        return "another run of the same command has taken the session over, or the scheduler has another store: "
               "`dcs doctor` says so";
    case D_E_SESSION_CLOSED: return "the same command says how it ended, and runs what has not run";
    default: return {};
    }
}

std::string text_of(const Failure &failure, Format format) {
    if (format == Format::json) {
        JsonObject inner;
        inner.add("code", failure.code).add("message", failure.message).add("hint", failure.hint);
        return JsonObject().add_raw("error", inner.text()).text() + "\n";
    }
    // A message that begins with the verb ("dcs map: ...") says the program's name already.
    std::string text = (failure.message.rfind("dcs ", 0) == 0 ? "" : "dcs: ") + failure.message + "\n";
    if (!failure.hint.empty()) text += "  hint: " + failure.hint + "\n";
    return printable(text, true);  // both may quote words of hosts and of other users
}

int report(const Failure &failure, Format format) {
    std::fflush(stdout);  // results that were printed before come first
    std::fputs(text_of(failure, format).c_str(), stderr);
    return failure.exit;
}

}  // namespace dcs::commands
