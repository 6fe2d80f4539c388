// Opening and closing pools, the version, and the forms of the calls for the default pool; changing a host, clearing a
// nogo set, explaining a grain.
#include <cmath>
#include <memory>
#include <string_view>

#include "base/sized.h"
#include "base/version.h"
#include "client/auth.h"
#include "client/call.h"
#include "base/limits.h"
#include "client/rows.h"

static_assert(std::string_view(D_VERSION_STRING) == DCS_VERSION, "dcs.h and the project have one version");

namespace dcs::client {
namespace {

Result<std::unique_ptr<Pool>> open_pool(const d_pool_options *from) {
    d_pool_options options;
    d_pool_options_init(&options);
    if (from) {
        auto taken = known(from, "options", options);
        if (!taken) return taken.status();
        options = *taken;
    }
    PoolOptions with;
    with.directory = text_or_empty(options.directory);
    with.ident = text_or_empty(options.ident);
    with.patience_s = options.patience_s;
    with.by_environment = !options.directory && options.auth_fd < 0;
    if (options.directory && (with.directory.empty() || with.directory[0] != '/'))
        return fail(Code::invalid, "directory is \"" + with.directory + "\": give it as an absolute path");
    if (options.ident)
        if (Status s = check_ident(options.ident); !s) return s;
    if (std::isnan(options.patience_s)) return fail(Code::invalid, "patience_s is not a number");
    auto pool = std::make_unique<Pool>(std::move(with));
    if (options.auth_fd >= 0)
        if (Status s = adopt(*pool, options.auth_fd); !s) return s;
    return pool;
}

constexpr double most_seconds = 1e9;  // what fits the scheduler's clock, with room

Status check_host(const char *host) {
    if (!host || !*host) return fail(Code::invalid, "host is missing: it is a name of the host table");
    if (std::char_traits<char>::length(host) > limits::name_bytes)
        return fail(Code::invalid, "host is longer than a host's name can be");
    return Status::ok();
}

Status take_seconds(const char *name, double value, double &into) {
    if (!std::isfinite(value) || value > most_seconds)
        return fail(Code::invalid, std::string(name) + " must be at most 1e9 seconds, or negative to keep it");
    if (value >= 0) into = value;
    return Status::ok();
}

Status fill(const d_host_change &change, wire::SetHost &call) {
    if (Status s = take_seconds("interval_s", change.interval_s, call.interval_s); !s) return s;
    if (Status s = take_seconds("alert_s", change.alert_s, call.alert_s); !s) return s;
    if (Status s = take_seconds("limit_s", change.limit_s, call.limit_s); !s) return s;
    if (Status s = take_seconds("extended_s", change.extended_s, call.extended_s); !s) return s;
    if (change.slots >= 0) call.slots = change.slots;
    if (change.drained >= 0) call.drained = change.drained != 0;
    call.host_class = change.host_class;
    call.reset = change.reset != 0;
    call.drain_reason = text_or_empty(change.drain_reason);
    if (call.drain_reason.size() > limits::label_bytes)
        return fail(Code::invalid, "drain_reason has more than " + std::to_string(limits::label_bytes) + " bytes");
    const bool changes = call.reset || call.slots >= 0 || call.drained >= 0 || call.host_class != 0 ||
                         call.interval_s >= 0 || call.alert_s >= 0 || call.limit_s >= 0 || call.extended_s >= 0;
    if (changes) return Status::ok();
    return fail(Code::invalid, "no field of the change is set: set one after d_host_change_init");
}

d_host_change no_change() {
    d_host_change change{};
    change.slots = change.drained = -1;
    change.interval_s = change.alert_s = change.limit_s = change.extended_s = -1;
    return change;
}

Status set_host(Pool &pool, const char *host, const d_host_change *from) {
    if (Status s = check_host(host); !s) return s;
    const auto change = known(from, "change", no_change());
    if (!change) return change.status();
    wire::SetHost call{.host = host};
    if (Status s = fill(*change, call); !s) return s;
    return ask<wire::Done>(pool, std::move(call), How{With::any}).status();
}

Status clear_nogo(Pool &pool, const char *user, int session_num, int grain_num, const char *host) {
    if (Status s = check_host(host); !s) return s;
    if (Status s = check_user(user); !s) return s;
    wire::SetHost call{.host = host, .clear_nogo = true};
    if (session_num >= 0 || grain_num >= 0) {
        if (Status s = check_grain(session_num, grain_num); !s) return s;
        call.user = text_or_empty(user);
        call.session = session_num;
        call.grain = grain_num;
    }
    return ask<wire::Done>(pool, std::move(call), How{With::any}).status();
}

Status explain(Pool &pool, const d_row_sizes *from, const char *user, int session_num, int grain_num,
               d_explanation **explanation) {
    if (!explanation) return fail(Code::invalid, "explanation is NULL");
    *explanation = nullptr;
    const auto sizes = known_sizes(from);
    if (!sizes) return sizes.status();
    if (Status s = check_user(user); !s) return s;
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    const wire::Explain request{text_or_empty(user), session_num, grain_num};
    auto reply = ask<wire::Explanation>(pool, request, How{With::any});
    if (!reply) return reply.status();
    *explanation = explanation_of(*sizes, std::move(*reply));
    return Status::ok();
}

}  // namespace
}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

