#include "panels.h"

#include <algorithm>
#include <map>

#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/copy_state.h"
#include "html.h"
#include "wire/form.h"

namespace dcs::commands::page {
namespace {

constexpr std::size_t sessions_shown = 30, moves_shown = 12, problems_shown = 10, events_shown = 60,
                      command_columns = 60;

std::string fact(const char *name, const std::string &value, const char *kind = "") {
    return std::string("<div") + (*kind ? std::string(" class=\"") + kind + "\"" : "") + "><dt>" + name + "</dt><dd>" +
           value + "</dd></div>\n";
}

std::string backup_fact(const Snapshot &s) {
    for (const wire::ProblemRow &p : s.problems)
        if (p.entity.compare(0, 7, "backup ") == 0)
            return fact("Backup", words(p.entity.substr(7) + " " + p.problem), "bad");
    for (const wire::BackupRow &far : s.system.backups)
        if (!far.name.empty()) return fact("Backup", words(backup_text(far)));
    if (!s.has_backup) return fact("Backup", "none on this host");
    if (!s.backup) return fact("Backup", "does not answer", "bad");
    const bool apart = !s.backup->scheduler;
    std::string text = apart ? "not connected to the scheduler" : "connected";
    if (s.backup->reports > 0) text += ", holds " + count(static_cast<std::int64_t>(s.backup->reports)) + " reports";
    return fact("Backup", text, apart ? "bad" : s.backup->reports > 0 ? "warn" : "");
}

std::string copy_fact(const Snapshot &s) {
    if (!s.copy || s.copy->mode == "off") return "";
    return fact("Copy of the store", words(copy_state_text(*s.copy)), s.copy->state == "current" ? "" : "warn");
}

std::string remaining(const wire::SessionRow &s, const Journal &journal) {
    const std::int64_t left = std::int64_t{s.ready} + s.running;
    if (s.state != "active" || left == 0) return "";
    if (s.running == 0) return "none runs";
    const auto rate = journal.rate_of({s.user, s.session});
    return rate ? "about " + seconds_text(static_cast<double>(left) / *rate) : "not known yet";
}

// As its runs in the time line.
std::string session_key(std::int32_t session) {
    return "<span class=\"key c" + std::to_string(static_cast<unsigned>(session) % 6) + "\"></span> ";
}

std::string session_row(const Session &s, const Journal &journal) {
    const std::int64_t good = s.finished - s.failed;
    const std::string says = count(s.ready) + " ready, " + count(s.running) + " running, " + count(s.finished) +
                             " finished, of these " + count(s.failed) + " failed, " + count(s.killed) + " killed";
    const std::string state = s.terminated() ? "closed" : words(s.shown_state());
    std::string what = s.command.empty() ? s.ident : s.command;
    if (!s.label.empty()) what = "[" + s.label + "] " + what;
    if (what.size() > command_columns * 4) what.resize(command_columns * 4);
    return row(
        {session_key(s.session) + session_link(s.user, s.session),
         state + (s.nice > 0 ? ", nice " + std::to_string(s.nice) : ""),
         bar({{good, "done"}, {s.failed, "failed"}, {s.running, "runs"}, {s.ready, "waits"}, {s.killed, "gone"}}, says),
         count(s.finished) + " of " + count(s.grains()), count(s.running), count(s.state == "active" ? s.ready : 0),
         count(s.failed), remaining(s, journal), s.saved_cpu_s > 0 ? seconds_text(s.saved_cpu_s) : "",
         "<span class=\"what\">" + words(what) + "</span>"});
}

// The pool map: the hosts of each class, with their slots where there are few, else a square for each.
constexpr std::size_t cards_shown = 48, troubled_shown = 12, squares_in_row = 64;
constexpr std::int32_t boxes_shown = 24;  // of one host

// Busy slots are filled, free ones empty; of more than a line of them only the share.
std::string slots_picture(const wire::HostRow &row) {
    const std::string says = std::to_string(busy_slots(row)) + " of " + std::to_string(row.slots) + " slots busy";
    if (row.slots > boxes_shown || row.slots <= 0)
        return bar({{busy_slots(row), "runs"}, {std::max(0, row.slots - busy_slots(row)), "waits"}}, says);
    std::string r = "<svg class=\"slots\" width=\"" + std::to_string(row.slots * 13) +
                    "\" height=\"12\" role=\"img\" aria-label=\"" + says + "\">";
    for (int i = 0; i < row.slots; ++i)
        r += "<rect x=\"" + number(i * 13 + 0.5) + "\" y=\"0.5\" width=\"10\" height=\"10\" class=\"" +
             (i < busy_slots(row) ? "busy" : "free") + "\"/>";
    return r + "</svg>";
}

std::string call_in_text(const wire::HostRow &row) {
    return row.last_call_in_s < 0 ? "has not called in" : "called in " + seconds_text(row.last_call_in_s) + " ago";
}

std::string busy_text(const wire::HostRow &row) {
    const std::string text = std::to_string(busy_slots(row)) + "/" + std::to_string(row.slots) + " busy";
    return row.running > row.slots ? text + " and " + std::to_string(row.running - row.slots) + " more" : text;
}

std::string card(const wire::HostRow &row) {
    const std::string word = host_word(row);
    std::string r = "<li class=\"host " + word + "\">" + host_link(row.name) + " <b>" + word + "</b> " +
                    slots_picture(row) + "<span>" + busy_text(row) + ", " + call_in_text(row) + "</span>";
    if (!row.note.empty()) r += "<span class=\"note\">" + words(row.note) + "</span>";
    return r + "</li>\n";
}

// A thousand hosts as a few paths.
std::string squares(const std::vector<const wire::HostRow *> &rows) {
    std::map<std::string, std::string> paths;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::string kind = host_word(*rows[i]);
        if (kind == "active")
            kind = rows[i]->running == 0 ? "idle" : rows[i]->running < rows[i]->slots ? "part" : "full";
        paths[kind] += "M" + std::to_string(i % squares_in_row * 12) + " " + std::to_string(i / squares_in_row * 12) +
                       "h10v10h-10z";
    }
    const std::size_t lines = (rows.size() + squares_in_row - 1) / squares_in_row;
    std::string r = "<svg class=\"squares\" viewBox=\"-1 -1 770 " + std::to_string(lines * 12 + 1) +
                    "\" role=\"img\" aria-label=\"a square for each host, in the order of their names\">";
    for (const auto &[kind, d] : paths) {
        r += "<path class=\"" + kind + "\" d=\"" + d + "\"/>";
        const char *pattern = kind == "part" ? "runs" : kind == "late" ? "late" : kind == "dead" ? "failed" : nullptr;
        if (pattern) r += std::string("<path fill=\"url(#") + pattern + "-pattern)\" d=\"" + d + "\"/>";
    }
    r += "</svg>\n<p class=\"legend\"><span class=\"key full\"></span> all slots busy ";
    r += "<span class=\"key part\"></span> some <span class=\"key idle\"></span> none ";
    r += "<span class=\"key drained\"></span> drained <span class=\"key late\"></span> late ";
    r += "<span class=\"key no_job\"></span> no job ";
    return r + "<span class=\"key dead\"></span> dead or unknown</p>\n";
}

std::string class_part(const std::string &name, const std::vector<const wire::HostRow *> &rows) {
    std::int64_t slots = 0, busy = 0, active = 0, troubled = 0, expected = 0;
    for (const wire::HostRow *row : rows) {
        const bool up = row->state == "active";
        active += up;
        expected += row->state != "no_job";
        if (up) slots += row->slots, busy += busy_slots(*row);
        troubled += is_troubled(*row);
    }
    std::string r = "<h3>" + words(name) + "</h3>\n<p>" + count(active) + " of " + words(counted(expected, "host")) +
                    " active, " + count(busy) + " of " + words(counted(slots, "slot")) + " busy</p>\n";
    const bool few = rows.size() <= cards_shown;
    if (!few) r += squares(rows);
    if (!few && troubled > 0) r += "<p>" + words(counted(troubled, "host")) + " to look at:</p>\n";
    r += "<ul class=\"hosts\">\n";
    std::size_t shown = 0;
    for (const wire::HostRow *row : rows)
        if (few || (is_troubled(*row) && shown++ < troubled_shown)) r += card(*row);
    r += "</ul>\n";
    if (!few && static_cast<std::size_t>(troubled) > troubled_shown)
        r += "<p><a href=\"/hosts?state=trouble\">All hosts to look at</a></p>\n";
    return r;
}

}  // namespace

