#pragma once
// Output. Results go to standard output, everything else to standard error. A command that is run owns both, so
// messages of dcs_lock about it go to standard error and to --report.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "locks/adaptive_lock.h"
#include "options.h"

namespace dcs::lock_command {

inline void print(const std::string &text) { write_all(1, text); }
void complain(const std::string &line);  // "dcs_lock: LINE"

// The result of a request.
struct Outcome {
    std::string name;    // of the lock, for people
    std::string result;  // one word: done, failed, expired, busy, too-soon, error ...
    int exit = 0;
    bool ran = false;        // the command was started
    std::string message;     // one line; may be empty
    bool wrong_use = false;  // of result error: repeating the call cannot help
    bool quiet = false;      // `message` is for -v and JSON only
    locks::Owner holder;     // pid 0: not known
    std::uint64_t token = 0;
    std::int64_t waited = -1, runtime = -1, cpu = -1, age = -1, elapsed = -1, again_in = -1;
    std::vector<int> slots;
    bool took_over = false, after_crash = false;
};

std::string as_json(const Outcome &outcome);
std::string as_json(const locks::Owner &owner);
// Reports the outcome as the options request and returns its exit code.
int tell(const Options &options, const Outcome &outcome);

// An error of dcs_lock itself: 125.
Outcome failed(const std::string &name, const std::string &message);
Outcome failed(const std::string &name, const Status &status);
// A denial, with the exit code and the word of its reason.
Outcome denied(const Options &options, const std::string &name, const locks::Answer &answer);

// The library's messages name files; replaces the file by the name that the user gave.
std::string with_name(std::string text, const locks::Place &place);
std::string shown_name(const locks::Atom &atom);  // "edit:/etc/motd", "backup", "/run/x.lock"
std::string shown_name(const Options &options);

}  // namespace dcs::lock_command
