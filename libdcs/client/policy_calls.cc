// d_sethost, d_clear_nogo, d_explain (C11).
#include <cmath>
#include <memory>

#include "base/limits.h"
#include "client/call.h"

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
        return fail(Code::invalid, std::string(name) + " must be seconds up to 1e9, or negative to stay");
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
                         call.interval_s >= 0 || call.alert_s >= 0 || call.limit_s >= 0 ||
                         call.extended_s >= 0;
    if (changes) return Status::ok();
    return fail(Code::invalid, "the change changes nothing: set one of its fields after d_host_change_init");
}

Status set_host(const char *host, const d_host_change *change) {
    if (Status s = check_host(host); !s) return s;
    if (!change) return fail(Code::invalid, "change is NULL");
    wire::SetHost call;
    call.host = host;
    if (Status s = fill(*change, call); !s) return s;
    return ask<wire::Done>(std::move(call), How{With::any}).status();
}

Status clear_nogo(const char *user, int session_num, int grain_num, const char *host) {
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
    return ask<wire::Done>(std::move(call), How{With::any}).status();
}

// The answer as the caller sees it, and what it points to.
struct Why : d_explanation {
    wire::Explanation reply;
    std::vector<d_reason> rows;
    std::vector<std::vector<const char *>> names;
};

// The reply does not move any more from here on.
void show(Why &why) {
    why.state = why.reply.state.c_str();
    why.summary = why.reply.summary.c_str();
    why.can_run = why.reply.can_run;
    why.ahead = why.reply.ahead;
    why.names.resize(why.reply.reasons.size());
    for (std::size_t i = 0; i < why.reply.reasons.size(); ++i) {
        const wire::WhyRow &row = why.reply.reasons[i];
        std::vector<const char *> &names = why.names[i];
        for (const std::string &name : row.names) names.push_back(name.c_str());
        why.rows.push_back({row.reason.c_str(), row.text.c_str(), row.hint.c_str(), row.hosts, names.size(),
                            names.empty() ? nullptr : names.data()});
    }
    why.reason_count = why.rows.size();
    why.reasons = why.rows.data();
}

Status explain(const char *user, int session_num, int grain_num, d_explanation **explanation) {
    if (!explanation) return fail(Code::invalid, "explanation is NULL");
    *explanation = nullptr;
    if (Status s = check_user(user); !s) return s;
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    auto reply =
        ask<wire::Explanation>(wire::Explain{text_or_empty(user), session_num, grain_num}, How{With::any});
    if (!reply) return reply.status();
    auto why = std::make_unique<Why>();
    why->reply = std::move(*reply);
    show(*why);
    *explanation = why.release();
    return Status::ok();
}

}  // namespace
}  // namespace dcs::client

using namespace dcs::client;

extern "C" {

void d_host_change_init(struct d_host_change *change) {
    *change = d_host_change{-1, -1, -1, -1, -1, 0, -1, 0};
}

int d_sethost(const char *host, const struct d_host_change *change) {
    return c_call([&] { return set_host(host, change); });
}

int d_clear_nogo(const char *user, int session_num, int grain_num, const char *host) {
    return c_call([&] { return clear_nogo(user, session_num, grain_num, host); });
}

int d_explain(const char *user, int session_num, int grain_num, struct d_explanation **explanation) {
    return c_call([&] { return explain(user, session_num, grain_num, explanation); });
}

void d_explanation_free(struct d_explanation *explanation) { delete static_cast<Why *>(explanation); }
}
