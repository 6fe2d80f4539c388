#include "progress.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "commands/dcs/query/scheduler.h"

namespace dcs::commands {

void MapLook::run(double interval_s) {
    while (true) {
        std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
        Info info;
        if (!info.ask(wire::QueryType::sessions, own_user(), session_)) continue;  // next time, perhaps
        for (const wire::SessionRow &row : info.sessions) {
            if (row.session != session_ || own_user() != row.user) continue;
            running_ = row.running;
            saved_ms_ = std::llround(row.saved_cpu_s * 1000);
        }
    }
}

void MapLook::add_to(Progress &progress) const {
    progress.running = running_;
    progress.saved_cpu_s = static_cast<double>(saved_ms_) / 1000;
}

}  // namespace dcs::commands
