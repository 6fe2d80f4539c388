#pragma once
// Why a grain that is waited for does not run, told now and then on standard error: a person who sees nothing for long
// cannot tell a busy pool from a dead one.
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "scheduler.h"
#include "base/instant.h"

namespace dcs::commands {

inline constexpr std::int64_t answer_s = 5;  // a question without an answer for so long: the scheduler is silent

// One line: "ready, but waits for a host: 2 hosts: no free slot; session 23 with 1,500 grains goes first".
// `sessions`: all that there are, to count what goes first. Empty where the grain does not wait for a host.
std::string waiting_text(const wire::Explanation &why, const std::vector<Session> &sessions);
// That no host can take the grain: waiting_text(), and what the scheduler said besides, in the text of D_E_CANNOT_RUN.
std::string none_can_text(const Result<wire::Explanation> &why, const std::string &said);
// What to do about the first reason that concerns hosts, and where that host's figures are shown.
std::string advice_of(const wire::Explanation &why);
// waiting_text() of a grain, asked for; of one that does not wait what ask_about_disk() says. Empty also if the cause
// cannot be determined now.
std::string ask_why_it_waits(const std::string &user, int session, int grain);
// For a program that does not wait for it: says on standard error that no host can ever take the grain, if so.
void tell_if_none_can(const char *program, int session, int grain);
// What `dcs doctor` says of the scheduler's disk, if that has little room.
std::optional<wire::ProblemRow> ask_disk_problem();
std::string ask_about_disk();  // why no result comes, if it may be for want of space

// When to say it: when it has been so for `first`; another reason not within 10 s, the same one after 10 minutes.
class WaitRhythm {
public:
    explicit WaitRhythm(Instant now, Duration first = seconds(3)) : first_(first), since_(now) {}
    bool due(const std::string &text, Instant now);  // an empty text: it does not wait

private:
    const Duration first_;
    Instant since_, told_at_;
    std::string told_;
    bool ever_ = false;
};

// For one grain, by two threads: one asks, which takes as long as the scheduler is away, the other tells.
class Waiting {
public:
    Waiting(std::string program, int session, int grain, std::string pool_directory)
        : program_(std::move(program)), session_(session), grain_(grain), directory_(std::move(pool_directory)) {}
    void start();                  // the threads never end; the object outlives them
    void stop() { over_ = true; }  // it says nothing any more

private:
    [[noreturn]] void ask();
    [[noreturn]] void tell();

    const std::string program_;
    const int session_, grain_;
    const std::string directory_;
    std::atomic<bool> over_{false};
    std::mutex mutex_;
    std::string text_;
    Instant asked_ = Instant::never();  // a question that has no answer yet
};

// "the scheduler does not answer; ...", with what to do about it now.
std::string away_text(const std::string &pool_directory);

}  // namespace dcs::commands
