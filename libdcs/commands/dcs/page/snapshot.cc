#include "snapshot.h"

#include <algorithm>
#include <cmath>
#include <sys/statvfs.h>
#include <tuple>
#include <unistd.h>

#include "base/clock.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/query/copy_state.h"

namespace dcs::commands::page {
namespace {

constexpr int backup_patience_s = 2;
constexpr double longest_interval_s = 60;
constexpr double share_of_time = 0.05;  // that a look may take of the time until the next one

bool goes_before(const Session &a, const Session &b) {
    if (a.is_active() != b.is_active()) return a.is_active();
    if (!a.is_active()) return std::max(a.settled_s, a.submitted_s) > std::max(b.settled_s, b.submitted_s);
    return std::tie(a.nice, a.submitted_s, a.user, a.session) < std::tie(b.nice, b.submitted_s, b.user, b.session);
}

void ask_backup(const std::string &directory, Snapshot &s) {
    const std::string backup = directory + "/backup/backup.sock", scheduler = directory + "/scheduler/server.sock";
    s.backup.reset();
    s.copy.reset();
    // One that was killed leaves its socket: it is down, and not absent.
    s.has_backup = !directory.empty() && ::access(backup.c_str(), W_OK) == 0;
    if (!s.has_backup) return;
    if (auto told = ask<wire::BackupStatus>(backup, wire::AskBackup{}, backup_patience_s)) s.backup = *told;
    if (::access(scheduler.c_str(), W_OK) != 0) return;
    if (auto told = ask<wire::MirrorStatus>(scheduler, wire::AskMirror{}, backup_patience_s)) s.copy = *told;
}

void measure_store(const std::string &directory, Snapshot &s) {
    struct statvfs disk = {};
    s.store_size = 0;
    if (directory.empty() || ::statvfs((directory + "/scheduler").c_str(), &disk) != 0) return;
    s.store_free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    s.store_size = std::uint64_t{disk.f_blocks} * disk.f_frsize;
}

}  // namespace

bool scheduler_is_down(const std::string &directory) {
    const std::string scheduler = directory + "/scheduler";
    return !directory.empty() && ::access((scheduler + "/lock").c_str(), R_OK) == 0 && !daemon_runs_in(scheduler);
}

Snapshot take_snapshot(const std::string &directory, Snapshot s) {
    const Instant begun = boot_clock();
    Info system, hosts, sessions;
    s.down = scheduler_is_down(directory);
    Status asked =
        s.down ? fail(Code::unreachable, "no scheduler in " + directory) : system.ask(wire::QueryType::system);
    if (asked) asked = hosts.ask(wire::QueryType::hosts);
    if (asked) asked = sessions.ask(wire::QueryType::sessions);
    wire::DoctorReply doctor;
    if (asked) {
        auto told = ask_any<wire::DoctorReply>(wire::Doctor{});
        if (told) doctor = std::move(*told);
        else asked = told.status();
    }
    const Instant asked_pool = boot_clock();
    measure_store(directory, s);
    ask_backup(directory, s);
    s.backup_s = (boot_clock() - asked_pool).seconds();
    s.took_s = (boot_clock() - begun).seconds();
    s.reachable = bool(asked);
    s.why = asked ? "" : asked.text;
    if (!asked) return s;
    s.at_ms = wall_clock_ms();
    const double since = static_cast<double>(s.at_ms) / 1e3 - static_cast<double>(system.system.up_s);
    // The scheduler counts whole seconds: the same start appears as two.
    if (s.system.epoch != system.system.epoch || std::abs(since - s.up_since_s) > 2) s.up_since_s = std::floor(since);
    s.problems = std::move(doctor.problems);
    s.system = std::move(system.system);
    s.hosts = std::move(hosts.hosts);
    s.members = std::move(hosts.members);
    s.sessions.clear();
    for (wire::SessionRow &row : sessions.sessions) s.sessions.push_back({std::move(row)});
    std::sort(s.sessions.begin(), s.sessions.end(), goes_before);
    return s;
}

double pause_after_look_s(double took_s, double interval_s) {
    return std::min(longest_interval_s, std::max(interval_s, took_s / share_of_time));
}

std::int32_t busy_slots(const wire::HostRow &row) { return std::min(row.running + row.ending, row.slots); }

Totals totals_of(const std::vector<wire::HostRow> &hosts) {
    Totals t;
    for (const wire::HostRow &row : hosts) {
        if (row.state == "active") t.slots += row.slots, t.busy += busy_slots(row);
        t.finished += row.finished;
        t.failed += row.failed;
        t.given_back += row.given_back;
        t.launched += row.launched;
        t.cpu_s += row.cpu_s;
    }
    return t;
}

}  // namespace dcs::commands::page
