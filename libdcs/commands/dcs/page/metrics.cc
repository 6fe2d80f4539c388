#include "metrics.h"

#include <map>
#include <unistd.h>

#include "base/text.h"
#include "commands/dcs/frame/table.h"
#include "panels.h"
#include "process/table.h"

namespace dcs::commands::page {
namespace {

using Labels = std::vector<std::pair<const char *, std::string>>;

std::string value_text(double value) { return formatted("%.15g", value); }

std::string label_text(const Labels &labels) {
    std::string r;
    for (const auto &[name, value] : labels) {
        r += (r.empty() ? "{" : ",") + std::string(name) + "=\"";
        for (const char c : value) {
            if (c == '\\' || c == '"') r += '\\';
            r += c == '\n' ? ' ' : c;
        }
        r += '"';
    }
    return r.empty() ? r : r + "}";
}

class Writer {
public:
    void gauge(const char *name, const char *help) { head(name, "gauge", "", help); }
    void gauge(const char *name, const char *help, double value) { gauge(name, help), add({}, value); }
    void counter(const char *name, const char *help) { head(name, "counter", "_total", help); }
    void counter(const char *name, const char *help, double value) { counter(name, help), add({}, value); }
    void add(const Labels &labels, double value, const char *suffix = nullptr) {
        const std::string line =
            name_ + (suffix ? suffix : suffix_) + label_text(labels) + " " + value_text(value) + "\n";
        out_.text += line;
        out_.open += line;
    }
    void histogram(const char *name, const char *help) { head(name, "histogram", "", help); }
    // `counts`: by bound, and last of what is above all of them.
    template <class Bounds, class Counts>
    void buckets(const Labels &labels, const Bounds &bounds_s, const Counts &counts, double sum_s) {
        std::uint64_t below = 0;
        Labels with = labels;
        with.emplace_back("le", "");
        for (std::size_t i = 0; i < counts.size(); ++i) {
            below += counts[i];
            std::string &bound = with.back().second;
            bound = i < bounds_s.size() ? value_text(bounds_s[i]) : "+Inf";
            // OpenMetrics wants bounds as floating-point numbers.
            if (bound.find_first_of(".I") == std::string::npos) bound += ".0";
            add(with, static_cast<double>(below), "_bucket");
        }
        add(labels, sum_s, "_sum");
        add(labels, static_cast<double>(below), "_count");
    }
    Metrics done() {
        out_.open += "# EOF\n";
        return std::move(out_);
    }

private:
    // The old format names the samples, the new one the family.
    void head(const std::string &name, const std::string &type, const char *suffix, const std::string &help) {
        name_ = name;
        suffix_ = suffix;
        out_.text += "# HELP " + name + suffix + " " + help + "\n# TYPE " + name + suffix + " " + type + "\n";
        out_.open += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
    }
    Metrics out_;
    std::string name_, suffix_;
};

std::string class_label(const wire::HostRow &row) { return class_text(row.host_class, row.class_names); }

void put_hosts(Writer &w, const Snapshot &s) {
    std::map<std::pair<std::string, std::string>, std::int64_t> hosts, slots;
    for (const wire::HostRow &row : s.hosts) {
        const std::string name = class_label(row), word = host_word(row);
        for (const char *state : {"active", "drained", "late", "dead", "no_job", "unknown"})
            hosts[{name, state}] += state == word;
        slots[{name, "busy"}] += busy_slots(row);
        slots[{name, "free"}] += word == "active" ? std::max(0, row.slots - busy_slots(row)) : 0;
        slots[{name, "closed"}] += word == "active" ? 0 : std::max(0, row.slots - busy_slots(row));
    }
    w.gauge("dcs_hosts", "Hosts of the host table, by class and state.");
    for (const auto &[key, n] : hosts) w.add({{"class", key.first}, {"state", key.second}}, static_cast<double>(n));
    w.gauge("dcs_slots", "Slots by class and state; closed: of a host that takes no grains now.");
    for (const auto &[key, n] : slots) w.add({{"class", key.first}, {"state", key.second}}, static_cast<double>(n));
    w.gauge("dcs_host_last_report_timestamp_seconds", "Time of each host's last report.");
    for (const wire::HostRow &row : s.hosts)
        if (row.last_call_in_s >= 0)
            w.add({{"host", row.name}}, static_cast<double>(s.at_ms) / 1000 - row.last_call_in_s);
    w.gauge("dcs_host_connected", "1 if the host's grain server is connected; not of pilots without a job.");
    for (const wire::HostRow &row : s.hosts)
        if (row.state != "no_job") w.add({{"host", row.name}}, row.connected);
}

// What stays true while the scheduler is away.
void put_kept(Writer &w, const Snapshot &s, const HostCounters &counters) {
    w.gauge("dcs_host_certificate_end_timestamp_seconds", "End of each host's certificate.");
    for (const wire::HostRow &row : s.hosts)
        if (row.expires_s > 0) w.add({{"host", row.name}, {"role", "server"}}, static_cast<double>(row.expires_s));
    for (const wire::MemberRow &row : s.members)  // which may have the name of a grain host
        if (row.expires_s > 0) w.add({{"host", row.name}, {"role", row.role}}, static_cast<double>(row.expires_s));
    w.counter("dcs_grain_starts", "Launches of grains since the page's start, by class of the host.");
    for (const auto &[name, n] : counters.starts()) w.add({{"class", name}}, static_cast<double>(n));
    w.counter("dcs_grain_finishes", "Runs that ended since the page's start, by how they ended.");
    w.add({{"result", "finished"}}, static_cast<double>(counters.finished()));
    w.add({{"result", "failed"}}, static_cast<double>(counters.failed()));
    w.add({{"result", "given_back"}}, static_cast<double>(counters.given_back()));
    w.counter("dcs_cpu_seconds", "CPU time of grains since the page's start.", counters.cpu_s());
}

void put_sessions(Writer &w, const Snapshot &s) {
    std::int64_t active = 0, done = 0, closed = 0, damaged = 0, ready = 0, running = 0, finished = 0, failed = 0,
                 killed = 0;
    double saved_s = 0;
    for (const Session &row : s.sessions) {
        active += row.is_active();
        done += row.is_done();
        closed += row.terminated();
        damaged += row.damaged();
        if (row.state == "active") ready += row.ready;
        running += row.running;
        finished += row.finished - row.failed;
        failed += row.failed;
        killed += row.killed;
        saved_s += row.saved_cpu_s;
    }
    const auto put = [&](const char *state, std::int64_t n) { w.add({{"state", state}}, static_cast<double>(n)); };
    w.gauge("dcs_sessions", "Sessions by state; done: not closed, and nothing is left to do.");
    put("active", active), put("done", done), put("closed", closed), put("damaged", damaged);
    w.gauge("dcs_grains", "Grains of the sessions that there are, by state.");
    put("ready", ready), put("running", running), put("finished", finished), put("failed", failed);
    put("killed", killed);
    w.gauge("dcs_saved_cpu_seconds", "CPU time that checkpoints saved in the sessions that there are.", saved_s);
}

// A backup on another host is known by what the scheduler says of it.
void put_backup(Writer &w, const Snapshot &s) {
    const wire::BackupRow *far = s.system.backups.empty() ? nullptr : &s.system.backups[0];
    const bool elsewhere = far != nullptr && !far->name.empty();
    if (s.has_backup) {
        w.gauge("dcs_backup_reachable", "1 if the passive backup of this host answers.", s.backup.has_value());
    }
    if (elsewhere || s.backup) {
        w.gauge("dcs_backup_connected", "1 if the backup is connected to the scheduler.",
                elsewhere ? s.reachable && far->state == "connected" : s.backup->scheduler && !s.down);
    }
    if (s.backup) {
        w.gauge("dcs_backup_held_reports", "Reports that the backup holds for the scheduler.",
                static_cast<double>(s.backup->reports));
    }
    const bool asked = s.copy && s.copy->mode != "off";
    if (!asked && (!s.reachable || far == nullptr || far->mode.empty())) return;
    w.gauge("dcs_store_copy_lag_seconds", "Age of the oldest turn that is not in the backup's copy of the store.",
            asked ? s.copy->lag_s : far->lag_s);
}

// Numbers of a release of the scheduler that does not measure this are left out.
void put_delays(Writer &w, const wire::SystemRow &system) {
    if (system.oldest_ready_s >= 0) {
        w.gauge("dcs_ready_queue_oldest_seconds", "For how long the grain has waited that waits longest.",
                system.oldest_ready_s);
    }
    std::vector<double> bounds_s;
    for (const std::uint64_t us : system.bounds_us) bounds_s.push_back(static_cast<double>(us) / 1e6);
    const auto put = [&](const wire::DelayRow &row, const Labels &labels) {
        if (row.counts.size() == bounds_s.size() + 1)
            w.buckets(labels, bounds_s, row.counts, static_cast<double>(row.sum_us) / 1e6);
    };
    if (system.delays.empty()) return;
    w.histogram("dcs_request_duration_seconds",
                "From the arrival of a call to its answer, by kind of call, since the scheduler's start.");
    for (const wire::DelayRow &row : system.delays)
        if (row.what != "commit") put(row, {{"call", row.what}});
    w.histogram("dcs_store_commit_duration_seconds", "Commits of the backing store, since the scheduler's start.");
    for (const wire::DelayRow &row : system.delays)
        if (row.what == "commit") put(row, {});
}

// The first word of what has the problem; as many as there are kinds.
void put_problems(Writer &w, const Snapshot &s) {
    std::map<std::string, std::int64_t> kinds = {{"other", 0}};
    for (const char *kind :
         {"backing", "backup", "certificate", "grain", "host", "library", "login", "session", "settings"})
        kinds[kind] = 0;
    for (const wire::ProblemRow &p : s.problems) {
        const auto it = kinds.find(p.entity.substr(0, p.entity.find(' ')));
        ++(it != kinds.end() ? it->second : kinds["other"]);
    }
    w.gauge("dcs_problems",
            "Problems that dcs doctor lists, by what has them; backing: the backing store; settings: a reload failed.");
    for (const auto &[kind, n] : kinds) w.add({{"kind", kind}}, static_cast<double>(n));
}

void put_store(Writer &w, const Snapshot &s) {
    if (s.store_size == 0) return;
    w.gauge("dcs_store_free_bytes", "Free on the disk with the backing store.", static_cast<double>(s.store_free));
    w.gauge("dcs_store_disk_bytes", "Size of the disk with the backing store.", static_cast<double>(s.store_size));
}

void put_journal(Writer &w, const Journal &journal) {
    w.counter(
        "dcs_grain_migrations",
        "Departures of grains from hosts before their end, by reason, in the sessions whose logs this page reads, "
        "since its start.");
    for (const auto &[reason, n] : journal.departures()) w.add({{"reason", reason}}, static_cast<double>(n));
    w.counter("dcs_checkpoints", "Checkpoints recorded in these sessions since the page's start.",
              static_cast<double>(journal.checkpoints()));
    w.histogram("dcs_grain_wait_seconds", "From submission to the first start, in these sessions.");
    w.buckets({}, Spread::bounds_s, journal.waits().counts, journal.waits().sum_s);
    w.histogram("dcs_grain_runtime_seconds",
                "From launch to end of the last run of grains that finished, in these sessions.");
    w.buckets({}, Spread::bounds_s, journal.runtimes().counts, journal.runtimes().sum_s);
}

void put_page(Writer &w, const Snapshot &s, const PageFigures &page) {
    w.gauge("dcs_page_last_answer_timestamp_seconds", "When the scheduler last answered this page.",
            static_cast<double>(s.at_ms) / 1000);
    w.gauge("dcs_page_look_seconds", "Time that the last look at the pool took.", s.took_s);
    w.counter("dcs_page_looks", "Looks at the pool since the start of the page's process.",
              static_cast<double>(page.looks));
    w.gauge("dcs_page_watchers", "Browsers that follow the page.", static_cast<double>(page.watchers));
    if (page.certificate_end_s > 0) {
        w.gauge("dcs_page_certificate_end_timestamp_seconds", "End of the page's own certificate.",
                page.certificate_end_s);
    }
    w.gauge("process_start_time_seconds", "Start of the page's process.", page.started_s);
    ProcessStat stat;
    if (!read_stat(::getpid(), stat)) return;
    w.counter("process_cpu_seconds", "CPU time of the page's process.",
              static_cast<double>(stat.user_ticks + stat.system_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
    w.gauge("process_resident_memory_bytes", "Resident memory of the page's process.",
            static_cast<double>(stat.resident_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace

Metrics metrics_of(const Snapshot &s, const HostCounters &counters, const Journal &journal, const PageFigures &page) {
    Writer w;
    w.gauge("dcs_up", "1 if the scheduler answered the last question.", s.reachable);
    if (s.reachable) {
        w.gauge("dcs_build_info", "The scheduler's version.");
        w.add({{"version", s.system.version}}, 1);
        w.gauge("dcs_up_since_timestamp_seconds", "Start of the scheduler.", s.up_since_s);
        put_hosts(w, s);
        put_sessions(w, s);
        put_problems(w, s);
        put_delays(w, s.system);
    }
    if (s.at_ms != 0) put_kept(w, s, counters);
    put_store(w, s);
    put_backup(w, s);
    put_journal(w, journal);
    put_page(w, s, page);
    return w.done();
}

}  // namespace dcs::commands::page
