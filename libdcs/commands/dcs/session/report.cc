#include "report.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/clock.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/session_events.h"
#include "commands/dcs/trace/flow.h"

namespace dcs::commands {
namespace {

constexpr std::size_t stays_drawn = 20'000, decisions_drawn = 400, rows_shown = 1000, together = 6;

constexpr const char *report_style =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1120px;padding:0 1em;color:#1d2126;"
    "background:#fff}table{border-collapse:collapse}th,td{text-align:left;font-weight:400;padding:3px 14px 3px 0;"
    "border-bottom:1px solid #d6dade}thead th{color:#59616b}h2{font-size:18px;margin-top:1.6em}"
    ".picture{overflow-x:auto}p.note{color:#59616b}";

std::string marked(std::string_view text) { return escaped_markup(printable(text)); }

std::string cells(std::initializer_list<std::string> words, const char *cell = "td") {
    std::string r = "<tr>";
    for (const std::string &word : words) r += std::string("<") + cell + ">" + word + "</" + cell + ">";
    return r + "</tr>\n";
}

struct Figures {
    double run_s = 0, lost_s = 0;  // of all stays; since the last checkpoint before a departure
    std::int64_t stays = 0, checkpoints = 0;
    std::map<std::string, std::int64_t> departures;
    std::map<std::string, std::pair<std::int64_t, double>> hosts;  // stays and seconds
};

Figures figures_of(const wire::History &history) {
    Figures f;
    for (const auto &[number, grain] : history.grains)
        for (const wire::Stay &stay : grain.stays) {
            const std::int64_t to_ms = stay.to_ms < 0 ? history.to_ms : stay.to_ms;
            const double s = static_cast<double>(std::max<std::int64_t>(0, to_ms - stay.from_ms)) / 1000;
            f.run_s += s;
            ++f.stays;
            f.checkpoints += static_cast<std::int64_t>(stay.checkpoints_ms.size());
            auto &[stays, seconds] = f.hosts[stay.host];
            ++stays;
            seconds += s;
            if (stay.reason.empty() || stay.reason == "finished") continue;
            ++f.departures[stay.reason];
            const std::int64_t kept = stay.checkpoints_ms.empty() ? stay.from_ms : stay.checkpoints_ms.back();
            f.lost_s += static_cast<double>(std::max<std::int64_t>(0, to_ms - kept)) / 1000;
        }
    return f;
}

std::string facts_part(const Session &s, const wire::History &history, const Figures &f) {
    std::string r = "<table>\n";
    const auto fact = [&](const char *name, const std::string &value) { r += cells({name, value}); };
    if (!s.label.empty()) fact("Label", marked(s.label));
    if (!s.command.empty()) fact("Command", "<code>" + marked(s.command) + "</code>");
    fact("Control program", marked(s.ident));
    fact("State", s.terminated() ? "closed" : marked(s.state));
    fact("From, to", marked(local_time(history.from_ms) + ", " + local_time(history.to_ms)));
    fact("Grains", std::to_string(s.ready) + " ready, " + std::to_string(s.running) + " running, " +
                       std::to_string(s.finished) + " finished (" + std::to_string(s.failed) + " failed), " +
                       std::to_string(s.killed) + " killed");
    fact("Runs",
         std::to_string(f.stays) + " on " + counted(f.hosts.size(), "host") + ", together " + seconds_text(f.run_s));
    fact("Checkpoints", std::to_string(f.checkpoints));
    fact("CPU time saved by checkpoints", seconds_text(s.saved_cpu_s));
    fact("Time lost by departures", f.lost_s > 0 ? seconds_text(f.lost_s) : "none");
    return r + "</table>\n";
}

std::string departures_part(const Figures &f, const wire::History &history) {
    if (f.departures.empty()) return "<p>No grain left a host before its end.</p>\n";
    std::string r = "<p>";
    for (const auto &[reason, n] : f.departures) r += marked(reason) + ": " + std::to_string(n) + ". ";
    r += "</p>\n<table>\n<thead>" + cells({"Time", "Grain", "Left", "Reason", "Ran", "Last checkpoint"}, "th") +
         "</thead>\n";
    std::size_t rows = 0;
    for (const auto &[number, grain] : history.grains)
        for (const wire::Stay &stay : grain.stays) {
            if (stay.reason.empty() || stay.reason == "finished" || ++rows > rows_shown) continue;
            r += cells({marked(local_time(stay.to_ms)), std::to_string(number), marked(stay.host), marked(stay.reason),
                        seconds_text(static_cast<double>(stay.to_ms - stay.from_ms) / 1000),
                        stay.checkpoints_ms.empty() ? "none" : marked(local_time(stay.checkpoints_ms.back()))});
        }
    r += "</table>\n";
    return rows > rows_shown ? r + "<p class=\"note\">The first " + std::to_string(rows_shown) + ".</p>\n" : r;
}

std::string hosts_part(const Figures &f) {
    std::string r = "<table>\n<thead>" + cells({"Host", "Runs", "Time"}, "th") + "</thead>\n";
    for (const auto &[name, used] : f.hosts)
        r += cells({marked(name), std::to_string(used.first), seconds_text(used.second)});
    return r + "</table>\n";
}

std::string picture(const std::string &svg) { return "<div class=\"picture\">\n" + svg + "</div>\n"; }

}  // namespace

std::string report_of(const Session &session, const wire::History &history) {
    const std::string name = "session " + session.user + "/" + std::to_string(session.session);
    const Figures f = figures_of(history);
    std::string r = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>DCS " +
                    marked(name) +
                    "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>" +
                    report_style + "</style>\n</head>\n<body>\n<h1>DCS " + marked(name) + "</h1>\n";
    r += facts_part(session, history, f);
    if (!history.whole)
        r += "<p class=\"note\">The log does not begin with the session's opening: what came before is missing.</p>\n";
    r += "<h2>What ran where</h2>\n";
    if (static_cast<std::size_t>(f.stays) <= stays_drawn) r += picture(time_svg(history, "Time line of " + name));
    else r += "<p class=\"note\">Too many runs for one file: <code>dcs trace --svg FILE</code> draws them.</p>\n";
    r += "<h2>Departures</h2>\n" + departures_part(f, history) + "<h2>Hosts</h2>\n" + hosts_part(f);
    const Flow flow = flow_of(history, together);
    r += "<h2>Dataflow</h2>\n";
    if (flow.decisions.size() <= decisions_drawn) r += picture(flow_svg(flow, "Dataflow of " + name));
    else
        r += "<p class=\"note\">Too many decisions for one file: <code>dcs trace --graph FILE</code> draws them.</p>\n";
    return r + "<p class=\"note\">Written by <code>dcs session export --html</code>, " +
           marked(local_time(wall_clock_ms())) + ".</p>\n</body>\n</html>\n";
}

int export_report(const Session &session, const std::string &path, const Call &call) {
    const auto history = history_of(session);
    if (!history) return call.fail(failure_of("the event log of session " + session.name(), history.status()));
    if (Status s = write_document(path, report_of(session, *history)); !s) return call.fail(failure_of("", s));
    if (path == "-") return exits::ok;
    const JsonObject report = JsonObject().add("session", session.session).add("user", session.user).add("file", path);
    return print_as_asked(call, JsonObject("dcs.session.report/1").add_raw("report", report.text()), path,
                          "report of session " + session.name() + " written to " + path);
}

}  // namespace dcs::commands
