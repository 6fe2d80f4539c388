#pragma once
// What the scheduler says of the session of a map or a job file every few seconds, for the line of progress.
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/instant.h"
#include "commands/dcs/frame/console.h"

namespace dcs::commands {

inline constexpr double look_at_bar_s = 2,
                        look_s = 10;  // at most between questions about the session, with a bar and without

class MapLook {
public:
    // `shown`: so many of its first grains have ended; while none runs, it finds out why the next one waits.
    explicit MapLook(int session, const std::atomic<std::int32_t> *shown = nullptr)
        : session_(session), shown_(shown) {}

    // Body of a thread of its own, because a question waits while the scheduler is away. Never returns.
    [[noreturn]] void run(double interval_s);
    void add_to(Progress &progress) const;  // what was heard last; from any thread
    std::string why_none_ends() const;      // for want of space, or of a host
    bool unanswered() const;                // a question, for seconds

private:
    const int session_;
    const std::atomic<std::int32_t> *const shown_;
    mutable std::mutex mutex_;
    std::string why_;
    std::atomic<std::int64_t> running_{-1}, stuck_{0}, saved_ms_{0};  // -1: nothing was heard yet
    std::atomic<Instant> asked_{Instant::never()};                    // a question that has no answer yet
};

// Says when the scheduler is away or silent, and when it is back.
class AwayNote {
public:
    AwayNote(const std::string &pool_directory, const MapLook &look, Console &console);
    void look();  // now and then

private:
    const std::string directory_;
    const bool can_look_;  // it is of this host
    const MapLook &look_;
    Console &console_;
    int missing_ = 0;
};

}  // namespace dcs::commands
