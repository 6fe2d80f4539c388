#include "screens.h"

#include <algorithm>

#include "commands/dcs/frame/table.h"
#include "commands/dcs/page/html.h"
#include "commands/dcs/page/panels.h"
#include "commands/dcs/query/row_text.h"

namespace dcs::commands::top {

std::string running_grains_text(const std::vector<wire::GrainRow> &grains, std::size_t most) {
    Table table{">GRAIN", "HOST", ">CPU", ">CHECKPOINT", ">RESTARTS", "MESSAGE OR LABEL"};
    for (std::size_t i = 0; i < std::min(grains.size(), most); ++i) {
        const wire::GrainRow &row = grains[i];
        table.add({std::to_string(row.session) + ":" + std::to_string(row.grain), row.host, seconds_text(row.cpu_s),
                   checkpoint_age_text(row), std::to_string(row.restarts),
                   row.message.empty() ? row.label : row.message});
    }
    return table.text();
}

namespace {

constexpr std::size_t hosts_in_words = 48, bar_columns = 20, boxes = 16, least_words = 20;
constexpr std::size_t sessions_shown = 200, closed_shown = 5, grains_shown = 200;

std::string ratio(std::int64_t part, std::int64_t all) { return std::to_string(part) + "/" + std::to_string(all); }

// "##+-": so much of each kind; what is there has a column if there is room.
std::string bar(const std::vector<std::pair<std::int64_t, char>> &parts, std::size_t columns) {
    std::int64_t all = 0, sum = 0;
    for (const auto &[n, sign] : parts) all += std::max<std::int64_t>(0, n);
    std::string r;
    for (const auto &[n, sign] : parts) {
        if (n <= 0) continue;
        sum += n;
        const auto to = static_cast<std::size_t>(static_cast<double>(sum) / static_cast<double>(all) *
                                                 static_cast<double>(columns));
        r.append(std::max<std::size_t>(r.size() < columns, to - std::min(to, r.size())), sign);
    }
    return "[" + r.substr(0, columns) + std::string(columns - std::min(columns, r.size()), ' ') + "]";
}

std::string slots_text(const wire::HostRow &row) {
    const std::int32_t busy = std::max(row.running, page::busy_slots(row)), free = std::max(0, row.slots - busy);
    const auto columns = std::min<std::size_t>(boxes, static_cast<std::size_t>(busy + free));
    return columns == 0 ? "" : bar({{busy, '#'}, {free, '.'}}, columns);
}

char host_sign(const wire::HostRow &row) {
    const std::string word = page::host_word(row);
    if (word == "active") return row.running == 0 ? '.' : row.running < row.slots ? '+' : '#';
    return word == "drained" ? 'd' : word == "late" ? 'l' : word == "dead" ? 'X' : word == "no_job" ? '-' : '?';
}

std::string state_words(const wire::HostRow &row) {
    const std::string word = page::host_word(row);
    return word == "late" ? "delinquent" : word;
}

// A sign for each host: a thousand fit on a screen.
void add_map(Lines &lines, const std::vector<const wire::HostRow *> &rows, std::size_t columns) {
    std::string line;
    std::size_t used = 0;
    for (const wire::HostRow *row : rows) {
        const std::string sign(1, host_sign(*row));
        line += has_colour() ? coloured(state_words(*row), sign) : sign;
        if (++used < columns) continue;
        lines.push_back(std::move(line));
        line.clear();
        used = 0;
    }
    if (used > 0) lines.push_back(std::move(line));
    lines.emplace_back("# all slots busy  + some  . none  d drained  l late  X dead  - no job  ? not heard of");
}

Lines host_lines(const Look &look, std::size_t columns) {
    std::map<std::pair<std::uint32_t, std::string>, std::vector<const wire::HostRow *>> classes;
    for (const wire::HostRow &row : look.pool.hosts) classes[{row.host_class, row.class_names}].push_back(&row);
    Lines lines;
    for (auto &[key, rows] : classes) {
        std::int64_t active = 0, expected = 0, slots = 0, busy = 0;
        for (const wire::HostRow *row : rows) {
            expected += row->state != "no_job";
            if (row->state != "active") continue;
            ++active, slots += row->slots, busy += row->running;
        }
        if (!lines.empty()) lines.emplace_back();
        lines.push_back(painted("1", "Class " + printable(class_text(key.first, key.second))) + ": " +
                        std::to_string(active) + " of " + counted(expected, "host") + " active, " +
                        std::to_string(busy) + " of " + counted(slots, "slot") + " busy");
        if (rows.size() > hosts_in_words) add_map(lines, rows, columns);
        // Those to look at come first.
        std::stable_partition(rows.begin(), rows.end(),
                              [](const wire::HostRow *row) { return page::is_troubled(*row); });
        Table table{"HOST", "*STATE", "SLOTS", ">BUSY", ">LOAD", ">FREE MEMORY", ">LAST CALL-IN", "NOTE"};
        for (const wire::HostRow *row : rows) {
            table.add({row->name, state_words(*row), slots_text(*row), ratio(row->running, row->slots), load_of(*row),
                       free_memory_of(*row), seconds_text(row->last_call_in_s), row->note});
        }
        append(lines, table.text());
    }
    if (lines.empty()) lines.emplace_back("The host table has no hosts.");
    return lines;
}

// Active ones in the order in which they get hosts, then those that ended last.
void add_sessions(Lines &lines, const Look &look, std::size_t columns) {
    Table table{"SESSION", "*STATE",  "GRAINS",     ">FINISHED",  ">RUNNING",
                ">READY",  ">FAILED", ">TIME LEFT", ">CPU SAVED", "COMMAND"};
    const auto &rows = look.pool.sessions;
    std::size_t closed = 0;
    for (std::size_t i = 0; i < std::min(rows.size(), sessions_shown); ++i) {
        const Session &s = rows[i];
        if (!s.is_active() && ++closed > closed_shown) break;
        const std::int64_t ready = s.state == "active" ? s.ready : 0;
        const auto left = look.left_s.find(i);
        table.add(
            {s.name(),
             (s.terminated() ? "closed" : s.shown_state()) + (s.nice > 0 ? ", nice " + std::to_string(s.nice) : ""),
             bar({{s.finished - s.failed, '#'}, {s.failed, '!'}, {s.running, '='}, {ready, '.'}, {s.killed, 'k'}},
                 bar_columns),
             ratio(s.finished, s.grains()), std::to_string(s.running), std::to_string(ready), std::to_string(s.failed),
             left == look.left_s.end() ? "-" : seconds_text(left->second),
             s.saved_cpu_s > 0 ? seconds_text(s.saved_cpu_s) : "-", s.what(std::max(columns, least_words))});
    }
    append(lines, table.text());
    lines.emplace_back("# finished  ! failed  = running  . ready  k killed");
    if (closed > closed_shown) lines.emplace_back("Earlier sessions are not shown: dcs session ls");
}

Lines session_lines(const Look &look, std::size_t columns) {
    Lines lines;
    if (look.pool.sessions.empty())
        return {"No session. This makes one of a hundred grains: seq 100 | dcs map -- factor {}"};
    add_sessions(lines, look, columns);
    if (look.grains.empty()) return lines;
    lines.emplace_back();
    lines.push_back(painted("1", "Your running grains") + ", those with the most CPU time first");
    append(lines, running_grains_text(look.grains, grains_shown));
    return lines;
}

Lines event_lines(const Look &look) {
    Lines lines;
    if (look.of_others) lines.emplace_back("Without sessions of other users, whose logs are for their owners.");
    if (look.happenings.empty()) lines.emplace_back("Nothing has happened lately.");
    for (const page::Happening *it : page::latest_of(look.happenings, look.happenings.size())) {
        const std::string name = page::to_text(it->session);
        lines.push_back(page::clock_time(it->at_ms) + "  " + printable(name + "  " + it->text));
    }
    return lines;
}

std::string backup_words(const page::Snapshot &pool) {
    if (!pool.has_backup) return "";
    if (!pool.backup) return "; " + painted("31", "backup does not answer");
    return pool.backup->scheduler ? "" : "; " + painted("31", "backup not connected");
}

}  // namespace

Lines head_lines(const Look &look, std::size_t chosen) {
    const page::Snapshot &pool = look.pool;
    const page::Totals totals = page::totals_of(pool.hosts);
    std::string first;
    if (!pool.reachable) {
        const std::string since = pool.at_ms == 0 ? "" : "; below as of " + page::clock_time(pool.at_ms);
        first = painted("31", "The scheduler does not answer" + since + ": " + printable(pool.why));
    } else {
        first = std::to_string(pool.system.hosts_active) + " of " + counted(pool.system.hosts, "host") + " active, " +
                std::to_string(totals.busy) + " of " + counted(totals.slots, "slot") + " busy, " +
                counted(pool.system.ready, "grain") + " ready; scheduler up " + whole_seconds_text(pool.system.up_s) +
                backup_words(pool);
    }
    std::string second;
    for (std::size_t i = 0; i < screen_names.size(); ++i) {
        const std::string name = std::to_string(i + 1) + " " + screen_names[i];
        second += i == chosen ? painted("7", "[" + name + "]") : " " + name + " ";
    }
    return {std::move(first), std::move(second)};
}

Lines screen_lines(const Look &look, std::size_t chosen, std::size_t columns) {
    if (look.pool.at_ms == 0) return {};  // no answer so far
    if (chosen == 0) return host_lines(look, columns);
    if (chosen == 1) return session_lines(look, columns);
    if (chosen == flow_screen) return flow_lines(look);
    return chosen == 2 ? time_lines(look, columns) : event_lines(look);
}

}  // namespace dcs::commands::top