extern "C" {

int d_version(void) { return D_VERSION; }
const char *d_version_string(void) { return D_VERSION_STRING; }

void d_pool_options_init_sized(struct d_pool_options *options, size_t struct_size) {
    d_pool_options defaults{.patience_s = -1, .auth_fd = -1};
    copy_out(defaults, options, struct_size);
}

struct d_pool *d_pool_open(const struct d_pool_options *options) {
    std::unique_ptr<Pool> made;
    c_call(nullptr, [&](Pool &) {
        auto opened = open_pool(options);
        if (!opened) return opened.status();
        made = std::move(*opened);
        return Status::ok();
    });
    return made.release();
}

void d_pool_close(struct d_pool *pool) {
    const NoCancel whole;
    delete pool;
}

int d_pool_set_patience(struct d_pool *pool, double patience_s) {
    return c_call(pool, [&](Pool &p) {
        if (std::isnan(patience_s)) return fail(Code::invalid, "patience_s is not a number");
        p.set_patience(patience_s);
        return Status::ok();
    });
}

int d_pool_set_new_demands(struct d_pool *pool, int on) {
    return c_call(pool, [&](Pool &p) {
        p.new_demands = on != 0;
        return Status::ok();
    });
}

int d_pool_get_auth(struct d_pool *pool, const char *control_ident) {
    return c_call(pool, [&](Pool &p) {
        const Status s = check_ident(control_ident);
        return s ? get_auth(p, control_ident) : s;
    });
}

int d_get_auth(const char *control_ident) { return d_pool_get_auth(nullptr, control_ident); }
int d_open_ses(int session_num) { return d_pool_open_ses(nullptr, session_num); }
int d_resume_ses(int session_num, int sent_reset) { return d_pool_resume_ses(nullptr, session_num, sent_reset); }
int d_reopen_ses(int session_num, int sent_reset) { return d_pool_reopen_ses(nullptr, session_num, sent_reset); }
int d_resume_failed(int session_num, int by_number) { return d_pool_resume_failed(nullptr, session_num, by_number); }
int d_close_ses(int session_num) { return d_pool_close_ses(nullptr, session_num); }
int d_clean_ses(int session_num) { return d_pool_clean_ses(nullptr, session_num); }
int d_gkill(int session_num, int grain_num) { return d_pool_gkill(nullptr, session_num, grain_num); }

int d_gexec_grain(int session_num, int grain_num, const struct d_grain *grain) {
    return d_pool_gexec_grain(nullptr, session_num, grain_num, grain);
}

int d_gexec_many(int session_num, const struct d_grain_order *orders, size_t count, size_t *taken, size_t *refused) {
    return d_pool_gexec_many(nullptr, session_num, orders, count, taken, refused);
}

int d_gwait_result(int block, int session_num, struct d_result *result) {
    return d_pool_gwait_result(nullptr, block, session_num, result);
}

int d_gwait_many(int block, int session_num, int max, struct d_result *results, int *count) {
    return d_pool_gwait_many(nullptr, block, session_num, max, results, count);
}

int d_grain_stream(const char *user, int session_num, int grain_num, const char *stream, FILE **file) {
    return d_pool_grain_stream(nullptr, user, session_num, grain_num, stream, file);
}

int d_host_class(const char *names, unsigned *mask) { return d_pool_host_class(nullptr, names, mask); }
int d_grain_file(const char *user, int session_num, int grain_num, const char *name, FILE **file) {
    return d_pool_grain_file(nullptr, user, session_num, grain_num, name, file);
}

int d_sethost(const char *host, const struct d_host_change *change) { return d_pool_sethost(nullptr, host, change); }

int d_clear_nogo(const char *user, int session_num, int grain_num, const char *host) {
    return d_pool_clear_nogo(nullptr, user, session_num, grain_num, host);
}

int d_grestart(const char *user, int session_num, int grain_num) {
    return d_pool_grestart(nullptr, user, session_num, grain_num);
}

int d_close_ses_of(const char *user, int session_num) { return d_pool_close_ses_of(nullptr, user, session_num); }

int d_gkill_of(const char *user, int session_num, int grain_num) {
    return d_pool_gkill_of(nullptr, user, session_num, grain_num);
}

void d_host_change_init_sized(struct d_host_change *change, size_t struct_size) {
    copy_out(no_change(), change, struct_size);
}

int d_pool_sethost(struct d_pool *pool, const char *host, const struct d_host_change *change) {
    return c_call(pool, [&](Pool &p) { return set_host(p, host, change); });
}

int d_pool_clear_nogo(struct d_pool *pool, const char *user, int session_num, int grain_num, const char *host) {
    return c_call(pool, [&](Pool &p) { return clear_nogo(p, user, session_num, grain_num, host); });
}

int d_pool_explain_sized(struct d_pool *pool, const struct d_row_sizes *sizes, const char *user, int session_num,
                         int grain_num, struct d_explanation **explanation) {
    return c_call(pool, [&](Pool &p) { return explain(p, sizes, user, session_num, grain_num, explanation); });
}

void d_explanation_free(struct d_explanation *explanation) { free_explanation(explanation); }
}
