#include "ask.h"

#include <algorithm>
#include <cstdlib>
#include <pwd.h>
#include <unistd.h>

#include "client/call.h"
#include "client/remote.h"
#include "json.h"
#include "wire/message.h"

namespace dcs::commands {
namespace {

bool patience_is_the_users = std::getenv("DCS_PATIENCE_S") != nullptr;

Session session_of(const d_session_row &row) {
    Session session{text(row.user), text(row.ident), text(row.state)};
    session.number = row.session;
    session.ready = row.ready;
    session.running = row.running;
    session.finished = row.finished;
    session.killed = row.killed;
    session.sent = row.sent;
    session.saved_cpu_s = row.saved_cpu_s;
    session.json = json_of(row);
    return session;
}

// What is not known is no number.
void make_null(std::string &json, const std::string &name) {
    const std::string field = "\"" + name + "\":";
    const std::size_t at = json.find(field);
    if (at == std::string::npos) return;
    const std::size_t from = at + field.size();
    json.replace(from, json.find_first_of(",}", from) - from, "null");
}

}  // namespace

void pause_ms(long ms) {
    const timespec pause = {ms / 1000, ms % 1000 * 1'000'000};
    ::nanosleep(&pause, nullptr);
}

int Info::ask(int type, const std::string &user, int session, int grain) {
    d_query_free(info_);
    info_ = nullptr;
    return d_query(type, user.empty() ? nullptr : user.c_str(), session, grain, &info_);
}

std::string own_user() {
    static const std::string name = [] {
        // For a scheduler elsewhere he is who its dcs_begin said.
        if (client::adopt_remote() && client::remote())
            if (const auto program = pki::program_name(client::remote()->certificate.name)) return program->user;
        char buffer[4096];
        passwd entry = {}, *found = nullptr;
        if (::getpwuid_r(::geteuid(), &entry, buffer, sizeof buffer, &found) == 0 &&
            found != nullptr)
            return std::string(found->pw_name);
        return "uid" + std::to_string(::geteuid());
    }();
    return name;
}

bool user_set_patience() { return patience_is_the_users; }

void set_patience(int seconds) {
    if (!patience_is_the_users) ::setenv("DCS_PATIENCE_S", std::to_string(seconds).c_str(), 1);
}

std::string Session::name() const { return (own() ? "" : user + "/") + std::to_string(number); }

SessionsAnswer sessions_of(const SessionSelector &selector) {
    SessionsAnswer answer;
    const std::string user = selector.user.empty() ? own_user() : selector.user;
    Info info;
    const int error = info.ask(D_Q_SESSIONS, selector.everybody ? "" : user);
    if (error != NO_ERROR) {
        answer.failed = true;
        answer.failure = call_failure("the list of sessions", error);
        return answer;
    }
    for (std::size_t i = 0; i < info->session_count; ++i) {
        Session session = session_of(info->sessions[i]);
        if (!selector.everybody && session.user != user) continue;
        if (selector.which == SessionSelector::Which::number && session.number != selector.number)
            continue;
        if (selector.which == SessionSelector::Which::last && !answer.sessions.empty() &&
            answer.sessions[0].number < session.number)
            answer.sessions.clear();
        if (selector.which != SessionSelector::Which::last || answer.sessions.empty())
            answer.sessions.push_back(std::move(session));
    }
    if (!answer.sessions.empty() || selector.which == SessionSelector::Which::all) return answer;
    answer.failed = true;
    const std::string whose = selector.user.empty() ? "" : selector.user + "/";
    answer.failure =
        not_found_failure(selector.which == SessionSelector::Which::last
                              ? user + " has no session"
                              : "there is no session " + whose + std::to_string(selector.number),
                          "`dcs session ls` lists the sessions that there are");
    answer.failure.code = "session_unknown";
    return answer;
}

SessionsAnswer sessions_of(const std::vector<std::string> &selectors) {
    SessionsAnswer all;
    for (const std::string &selector_text : selectors) {
        const auto selector = session_selector(selector_text);
        SessionsAnswer one;
        if (selector) {
            one = sessions_of(*selector);
        } else {
            one.failed = true;
            one.failure = usage_failure(selector.status().text);
        }
        if (one.failed) return one;
        for (Session &session : one.sessions) {
            const bool seen =
                std::any_of(all.sessions.begin(), all.sessions.end(), [&](const Session &s) {
                    return s.user == session.user && s.number == session.number;
                });
            if (!seen) all.sessions.push_back(std::move(session));
        }
    }
    return all;
}

SessionsAnswer chosen_sessions(const std::vector<std::string> &selectors) {
    std::vector<std::string> own = selectors;
    for (std::string &selector : own)
        if (selector == "all") selector = own_user() + "/all";
    return sessions_of(own);
}

SessionsAnswer own_sessions() {
    SessionSelector selector;
    selector.which = SessionSelector::Which::all;
    return sessions_of(selector);
}

std::string json_of(const d_session_row &row) {
    wire::SessionRow w;
    w.user = text(row.user);
    w.session = row.session;
    w.ident = text(row.ident);
    w.state = text(row.state);
    w.ready = row.ready;
    w.running = row.running;
    w.finished = row.finished;
    w.killed = row.killed;
    w.sent = row.sent;
    w.saved_cpu_s = row.saved_cpu_s;
    return wire::to_json(w);
}

std::string json_of(const d_grain_row &row) {
    wire::GrainRow w;
    w.session = row.session;
    w.grain = row.grain;
    w.user = text(row.user);
    w.state = text(row.state);
    w.host = text(row.host);
    w.label = text(row.label);
    w.incarnation = row.incarnation;
    w.host_class = row.host_class;
    w.starts = row.starts;
    w.restarts = row.restarts;
    w.failures = row.failures;
    w.exit_code = row.exit_code;
    w.signal = row.signal;
    w.result_index = row.result_index;
    w.cpu_s = row.cpu_s;
    w.run_cpu_s = row.run_cpu_s;
    w.saved_cpu_s = row.saved_cpu_s;
    w.last_contact_s = row.last_contact_s;
    w.checkpoint_age_s = row.checkpoint_age_s;
    w.out_length = row.out_length;
    w.err_length = row.err_length;
    w.checkpoint_length = row.checkpoint_length;
    w.thrash = row.thrash;
    w.notice = row.notice;
    w.attempts = row.attempts;
    w.cores = row.cores;
    w.memory_mb = row.memory_mb;
    w.wall_s = row.wall_s;
    w.urgent = row.urgent != 0;
    w.message = text(row.message);
    w.nogo.assign(row.nogo, row.nogo + row.nogo_count);
    for (std::size_t i = 0; i < row.move_count; ++i) {
        const d_move_row &m = row.moves[i];
        w.moves.push_back({text(m.reason), text(m.host), text(m.detail), m.incarnation, m.age_s});
    }
    for (std::size_t i = 0; i < row.file_count; ++i) {
        wire::GrainFile file;
        file.role = wire::FileRole::output;
        file.name = text(row.files[i].name);
        file.size = row.files[i].size;
        const std::string hex = text(row.files[i].digest);
        for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
            file.digest += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
        w.files.push_back(std::move(file));
    }
    for (char **word = row.argv; word != nullptr && *word != nullptr; ++word)
        w.argv.push_back(*word);
    return wire::to_json(w);
}

std::string json_of(const d_host_row &row) {
    wire::HostRow w;
    w.name = text(row.name);
    w.state = text(row.state);
    w.binary_class = text(row.binary_class);
    w.slots = row.slots;
    w.running = row.running;
    w.last_call_in_s = row.last_call_in_s;
    w.interval_s = row.interval_s;
    w.alert_s = row.alert_s;
    w.limit_s = row.limit_s;
    w.extended_s = row.extended_s;
    w.load = row.load;
    w.free_memory_kb = row.free_memory_kb;
    w.cores = row.cores;
    w.cores_used = row.cores_used;
    w.memory_mb = row.memory_mb;
    w.memory_used_mb = row.memory_used_mb;
    w.connected = row.connected != 0;
    w.drained = row.drained != 0;
    w.settings = text(row.settings);
    w.note = text(row.note);
    w.users.assign(row.users, row.users + row.user_count);
    w.blamed = row.blamed;
    w.blamed_lately = row.blamed_lately;
    w.launched = row.launched;
    w.finished = row.finished;
    w.failed = row.failed;
    w.given_back = row.given_back;
    w.cpu_s = row.cpu_s;
    w.confinement = text(row.confinement);
    w.host_class = row.host_class;
    std::string json = wire::to_json(w);
    // The published name of the mask is `class`; a quoted name cannot occur inside a JSON string.
    const std::string field = "\"host_class\":";
    const std::size_t at = json.find(field);
    if (at != std::string::npos) json.replace(at, field.size(), "\"class\":");
    if (row.last_call_in_s < 0) make_null(json, "last_call_in_s");
    if (row.last_call_in_s >= 0 && row.free_memory_kb >= 0) return json;
    for (const char *figure : {"free_memory_kb", "load"}) make_null(json, figure);  // they come with a call-in
    return json;
}

std::string json_of(const d_explanation &why) {
    wire::Explanation w;
    w.state = text(why.state);
    w.summary = text(why.summary);
    w.can_run = why.can_run != 0;
    w.ahead = why.ahead;
    for (std::size_t i = 0; i < why.reason_count; ++i) {
        const d_reason &r = why.reasons[i];
        w.reasons.push_back({text(r.reason), text(r.text), text(r.hint), r.hosts, {}});
        w.reasons.back().names.assign(r.names, r.names + r.name_count);
    }
    return wire::to_json(w);
}

std::string json_of_system(const d_info &info) {
    JsonObject json;
    json.add("version", text(info.version)).add("epoch", info.epoch).add("turn", info.turn);
    json.add("up_s", info.up_s)
        .add("hosts", info.hosts_total)
        .add("hosts_active", info.hosts_active);
    json.add("sessions_active", info.sessions_active)
        .add("ready", info.ready)
        .add("running", info.running);
    return json.text();
}

}  // namespace dcs::commands
