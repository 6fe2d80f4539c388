#pragma once
// The standard streams of `dcs map`: results in order on stdout, notes and a progress bar on
// stderr.
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "failure.h"

namespace dcs::commands {

inline constexpr double long_run_s = 30;  // shorter ones need no lines about their progress

struct Progress {
    std::int64_t total = 0, done = 0, failed = 0;
    std::int64_t done_before = 0;  // by an earlier run: they say nothing about the speed
    double elapsed_s = 0;
    std::int64_t running = -1;  // -1: not known
    std::int64_t stuck = 0;     // that no host can take
    double saved_cpu_s = 0;     // processor time that was not spent again, thanks to checkpoints
};
// "[#####-----]  50/100  4 running  2 failed  1 h 3 m CPU saved  1 m 4 s left", at most `columns` wide.
std::string progress_text(const Progress &progress, std::size_t columns);

// {"schema":"dcs.progress/1",...} without a newline; what is not known is left out.
std::string progress_json(const Progress &progress);

enum class Shown { bar, plain, json, none };
// By its word in --progress; `automatic`: a bar on a terminal, else plain.
Shown shown_of(std::string_view word);

class Console {
public:
    Console(std::string program, Shown shown);  // "dcs map"

    // Results. False when stdout or stderr takes no more (a closed pipe, a full disk).
    bool out(std::string_view bytes);
    bool err(std::string_view bytes);
    bool flush();

    void note(const std::string &text);  // "dcs map: text"
    // A bar at the last line, redrawn each time; else a line at each 10 % and each minute, a plain one of long runs
    // only.
    void show(const Progress &progress);
    Shown shown() const { return shown_; }
    void keep_bar();  // as it is; what follows goes below it, and no other bar

    // Prints the failure and ends the process, from whatever thread. The session stays as it is.
    [[noreturn]] void give_up(const Failure &failure, Format format, int exit);

private:
    void clear_locked();
    std::mutex mutex_;
    std::string program_;
    const Shown shown_;
    bool bar_shown_ = false, bar_kept_ = false;
    int tenths_ = 0;     // already printed
    double told_s_ = 0;  // when
};

}  // namespace dcs::commands
