// d_gexec, d_gexec_grain, d_gkill, d_grestart (C7, C9, C13).
#include <cstring>

#include "base/limits.h"
#include "client/grain_spec.h"
#include "client/local_files.h"

namespace dcs::client {
namespace {

Status submit(int session_num, int grain_num, const d_grain *grain) {
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    if (!grain) return fail(Code::invalid, "the description of the grain is NULL");
    wire::Gexec request;
    request.session = session_num;
    request.grain = grain_num;
    LocalFiles files;
    if (Status s = fill_spec(*grain, request.spec); !s) return s;
    if (Status s = files.take(*grain, request.spec); !s) return s;
    if (!files.any()) return ask<wire::Done>(wire::AnyMessage(std::move(request))).status();
    const wire::AnyMessage message(std::move(request));
    Status s;
    for (int attempt = 0; attempt < most_submissions; ++attempt) {
        s = ask<wire::Done>(message).status();
        if (s || s.code != Code::not_found) break;
        if (Status brought = files.upload(); !brought) return brought;
    }
    return s;
}

}  // namespace
}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

extern "C" {

void d_grain_init(struct d_grain *grain) {
    *grain = d_grain{};
    grain->attempts = limits::attempts;
    grain->input_fd = -1;
}

int d_gexec_grain(int session_num, int grain_num, const struct d_grain *grain) {
    return c_call([&] { return submit(session_num, grain_num, grain); });
}

int d_gexec(int session_num, int grain_num, char *const gargv[], char *const genvv[], const char *input_str,
            unsigned host_class, int thrash, int urgent, int notice) {
    return c_call([&] {
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
        return submit(session_num, grain_num, &grain);
    });
}

int d_gkill(int session_num, int grain_num) {
    return d_gkill_of(nullptr, session_num, grain_num);
}

int d_gkill_of(const char *user, int session_num, int grain_num) {
    return c_call([&]() -> Status {
        if (Status s = check_user(user); !s) return s;
        if (Status s = check_grain(session_num, grain_num); !s) return s;
        return ask<wire::Done>(wire::Gkill{text_or_empty(user), session_num, grain_num}, How{With::any})
            .status();
    });
}

int d_grestart(const char *user, int session_num, int grain_num) {
    return c_call([&]() -> Status {
        if (Status s = check_user(user); !s) return s;
        if (Status s = check_grain(session_num, grain_num); !s) return s;
        return ask<wire::Done>(wire::RestartGrain{text_or_empty(user), session_num, grain_num},
                               How{With::any})
            .status();
    });
}
}
