// Opening and closing sessions.
#include "base/planted.h"
#include "client/call.h"

namespace dcs::client {
namespace {

Status open_session(Pool &pool, int number, wire::OpenMode mode, bool sent_reset) {
    if (Status s = check_session(number); !s) return s;
    auto reply = ask<wire::OpenReply>(pool, wire::OpenSession{number, mode, sent_reset});
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
