// d_open_ses, d_resume_ses, d_reopen_ses, d_close_ses, d_clean_ses (C2 - C6).
#include "base/planted.h"
#include "client/call.h"

namespace dcs::client {
namespace {

Status open_session(int number, wire::OpenMode mode, bool sent_reset) {
    if (Status s = check_session(number); !s) return s;
    auto reply = ask<wire::OpenReply>(wire::OpenSession{number, mode, sent_reset});
    if (!reply) return reply.status();
    const bool one_ahead = reply->as == wire::OpenedAs::resumed && planted("client.resume_one_ahead");
    session_opened(number, sent_reset ? 0 : reply->sent + one_ahead);
    return Status::ok();
}

Status close_session(int number) {
    if (Status s = check_session(number); !s) return s;
    // Everything handed out so far is acknowledged; -1: this process handed out nothing.
    const std::int32_t acknowledged = session_next(number).value_or(-1);
    auto reply = ask<wire::Done>(wire::CloseSession{{}, number, acknowledged});
    if (!reply) return reply.status();
    session_closed(number);
    return Status::ok();
}

}  // namespace
}  // namespace dcs::client

using namespace dcs;
using namespace dcs::client;

extern "C" {

int d_open_ses(int session_num) {
    return c_call([&] { return open_session(session_num, wire::OpenMode::open, false); });
}

int d_resume_ses(int session_num, int sent_reset) {
    return c_call([&] { return open_session(session_num, wire::OpenMode::resume, sent_reset != 0); });
}

int d_reopen_ses(int session_num, int sent_reset) {
    return c_call([&] { return open_session(session_num, wire::OpenMode::reopen, sent_reset != 0); });
}

int d_close_ses(int session_num) {
    return c_call([&] { return close_session(session_num); });
}

int d_clean_ses(int session_num) {
    return c_call([&]() -> Status {
        if (Status s = check_session(session_num); !s) return s;
        return ask<wire::Done>(wire::CleanSession{{}, session_num}, How{With::any}).status();
    });
}

int d_close_ses_of(const char *user, int session_num) {
    return c_call([&]() -> Status {
        if (Status s = check_session(session_num); !s) return s;
        if (Status s = check_user(user); !s) return s;
        return ask<wire::Done>(wire::CloseSession{text_or_empty(user), session_num, -1}, How{With::any})
            .status();
    });
}
}
