#pragma once
// From a request to its reply over this thread's connection to a pool, and from a Status to what a C call
// returns.
#include <exception>
#include <string>

#include "base/no_cancel.h"
#include "client/exchange.h"
#include "dcs.h"

namespace dcs::client {

enum class With {
    token,  // Code::no_auth without d_get_auth
    any     // the token if there is one
};

struct How {
    With with = With::token;
    bool for_ever = false;                  // a blocking wait
    std::int32_t *refused_grain = nullptr;  // gets the grain of a batch that an error is about
    Duration waited = {};                   // already, of the pool's patience
};

// Any reply but ErrorReply, which becomes a Status.
Result<wire::AnyMessage> converse(Pool &pool, const wire::AnyMessage &request, How how);

template <class Reply> Result<Reply> ask(Pool &pool, const wire::AnyMessage &request, How how = {}) {
    return only<Reply>(converse(pool, request, how), request);
}

// The error text of this thread, errno, and the number for the caller.
int report(const Status &status);

// Every C call runs in here: nothing may be thrown into a C program. pool null: the default one.
template <class Body> int c_call(d_pool *pool, Body body) {
    const NoCancel whole;
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
