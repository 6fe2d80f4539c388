#pragma once
// Signals that end a command which has something to finish first.
#include <csignal>
#include <functional>
#include <string>

namespace dcs::commands {

class Console;

// INT, TERM and HUP, those of them that the caller did not choose to ignore (nohup, a background
// job of a script). Blocks them in this thread and those that it starts: one thread waits for them.
sigset_t block_ending_signals();
// Whether one of them has come since, and is still to be taken.
bool is_asked_to_end();
// Ends the process: by SIGINT itself, as the shell of a script would take an exit code for the program's own decision
// and go on; after another signal with 128 + its number.
[[noreturn]] void end_by(int number);
// For a thread of its own: at the first of these signals notes `last_words()` and ends the process by it. A reader that
// takes nothing more, as a pager, holds that up for a second at most.
[[noreturn]] void obey_ending_signals(sigset_t signals, Console &console,
                                      const std::function<std::string()> &last_words);

}  // namespace dcs::commands
