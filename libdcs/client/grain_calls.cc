// Submitting, killing and restarting a grain.
#include <cstring>

#include "base/sized.h"
#include "client/grain_spec.h"
#include "client/local_files.h"

namespace dcs::client {
namespace {

Status submit(Pool &pool, int session_num, int grain_num, const d_grain *from) {
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    const auto grain = known_grain(from);
    if (!grain) return grain.status();
    wire::Gexec request;
    request.session = session_num;
    request.grain = grain_num;
    request.new_demands = pool.new_demands;
    LocalFiles files;
    if (Status s = fill_spec(*grain, request.spec); !s) return s;
    if (Status s = files.take(*grain, request.spec); !s) return s;
    return files.submit(pool, wire::AnyMessage(std::move(request)));
}

}  // namespace
}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

extern "C" {

void d_grain_init_sized(struct d_grain *grain, size_t struct_size) { copy_out(plain_grain(), grain, struct_size); }

int d_pool_gexec_grain(struct d_pool *pool, int session_num, int grain_num, const struct d_grain *grain) {
    return c_call(pool, [&](Pool &p) { return submit(p, session_num, grain_num, grain); });
}

int d_gexec(int session_num, int grain_num, char *const gargv[], char *const genvv[], const char *input_str,
            unsigned host_class, int thrash, int urgent, int notice) {
    return c_call(nullptr, [&](Pool &p) {
        d_grain grain;
        d_grain_init(&grain);
        grain.gargv = gargv;
        grain.genvv = genvv;
        grain.input = input_str;
        grain.input_length = input_str ? std::strlen(input_str) : 0;
        grain.host_class = host_class;
        grain.thrash = thrash;
        grain.urgent = urgent;
        grain.notice = notice;
        return submit(p, session_num, grain_num, &grain);
    });
}

int d_pool_gkill(struct d_pool *pool, int session_num, int grain_num) {
    return d_pool_gkill_of(pool, nullptr, session_num, grain_num);
}

int d_pool_gkill_of(struct d_pool *pool, const char *user, int session_num, int grain_num) {
    return c_call(pool, [&](Pool &p) -> Status {
        if (Status s = check_user(user); !s) return s;
        if (Status s = check_grain(session_num, grain_num); !s) return s;
        return ask<wire::Done>(p, wire::Gkill{text_or_empty(user), session_num, grain_num}, How{With::any}).status();
    });
}

int d_pool_grestart(struct d_pool *pool, const char *user, int session_num, int grain_num) {
    return c_call(pool, [&](Pool &p) -> Status {
        if (Status s = check_user(user); !s) return s;
        if (Status s = check_grain(session_num, grain_num); !s) return s;
        return ask<wire::Done>(p, wire::RestartGrain{text_or_empty(user), session_num, grain_num}, How{With::any})
            .status();
    });
}
}
