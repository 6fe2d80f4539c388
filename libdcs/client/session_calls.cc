// Opening and closing sessions; submitting, killing and restarting a grain.
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include "base/planted.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/text.h"
#include "client/call.h"
#include "base/sized.h"
#include "client/local_files.h"

namespace dcs::client {
namespace {

// The words by which this program was started, the path of its file left out; cut at what a session may keep.
std::string typed_command() {
    constexpr std::size_t most = limits::label_bytes - 2;
    std::string bytes;
    const Fd file(::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
    (void)read_to_end(file.get(), 4096, bytes);
    std::vector<std::string> words;
    for (std::size_t at = 0; at < bytes.size(); at += words.back().size() + 1)
        words.push_back(bytes.substr(at, bytes.find('\0', at) - at));
    if (!words.empty() && words[0][0] == '/') words[0].erase(0, words[0].rfind('/') + 1);
    const std::string line = shell_line(words);
    return line.size() <= most ? line : line.substr(0, most) + "..";
}

// "process 4711 on hal at 02:12:03".
std::string this_run() {
    char host[HOST_NAME_MAX + 1] = "", time[16] = "";
    const std::time_t now = std::time(nullptr);
    std::tm then = {};
    (void)::gethostname(host, sizeof host - 1);
    if (::localtime_r(&now, &then) != nullptr) std::strftime(time, sizeof time, "%H:%M:%S", &then);
    return "process " + std::to_string(::getpid()) + " on " + host + " at " + time;
}

// DCS_RESUME_FAILED.
Result<bool> environment_resumes_failed(const Pool &pool) {
    const char *text = pool.may_resume_failed ? std::getenv("DCS_RESUME_FAILED") : nullptr;
    const std::string value = text_or_empty(text);
    if (value.empty() || value == "0") return false;
    if (value == "1") return true;
    return fail(Code::invalid, "DCS_RESUME_FAILED is `" + value + "`: it must be 1, or not set");
}

Status open_session(Pool &pool, int number, wire::OpenMode mode, bool sent_reset) {
    if (Status s = check_session(number); !s) return s;
    wire::OpenSession order{number, mode, sent_reset};
    order.command = typed_command();
    order.label = pool.new_sessions.label.substr(0, limits::label_bytes);
    order.nice = pool.new_sessions.nice;
    order.run = this_run();
    const auto resumes_failed = environment_resumes_failed(pool);
    if (!resumes_failed) return resumes_failed.status();
    order.for_failed = *resumes_failed && mode == wire::OpenMode::resume;
    auto reply = ask<wire::OpenReply>(pool, order);
    if (!reply) return reply.status();
    const bool one_ahead = reply->as == wire::OpenedAs::resumed && planted("client.resume_one_ahead");
    pool.session_opened(number, {.next = sent_reset ? 0 : reply->sent + one_ahead,
                                 .grains = GrainsOfRun(sent_reset && reply->as != wire::OpenedAs::fresh),
                                 .replay = reply->as == wire::OpenedAs::replay,
                                 .results = reply->results});
    const bool again = *resumes_failed && sent_reset && reply->as == wire::OpenedAs::resumed;
    return again ? pool.resume_failed(number, true) : Status::ok();
}

Status close_session(Pool &pool, int number) {
    if (Status s = check_session(number); !s) return s;
    if (const auto grain = pool.only_taken(number); grain && !planted("client.takes_others"))
        return fail(Code::grain_differs,
                    "session " + std::to_string(number) + " is not closed: this run took the result of grain " +
                        std::to_string(*grain) +
                        ", which an earlier run submitted and this one has not, so they are of different programs or "
                        "arguments, and what this run has computed is wrong; another ident and session number, or `dcs "
                        "session clean " +
                        std::to_string(number) + "`, begin anew");
    // Everything handed out so far is acknowledged; -1: this program handed out nothing.
    const std::int32_t acknowledged = pool.session_next(number).value_or(-1);
    auto reply = ask<wire::Done>(pool, wire::CloseSession{{}, number, acknowledged});
    if (!reply) return reply.status();
    pool.session_closed(number);
    return Status::ok();
}

// A larger grain is sent while others are.
constexpr std::uint64_t most_in_group = 64 * 1024;

Status submit_alone(Pool &pool, GroupedGrain &grain, LocalFiles &files, Duration waited = {}) {
    wire::Gexec request{.session = grain.session, .grain = grain.order.grain};
    pool.put_changes(request);
    request.spec = std::move(grain.order.spec);
    return files.submit(pool, wire::AnyMessage(std::move(request)), How{.waited = waited});
}

// All of them happen or none.
Status submit_group(Pool &pool, const Group &group) {
    wire::GexecMany request{.session = group.grains().front()->session};
    pool.put_changes(request);
    for (const GroupedGrainPtr &grain : group.grains()) request.orders.push_back(grain->order);
    return LocalFiles().submit(pool, wire::AnyMessage(std::move(request)), How{.waited = group.waited()});
}

constexpr const char *no_answer_to_others =
    "the scheduler did not answer what other threads of this program submitted before, as long as this call may take";

// A refusal may be about one of a group, or only about so many: each asks for itself then.
bool concerns_all(const Status &s) { return s || s.code == Code::unreachable || s.code == Code::broken; }

Status submit_grouped(Pool &pool, const GroupedGrainPtr &own, LocalFiles &files) {
    {
        Group group(pool.submitting(), own, pool.patience());
        if (group.too_late()) return group.status = fail(Code::unreachable, no_answer_to_others);
        if (group.grains().size() == 1) return group.status = submit_alone(pool, *own, files, group.waited());
        if (!group.grains().empty()) own->status = group.status = submit_group(pool, group);
    }
    return concerns_all(own->status) ? own->status : submit_alone(pool, *own, files);
}

Status submit(Pool &pool, int session_num, int grain_num, const d_grain *from) {
    if (Status s = check_grain(session_num, grain_num); !s) return s;
    const auto grain = known_grain(from);
    if (!grain) return grain.status();
    const auto own = std::make_shared<GroupedGrain>();
    own->session = session_num;
    own->order.grain = grain_num;
    LocalFiles files;
    if (Status s = fill_spec(*grain, own->order.spec); !s) return s;
    if (Status s = files.take(*grain, own->order.spec); !s) return s;
    own->bytes = bytes_of(own->order.spec);
    const bool alone = files.any() || own->bytes > most_in_group;
    const Status s = alone ? submit_alone(pool, *own, files) : submit_grouped(pool, own, files);
    if (s) files.submitted();
    return s;
}

}  // namespace
}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

extern "C" {

int d_pool_open_ses(struct d_pool *pool, int session_num) {
    return c_call(pool, [&](Pool &p) { return open_session(p, session_num, wire::OpenMode::open, false); });
}

int d_pool_resume_ses(struct d_pool *pool, int session_num, int sent_reset) {
    return c_call(pool, [&](Pool &p) { return open_session(p, session_num, wire::OpenMode::resume, sent_reset != 0); });
}

int d_pool_reopen_ses(struct d_pool *pool, int session_num, int sent_reset) {
    return c_call(pool, [&](Pool &p) { return open_session(p, session_num, wire::OpenMode::reopen, sent_reset != 0); });
}

int d_pool_close_ses(struct d_pool *pool, int session_num) {
    return c_call(pool, [&](Pool &p) { return close_session(p, session_num); });
}

int d_pool_clean_ses(struct d_pool *pool, int session_num) {
    return c_call(pool, [&](Pool &p) -> Status {
        if (Status s = check_session(session_num); !s) return s;
        return ask<wire::Done>(p, wire::CleanSession{{}, session_num}, How{With::any}).status();
    });
}

int d_pool_close_ses_of(struct d_pool *pool, const char *user, int session_num) {
    return c_call(pool, [&](Pool &p) -> Status {
        if (Status s = check_session(session_num); !s) return s;
        if (Status s = check_user(user); !s) return s;
        return ask<wire::Done>(p, wire::CloseSession{text_or_empty(user), session_num, -1}, How{With::any}).status();
    });
}

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

int d_pool_resume_failed(struct d_pool *pool, int session_num, int by_number) {
    return c_call(pool, [&](Pool &p) -> Status {
        if (Status s = check_session(session_num); !s) return s;
        return p.resume_failed(session_num, by_number == 0);
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
