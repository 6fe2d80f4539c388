#include "progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/query/why_waiting.h"

namespace dcs::commands {

void MapLook::run(double interval_s) {
    std::int64_t ended = -1;
    for (double pause_s = 1;; pause_s = std::min(2 * pause_s, interval_s)) {
        std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
        Info info;
        if (!info.ask(wire::QueryType::sessions, own_user(), session_)) continue;  // next time, perhaps
        for (const wire::SessionRow &row : info.sessions) {
            if (row.session != session_ || own_user() != row.user) continue;
            running_ = row.running;
            stuck_ = row.stuck;
            saved_ms_ = std::llround(row.saved_cpu_s * 1000);
            const std::string disk = ended == row.finished ? ask_about_disk() : "";
            ended = row.finished;
            std::lock_guard guard(mutex_);
            disk_ = disk;
        }
    }
}

void MapLook::add_to(Progress &progress) const {
    progress.running = running_;
    progress.stuck = stuck_;
    progress.saved_cpu_s = static_cast<double>(saved_ms_) / 1000;
}

std::string MapLook::disk() const {
    std::lock_guard guard(mutex_);
    return disk_;
}

}  // namespace dcs::commands
