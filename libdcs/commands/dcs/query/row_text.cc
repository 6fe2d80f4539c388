#include "row_text.h"

#include <cstdint>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "base/resources.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/grains.h"

namespace dcs::commands {
namespace {

std::string shown(const std::string &value) { return printable(value); }

// Names and values in two columns.
class Facts {
public:
    void add(const std::string &name, const std::string &value) {
        text_ += name + std::string(13 - name.size(), ' ') + value + "\n";
    }
    void add_if(bool there, const std::string &name, const std::string &value) {
        if (there) add(name, value);
    }
    void add_lines(const std::string &lines) { text_ += lines; }
    const std::string &text() const { return text_; }

private:
    std::string text_;
};

std::string names_of(const std::vector<std::string> &names, const std::string &when_none) {
    return names.empty() ? when_none : printable(joined(names));
}

std::string megabytes(std::int64_t mb) { return bytes_text(static_cast<std::uint64_t>(mb) << 20); }

std::string amount_text(wire::Unit unit, std::int64_t value) {
    switch (unit) {
    case wire::Unit::megabytes: return megabytes(value);
    case wire::Unit::half_megabytes: return bytes_text(static_cast<std::uint64_t>(value) << 19);
    case wire::Unit::seconds: return seconds_text(static_cast<double>(value));
    case wire::Unit::minutes: return counted(value, "minute");
    case wire::Unit::number:
    case wire::Unit::mask:
    case wire::Unit::resources:
    case wire::Unit::flag: break;
    }
    return std::to_string(value);
}

std::string demands_text(const wire::Demands &demands) {
    std::vector<std::string> parts;
    wire::each_demand(demands, [&parts]<class T>(const wire::DemandRow &row, const T &value) {
        if (wire::is_unsaid(row, value) || row.shown[0] == '\0') return;
        std::string text = row.shown;
        if constexpr (std::is_same_v<T, std::string>) text = value;
        else if (row.unit == wire::Unit::number) text = counted(value, text);
        else if (const auto at = text.find('%'); at != text.npos) text.replace(at, 1, amount_text(row.unit, value));
        parts.push_back(std::move(text));
    });
    return joined(parts);
}

std::string usage_text(const wire::GrainRow &row) {
    return seconds_text(row.user_s) + " in user mode, " + seconds_text(row.system_s) + " in the kernel; at most " +
           bytes_text(static_cast<std::uint64_t>(row.max_rss_kb) << 10) + " resident; " +
           counted(row.major_faults, "major page fault");
}

std::string offset_text(std::int32_t minutes) {
    char text[48];
    const int ahead = minutes < 0 ? -minutes : minutes;
    std::snprintf(text, sizeof text, "%d:%02d hours %s", ahead / 60, ahead % 60, minutes < 0 ? "behind" : "ahead");
    return text;
}

std::string move_text(const wire::MoveRow &move) {
    std::string line = shown(move.reason);
    if (!shown(move.host).empty()) line += " on " + shown(move.host);
    line += ", incarnation " + std::to_string(move.incarnation);
    if (move.age_s >= 0) line += ", " + seconds_text(move.age_s) + " ago";
    return line + (shown(move.detail).empty() ? "" : ": " + shown(move.detail));
}

std::string reason_line(const wire::Explanation &why, const wire::WhyRow &reason, int hosts) {
    const bool more = reason.hosts > 0 && static_cast<std::size_t>(reason.hosts) > reason.names.size();
    std::string names = names_of(reason.names, "");
    if (more && !names.empty()) names += ", ...";
    if (!names.empty()) names = " (" + names + ")";
    if (reason.hosts == 0) return shown(reason.text) + names;
    if (shown(why.state) != "ready") return names_of(reason.names, "host") + ": " + shown(reason.text);
    return std::to_string(reason.hosts) + " of " + counted(hosts, "host") + names + ": " + shown(reason.text);
}

// Alone, without a heading that says what the number is.
std::string with_unit(std::uint64_t bytes) { return bytes < 1024 ? counted(bytes, "byte") : bytes_text(bytes); }

}  // namespace

std::string end_text(const wire::GrainRow &row) {
    if (shown(row.state) != "finished") return "-";
    if (row.signal != 0) return "signal " + std::to_string(row.signal);
    return std::to_string(row.exit_code);
}

std::string checkpoint_age_text(const wire::GrainRow &row) {
    if (row.checkpoint_age_s >= 0) return seconds_text(row.checkpoint_age_s) + " ago";
    if (row.checkpoint_length == 0) return "none";
    const bool over = shown(row.state) == "finished" || shown(row.state) == "killed";
    return over ? "from before its end" : "from before the scheduler's start";  // which keeps no ages
}

std::string grain_facts(const std::string &name, const wire::GrainRow &row, const std::string &times) {
    const std::string state = shown(row.state), host = shown(row.host), demands = demands_text(row.demands);
    Facts facts;
    facts.add("grain", name);
    facts.add_if(!shown(row.label).empty(), "label", shown(row.label));
    facts.add("command", label_of({shell_line(row.argv)}, 2000));
    facts.add("state", (is_failed(row) ? "failed" : state) + (host.empty() ? "" : " on " + host));
    facts.add_if(row.uid >= 0 && !host.empty(), "account", "uid " + std::to_string(row.uid) + " on " + host);
    facts.add_if(!row.note.empty(), "note", shown(row.note));
    if (state == "finished")
        facts.add("end", (row.signal != 0 ? "" : "exit code ") + end_text(row) + ", result " +
                             std::to_string(row.result_index) + " of the session");
    facts.add_lines(times);
    facts.add("starts", std::to_string(row.starts) + "; " + std::to_string(row.failures) + " of " +
                            counted(row.demands.attempts, "attempt") + " failed; moved or restarted " +
                            counted(row.restarts, "time"));
    facts.add("class", class_text(row.demands.host_class, shown(row.class_names)));
    facts.add_if(!demands.empty(), "asks for", demands);
    facts.add_if(!row.nogo.empty(), "avoids", names_of(row.nogo, ""));
    for (std::size_t i = 0; i < row.moves.size(); ++i) facts.add(i == 0 ? "moves" : "", move_text(row.moves[i]));
    facts.add("cpu", seconds_text(row.cpu_s) +
                         (row.saved_cpu_s > 0 ? "; checkpoints saved another " + seconds_text(row.saved_cpu_s) : ""));
    facts.add_if(row.max_rss_kb > 0, "usage", usage_text(row));
    if (row.checkpoint_length > 0)
        facts.add("checkpoint", with_unit(row.checkpoint_length) + ", " + checkpoint_age_text(row));
    facts.add_if(row.last_contact_s >= 0, "last contact", seconds_text(row.last_contact_s) + " ago");
    facts.add("output", with_unit(row.out_length) + ", " + with_unit(row.err_length) + " of errors");
    for (std::size_t i = 0; i < row.files.size(); ++i) {
        const wire::GrainFile &file = row.files[i];
        const std::string not_there = state == "finished" ? ", not made" : ", not yet";
        const std::string there = ", " + with_unit(file.size) + ", sha256:" + hex_of(file.digest);
        facts.add(i == 0 ? "files" : "", shown(file.name) + (file.digest.empty() ? not_there : there));
    }
    facts.add_if(!row.directory.empty(), "directory", shown(row.directory));
    facts.add_if(!row.env.empty(), "environment", counted(row.env.size(), "variable") + "; --env lists them");
    facts.add_if(!shown(row.message).empty(), "message", shown(row.message));
    return facts.text();
}

std::string state_text(const wire::HostRow &row) {
    const bool shut = shown(row.note).rfind("shut: ", 0) == 0;  // for its owner's sake: the scheduler's first word then
    const bool away = shown(row.state) == "active" && !row.connected;
    return shown(row.state) + (row.drained ? ", drained" : "") +
           (row.drain_reason.empty() ? "" : " (" + shortened(shown(row.drain_reason), 40) + ")") +
           (shut ? ", shut" : "") + (away ? ", not connected" : "");
}

std::string or_dash(const std::string &text) { return text.empty() ? "-" : shown(text); }

std::string address_text(const wire::HostRow &row) {
    return row.connected && row.address.empty() ? "a socket of the scheduler's host" : or_dash(row.address);
}

std::string resources_text(const wire::HostRow &row) {
    const Result<Offers> offers = offers_of(shown(row.resources));
    const Result<Amounts> used = amounts_of(shown(row.resources_used));
    std::string text;
    if (!offers || !used) return text;
    for (const auto &[name, offer] : *offers) {
        if (name == container_resource) continue;  // no limit that people choose: `dcs host show` has it
        const auto in_use = used->find(name);
        text += (text.empty() ? "" : ", ") + name + " " + std::to_string(in_use == used->end() ? 0 : in_use->second) +
                "/" + std::to_string(offer.amount);
    }
    return text;
}

bool has_figures(const wire::HostRow &row) { return row.last_call_in_s >= 0 && row.free_memory_kb >= 0; }

std::string load_of(const wire::HostRow &row) { return has_figures(row) ? formatted("%.2f", row.load) : "-"; }

std::string free_memory_of(const wire::HostRow &row) {
    return has_figures(row) ? bytes_text(static_cast<std::uint64_t>(row.free_memory_kb) << 10) : "-";
}

std::string host_facts(const wire::HostRow &row) {
    const bool known = row.last_call_in_s >= 0;
    Facts facts;
    facts.add("host", shown(row.name));
    const bool said = row.connected || shown(row.state) == "active";
    facts.add("state", state_text(row) + (row.connected ? ", connected" : said ? "" : ", not connected"));
    facts.add_if(!row.drain_reason.empty(), "drained", shown(row.drain_reason));
    facts.add_if(!shown(row.note).empty(), "note", shown(row.note));
    facts.add("class", class_text(row.host_class, shown(row.class_names)));
    facts.add("binary", shown(row.binary_class));
    facts.add("version", or_dash(row.version));
    facts.add("address", address_text(row));
    facts.add_if(row.time_zone_offset != 0, "local time", offset_text(row.time_zone_offset) + " of the scheduler's");
    facts.add("slots", std::to_string(row.slots) + ", " + std::to_string(row.running) + " running" +
                           (row.ending > 0 ? ", " + std::to_string(row.ending) +
                                                 " killed and still ending, with slot, memory and cores"
                                           : ""));
    facts.add_if(!shown(row.confinement).empty(), "confinement", shown(row.confinement));
    facts.add("users", names_of(row.users, "all users"));
    facts.add("set", shown(row.settings).empty() ? "nothing: values of the host table" : shown(row.settings));
    facts.add("last call-in", known ? seconds_text(row.last_call_in_s) + " ago" : "never");
    facts.add("calls in", "every " + seconds_text(row.interval_s));
    facts.add("delinquent", "after " + seconds_text(row.alert_s));
    facts.add("dead", "after " + seconds_text(row.limit_s) + ", or " + seconds_text(row.extended_s) +
                          " while a probe is answered");
    facts.add_if(row.expires_s > 0, "certificate", "ends " + time_text(static_cast<double>(row.expires_s)));
    facts.add("load", load_of(row));
    facts.add("memory", free_memory_of(row) + " free; grains demand " + megabytes(row.memory_used_mb) +
                            (row.memory_mb > 0 ? " of " + megabytes(row.memory_mb) : ""));
    facts.add("cores", "grains demand " + std::to_string(row.cores_used) +
                           (row.cores > 0 ? " of " + std::to_string(row.cores) : ""));
    facts.add_if(!row.resources.empty(), "resources",
                 shown(row.resources) + (row.resources_used.empty() ? "" : "; in use: " + shown(row.resources_used)));
    facts.add_if(!shown(row.limits).empty(), "limits", "of each grain: " + shown(row.limits));
    facts.add("grains", std::to_string(row.launched) + " started, " + std::to_string(row.finished) + " finished, " +
                            std::to_string(row.failed) + " failed, " + std::to_string(row.given_back) + " returned");
    facts.add("blamed", std::to_string(row.blamed) + " failed here and finished elsewhere, " +
                            std::to_string(row.blamed_lately) + " since one finished here");
    facts.add("cpu", seconds_text(row.cpu_s));
    return facts.text();
}

std::string explanation_text(const std::string &name, const wire::Explanation &why) {
    std::string out = name + " " + shown(why.state) + ": " + shown(why.summary) + "\n";
    int hosts = 0;  // of a grain that waits, each host has one reason
    for (std::size_t i = 0; i < why.reasons.size(); ++i) hosts += why.reasons[i].hosts;
    for (std::size_t i = 0; i < why.reasons.size(); ++i) {
        out += "  " + reason_line(why, why.reasons[i], hosts) + "\n";
        if (!shown(why.reasons[i].hint).empty()) out += "      " + shown(why.reasons[i].hint) + "\n";
    }
    return out;
}

std::vector<std::string> failed_starts(const wire::GrainRow &row) {
    std::vector<std::string> lines;
    std::set<std::string> hosts;
    for (std::size_t i = row.moves.size(); i-- > 0;) {
        const wire::MoveRow &move = row.moves[i];
        const std::string reason = shown(move.reason);
        const bool start = reason == "no_program" || reason == "cannot_start";
        if (!start || shown(move.detail).empty() || !hosts.insert(shown(move.host)).second) continue;
        lines.insert(lines.begin(), shown(move.host) + ": " + shown(move.detail));
    }
    return lines;
}

}  // namespace dcs::commands
