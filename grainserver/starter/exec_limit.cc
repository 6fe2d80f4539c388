#include "grainserver/starter/exec_limit.h"

#include <chrono>
#include <csignal>
#include <new>
#include <system_error>

#include <sys/mman.h>

#include "base/planted.h"
#include "base/require.h"
#include "process/table.h"

namespace dcs::starter {
namespace {
constexpr int looks_a_second = 4;
}  // namespace

// Memory that parent and child share even where the child has a copy of all else.
ExecLimit::ExecLimit() {
    void *page = ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) told_ = new (page) Told;
}

ExecLimit::~ExecLimit() {
    if (thread_.joinable()) {
        {
            const std::lock_guard hold(mutex_);
            leave_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }
    if (told_ != nullptr) ::munmap(told_, sizeof(Told));
}

Told *ExecLimit::begin() {
    if (told_ == nullptr) return nullptr;
    if (!thread_.joinable()) {
        try {
            thread_ = std::thread([this] { watch(); });
        } catch (const std::system_error &) {  // too many threads: without a limit, and again with the next grain
        }
    }
    const std::lock_guard hold(mutex_);
    DCS_REQUIRE(!starting_, "one grain is started at a time");
    told_->pid = 0;
    told_->failure.reset();
    starting_ = true;
    killed_ = false;
    blocked_ = 0;
    if (idle_) wake_.notify_one();
    return told_;
}

bool ExecLimit::end() {
    const std::lock_guard hold(mutex_);
    starting_ = false;
    return killed_;
}

// Sleeps where no grains are started, and is not woken for each while they are.
void ExecLimit::watch() {
    std::unique_lock hold(mutex_);
    for (int quiet = 0; !leave_;) {
        idle_ = quiet > looks_a_second;
        if (idle_) wake_.wait(hold, [&] { return starting_ || leave_; });
        else wake_.wait_for(hold, std::chrono::milliseconds(1000 / looks_a_second), [&] { return leave_; });
        quiet = look() ? 0 : quiet + 1;
    }
}

bool ExecLimit::look() {
    if (!starting_) return false;
    ProcessStat child;
    const pid_t pid = told_->pid;
    const bool waits = pid > 1 && read_stat(pid, child) && child.state != 'R';
    blocked_ = waits ? blocked_ + 1 : 0;
    if (blocked_ < exec_seconds * looks_a_second || planted("starter.no_exec_limit")) return true;
    ::kill(pid, SIGKILL);  // neither the launcher nor the starter collects it before end()
    killed_ = true;
    return true;
}

}  // namespace dcs::starter
