#pragma once
// The standard streams of `dcs map`: results in order on stdout, notes and a progress bar on
// stderr.
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "failure.h"

namespace dcs::commands {

struct Progress {
    std::int64_t total = 0, done = 0, failed = 0;
    std::int64_t done_before = 0;  // by an earlier run: they say nothing about the speed
    double elapsed_s = 0;
    std::int64_t running = -1;  // -1: not known
    double saved_cpu_s = 0;     // processor time that was not spent again, thanks to checkpoints
};
// "[#####-----]  50/100  4 running  2 failed  1 h 3 m CPU saved  1 m 4 s left", at most `columns` wide.
std::string progress_text(const Progress &progress, std::size_t columns);

class Console {
public:
    explicit Console(std::string program);  // "dcs map"

    // Results. False when stdout or stderr takes no more (a closed pipe, a full disk).
    bool out(std::string_view bytes);
    bool err(std::string_view bytes);
    bool flush();

    void note(const std::string &text);  // "dcs map: text"
    // On a terminal a bar at the last line; else a line at each 10 % of long runs.
    void show(const Progress &progress);
    bool redraws() const { return bar_; }
    void clear();

    // Prints the failure and ends the process, from whatever thread. The session stays as it is.
    [[noreturn]] void give_up(const Failure &failure, Format format, int exit);

private:
    void clear_locked();
    std::mutex mutex_;
    std::string program_;
    bool bar_ = false;  // stderr is a terminal
    bool bar_shown_ = false;
    int tenths_ = 0;  // already told
};

}  // namespace dcs::commands