std::string head_panel(const Snapshot &s) {
    std::string r = "<dl class=\"facts\">\n";
    if (!s.reachable) {
        const std::string since = s.at_ms == 0 ? "" : "; what is shown is of " + clock_time(s.at_ms);
        r += fact("Scheduler", "does not answer: " + words(s.why) + since, "bad wide");
    } else {
        r += fact("Scheduler", "up " + whole_seconds_text(s.system.up_s) + ", since " +
                                   clock_time(static_cast<std::int64_t>(s.up_since_s * 1000)));
    }
    const Totals t = totals_of(s.hosts);
    r += backup_fact(s) + copy_fact(s);
    r += fact("Hosts", count(s.system.hosts_active) + " of " + count(s.system.hosts) + " active",
              s.system.hosts_active < s.system.hosts ? "warn" : "");
    r += fact("Slots", count(t.busy) + " of " + count(t.slots) + " busy");
    r += fact("Sessions", words(open_sessions_text(s.sessions)));
    const double oldest_s = s.system.oldest_ready_s;
    r += fact("Grains", count(s.system.running) + " running, " + count(s.system.ready) + " ready" +
                            (s.system.ready > 0 && oldest_s > 0 ? ", the longest for " + seconds_text(oldest_s) : ""));
    r += fact("CPU time", seconds_text(t.cpu_s) + " since the pool was made");
    if (s.reachable)
        r += fact("Version", words(s.system.version) + ", protocol forms " + count(wire::our_forms.oldest) + " to " +
                                 count(wire::our_forms.newest));
    return r + "</dl>\n";
}

