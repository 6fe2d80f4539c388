#include "progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/query/why_waiting.h"

namespace dcs::commands {
namespace {

constexpr double look_at_bar_s = 2, look_s = 10;  // at most between questions, with a bar and without
constexpr int looks_away = 4;                     // one that is started again at once is not worth a word

// Says when the scheduler is away or silent, and when it is back.
class AwayNote {
public:
    AwayNote(const std::string &pool_directory, const MapLook &look, Console &console)
        : directory_(pool_directory),
          can_look_(daemon_runs_in(directory_ + "/scheduler")),
          look_(look),
          console_(console) {}

    void look() {  // now and then
        const bool away = look_.unanswered() || (can_look_ && !daemon_runs_in(directory_ + "/scheduler"));
        if (away && ++missing_ == looks_away) console_.note(away_text(directory_) + "; nothing is lost");
        if (!away && missing_ >= looks_away) console_.note("the scheduler is back");
        if (!away) missing_ = 0;
    }

private:
    const std::string directory_;
    const bool can_look_;  // it is of this host
    const MapLook &look_;
    Console &console_;
    int missing_ = 0;
};

}  // namespace

void MapLook::run(double interval_s) {
    std::int64_t ended = -1;
    for (double pause_s = 1;; pause_s = std::min(2 * pause_s, interval_s)) {
        std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
        Info info;
        if (asked_.load() == Instant::never()) asked_ = boot_clock();
        if (!info.ask(wire::QueryType::sessions, own_user(), session_)) continue;  // next time, perhaps
        asked_ = Instant::never();
        for (const wire::SessionRow &row : info.sessions) {
            if (row.session != session_ || own_user() != row.user) continue;
            running_ = row.running;
            stuck_ = row.stuck;
            saved_ms_ = std::llround(row.saved_cpu_s * 1000);
            const bool waits = shown_ != nullptr && row.running == 0 && row.ready > 0;
            const std::string why = ended != row.finished ? ""
                                    : waits               ? ask_why_it_waits("", session_, *shown_ + 1)
                                                          : ask_about_disk();
            ended = row.finished;
            std::lock_guard guard(mutex_);
            why_ = why;
        }
    }
}

Progress MapLook::added_to(Progress progress) const {
    progress.running = running_;
    progress.stuck = stuck_;
    progress.saved_cpu_s = static_cast<double>(saved_ms_) / 1000;
    return progress;
}

std::string MapLook::why_none_ends() const {
    std::lock_guard guard(mutex_);
    return why_;
}

bool MapLook::unanswered() const {
    const Instant asked = asked_;
    return asked != Instant::never() && asked + seconds(answer_s) < boot_clock();
}

void watch_until_end(const std::string &pool_directory, MapLook &look, Console &console, sigset_t signals,
                     std::function<Progress()> progress, std::function<std::string()> last_words) {
    std::thread([&] { look.run(console.shown() == Shown::bar ? look_at_bar_s : look_s); }).detach();
    std::thread([&look, &console, pool_directory, progress = std::move(progress)] {
        AwayNote away(pool_directory, look, console);
        WaitRhythm rhythm(boot_clock(), seconds(0));  // two looks have seen it
        for (;; pause_ms(250)) {
            console.show(progress());
            if (const std::string why = look.why_none_ends(); rhythm.due(why, boot_clock())) console.note(why);
            away.look();
        }
    }).detach();
    std::thread([&console, signals, last_words = std::move(last_words)] {
        obey_ending_signals(signals, console, last_words);
    }).detach();
}

}  // namespace dcs::commands
