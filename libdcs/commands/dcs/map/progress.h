#pragma once
// What the scheduler says of the session of a map or a job file every few seconds, for the line of progress.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "base/instant.h"
#include "commands/dcs/frame/console.h"

namespace dcs::commands {

class MapLook {
public:
    // `shown`: so many of its first grains have ended; while none runs, it finds out why the next one waits.
    explicit MapLook(int session, const std::atomic<std::int32_t> *shown = nullptr)
        : session_(session), shown_(shown) {}

    // Body of a thread of its own, because a question waits while the scheduler is away.
    [[noreturn]] void run(double interval_s);
    Progress added_to(Progress progress) const;  // what was heard last; from any thread
    std::string why_none_ends() const;           // for want of space, or of a host
    bool unanswered() const;                     // a question, for seconds

private:
    const int session_;
    const std::atomic<std::int32_t> *const shown_;
    mutable std::mutex mutex_;
    std::string why_;
    std::atomic<std::int64_t> running_{-1}, stuck_{0}, saved_ms_{0};  // -1: nothing was heard yet
    std::atomic<Instant> asked_{Instant::never()};                    // a question that has no answer yet
};

// Until the process ends, threads ask about the session, show its progress, tell why none of its grains ends and when
// the scheduler is away, and obey the signals, which are blocked, with these last words.
void watch_until_end(const std::string &pool_directory, MapLook &look, Console &console, sigset_t signals,
                     std::function<Progress()> progress, std::function<std::string()> last_words);

}  // namespace dcs::commands
