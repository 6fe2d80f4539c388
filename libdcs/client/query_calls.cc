// What the scheduler knows.
#include <cstring>
#include <tuple>

#include "base/host_classes.h"
#include "base/option_table.h"
#include "client/call.h"
#include "client/query.h"
#include "client/rows.h"
#include "client/streams.h"

namespace dcs::client {
namespace {

struct Kind {
    wire::QueryType type;
    const char *status;
};
constexpr Kind kinds[] = {
    {wire::QueryType::system, ""},           // D_Q_SYSTEM
    {wire::QueryType::hosts, ""},            // D_Q_HOSTS
    {wire::QueryType::sessions, ""},         // D_Q_SESSIONS
    {wire::QueryType::grains, ""},           // D_Q_GRAINS
    {wire::QueryType::grains, "ready"},      // D_Q_READY
    {wire::QueryType::grains, "running"},    // D_Q_RUNNING
    {wire::QueryType::grains, "finished"},   // D_Q_FINISHED
    {wire::QueryType::grains, "killed"},     // D_Q_KILLED
    {wire::QueryType::grain, ""},            // D_Q_GRAIN
    {wire::QueryType::hosts, "active"},      // D_Q_HOSTS_ACTIVE
    {wire::QueryType::hosts, "delinquent"},  // D_Q_HOSTS_DELINQUENT
};
static_assert(sizeof kinds / sizeof kinds[0] == D_Q_HOSTS_DELINQUENT + 1);

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
        into.last_number = page.last_number;
        for (auto &row : page.sessions) into.sessions.push_back(std::move(row));
        if (query.after_user.empty()) into.stored = std::move(page.stored);
        if (!page.more) return Status::ok();
        if (page.sessions.empty() || std::tie(into.sessions.back().user, into.sessions.back().session) <=
                                         std::tie(query.after_user, query.after))
            return fail(Code::protocol, "the scheduler repeats a page of sessions");
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
            return fail(Code::protocol, "the scheduler repeats a page of grains");
        query.after = into.grains.back().grain;
    }
}

// Grains of all sessions of a user: session by session. One may be removed meanwhile.
Status ask_all_grains(Pool &pool, wire::Query query, wire::QueryReply &into) {
    wire::QueryReply sessions;
    wire::Query which{.type = wire::QueryType::sessions, .user = query.user};
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

}  // namespace

Result<std::uint32_t> mask_of_classes(Pool &pool, std::string_view names) {
    if (const auto mask = class_of(names)) return *mask;
    wire::QueryReply reply;
    if (Status s = ask_query(pool, wire::Query{}, reply); !s) return s;
    HostClasses known;
    for (const wire::ClassRow &row : reply.system.classes) known.push_back({row.name, row.mask});
    return mask_of(names, known);
}

Status query_rows(Pool &pool, const wire::Query &query, wire::QueryReply &into) {
    if (query.type == wire::QueryType::sessions) return ask_sessions(pool, query, into);
    if (query.type != wire::QueryType::grains) return ask_query(pool, query, into);
    return query.session >= 0 ? ask_grains(pool, query, into) : ask_all_grains(pool, query, into);
}

namespace {

Status query(Pool &pool, const d_row_sizes *from, int type, const char *user, int session_num, int grain_num,
             d_info **info) {
    if (!info) return fail(Code::invalid, "info is NULL");
    *info = nullptr;
    const auto sizes = known_sizes(from);
    if (!sizes) return sizes.status();
    if (type < D_Q_SYSTEM || type > D_Q_HOSTS_DELINQUENT)
        return fail(Code::invalid, "query_type is " + std::to_string(type) + ": it must be one of D_Q_...");
    if (Status s = check_user(user); !s) return s;
    if (session_num != -1)
        if (Status s = check_session(session_num); !s) return s;
    wire::Query request;
    request.type = kinds[type].type;
    request.status = kinds[type].status;
    request.user = text_or_empty(user);
    request.session = session_num;
    request.grain = grain_num;
    if (type == D_Q_GRAIN)
        if (Status s = check_grain(session_num, grain_num); !s) return s;
    wire::QueryReply reply;
    if (Status s = query_rows(pool, request, reply); !s) return s;
    *info = info_of(*sizes, std::move(reply), pool.line().user);
    return Status::ok();
}

Status host_class(Pool &pool, const char *names, unsigned *mask) {
    if (!mask) return fail(Code::invalid, "mask is NULL");
    *mask = 0;
    if (!names || !*names) return fail(Code::invalid, "names is empty: name classes of the host table");
    const auto found = mask_of_classes(pool, names);
    if (found) *mask = *found;
    return found.status();
}

Result<wire::Stream> stream_named(const char *name) {
    static constexpr struct {
        const char *name;
        wire::Stream stream;
    } all[] = {
        {"out", wire::Stream::out},         {"err", wire::Stream::err},     {"checkpoint", wire::Stream::checkpoint},
        {"message", wire::Stream::message}, {"input", wire::Stream::input},
    };
    for (const auto &s : all)
        if (name && std::strcmp(name, s.name) == 0) return s.stream;
    return fail(Code::invalid,
                "stream is \"" + text_or_empty(name) + "\": it must be out, err, checkpoint, message or input");
}

// `name` is for a file, which is one of the streams.
Status grain_stream(Pool &pool, const char *user, int session_num, int grain_num, const Result<wire::Stream> &which,
                    FILE **file, const std::string &name = {}) {
    if (!file) return fail(Code::invalid, "file is NULL");
    *file = nullptr;
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    if (Status s = check_user(user); !s) return s;
    if (!which) return which.status();
    if (*which == wire::Stream::file && name.empty()) return fail(Code::invalid, "the name of the file is missing");
    auto f = fetch_stream(pool, text_or_empty(user), session_num, grain_num, *which, {}, UINT64_MAX, With::any, name);
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

void d_query_free(struct d_info *info) { free_info(info); }

int d_pool_host_class(struct d_pool *pool, const char *names, unsigned *mask) {
    return c_call(pool, [&](Pool &p) { return host_class(p, names, mask); });
}

int d_pool_grain_file(struct d_pool *pool, const char *user, int session_num, int grain_num, const char *name,
                      FILE **file) {
    return c_call(pool, [&](Pool &p) {
        return grain_stream(p, user, session_num, grain_num, dcs::wire::Stream::file, file, text_or_empty(name));
    });
}

int d_pool_grain_stream(struct d_pool *pool, const char *user, int session_num, int grain_num, const char *stream,
                        FILE **file) {
    return c_call(pool,
                  [&](Pool &p) { return grain_stream(p, user, session_num, grain_num, stream_named(stream), file); });
}
}
