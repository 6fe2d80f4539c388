// The end of grains: noticing it, ending what a grain left running, writing `exit`.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <set>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "grainserver/files/process_identity.h"
#include "grainserver/launcher/launcher.h"
#include "grainserver/launcher/process_tree.h"

namespace dcs::launcher {
namespace {
constexpr Duration grace = seconds(2);     // between TERM and KILL when the launcher is stopped
constexpr Duration exec_patience = seconds(2);  // for a stray that shows no environment yet
constexpr Duration patience = seconds(5);  // for processes that do not even die of KILL

std::int64_t microseconds(const timeval &t) { return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_usec; }

void add_usage(files::ExitRecord &exit, const rusage &used) {
    exit.user_us += microseconds(used.ru_utime);
    exit.system_us += microseconds(used.ru_stime);
    if (used.ru_maxrss > exit.max_rss_kb) exit.max_rss_kb = used.ru_maxrss;
    exit.minor_faults += used.ru_minflt;
    exit.major_faults += used.ru_majflt;
    exit.in_blocks += used.ru_inblock;
    exit.out_blocks += used.ru_oublock;
}

// wait(2)'s status word from what waitid tells.
std::int32_t status_word(const siginfo_t &info) {
    if (info.si_code == CLD_EXITED) return (info.si_status & 0xff) << 8;
    return (info.si_status & 0x7f) | (info.si_code == CLD_DUMPED ? 0x80 : 0);
}
}  // namespace

// Leaves the zombie: as long as it is there nobody else can get its pid, session or group number.
bool Launcher::note_end(Running &grain) {
    siginfo_t info{};
    rusage used{};
    const long n = ::syscall(SYS_waitid, P_PID, grain.pid, &info, WEXITED | WNOHANG | WNOWAIT, &used);
    if (n != 0 || info.si_pid != grain.pid) return false;
    grain.first_process_ended = true;
    grain.unclear_until = boot_clock() + exec_patience;
    grain.exit.known = true;
    grain.exit.status = status_word(info);
    add_usage(grain.exit, used);
    if (grain.stopped_by_us) {
        grain.exit.innocent = true;
        grain.exit.reason = "the launcher of this host was stopped";
    }
    return true;
}

// Descendants of grains whose own parents are gone. Those that ended are waited for; their CPU time
// counts for the grain whose session they were in.
void Launcher::reap_strays() {
    std::set<pid_t> firsts;
    for (const auto &[dir, grain] : grains_) firsts.insert(grain.pid);
    for (const pid_t pid : own_children()) {
        files::ProcessStat stat;
        if (firsts.count(pid) != 0 || !files::read_stat(pid, stat) || stat.state != 'Z') continue;
        rusage used{};
        if (::wait4(pid, nullptr, WNOHANG, &used) != pid) continue;
        for (auto &[dir, grain] : grains_)
            if (grain.pid == stat.session) add_usage(grain.exit, used);
    }
}

// Kills what is left of a grain whose first process ended. True when nothing is left.
bool Launcher::clear_tree(const std::string &dir, Running &grain) {
    std::set<pid_t> firsts;
    for (const auto &[other, running] : grains_) firsts.insert(running.pid);
    const std::string mark = cookie(path_ + "/" + dir);
    bool clear = true;
    for (const pid_t pid : own_children()) {
        files::ProcessStat stat;
        if (firsts.count(pid) != 0 || !files::read_stat(pid, stat) || stat.state == 'Z') continue;
        // A process that left the session and cleared its environment belongs to nobody that can be
        // told; it goes when the last grain goes.
        Carries ours = Carries::yes;
        if (stat.session != grain.pid && grains_.size() > 1) ours = carries(pid, mark);
        if (ours == Carries::yes) kill_exactly(stat);
        if (ours == Carries::yes || (ours == Carries::unclear && boot_clock() < grain.unclear_until)) clear = false;
    }
    return clear;
}

bool Launcher::finish(const std::string &dir, Running &grain) {
    const Result<files::Fd> fd = files::open_directory(grains_fd_.get(), dir);
    if (fd) {
        failpoint("launcher.exit_record.before_write");
        const Status s = files::write_file(fd->get(), files::exit_name, files::pack(grain.exit));
        failpoint("launcher.exit_record.after_write");
        if (!s) {  // disk full: the zombie keeps the status until there is room
            std::printf("%s: %s\n", dir.c_str(), s.text.c_str());
            std::fflush(stdout);
            return false;
        }
    }
    while (::waitpid(grain.pid, nullptr, 0) < 0 && errno == EINTR) {}
    return true;
}

void Launcher::look_at_children() {
    bool ended = false;
    for (auto &[dir, grain] : grains_) ended = grain.first_process_ended || note_end(grain) || ended;
    reap_strays();
    if (!ended) return;
    for (auto it = grains_.begin(); it != grains_.end();) {
        Running &grain = it->second;
        if (!grain.first_process_ended || !clear_tree(it->first, grain) || !finish(it->first, grain)) {
            ++it;
            continue;
        }
        const std::string dir = it->first;
        it = grains_.erase(it);  // and with it the slot
        failpoint("launcher.exit.before_send");
        for (const int peer : peers_) send_to(peer, {files::Verb::exited, dir});
    }
}

void Launcher::stop_all(Instant now) {
    stopping_ = true;
    kill_at_ = now + grace;
    for (auto &[dir, grain] : grains_) {
        if (grain.first_process_ended) continue;
        grain.stopped_by_us = true;
        ::kill(-grain.pid, SIGTERM);
        ::kill(-grain.pid, SIGCONT);
    }
}

void Launcher::push_stop(Instant now) {
    if (grains_.empty()) ended_ = true;
    if (now < kill_at_) return;
    if (leave_at_ == Instant::never()) leave_at_ = now + patience;
    for (auto &[dir, grain] : grains_)
        if (!grain.first_process_ended) ::kill(-grain.pid, SIGKILL);
    if (now >= leave_at_) ended_ = true;  // processes in uninterruptible sleep; they still hold their slots
}

}  // namespace dcs::launcher