std::string problems_panel(const Snapshot &s) {
    if (s.problems.empty()) return "<p>None that the scheduler knows of.</p>\n";
    std::string rows;
    std::size_t shown = 0;
    for (const wire::ProblemRow &p : s.problems) {
        if (++shown > problems_shown) break;
        rows += row({words(p.entity + (p.file.empty() ? "" : ", " + p.file)), words(p.problem), words(p.affects),
                     words(p.advice)},
                    "wraps");
    }
    std::string r = table("table of problems", {"What", "Problem", "Affects", "What to do"}, rows, " stacks");
    if (shown > problems_shown)
        r += "<p class=\"note\">The first " + count(problems_shown) + " of " +
             count(static_cast<std::int64_t>(s.problems.size())) + ": <code>dcs doctor</code> lists all.</p>\n";
    return r;
}

std::string sessions_table(const std::vector<const Session *> &rows, const Journal &journal) {
    std::string r;
    for (const Session *s : rows) r += session_row(*s, journal);
    return table("table of sessions",
                 {"Session", "State", "Grains", "Finished", "Running", "Ready", "Failed", "Time left", "CPU saved",
                  "Command or name"},
                 r);
}

std::string sessions_panel(const Snapshot &s, const Journal &journal) {
    std::vector<const Session *> rows;
    std::size_t active = 0;
    for (const Session &session : s.sessions) {
        active += session.is_active();
        if (rows.size() < sessions_shown && session.is_active()) rows.push_back(&session);
    }
    // The last ones that ended, where there is room: a night's work is over in the morning.
    for (const Session &session : s.sessions)
        if (rows.size() < std::min(active + 5, sessions_shown) && !session.is_active()) rows.push_back(&session);
    if (rows.empty())
        return "<p>No session. <code>seq 100 | dcs map -- factor {}</code> makes one of a hundred grains.</p>\n";
    std::string r = sessions_table(rows, journal);
    const std::string left =
        rows.size() < s.sessions.size() ? "The first " + count(static_cast<std::int64_t>(rows.size())) + " of " : "";
    return r + "<p>" + left + "<a href=\"/sessions\">" + words(counted(s.sessions.size(), "session")) +
           "</a>. Active ones come first, in the order in which they get hosts.</p>\n";
}

