#include "progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/query/why_waiting.h"

namespace dcs::commands {
namespace {

constexpr int looks_away = 4;  // one that is started again at once is not worth a word

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

void MapLook::add_to(Progress &progress) const {
    progress.running = running_;
    progress.stuck = stuck_;
    progress.saved_cpu_s = static_cast<double>(saved_ms_) / 1000;
}

std::string MapLook::why_none_ends() const {
    std::lock_guard guard(mutex_);
    return why_;
}

bool MapLook::unanswered() const {
    const Instant asked = asked_;
    return asked != Instant::never() && asked + seconds(answer_s) < boot_clock();
}

AwayNote::AwayNote(const std::string &pool_directory, const MapLook &look, Console &console)
    : directory_(pool_directory),
      can_look_(daemon_runs_in(pool_directory + "/scheduler")),
      look_(look),
      console_(console) {}

void AwayNote::look() {
    const bool away = look_.unanswered() || (can_look_ && !daemon_runs_in(directory_ + "/scheduler"));
    if (away && ++missing_ == looks_away) console_.note(away_text(directory_) + "; nothing is lost");
    if (!away && missing_ >= looks_away) console_.note("the scheduler is back");
    if (!away) missing_ = 0;
}

}  // namespace dcs::commands
