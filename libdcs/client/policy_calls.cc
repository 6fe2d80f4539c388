// Changing a host, clearing a nogo set, explaining a grain.
#include <cmath>

#include "base/limits.h"
#include "base/sized.h"
#include "client/call.h"
#include "client/rows.h"

namespace dcs::client {
namespace {

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
    wire::SetHost call;
    call.host = host;
    if (Status s = fill(*change, call); !s) return s;
    return ask<wire::Done>(pool, std::move(call), How{With::any}).status();
}

Status clear_nogo(Pool &pool, const char *user, int session_num, int grain_num, const char *host) {
    if (Status s = check_host(host); !s) return s;
    if (Status s = check_user(user); !s) return s;
    wire::SetHost call;
    call.host = host;
    call.clear_nogo = true;
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
