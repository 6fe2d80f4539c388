#pragma once
// How a command fails: what went wrong, why, what to do next, and the exit code that scripts see.
#include <string>

#include "base/status.h"

namespace dcs::commands {

// Exit codes. `dcs run` and `dcs map` have their own, see their help.
namespace exits {
inline constexpr int ok = 0, error = 1, usage = 2, not_found = 3, refused = 4, unreachable = 5, timeout = 6,
                     grain_failed = 10;
inline constexpr int run_failed = 125, not_executable = 126, no_program = 127;  // of `dcs run`
inline constexpr int map_failed = 255, map_many = 101;                          // of `dcs map`
}  // namespace exits

enum class Format { table, json, name };

struct Failure {
    int exit = exits::error;
    std::string code;     // one word for programs: "usage", "session_unknown"
    std::string message;  // "what: why"
    std::string hint;     // what next; may be empty
};

Failure usage_failure(const std::string &message, const std::string &hint = "");
Failure not_found_failure(const std::string &message, const std::string &hint = "");
// From a Status of our own libraries; `what` is put in front of its text. `hint`: instead of the usual one.
Failure failure_of(const std::string &what, const Status &status, const std::string &hint = "");
// From what the scheduler was asked, with what to do next.
Failure call_failure(const std::string &what, const Status &status);
// The same from a d_... call that just failed in this thread: takes d_errortext() of it.
Failure call_failure(const std::string &what, int d_error);
// Of a program that waits for results and has lost its session: where to look for it. Empty: it has not.
std::string lost_session_hint(int d_error);

// Exit code for an error code of the library.
int exit_of(int d_error);

// `dcs: what: why` and `  hint: next`, or with Format::json one object on one line.
std::string text_of(const Failure &failure, Format format);
// Prints it to stderr and returns its exit code.
int report(const Failure &failure, Format format);

}  // namespace dcs::commands
