#pragma once
// The log of all transactions, one line each, beside the lock files: run.log. Each line is one write; rotated to
// run.log.1 at 8 MiB. A log that cannot be written never prevents a lock from being taken.
#include <cstdint>
#include <functional>
#include <string>

#include "locks/files/record.h"

namespace dcs::locks {

struct LogLine {
    std::int64_t wall = 0;  // nanoseconds since 1970
    std::string name;       // encoded_name of the atom, or of the slots
    // one word: taken, done, failed, expired, crashed, lost, busy, too-soon, kill, clock, spam ...
    std::string event;
    pid_t pid = 0;
    uid_t uid = 0;
    std::uint64_t generation = 0;
    std::int64_t runtime = -1, cpu = -1, io = -1, waited = -1;  // -1: does not apply
    std::int64_t limit = -1;
    std::string text;  // for people; control bytes are escaped
};

// "2026-11-21T22:10:03.123456789Z host,edit,%2Fetc%2Fmotd expired pid=12 uid=0 gen=7 run=12.5 cpu=0.1 io=4096 wait=0
// limit=5400 : text..." and back. False: not a line of the log.
std::string printed(const LogLine &line);
bool parse_log_line(const std::string &text, LogLine &line);

// Keeps the descriptor of the log that this thread wrote last; reopens it after it was rotated or removed.
void append_log(const std::string &directory, const LogLine &line);
// Calls `take` for each line, oldest first, the rotated file before the present one.
void read_log(const std::string &directory, const std::function<void(const LogLine &)> &take);

}  // namespace dcs::locks
