#pragma once
// Figures of the pool over the last hour, day and week; as text they outlive the process.
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wire/message.h"

namespace dcs::commands::page {

struct Point {
    std::int64_t at_ms = 0;
    double finished_per_minute = 0;
    std::int64_t ready = 0, running = 0;
};

struct Range {
    const char *name;
    std::int64_t step_ms;
    std::deque<Point> points;  // oldest first; a gap is a time without answers of the scheduler
};

class Series {
public:
    static constexpr std::size_t points_kept = 180;
    // `ended`: grains that have ended in this pool so far.
    // True: there is a new point.
    bool take(std::int64_t at_ms, std::int64_t ended, std::int64_t ready, std::int64_t running);
    std::string text() const;
    // What an earlier process wrote; what is not understood, or of a later time than `now_ms`, is left out.
    void restore(std::string_view text, std::int64_t now_ms);
    const std::array<Range, 3> &ranges() const { return ranges_; }

private:
    struct Base {
        std::int64_t at_ms = 0, ended = 0;
    };
    std::array<Range, 3> ranges_ = {
        {{"last hour", 20'000, {}}, {"last 24 hours", 480'000, {}}, {"last 7 days", 3'360'000, {}}}};
    std::array<Base, 3> bases_ = {};
};

// What the hosts did since this process saw them first. A host that leaves the table takes nothing with it, and one
// that comes to it, or back, brings nothing: no change of the table looks like work.
class HostCounters {
public:
    void take(const std::vector<wire::HostRow> &hosts);

    const std::map<std::string, std::int64_t> &starts() const { return starts_; }  // by class
    std::int64_t finished() const { return finished_; }
    std::int64_t failed() const { return failed_; }
    std::int64_t given_back() const { return given_back_; }
    double cpu_s() const { return cpu_s_; }

private:
    struct Host {
        std::int64_t launched = 0, finished = 0, failed = 0, given_back = 0;
        double cpu_s = 0;
    };
    std::map<std::string, Host> last_;
    std::map<std::string, std::int64_t> starts_;
    std::int64_t finished_ = 0, failed_ = 0, given_back_ = 0;
    double cpu_s_ = 0;
};

}  // namespace dcs::commands::page
