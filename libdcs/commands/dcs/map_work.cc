#include "map_work.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <thread>

#include "ask.h"
#include "base/clock.h"
#include "base/limits.h"
#include "dcs.h"
#include "launch_words.h"

namespace dcs::commands {
namespace {

// Each submission waits for the scheduler's disk; those of several connections share one commit.
constexpr int submitting_threads = 8;
constexpr std::size_t kept_bytes_most = 64u << 20;  // outputs that wait for their turn in memory

void pause_ms(long ms) {
    timespec pause = {ms / 1000, ms % 1000 * 1'000'000};
    ::nanosleep(&pause, nullptr);
}

}  // namespace

MapWork::MapWork(const MapPlan &plan, const MapOptions &options, int session,
                 std::int64_t done_before, Console &console)
    : plan_(plan),
      options_(options),
      session_(session),
      total_(static_cast<std::int64_t>(plan.inputs.size())),
      done_before_(done_before),
      began_(boot_clock()),
      console_(console),
      results_(plan.inputs.size()) {}

Progress MapWork::progress() {
    Progress progress;
    progress.total = total_;
    progress.done = done_.load();
    progress.failed = failed_.load();
    progress.done_before = std::min(done_before_, progress.done);
    progress.elapsed_s = (boot_clock() - began_).seconds();
    return progress;
}

void MapWork::give_up(const Failure &failure) {
    console_.flush();
    console_.give_up(failure, options_.format, exits::map_failed);
}

void MapWork::output_failed() {
    const int error = errno;
    const std::string session = std::to_string(session_);
    Failure failure =
        failure_of("", fail_errno(Code::io_error, "the outputs cannot be written", error));
    failure.hint = "session " + session +
                   " goes on: run the same command again, or `dcs session close " + session + "`";
    console_.give_up(failure, options_.format, exits::map_failed);
}

// What a rerun under a changed environment meets: the grain is there as the first run submitted it.
bool MapWork::present_though_different(std::int32_t grain, const std::string &difference) {
    std::string variable;
    if (!only_environment_differs(difference, options_.environment, variable)) return false;
    std::lock_guard guard(mutex_);
    if (!told_environment_)
        console_.note(
            "warning: " +
            (variable.empty() ? "the environment" : "the environment variable " + variable) +
            " is not as it was in the first run; grains that it submitted (" +
            std::to_string(session_) + ":" + std::to_string(grain) +
            " for one) keep their environment. --new starts afresh");
    told_environment_ = true;
    return true;
}

void MapWork::submit(std::int32_t number) {
    const std::string &input = plan_.inputs[static_cast<std::size_t>(number - 1)];
    std::vector<std::string> words = words_of(plan_.command, input);
    {
        std::lock_guard guard(mutex_);
        auto known = programs_.find(words[0]);
        if (known == programs_.end()) {
            const auto path = find_program(words[0], options_.search_path, plan_.directory);
            if (!path) give_up(failure_of("dcs map", path.status()));
            if (programs_.size() >= 1000) programs_.clear();
            known = programs_.emplace(words[0], *path).first;
        }
        words[0] = known->second;
    }
    const WordArray argv(words), environment(options_.environment);
    const std::string label = label_of({input}, 60);
    d_grain grain;
    d_grain_init(&grain);
    grain.gargv = argv.data();
    grain.genvv = environment.data();
    options_.demands.put_into(grain);
    grain.directory = plan_.directory.c_str();
    FileWords files = options_.files;  // its pointers are of this call
    files.put_into(grain);
    grain.label = label.c_str();
    while (true) {
        const int error = d_gexec_grain(session_, number, &grain);
        if (error == NO_ERROR) return;
        if (error == D_E_GRAIN_DIFFERS && present_though_different(number, d_errortext())) return;
        if (error == D_E_NO_SPACE) {
            {
                std::lock_guard guard(mutex_);
                if (!told_no_space_)
                    console_.note("the scheduler's disk is full; waiting until there is room");
                told_no_space_ = true;
            }
            pause_ms(1000);
            continue;
        }
        Failure failure = call_failure("grain " + std::to_string(session_) + ":" +
                                           std::to_string(number) + " was not submitted",
                                       error);
        if (error == D_E_GRAIN_DIFFERS || error == D_E_REPLAY_END)
            failure.hint = "--new starts a fresh session";
        if (error == D_E_BROKEN || error == D_E_UNREACHABLE)
            failure.hint =
                "`dcs up` starts the pool again; then run the same command again, it goes on where "
                "it was";
        give_up(failure);
    }
}

void MapWork::submit_some() {
    for (std::int64_t number = next_++; number <= total_; number = next_++) {
        submit(static_cast<std::int32_t>(number));
        std::lock_guard guard(mutex_);
        ++submitted_;
        submitted_more_.notify_all();
    }
}

void MapWork::take(std::int32_t grain, int signal, int code, Outputs outputs,
                   std::uint64_t out_length, std::uint64_t err_length) {
    if (grain < 1 || grain > total_) return;  // of somebody else who used the session
    Taken &taken = results_[static_cast<std::size_t>(grain - 1)];
    if (taken.there) return;
    taken.there = true;
    taken.failed = signal != 0 || code != 0;
    taken.out_length = out_length;
    taken.err_length = err_length;
    ++done_;
    failed_ += taken.failed;
    const bool whole = outputs.out.size() == out_length && outputs.err.size() == err_length;
    const std::size_t bytes = outputs.out.size() + outputs.err.size();
    if (!whole || (grain != printed_ + 1 && kept_bytes_ + bytes > kept_bytes_most))
        return;  // fetched again later
    kept_bytes_ += bytes;
    kept_.emplace(grain, std::move(outputs));
}

void MapWork::print_stream(std::int32_t grain, const char *stream) {
    FILE *file = nullptr;
    const int error = d_grain_stream(nullptr, session_, grain, stream, &file);
    if (error != NO_ERROR)
        give_up(call_failure(
            "the output of grain " + std::to_string(session_) + ":" + std::to_string(grain),
            error));
    const bool to_out = stream[0] == 'o';
    char buffer[65536];
    std::size_t n = 0;
    while ((n = std::fread(buffer, 1, sizeof buffer, file)) > 0)
        if (!(to_out ? console_.out({buffer, n}) : console_.err({buffer, n}))) output_failed();
    const bool good = std::ferror(file) == 0;
    std::fclose(file);
    if (!good)
        give_up(failure_of(
            "", fail_errno(Code::io_error, "the output of a grain cannot be read", errno)));
}

void MapWork::print(std::int32_t grain) {
    const auto kept = kept_.find(grain);
    if (kept != kept_.end()) {
        if (!console_.out(kept->second.out) || !console_.err(kept->second.err)) output_failed();
        kept_bytes_ -= kept->second.out.size() + kept->second.err.size();
        kept_.erase(kept);
        return;
    }
    const Taken &taken = results_[static_cast<std::size_t>(grain - 1)];
    if (taken.out_length > 0) print_stream(grain, "out");
    if (taken.err_length > 0) print_stream(grain, "err");
}

void MapWork::print_ready() {
    bool printed = false;
    while (printed_ < total_ && results_[static_cast<std::size_t>(printed_)].there) {
        print(printed_ + 1);
        ++printed_;
        printed = true;
    }
    if (printed && !console_.flush()) output_failed();
}

// False when nothing is submitted any more and all that was had been at the time of `seen`.
bool MapWork::wait_for_submissions(std::int64_t seen) {
    std::unique_lock lock(mutex_);
    if (seen == total_) return false;
    submitted_more_.wait(lock, [&] { return submitted_ != seen; });
    return true;
}

void MapWork::finish_without_results() {
    for (std::int32_t grain = 1; grain <= total_; ++grain) {
        Taken &taken = results_[static_cast<std::size_t>(grain - 1)];
        if (taken.there) continue;
        taken.there = taken.failed = true;
        ++done_;
        ++failed_;
        console_.note("grain " + std::to_string(session_) + ":" + std::to_string(grain) +
                      " was killed");
    }
}

std::int64_t MapWork::run() {
    std::vector<std::thread> threads;
    const auto wanted = std::min<std::int64_t>(submitting_threads, total_);
    for (std::int64_t i = 0; i < wanted; ++i) threads.emplace_back([this] { submit_some(); });
    while (done_.load() < total_) {
        std::int64_t seen = 0;
        {
            std::lock_guard guard(mutex_);
            seen = submitted_;
        }
        int grain = 0, completed = 0, sent = 0, signal = 0, code = 0;
        std::size_t out_length = 0, err_length = 0;
        char *out = nullptr, *err = nullptr;
        const int error = d_gwait(D_BLOCK, session_, &grain, &completed, &sent, &signal, &code,
                                  nullptr, &out_length, &out, &err_length, &err);
        if (error == NO_ERROR) {
            Outputs outputs;
            if (out != nullptr && out_length <= limits::gwait_text_bytes)
                outputs.out.assign(out, out_length);
            if (err != nullptr && err_length <= limits::gwait_text_bytes)
                outputs.err.assign(err, err_length);
            take(grain, signal, code, std::move(outputs), out_length, err_length);
            print_ready();
        } else if (error == D_E_NOTHING_LEFT || error == D_E_REPLAY_END) {
            if (!wait_for_submissions(seen)) {
                finish_without_results();
                print_ready();
            }
        } else if (error == D_E_NO_SPACE) {
            pause_ms(1000);
        } else {
            Failure failure =
                call_failure("the results of session " + std::to_string(session_), error);
            if (error == D_E_SESSION_TAKEN || error == D_E_NO_AUTH)
                failure.hint = "another run of the same command has taken the session over";
            give_up(failure);
        }
    }
    for (std::thread &thread : threads) thread.join();
    return failed_.load();
}

}  // namespace dcs::commands
