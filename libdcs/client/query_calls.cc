// What the scheduler knows.
#include <cstring>
#include <deque>
#include <tuple>

#include "base/sized.h"
#include "client/call.h"
#include "client/query.h"
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

// An answer in the program's layout, and what it points to.
struct Answer {
    explicit Answer(const d_row_sizes &of)
        : sizes(of), host_rows(of.host_row), session_rows(of.session_row), grain_rows(of.grain_row), head(of.info) {}
    const d_row_sizes sizes;
    wire::QueryReply reply;
    Rows<d_host_row> host_rows;
    Rows<d_session_row> session_rows;
    Rows<d_grain_row> grain_rows;
    Rows<d_info> head;
    // Only of rows that have such lists; they do not move when more come.
    std::deque<std::vector<char *>> argvs;
    std::deque<std::vector<const char *>> names;
    std::deque<Rows<d_move_row>> moves;
    std::deque<Rows<d_file_row>> files;
    std::deque<std::string> digests;
};

Status ask_query(Pool &pool, const wire::Query &query, wire::QueryReply &into) {
    auto reply = ask<wire::QueryReply>(pool, query, How{With::any});
    if (!reply) return reply.status();
    into = std::move(*reply);
    return Status::ok();
}

// All sessions that are asked for, page by page.
Status ask_sessions(Pool &pool, wire::Query query, wire::QueryReply &into) {
    for (;;) {
        wire::QueryReply page;
        if (Status s = ask_query(pool, query, page); !s) return s;
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
Status ask_grains(Pool &pool, wire::Query query, wire::QueryReply &into) {
    query.after = -1;
    for (;;) {
        wire::QueryReply page;
        if (Status s = ask_query(pool, query, page); !s) return s;
        into.system = std::move(page.system);
        for (auto &row : page.grains) into.grains.push_back(std::move(row));
        if (!page.more) return Status::ok();
        if (page.grains.empty() || into.grains.back().grain <= query.after)
            return fail(Code::protocol, "the scheduler's pages of grains do not go on");
        query.after = into.grains.back().grain;
    }
}

// Grains of all sessions of a user: session by session. One may be removed meanwhile.
Status ask_all_grains(Pool &pool, wire::Query query, wire::QueryReply &into) {
    wire::QueryReply sessions;
    wire::Query which;
    which.type = wire::QueryType::sessions;
    which.user = query.user;
    if (Status s = ask_sessions(pool, which, sessions); !s) return s;
    const std::string user = query.user.empty() ? pool.line().user : query.user;
    into.system = std::move(sessions.system);
    for (const auto &row : sessions.sessions) {
        if (row.user != user || row.state == "damaged") continue;
        query.user = row.user;
        query.session = row.session;
        const std::size_t before = into.grains.size();
        const Status s = ask_grains(pool, query, into);
        if (s.code == Code::session_unknown) into.grains.resize(before);
        else if (!s) return s;
    }
    return Status::ok();
}

d_info shown(const wire::SystemRow &s) {
    d_info a{};
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
    return a;
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

const Rows<d_move_row> &listed(Answer &a, const std::vector<wire::MoveRow> &moves) {
    Rows<d_move_row> &list = a.moves.emplace_back(a.sizes.move_row);
    for (const wire::MoveRow &m : moves) {
        d_move_row r{};
        r.reason = m.reason.c_str();
        r.host = m.host.c_str();
        r.detail = m.detail.c_str();
        r.incarnation = m.incarnation;
        r.age_s = m.age_s;
        list.add(r);
    }
    return list;
}

const Rows<d_file_row> &listed(Answer &a, const std::vector<wire::GrainFile> &files) {
    Rows<d_file_row> &list = a.files.emplace_back(a.sizes.file_row);
    for (const wire::GrainFile &f : files) {
        d_file_row r{};
        r.name = f.name.c_str();
        r.size = f.size;
        r.digest = a.digests.emplace_back(wire::in_hex(f.digest)).c_str();
        list.add(r);
    }
    return list;
}

// What D_Q_GRAIN tells besides.
void show_detail(Answer &a, wire::GrainRow &g, d_grain_row &r) {
    r.nogo_count = g.nogo.size();
    r.nogo = listed(a, g.nogo);
    if (!g.moves.empty()) {
        const auto &moves = listed(a, g.moves);
        r.move_count = moves.count();
        r.moves = moves.data();
    }
    if (!g.files.empty()) {
        const auto &files = listed(a, g.files);
        r.file_count = files.count();
        r.files = files.data();
    }
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
    r.host_class = g.demands.host_class;
    r.cpu_s = g.cpu_s;
    r.run_cpu_s = g.run_cpu_s;
    r.saved_cpu_s = g.saved_cpu_s;
    r.last_contact_s = g.last_contact_s;
    r.checkpoint_age_s = g.checkpoint_age_s;
    r.out_length = g.out_length;
    r.err_length = g.err_length;
    r.checkpoint_length = g.checkpoint_length;
    r.thrash = g.demands.thrash;
    r.notice = g.demands.notice;
    r.attempts = g.demands.attempts;
    r.cores = g.demands.cores;
    r.memory_mb = g.demands.memory_mb;
    r.wall_s = g.demands.wall_s;
    r.urgent = g.demands.urgent;
    show_detail(a, g, r);
    return r;
}

// The reply does not move any more from here on.
void show(Answer &a) {
    for (const auto &h : a.reply.hosts) a.host_rows.add(shown(a, h));
    for (const auto &s : a.reply.sessions) a.session_rows.add(shown(s));
    for (auto &g : a.reply.grains) a.grain_rows.add(shown(a, g));
    d_info info = shown(a.reply.system);
    info.of_library = &a;
    info.host_count = a.host_rows.count();
    info.session_count = a.session_rows.count();
    info.grain_count = a.grain_rows.count();
    info.hosts = a.host_rows.data();
    info.sessions = a.session_rows.data();
    info.grains = a.grain_rows.data();
    a.head.add(info);
}

}  // namespace

Status query_rows(Pool &pool, const wire::Query &query, wire::QueryReply &into) {
    if (query.type == wire::QueryType::sessions) return ask_sessions(pool, query, into);
    if (query.type != wire::QueryType::grains) return ask_query(pool, query, into);
    return query.session >= 0 ? ask_grains(pool, query, into) : ask_all_grains(pool, query, into);
}

// A struct that the program does not know, as its list of sizes is shorter, has the size 0. Others are as they must be.
Result<d_row_sizes> known_sizes(const d_row_sizes *from) {
    auto sizes = known(from, "sizes");
    if (!sizes) return sizes;
    const std::size_t all[] = {sizes->info, sizes->host_row, sizes->session_row, sizes->grain_row, sizes->move_row,
                               sizes->file_row, sizes->explanation, sizes->reason};
    for (const std::size_t size : all)
        if (size != 0 && !sound_size<d_info>(size)) return bad_struct_size("sizes", size);
    const std::size_t least = offsetof(d_info, epoch);  // by which the library finds its block again
    return sizes->info >= least && sizes->explanation >= least ? sizes : bad_struct_size("sizes", sizes->info);
}

namespace {

Status query(Pool &pool, const d_row_sizes *from, int type, const char *user, int session_num, int grain_num,
             d_info **info) {
    if (!info) return fail(Code::invalid, "info is NULL");
    *info = nullptr;
    const auto sizes = known_sizes(from);
    if (!sizes) return sizes.status();
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
    auto answer = std::make_unique<Answer>(*sizes);
    if (Status s = query_rows(pool, request, answer->reply); !s) return s;
    show(*answer);
    *info = answer.release()->head.data();
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

Status grain_stream(Pool &pool, const char *user, int session_num, int grain_num, const char *stream, FILE **file) {
    if (!file) return fail(Code::invalid, "file is NULL");
    *file = nullptr;
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    if (Status s = check_user(user); !s) return s;
    auto which = stream_named(stream);
    if (!which) return which.status();
    auto f = fetch_stream(pool, text_or_empty(user), session_num, grain_num, *which, {}, UINT64_MAX, With::any);
    if (!f) return f.status();
    *file = f->release();
    return Status::ok();
}

Status grain_file(Pool &pool, const char *user, int session_num, int grain_num, const char *name, FILE **file) {
    if (!file) return fail(Code::invalid, "file is NULL");
    *file = nullptr;
    if (!name || !*name) return fail(Code::invalid, "the file's name is missing");
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    if (Status s = check_user(user); !s) return s;
    auto f = fetch_stream(pool, text_or_empty(user), session_num, grain_num, wire::Stream::file, {}, UINT64_MAX,
                          With::any, name);
    if (!f) return f.status();
    *file = f->release();
    return Status::ok();
}

}  // namespace
}  // namespace dcs::client

using namespace dcs::client;

extern "C" {

int d_pool_query_sized(struct d_pool *pool, const struct d_row_sizes *sizes, int query_type, const char *user,
                       int session_num, int grain_num, struct d_info **info) {
    return c_call(pool, [&](Pool &p) { return query(p, sizes, query_type, user, session_num, grain_num, info); });
}

void d_query_free(struct d_info *info) {
    if (info) delete static_cast<Answer *>(info->of_library);
}

int d_pool_grain_file(struct d_pool *pool, const char *user, int session_num, int grain_num, const char *name,
                      FILE **file) {
    return c_call(pool, [&](Pool &p) { return grain_file(p, user, session_num, grain_num, name, file); });
}

int d_pool_grain_stream(struct d_pool *pool, const char *user, int session_num, int grain_num, const char *stream,
                        FILE **file) {
    return c_call(pool, [&](Pool &p) { return grain_stream(p, user, session_num, grain_num, stream, file); });
}
}
