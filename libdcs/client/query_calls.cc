// d_query, d_query_free, d_grain_stream (C10).
#include <cstring>
#include <deque>
#include <tuple>

#include "client/call.h"
#include "client/streams.h"
#include "wire/json.h"

namespace dcs::client {
namespace {

struct Kind { wire::QueryType type; const char *status; };
constexpr Kind kinds[] = {
    {wire::QueryType::system, ""},        // D_Q_SYSTEM
    {wire::QueryType::hosts, ""},         // D_Q_HOSTS
    {wire::QueryType::sessions, ""},      // D_Q_SESSIONS
    {wire::QueryType::grains, ""},        // D_Q_GRAINS
    {wire::QueryType::grains, "ready"},   // D_Q_READY
    {wire::QueryType::grains, "running"}, // D_Q_RUNNING
    {wire::QueryType::grains, "finished"},// D_Q_FINISHED
    {wire::QueryType::grains, "killed"},  // D_Q_KILLED
    {wire::QueryType::grain, ""},         // D_Q_GRAIN
    {wire::QueryType::hosts, "active"},   // D_Q_HOSTS_ACTIVE
    {wire::QueryType::hosts, "delinquent"},// D_Q_HOSTS_DELINQUENT
};
static_assert(sizeof kinds / sizeof kinds[0] == D_Q_HOSTS_DELINQUENT + 1);

// The answer as the caller sees it, and what it points to.
struct Answer : d_info {
    wire::QueryReply reply;
    std::vector<d_host_row> host_rows;
    std::vector<d_session_row> session_rows;
    std::vector<d_grain_row> grain_rows;
    // Only of rows that have such lists; they do not move when more come.
    std::deque<std::vector<char *>> argvs;
    std::deque<std::vector<const char *>> names;
    std::deque<std::vector<d_move_row>> moves;
    std::deque<std::vector<d_file_row>> files;
    std::deque<std::string> digests;
};

Status ask_query(const wire::Query &query, wire::QueryReply &into) {
    auto reply = ask<wire::QueryReply>(query, How{With::any});
    if (!reply) return reply.status();
    into = std::move(*reply);
    return Status::ok();
}

// All sessions that are asked for, page by page.
Status ask_sessions(wire::Query query, wire::QueryReply &into) {
    for (;;) {
        wire::QueryReply page;
        if (Status s = ask_query(query, page); !s) return s;
        into.system = std::move(page.system);
        for (auto &row : page.sessions) into.sessions.push_back(std::move(row));
        if (!page.more) return Status::ok();
        if (page.sessions.empty() || std::tie(into.sessions.back().user, into.sessions.back().session) <=
                                         std::tie(query.after_user, query.after))
            return fail(Code::protocol, "the scheduler's pages of sessions do not go on");
        query.after_user = into.sessions.back().user;
        query.after = into.sessions.back().session;
    }
}

// All grains of one session, page by page, behind those that are there.
Status ask_grains(wire::Query query, wire::QueryReply &into) {
    query.after = -1;
    for (;;) {
        wire::QueryReply page;
        if (Status s = ask_query(query, page); !s) return s;
        into.system = std::move(page.system);
        for (auto &row : page.grains) into.grains.push_back(std::move(row));
        if (!page.more) return Status::ok();
        if (page.grains.empty() || into.grains.back().grain <= query.after)
            return fail(Code::protocol, "the scheduler's pages of grains do not go on");
        query.after = into.grains.back().grain;
    }
}

// Grains of all sessions of a user: session by session. One may be removed meanwhile.
Status ask_all_grains(wire::Query query, wire::QueryReply &into) {
    wire::QueryReply sessions;
    wire::Query which;
    which.type = wire::QueryType::sessions;
    which.user = query.user;
    if (Status s = ask_sessions(which, sessions); !s) return s;
    const std::string user = query.user.empty() ? welcome_user() : query.user;
    into.system = std::move(sessions.system);
    for (const auto &row : sessions.sessions) {
        if (row.user != user || row.state == "damaged") continue;
        query.user = row.user;
        query.session = row.session;
        const std::size_t before = into.grains.size();
        const Status s = ask_grains(query, into);
        if (s.code == Code::session_unknown) into.grains.resize(before);
        else if (!s) return s;
    }
    return Status::ok();
}

void show_system(Answer &a) {
    const wire::SystemRow &s = a.reply.system;
    a.epoch = s.epoch;
    a.turn = s.turn;
    a.scheduler_pid = s.pid;
    a.up_s = s.up_s;
    a.ready = s.ready;
    a.running = s.running;
    a.hosts_total = s.hosts;
    a.hosts_active = s.hosts_active;
    a.sessions_active = s.sessions_active;
    a.version = s.version.c_str();
}

// Strings for the caller; NULL for none.
const char *const *listed(Answer &a, const std::vector<std::string> &strings) {
    if (strings.empty()) return nullptr;
    std::vector<const char *> &list = a.names.emplace_back();
    for (const std::string &text : strings) list.push_back(text.c_str());
    return list.data();
}

d_host_row shown(Answer &a, const wire::HostRow &h) {
    d_host_row r{};
    r.name = h.name.c_str();
    r.state = h.state.c_str();
    r.binary_class = h.binary_class.c_str();
    r.host_class = h.host_class;
    r.slots = h.slots;
    r.running = h.running;
    r.last_call_in_s = h.last_call_in_s;
    r.interval_s = h.interval_s;
    r.alert_s = h.alert_s;
    r.limit_s = h.limit_s;
    r.extended_s = h.extended_s;
    r.load = h.load;
    r.free_memory_kb = h.free_memory_kb;
    r.cores = h.cores;
    r.cores_used = h.cores_used;
    r.memory_mb = h.memory_mb;
    r.memory_used_mb = h.memory_used_mb;
    r.connected = h.connected;
    r.drained = h.drained;
    r.settings = h.settings.c_str();
    r.note = h.note.c_str();
    r.user_count = h.users.size();
    r.users = listed(a, h.users);
    r.blamed = h.blamed;
    r.blamed_lately = h.blamed_lately;
    r.launched = h.launched;
    r.finished = h.finished;
    r.failed = h.failed;
    r.given_back = h.given_back;
    r.cpu_s = h.cpu_s;
    r.confinement = h.confinement.c_str();
    return r;
}

d_session_row shown(const wire::SessionRow &s) {
    d_session_row r{};
    r.user = s.user.c_str();
    r.ident = s.ident.c_str();
    r.state = s.state.c_str();
    r.session = s.session;
    r.ready = s.ready;
    r.running = s.running;
    r.finished = s.finished;
    r.killed = s.killed;
    r.sent = s.sent;
    r.saved_cpu_s = s.saved_cpu_s;
    return r;
}

const d_move_row *listed(Answer &a, const std::vector<wire::MoveRow> &moves) {
    if (moves.empty()) return nullptr;
    std::vector<d_move_row> &list = a.moves.emplace_back();
    for (const wire::MoveRow &m : moves)
        list.push_back({m.reason.c_str(), m.host.c_str(), m.detail.c_str(), m.incarnation, m.age_s});
    return list.data();
}

const d_file_row *listed(Answer &a, const std::vector<wire::GrainFile> &files) {
    if (files.empty()) return nullptr;
    std::vector<d_file_row> &list = a.files.emplace_back();
    for (const wire::GrainFile &f : files)
        list.push_back({f.name.c_str(), f.size, a.digests.emplace_back(wire::in_hex(f.digest)).c_str()});
    return list.data();
}

// What D_Q_GRAIN tells besides.
void show_detail(Answer &a, wire::GrainRow &g, d_grain_row &r) {
    r.nogo_count = g.nogo.size();
    r.nogo = listed(a, g.nogo);
    r.move_count = g.moves.size();
    r.moves = listed(a, g.moves);
    r.file_count = g.files.size();
    r.files = listed(a, g.files);
    if (g.argv.empty()) return;
    std::vector<char *> &argv = a.argvs.emplace_back();
    for (std::string &word : g.argv) argv.push_back(word.data());
    argv.push_back(nullptr);
    r.argv = argv.data();
}

d_grain_row shown(Answer &a, wire::GrainRow &g) {
    d_grain_row r{};
    r.user = g.user.c_str();
    r.state = g.state.c_str();
    r.host = g.host.c_str();
    r.label = g.label.c_str();
    r.message = g.message.c_str();
    r.session = g.session;
    r.grain = g.grain;
    r.starts = g.starts;
    r.restarts = g.restarts;
    r.failures = g.failures;
    r.exit_code = g.exit_code;
    r.signal = g.signal;
    r.result_index = g.result_index;
    r.incarnation = g.incarnation;
    r.host_class = g.host_class;
    r.cpu_s = g.cpu_s;
    r.run_cpu_s = g.run_cpu_s;
    r.saved_cpu_s = g.saved_cpu_s;
    r.last_contact_s = g.last_contact_s;
    r.checkpoint_age_s = g.checkpoint_age_s;
    r.out_length = g.out_length;
    r.err_length = g.err_length;
    r.checkpoint_length = g.checkpoint_length;
    r.thrash = g.thrash;
    r.notice = g.notice;
    r.attempts = g.attempts;
    r.cores = g.cores;
    r.memory_mb = g.memory_mb;
    r.wall_s = g.wall_s;
    r.urgent = g.urgent;
    show_detail(a, g, r);
    return r;
}

// The reply does not move any more from here on.
void show(Answer &a) {
    show_system(a);
    for (const auto &h : a.reply.hosts) a.host_rows.push_back(shown(a, h));
    for (const auto &s : a.reply.sessions) a.session_rows.push_back(shown(s));
    for (auto &g : a.reply.grains) a.grain_rows.push_back(shown(a, g));
    a.host_count = a.host_rows.size();
    a.session_count = a.session_rows.size();
    a.grain_count = a.grain_rows.size();
    a.hosts = a.host_rows.data();
    a.sessions = a.session_rows.data();
    a.grains = a.grain_rows.data();
}

Status ask_all(const wire::Query &query, wire::QueryReply &into) {
    if (query.type == wire::QueryType::sessions) return ask_sessions(query, into);
    if (query.type != wire::QueryType::grains) return ask_query(query, into);
    return query.session >= 0 ? ask_grains(query, into) : ask_all_grains(query, into);
}

Status query(int type, const char *user, int session_num, int grain_num, d_info **info) {
    if (!info) return fail(Code::invalid, "info is NULL");
    *info = nullptr;
    if (type < D_Q_SYSTEM || type > D_Q_HOSTS_DELINQUENT)
        return fail(Code::invalid, "query_type is " + std::to_string(type) + ": take one of D_Q_...");
    if (Status s = check_user(user); !s) return s;
    wire::Query request;
    request.type = kinds[type].type;
    request.status = kinds[type].status;
    request.user = text_or_empty(user);
    request.session = session_num;
    request.grain = grain_num;
    if (type == D_Q_GRAIN)
        if (Status s = check_grain(session_num, grain_num); !s) return s;
    auto answer = std::make_unique<Answer>();
    if (Status s = ask_all(request, answer->reply); !s) return s;
    show(*answer);
    *info = answer.release();
    return Status::ok();
}

Result<wire::Stream> stream_named(const char *name) {
    static constexpr struct { const char *name; wire::Stream stream;
    } all[] = {
        {"out", wire::Stream::out},
        {"err", wire::Stream::err},
        {"checkpoint", wire::Stream::checkpoint},
        {"message", wire::Stream::message},
        {"input", wire::Stream::input},
    };
    for (const auto &s : all)
        if (name && std::strcmp(name, s.name) == 0) return s.stream;
    return fail(Code::invalid,
                "stream is \"" + text_or_empty(name) + "\": it is out, err, checkpoint, message or input");
}

Status grain_stream(const char *user, int session_num, int grain_num, const char *stream, FILE **file) {
    if (!file) return fail(Code::invalid, "file is NULL");
    *file = nullptr;
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    if (Status s = check_user(user); !s) return s;
    auto which = stream_named(stream);
    if (!which) return which.status();
    auto f = fetch_stream(text_or_empty(user), session_num, grain_num, *which, {}, UINT64_MAX, With::any);
    if (!f) return f.status();
    *file = f->release();
    return Status::ok();
}

Status grain_file(const char *user, int session_num, int grain_num, const char *name, FILE **file) {
    if (!file) return fail(Code::invalid, "file is NULL");
    *file = nullptr;
    if (!name || !*name) return fail(Code::invalid, "the file's name is missing");
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    if (Status s = check_user(user); !s) return s;
    auto f = fetch_stream(text_or_empty(user), session_num, grain_num, wire::Stream::file, {}, UINT64_MAX, With::any,
                          name);
    if (!f) return f.status();
    *file = f->release();
    return Status::ok();
}

}  // namespace
}  // namespace dcs::client

using namespace dcs::client;

extern "C" {

int d_query(int query_type, const char *user, int session_num, int grain_num, struct d_info **info) {
    return c_call([&] { return query(query_type, user, session_num, grain_num, info); });
}

void d_query_free(struct d_info *info) { delete static_cast<Answer *>(info); }

int d_grain_file(const char *user, int session_num, int grain_num, const char *name, FILE **file) {
    return c_call([&] { return grain_file(user, session_num, grain_num, name, file); });
}

int d_grain_stream(const char *user, int session_num, int grain_num, const char *stream, FILE **file) {
    return c_call([&] { return grain_stream(user, session_num, grain_num, stream, file); });
}
}
