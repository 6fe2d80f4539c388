// Opening and closing sessions.
#include <fcntl.h>

#include "base/planted.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/text.h"
#include "client/call.h"

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

Status open_session(Pool &pool, int number, wire::OpenMode mode, bool sent_reset) {
    if (Status s = check_session(number); !s) return s;
    wire::OpenSession order{number, mode, sent_reset};
    order.command = typed_command();
    order.label = pool.new_sessions.label.substr(0, limits::label_bytes);
    order.nice = pool.new_sessions.nice;
    auto reply = ask<wire::OpenReply>(pool, order);
    if (!reply) return reply.status();
    const bool one_ahead = reply->as == wire::OpenedAs::resumed && planted("client.resume_one_ahead");
    pool.session_opened(number, sent_reset ? 0 : reply->sent + one_ahead);
    return Status::ok();
}

Status close_session(Pool &pool, int number) {
    if (Status s = check_session(number); !s) return s;
    // Everything handed out so far is acknowledged; -1: this program handed out nothing.
    const std::int32_t acknowledged = pool.session_next(number).value_or(-1);
    auto reply = ask<wire::Done>(pool, wire::CloseSession{{}, number, acknowledged});
    if (!reply) return reply.status();
    pool.session_closed(number);
    return Status::ok();
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
}
