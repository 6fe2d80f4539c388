// The end of grains: detects it, ends the processes that a grain left, writes `exit`.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "process/table.h"
#include "grainserver/files/say.h"
#include "grainserver/launcher/launcher.h"
#include "grainserver/starter/grain_processes.h"

namespace dcs::launcher {
namespace {
constexpr Duration grace = seconds(2);          // between TERM and KILL when the launcher is stopped
constexpr Duration exec_patience = seconds(2);  // for a stray whose environment is not visible yet
constexpr Duration patience = seconds(5);       // for processes that KILL does not end

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

// The status word of wait(2) from the result of waitid.
std::int32_t status_word(const siginfo_t &info) {
    if (info.si_code == CLD_EXITED) return (info.si_status & 0xff) << 8;
    return (info.si_status & 0x7f) | (info.si_code == CLD_DUMPED ? 0x80 : 0);
}
}  // namespace

// Leaves the zombie: while it exists, its pid, session and group number are not reused.
bool Launcher::note_end(const std::string &dir, Running &grain) {
    DCS_REQUIRE(grain.pid > 1 && !grain.first_process_ended, "an end is recorded once");
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
    note_limit(dir, grain);
    return true;
}

// Orphaned descendants of grains. Collects those that ended; their CPU time
// counts for the grain whose session they were in. False: there was none, ended or not.
bool Launcher::reap_strays() {
    const std::set<pid_t> known = not_strays();
    bool any = false;
    for (const pid_t pid : own_children()) {
        ProcessStat stat;
        any = any || known.count(pid) == 0;
        if (known.count(pid) != 0 || !read_stat(pid, stat) || stat.state != 'Z') continue;
        rusage used{};
        if (::wait4(pid, nullptr, WNOHANG, &used) != pid) continue;
        for (auto &[dir, grain] : grains_)
            if (grain.pid == stat.session) add_usage(grain.exit, used);
    }
    return any;
}

void Launcher::seal(Leaf &leaf) {
    if (!leaf.there) return;
    leaf.sealed = true;
    starter_.seal_leaf(leaf.name);
}

FoundProcesses Launcher::end(const std::function<FoundProcesses()> &look) {
    return strike(look, [&](const ProcessStat &process, int number) { starter_.signal(process, number); });
}

void Launcher::kill_tree(const std::string &dir, Running &grain) {
    DCS_REQUIRE(grain.pid > 1, "the pid of a grain is greater than 1");
    seal(grain.leaf);
    if (!grain.first_process_ended) starter_.signal_group(grain.pid, SIGKILL);
    end([&] { return tree_of(dir, grain); });
}

// Kills the remaining processes of a grain whose first process has ended. True if there are none: the usual case, which
// must not require a scan of all processes of the host. The kernel removes no leaf with a process in it.
bool Launcher::clear_tree(const std::string &dir, Running &grain, bool strays) {
    DCS_REQUIRE(grain.first_process_ended, "the tree is cleared when its first process has ended");
    const bool in_leaf =
        grain.leaf.there && !leaves_.give_back(grain.leaf) && !members_of(grain.leaf.name, cgroups_).empty();
    if (!in_leaf && (enclosed(grain) || !strays)) return grain.alone = true;
    if (grain.in_group) seal(grain.leaf);
    else chase(dir, grain);
    const FoundProcesses left = end([&] { return tree_of(dir, grain); });
    if (!left.processes.empty() || (left.unclear && boot_clock() < grain.unclear_until)) return false;
    return grain.in_group || strays_of(dir, grain).empty();
}

bool Launcher::finish(const std::string &dir, Running &grain) {
    DCS_REQUIRE(grain.first_process_ended && grain.exit.known, "the exit record of the first process is complete");
    failpoint("launcher.exit_record.before_write");
    const Status s = planted("launcher.forgets_exit")
                         ? Status::ok()
                         : files::write_record(grains_fd_.get(), dir + "/" + files::exit_name, files::pack(grain.exit));
    failpoint("launcher.exit_record.after_write");
    if (!s && s.code != Code::not_found) {  // disk full: the zombie keeps the status until there is space
        files::say(dir + ": " + s.text);
        return false;
    }
    while (::waitpid(grain.pid, nullptr, 0) < 0 && errno == EINTR) {}
    const std::string leaf = grain.leaf.name;
    if (!leaves_.remove(grain.leaf)) stale_leaves_.insert(leaf);
    return true;
}

void Launcher::look_at_children() {
    bool ended = false;
    for (auto &[dir, grain] : grains_) ended = grain.first_process_ended || note_end(dir, grain) || ended;
    // After the first processes have ended: what they left is the launcher's now.
    const bool strays = reap_strays() && has_strays();
    if (!ended) return;
    for (auto it = grains_.begin(); it != grains_.end();) {
        Running &grain = it->second;
        if (!grain.first_process_ended || !clear_tree(it->first, grain, strays) || !finish(it->first, grain)) {
            ++it;
            continue;
        }
        const std::string dir = it->first;
        note_leftovers(grain.account);
        const bool alone = grain.alone || planted("launcher.always_alone");
        HeldSlot held{std::move(grain.slot), dir};
        it = grains_.erase(it);
        hand_on(std::move(held));
        failpoint("launcher.exit.before_send");
        for (const int peer : peers_)
            send_to(peer, {alone && answers_.count(peer) != 0 ? files::Verb::left : files::Verb::exited, dir});
    }
}

Instant Leftovers::next() const {
    Instant first = Instant::never();
    for (const auto &[uid, not_before] : ended_) first = std::min(first, not_before);
    return first;
}

void Leftovers::clear(const std::set<uid_t> &running, Instant now) {
    const auto due = [&](const auto &entry) { return entry.second <= now; };
    const auto found = std::find_if(ended_.begin(), ended_.end(), due);
    if (found == ended_.end()) return;
    if (running.count(found->first) != 0) {  // its next grain ends some time, and is noted then
        ended_.erase(found);
        return;
    }
    const auto left = remove_(found->first);
    if (left == starter::Leftovers::Left::nothing) ended_.erase(found);
    else found->second = now + (left == starter::Leftovers::Left::in_use ? rest : between_parts);
}

void Launcher::note_leftovers(const files::Account &of) {
    if (of.made_up && of.change && !planted("launcher.leave_it")) leftovers_.note(of.uid, boot_clock());
}

void Launcher::clear_leftovers(Instant now) {
    std::set<uid_t> running;
    for (const auto &[dir, grain] : grains_)
        if (grain.account.change) running.insert(grain.account.uid);
    leftovers_.clear(running, now);
}

void Launcher::stop_all(Instant now) {
    stopping_ = true;
    refuse_queue();
    kill_at_ = now + grace;
    for (auto &[dir, grain] : grains_) {
        if (grain.first_process_ended) continue;
        grain.stopped_by_us = true;
        DCS_REQUIRE(grain.pid > 1, "the pid of a grain is greater than 1");
        starter_.signal_group(grain.pid, SIGTERM);
        starter_.signal_group(grain.pid, SIGCONT);
    }
}

void Launcher::push_stop(Instant now) {
    if (grains_.empty()) ended_ = true;
    if (now < kill_at_) return;
    if (leave_at_ == Instant::never()) leave_at_ = now + patience;
    for (auto &[dir, grain] : grains_)
        if (!grain.first_process_ended) kill_tree(dir, grain);
    if (now >= leave_at_) ended_ = true;  // processes in uninterruptible sleep remain, and hold their slots
}

}  // namespace dcs::launcher
