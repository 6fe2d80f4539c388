#include "grainserver/starter/prepared.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <semaphore>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/planted.h"
#include "base/require.h"
#include "process/table.h"

namespace dcs::starter {
namespace {

std::int64_t nanoseconds(const timespec &t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }

constexpr int looks_a_second = 4;

}  // namespace

Result<const files::OwnerRules *> Prepared::rules(int base) {
    struct stat st {};
    if (::fstatat(base, files::rules_name, &st, AT_SYMLINK_NOFOLLOW) != 0) return file_error(files::rules_name, errno);
    const Seen now{st.st_dev, st.st_ino, st.st_size, nanoseconds(st.st_mtim), nanoseconds(st.st_ctim)};
    if (now == seen_ || (seen_.size >= 0 && planted("launcher.old_rules"))) return &rules_;
    const Result<std::string> bytes = files::read_record(base, files::rules_name);
    if (!bytes) return bytes.status();
    Result<files::OwnerRules> read = files::unpack_rules(*bytes);
    if (!read) return read.status();
    rules_ = std::move(*read);
    seen_ = now;  // from before the read: a file that was replaced meanwhile is read again
    return &rules_;
}

Result<const files::Confinement *> Prepared::confinement(const files::ConfinementWish &wish) {
    const bool shared = (wish.rungs & (rung_files | rung_namespaces)) == 0;
    if (const auto it = confinements_.find(wish.rungs); shared && it != confinements_.end()) return &it->second;
    Result<files::Confinement> made = files::make_confinement(wish);
    if (!made) return made.status();
    files::Confinement &place = shared ? confinements_[wish.rungs] : last_;
    place = std::move(*made);
    return &place;
}

// The caller waits: nothing happens in two threads at a time.
class Filter::Unfiltered {
public:
    Unfiltered() : thread_([this] { serve(); }) {}
    ~Unfiltered() {
        work_ = nullptr;
        asked_.release();
        thread_.join();
    }
    void run(const std::function<void()> &work) {
        DCS_REQUIRE(work, "there is work to do");
        work_ = &work;
        asked_.release();
        done_.acquire();
    }

private:
    void serve() {
        for (;; done_.release()) {
            asked_.acquire();
            if (work_ == nullptr) return;
            (*work_)();
        }
    }

    const std::function<void()> *work_ = nullptr;
    std::binary_semaphore asked_{0}, done_{0};
    std::thread thread_;  // the last: it uses the others
};

Filter::Filter() = default;
Filter::~Filter() = default;

bool Filter::is_inherited(const Plan &plan) {
    const files::Confinement &confinement = *plan.confinement;
    // Filters deny the calls that make namespaces; a container has its filter inside; a trial ends before the exec.
    if (confinement.filter.empty() || plan.contained || plan.only_prove) return false;
    if ((confinement.rungs & rung_namespaces) != 0) return false;
    const Rungs kind = confinement.rungs & (rung_filter | rung_no_network | rung_scope);
    if (unfiltered_ != nullptr) return kind == kind_ || planted("starter.filter_of_others");
    if (std::exchange(tried_, true)) return false;
    try {
        auto unfiltered = std::make_unique<Unfiltered>();
        const std::vector<sock_filter> inherited = files::inherited_filter(confinement.rungs);
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || files::put_filter_on(inherited) != 0) return false;
        unfiltered_ = std::move(unfiltered);
        kind_ = kind;
    } catch (const std::system_error &) {  // too many threads
        return false;
    }
    return true;
}

void Filter::without(const std::function<void()> &work) {
    if (unfiltered_ != nullptr) unfiltered_->run(work);
    else work();
}

void Filter::with_network(const std::function<void()> &work) {
    if ((kind_ & rung_no_network) != 0) without(work);
    else work();
}

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
    told_->clock_agrees = false;
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
