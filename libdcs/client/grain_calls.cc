// d_gexec, d_gexec_grain, d_gkill, d_grestart (C7, C9, C13).
#include <cstring>

#include "base/limits.h"
#include "client/local_files.h"

namespace dcs::client {
namespace {

// What was brought may be found damaged a moment later, or be another scheduler's.
constexpr int most_submissions = 4;

Status too_much(const std::string &what, std::size_t is, std::size_t most) {
    return fail(Code::limit, what + " is " + std::to_string(is) + ", the limit is " + std::to_string(most));
}

// gargv and genvv share one limit for their number and one for their bytes.
struct Room { std::size_t items = 0, bytes = 0; };

Status copy_strings(char *const *from, Room &used, std::vector<std::string> &to) {
    for (; from && *from; ++from) {
        if (++used.items > limits::argv_items)
            return too_much("the number of strings in gargv and genvv together", used.items,
                            limits::argv_items);
        to.emplace_back(*from);
        used.bytes += to.back().size() + 1;
        if (used.bytes > limits::argv_env_bytes)
            return too_much("the length of gargv and genvv together", used.bytes, limits::argv_env_bytes);
    }
    return Status::ok();
}

Status check_number(const char *name, int value, int least, int most) {
    if (value >= least && value <= most) return Status::ok();
    return fail(Code::invalid, std::string(name) + " is " + std::to_string(value) + ": it must be " +
                                   std::to_string(least) + " to " + std::to_string(most));
}

Status check_numbers(const d_grain &g) {
    if (Status s = check_number("thrash", g.thrash, 0, INT32_MAX); !s) return s;
    if (Status s = check_number("notice", g.notice, 0, INT32_MAX); !s) return s;
    if (Status s = check_number("cores", g.cores, 0, INT32_MAX); !s) return s;
    if (Status s = check_number("memory_mb", g.memory_mb, 0, INT32_MAX); !s) return s;
    if (Status s = check_number("wall_s", g.wall_s, 0, INT32_MAX); !s) return s;
    return check_number("attempts", g.attempts, 1, 255);
}

Status check_environment(const std::vector<std::string> &env) {
    for (const std::string &entry : env) {
        const auto at = entry.find('=');
        if (at == std::string::npos || at == 0)
            return fail(Code::invalid,
                        "genvv has the entry \"" + entry.substr(0, 80) + "\": it must be NAME=value");
    }
    return Status::ok();
}

Status fill(const d_grain &g, wire::GrainSpec &spec) {
    if (!g.gargv || !g.gargv[0] || !*g.gargv[0])
        return fail(Code::invalid, "gargv[0] is missing: it is the path of the grain's executable");
    if (Status s = check_numbers(g); !s) return s;
    Room used;
    if (Status s = copy_strings(g.gargv, used, spec.argv); !s) return s;
    if (Status s = copy_strings(g.genvv, used, spec.env); !s) return s;
    if (Status s = check_environment(spec.env); !s) return s;
    if (g.input_length > limits::input_bytes)
        return too_much("the length of the input", g.input_length, limits::input_bytes);
    if (g.input_length > 0 && !g.input)
        return fail(Code::invalid, "input is NULL, but input_length is " + std::to_string(g.input_length));
    if (g.input_length > 0) spec.input.assign(static_cast<const char *>(g.input), g.input_length);
    spec.directory = text_or_empty(g.directory);
    if (spec.directory.size() > limits::path_bytes)
        return too_much("the length of directory", spec.directory.size(), limits::path_bytes);
    spec.label = text_or_empty(g.label);
    if (spec.label.size() > limits::label_bytes)
        return too_much("the length of label", spec.label.size(), limits::label_bytes);
    spec.host_class = g.host_class;
    spec.thrash = g.thrash;
    spec.urgent = g.urgent != 0;
    spec.notice = g.notice;
    spec.attempts = g.attempts;
    spec.cores = g.cores;
    spec.memory_mb = g.memory_mb;
    spec.wall_s = g.wall_s;
    return Status::ok();
}

Status submit(int session_num, int grain_num, const d_grain *grain) {
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    if (!grain) return fail(Code::invalid, "the description of the grain is NULL");
    wire::Gexec request;
    request.session = session_num;
    request.grain = grain_num;
    LocalFiles files;
    if (Status s = fill(*grain, request.spec); !s) return s;
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
