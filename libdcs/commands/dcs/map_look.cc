#include "map_look.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "ask.h"

namespace dcs::commands {

void MapLook::run(double interval_s) {
    while (true) {
        std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
        Info info;
        if (info.ask(D_Q_SESSIONS, own_user(), session_) != NO_ERROR) continue;  // next time, perhaps
        for (std::size_t i = 0; i < info->session_count; ++i) {
            const d_session_row &row = info->sessions[i];
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
