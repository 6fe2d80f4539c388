#include "details.h"

#include <algorithm>

#include "base/text.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/row_text.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/query/session_events.h"
#include "commands/dcs/trace/flow.h"
#include "html.h"
#include "panels.h"

namespace dcs::commands::page {
namespace {

constexpr std::string_view plain = "-._";
constexpr std::size_t most_bytes = 1024;

constexpr std::size_t rows_on_page = 200, together = 6;
constexpr std::int64_t grains_drawn = 2000;

Detail page_of(const std::string &title, const std::string &body, int status = 200) {
    return {status, text_of(document(title, body))};
}

std::string section(const std::string &heading, const std::string &body) {
    return "<section><h2>" + words(heading) + "</h2>\n" + body + "</section>\n";
}

// Lines of `dcs host show` and its like.
std::string facts_text(std::string_view lines) {
    std::string r = "<pre tabindex=\"0\">";
    while (!lines.empty()) r += words(take_line(lines)) + "\n";
    return r + "</pre>\n";
}

Detail failed(const std::string &what, const Status &s) {
    const Failure failure = call_failure(what, s);
    const int status = s.code == Code::refused                                            ? 403
                       : s.code == Code::session_unknown || s.code == Code::grain_unknown ? 404
                                                                                          : 503;
    return page_of("DCS: " + what, section(what, "<p>" + words(failure.message) + "</p>\n"), status);
}

std::string choice(const char *name, const std::string &chosen, std::initializer_list<const char *> options) {
    std::string r = std::string("<label>State <select name=\"") + name + "\"><option value=\"\">all</option>";
    for (const std::string option : options)
        r += "<option" + std::string(option == chosen ? " selected" : "") + ">" + option + "</option>";
    return r + "</select></label> <button>Show</button>";
}

// Sessions from the row on that `from` counts to; a filter keeps those of one user or state.
Detail sessions_page(const Target &target, const Snapshot &s, const Journal &journal) {
    const std::string user = target.word("user"), state = target.word("state");
    const auto from = static_cast<std::size_t>(std::max(0, target.number("from", 0)));
    std::vector<const Session *> rows;
    std::size_t fitting = 0;
    for (const Session &row : s.sessions) {
        const std::string shown = row.terminated() ? "closed" : row.shown_state();
        if ((!user.empty() && row.user != user) || (!state.empty() && shown != state)) continue;
        if (fitting++ >= from && rows.size() < rows_on_page) rows.push_back(&row);
    }
    std::string body = "<form class=\"filter\"><label>User <input name=\"user\" value=\"" + words(user) +
                       "\" maxlength=\"64\" autocomplete=\"off\"></label> " +
                       choice("state", state, {"active", "done", "closed", "damaged"}) + "</form>\n";
    body += rows.empty() ? "<p>No such session.</p>\n" : sessions_table(rows, journal);
    if (from + rows.size() < fitting)
        body += "<p><a href=\"/sessions?user=" + words(user) + "&amp;state=" + words(state) +
                "&amp;from=" + std::to_string(from + rows.size()) + "\">The next ones</a> of " +
                count(static_cast<std::int64_t>(fitting)) + "</p>\n";
    return page_of("DCS sessions", section("Sessions", body));
}

Detail hosts_page(const Target &target, const Snapshot &s) {
    const std::string state = target.word("state");
    std::string rows;
    std::size_t shown = 0, fitting = 0;
    for (const wire::HostRow &row : s.hosts) {
        const std::string word = host_word(row);
        const bool trouble = state == "trouble" && is_troubled(row);
        if (!state.empty() && word != state && !trouble) continue;
        if (++fitting > 2000) continue;
        ++shown;
        rows +=
            page::row({host_link(row.name), word, words(class_text(row.host_class, row.class_names)),
                       std::to_string(row.running) + "/" + std::to_string(row.slots), number(row.load),
                       row.free_memory_kb > 0 ? bytes_text(static_cast<std::uint64_t>(row.free_memory_kb) * 1024) : "",
                       seconds_text(row.last_call_in_s), count(row.finished), count(row.failed),
                       words(or_dash(row.version)), words(or_dash(row.address)), words(row.note)});
    }
    std::string body = "<form class=\"filter\">" +
                       choice("state", state, {"active", "drained", "late", "dead", "no_job", "unknown", "trouble"}) +
                       "</form>\n";
    body += table("table of hosts",
                  {"Host", "State", "Class", "Busy", "Load", "Free memory", "Last report", "Finished", "Failed",
                   "Version", "Address", "Note"},
                  rows);
    if (fitting > shown)
        body += "<p class=\"note\">The first " + std::to_string(shown) + " of " +
                count(static_cast<std::int64_t>(fitting)) + "</p>\n";
    return page_of("DCS hosts", section("Hosts", body));
}

Detail host_page(const std::string &name, const Snapshot &s, const Journal &journal) {
    const auto it = std::find_if(s.hosts.begin(), s.hosts.end(), [&](const auto &row) { return row.name == name; });
    if (it == s.hosts.end()) return not_found("there is no host " + name);
    std::string runs;
    for (const Run *run : journal.running())
        if (run->host == name)
            runs +=
                page::row({grain_link(run->session.first, run->session.second, run->grain), clock_time(run->from_ms),
                           run->checkpoints_ms.empty() ? "none" : clock_time(run->checkpoints_ms.back())});
    return page_of("DCS host " + name,
                   section("Host " + name, facts_text(host_facts(*it))) +
                       section("Runs there now",
                               runs.empty() ? "<p>No grain whose log you may read.</p>\n"
                                            : table("table of grains", {"Grain", "Since", "Last checkpoint"}, runs)));
}

const Session *session_in(const Snapshot &s, const std::string &user, std::int32_t number) {
    const auto is_it = [&](const Session &row) { return row.user == user && row.session == number; };
    const auto it = std::find_if(s.sessions.begin(), s.sessions.end(), is_it);
    return it == s.sessions.end() ? nullptr : &*it;
}

// Of a session with few grains: its time line, or its dataflow, from the whole of its log.
Detail picture_page(const std::string &kind, const std::string &user, std::int32_t number, const Snapshot &s) {
    const std::string name = user + "/" + std::to_string(number);
    const Session *row = session_in(s, user, number);
    if (row == nullptr || row->grains() > grains_drawn) return not_found("there is no picture of session " + name);
    Session session{{.user = user, .session = number}};
    const auto history = history_of(session);
    if (!history) return failed("session " + name, history.status());
    std::string svg = kind == "flow" ? flow_svg(flow_of(*history, together), "Dataflow of session " + name)
                                     : time_svg(*history, "Time line of session " + name);
    return {200, text_of(std::move(svg)), picture_type};
}

std::string pictures_part(const wire::SessionRow &row) {
    const std::string path = session_path(row.user, row.session).substr(8);
    const auto figure = [&](const char *kind, const char *says) {
        return std::string("<figure><img src=\"/") + kind + path + "\" alt=\"" + says + "\"></figure>\n";
    };
    return section("What ran where", figure("time", "time line of the session; dcs session log has its events")) +
           section("Dataflow", figure("flow", "what followed from which results; dcs trace --dot prints it as text"));
}

std::string grain_rows(const std::vector<wire::GrainRow> &grains) {
    std::string rows;
    DetailedRows details(grains);
    for (std::size_t i = 0; i < grains.size() && i < rows_on_page; ++i) {
        const wire::GrainRow &g = grains[i];
        rows += page::row({grain_link(g.user, g.session, g.grain), is_failed(g) ? "failed" : words(g.state),
                           g.host.empty() ? "" : host_link(g.host), std::to_string(g.starts),
                           std::to_string(g.failures), words(end_text(g)), seconds_text(g.cpu_s),
                           g.checkpoint_age_s < 0 ? "" : seconds_text(g.checkpoint_age_s) + " old",
                           bytes_text(g.out_length), "<span class=\"what\">" + words(details.item_at(i)) + "</span>"});
    }
    return rows;
}

Detail session_page(const Target &target, std::int32_t number, const Snapshot &s, const Journal &journal) {
    const std::string &user = target.path[1];
    const Session *it = session_in(s, user, number);
    const std::string name = user + "/" + std::to_string(number);
    if (it == nullptr) return not_found("there is no session " + name);
    const std::string state = target.word("state");
    wire::Query query;
    query.type = wire::QueryType::grains;
    query.user = user;
    query.session = number;
    query.status = state;
    query.after = target.number("after", -1);
    auto answer = ask_any<wire::QueryReply>(query);
    if (!answer) return failed("session " + name, answer.status());
    std::string body = sessions_table({it}, journal);
    body +=
        "<form class=\"filter\">" + choice("state", state, {"ready", "running", "finished", "killed"}) + "</form>\n";
    body += answer->grains.empty() ? "<p>No such grain.</p>\n"
                                   : table("table of grains",
                                           {"Grain", "State", "Host", "Starts", "Failures", "End", "CPU", "Checkpoint",
                                            "Output", "Input or command"},
                                           grain_rows(answer->grains));
    if (answer->grains.size() > rows_on_page || answer->more) {
        const std::size_t last = std::min(answer->grains.size(), rows_on_page) - 1;
        body += "<p><a href=\"" + session_path(user, number) + "?state=" + words(state) +
                "&amp;after=" + std::to_string(answer->grains[last].grain) + "\">The next ones</a></p>\n";
    }
    body += "<p><code>dcs trace " + words(name) + " --svg FILE</code> draws all of it, <code>dcs session export " +
            words(name) + " --html FILE</code> writes a report.</p>\n";
    body = section("Session " + name, body);
    return page_of("DCS session " + name, it->grains() > grains_drawn ? body : body + pictures_part(*it));
}

Detail grain_page(const Target &target, std::int32_t session, std::int32_t grain) {
    const std::string &user = target.path[1];
    const std::string name = user + "/" + std::to_string(session) + ":" + std::to_string(grain);
    Info info;
    if (const Status s = info.ask(wire::QueryType::grain, user, session, grain); !s) return failed("grain " + name, s);
    if (info.grains.empty()) return not_found("there is no grain " + name);
    std::string body = section("Grain " + name, facts_text(grain_facts(name, info.grains[0])));
    const auto why = explain(user, session, grain);
    body += section("Why it is where it is",
                    facts_text(why ? explanation_text(name, *why) : call_failure("", why.status()).message));
    body += "<p>Of session " + session_link(user, session) + ". This page shows no outputs: <code>dcs grain cat " +
            words(name) + "</code> prints them, <code>dcs grain tail</code> follows them.</p>\n";
    return page_of("DCS grain " + name, body);
}

}  // namespace

std::optional<Target> target_of(std::string_view text) {
    Target target;
    if (text.empty() || text[0] != '/' || text.size() > most_bytes) return std::nullopt;
    const std::size_t mark = text.find('?');
    for (const std::string_view part : words_of(text.substr(0, mark), "/")) {
        auto word = percent_decoded(part, plain);
        if (!word) return std::nullopt;
        target.path.push_back(std::move(*word));
    }
    if (mark == std::string_view::npos) return target;
    for (const std::string_view pair : words_of(text.substr(mark + 1), "&")) {
        const std::size_t equals = pair.find('=');
        if (equals == std::string_view::npos) return std::nullopt;
        const auto name = percent_decoded(pair.substr(0, equals), plain),
                   value = percent_decoded(pair.substr(equals + 1), plain);
        if (!name || !value) return std::nullopt;
        target.query[*name] = *value;
    }
    return target;
}

std::optional<std::int32_t> Target::number_in_path(std::size_t at) const {
    std::int32_t value = 0;
    if (at >= path.size() || !read_number(path[at], value) || value < 0) return std::nullopt;
    return value;
}

std::string Target::word(const std::string &name) const {
    const auto it = query.find(name);
    return it == query.end() ? "" : it->second;
}

std::int32_t Target::number(const std::string &name, std::int32_t otherwise) const {
    std::int32_t value = 0;
    return read_number(word(name), value) ? value : otherwise;
}

Detail not_found(const std::string &what) {
    return page_of("DCS: not found", "<section><h2>Not found</h2>\n<p>" + words(what) + "</p>\n</section>\n", 404);
}

bool is_detail(const std::string &target) {
    const auto parts = target_of(target);
    if (!parts || parts->path.empty()) return false;
    const std::string &kind = parts->path[0];
    const std::size_t n = parts->path.size();
    return (kind == "sessions" && n == 1) || (kind == "hosts" && n == 1) || (kind == "host" && n == 2) ||
           ((kind == "session" || kind == "time" || kind == "flow") && n == 3 && parts->number_in_path(2)) ||
           (kind == "grain" && n == 4 && parts->number_in_path(2) && parts->number_in_path(3));
}

Detail make_detail(const std::string &text, const Snapshot &s, const Journal &journal) {
    const auto target = target_of(text);
    if (!target || !is_detail(text)) return not_found("there is no such page");
    const std::string &kind = target->path[0];
    if (kind == "sessions") return sessions_page(*target, s, journal);
    if (kind == "hosts") return hosts_page(*target, s);
    if (kind == "host") return host_page(target->path[1], s, journal);
    const std::int32_t session = *target->number_in_path(2);
    if (kind == "session") return session_page(*target, session, s, journal);
    if (kind == "time" || kind == "flow") return picture_page(kind, target->path[1], session, s);
    return grain_page(*target, session, *target->number_in_path(3));
}

}  // namespace dcs::commands::page
