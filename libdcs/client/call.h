#pragma once
// From a request to its reply over this thread's connection to a pool, and from a Status to what a C call
// returns.
#include <exception>
#include <string>

#include "base/status.h"
#include "client/pool.h"
#include "dcs.h"
#include "wire/message.h"

namespace dcs::client {

enum class With {
    token,     // Code::no_auth without d_get_auth
    any,       // the token if there is one
    inherited  // what dcs_begin left, or none: d_get_auth itself
};

struct How {
    With with = With::token;
    bool for_ever = false;                  // a blocking wait
    std::int32_t *refused_grain = nullptr;  // gets the grain of a batch that an error is about
};

// How long an open connection may be silent; longer than one that broke is tried: a busy disk is no failure.
Duration silence_of(Duration patience);
// What the scheduler refused to a program with this token.
Status refusal_of(Pool &pool, const std::string &token, const wire::ErrorReply &error);

// Any reply but ErrorReply, which becomes a Status.
Result<wire::AnyMessage> converse(Pool &pool, const wire::AnyMessage &request, How how);

// Takes the credentials that dcs_begin left if the scheduler is on another host; at `fd`, or where the environment says
// (auth.cc).
Status adopt_remote(Pool &pool);
Status adopt(Pool &pool, int fd);
Status check_ident(const char *ident);
Status get_auth(Pool &pool, const std::string &ident);

template <class Reply> Result<Reply> ask(Pool &pool, const wire::AnyMessage &request, How how = {}) {
    auto reply = converse(pool, request, how);
    if (!reply) return reply.status();
    if (auto *wanted = std::get_if<Reply>(&*reply)) return std::move(*wanted);
    return fail(Code::protocol,
                std::string("the scheduler answered ") + wire::kind_name(request) + " with " + wire::kind_name(*reply));
}

// The error text of this thread, errno, and the number for the caller.
int report(const Status &status);

// Every C call runs in here: nothing may be thrown into a C program. pool null: the default one.
template <class Body> int c_call(d_pool *pool, Body body) {
    try {
        return report(body(pool_of(pool)));
    } catch (const std::exception &e) {
        return report(fail(Code::internal, std::string("inside the library: ") + e.what()));
    }
}

// Checks that several calls need.
Status check_user(const char *user);  // may be NULL
Status check_session(int session_num);
Status check_grain(int session_num, int grain_num);
std::string text_or_empty(const char *text);

}  // namespace dcs::client