std::string moves_panel(const Journal &journal) {
    const std::deque<Move> &moves = journal.moves();
    if (moves.empty()) return "<p>No grain has left a host before its end lately.</p>\n";
    std::map<std::string, std::int64_t> reasons;
    for (const Move &move : moves) ++reasons[move.reason];
    std::string r = "<p>Of the last " + words(counted(moves.size(), "departure")) + ":";
    for (const auto &[reason, n] : reasons) r += " <b>" + words(reason) + "</b> " + count(n);
    std::string rows;
    for (const Move *move : latest_of(moves, moves_shown))
        rows += row({clock_time(move->at_ms), grain_link(move->session.first, move->session.second, move->grain),
                     host_link(move->host), words(move->reason), words(move->detail)});
    return r + ".</p>\n" + table("table of departures", {"Time", "Grain", "Left", "Reason", "Detail"}, rows);
}

std::string events_panel(const Journal &journal) {
    const std::deque<Happening> &all = journal.happenings();
    std::string r;
    if (journal.of_others())
        r += "<p class=\"note\">Without sessions of other users, whose logs are for their owners.</p>\n";
    if (all.empty()) return r + "<p>Nothing has happened lately.</p>\n";
    r += "<ol class=\"events\" tabindex=\"0\" aria-label=\"events\">\n";
    for (const Happening *it : latest_of(all, events_shown)) {
        const std::string name = it->grain >= 0 ? grain_link(it->session.first, it->session.second, it->grain)
                                                : session_link(it->session.first, it->session.second);
        const std::string of_grain = "grain " + std::to_string(it->grain) + " ";  // which the link says
        const bool twice = it->grain >= 0 && it->text.compare(0, of_grain.size(), of_grain) == 0;
        const std::string text = twice ? it->text.substr(of_grain.size()) : it->text;
        r += "<li><time>" + clock_time(it->at_ms) + "</time> " + name + " " + words(text) + "</li>\n";
    }
    return r + "</ol>\n";
}

std::string host_word(const wire::HostRow &row) {
    if (row.state == "delinquent") return "late";
    if (row.state == "active" && row.drained) return "drained";
    return row.state == "active" || row.state == "dead" || row.state == "no_job" ? row.state : "unknown";
}

bool is_troubled(const wire::HostRow &row) {
    const std::string word = host_word(row);
    return (word != "active" && word != "no_job") || !row.note.empty();
}

std::string hosts_panel(const Snapshot &s) {
    if (s.hosts.empty()) return "<p>The host table has no hosts.</p>\n";
    std::map<std::pair<std::uint32_t, std::string>, std::vector<const wire::HostRow *>> classes;
    for (const wire::HostRow &row : s.hosts) classes[{row.host_class, row.class_names}].push_back(&row);
    std::string r;
    for (const auto &[key, rows] : classes) r += class_part("Class " + class_text(key.first, key.second), rows);
    return r + "<p><a href=\"/hosts\">All hosts as a table</a></p>\n";
}

}  // namespace dcs::commands::page
