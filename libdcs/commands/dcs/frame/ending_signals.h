#pragma once
// Signals that end a command which has something to finish first.
#include <csignal>

namespace dcs::commands {

// INT, TERM and HUP, those of them that the caller did not choose to ignore (nohup, a background
// job of a script). Blocks them in this thread and those that it starts: one thread waits for them.
sigset_t block_ending_signals();
// Whether one of them has come since, and is still to be taken.
bool is_asked_to_end();

}  // namespace dcs::commands
