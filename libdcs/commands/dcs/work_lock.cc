#include "work_lock.h"

#include <ctime>
#include <unistd.h>

#include "base/clock.h"

namespace dcs::commands {

Result<locks::KernelLock> take_work_lock(const Pool &pool, const char *verb) {
    constexpr int patience_s = 120;  // longer than the other one can take
    const std::string note = std::to_string(::getpid()) + " dcs " + verb + "\n";
    const Instant deadline = boot_clock() + seconds(patience_s);
    while (true) {
        auto lock = locks::KernelLock::take(pool.path("up.lock"), note);
        if (lock || lock.status().code != Code::refused || boot_clock() > deadline) return lock;
        timespec pause = {0, 20'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace dcs::commands
