#pragma once
// A request and its reply over this thread's connection to a pool, by a program with a token that is known.
#include <string>

#include "base/status.h"
#include "client/pool.h"
#include "wire/message.h"

namespace dcs::client {

struct Exchange {
    std::string token;                      // empty: without
    bool for_ever = false;                  // a blocking wait
    std::int32_t *refused_grain = nullptr;  // gets the grain of a batch that an error is about
    Duration waited = {};                   // already, of the pool's patience
};

// Any reply but ErrorReply, which becomes a Status.
Result<wire::AnyMessage> exchange(Pool &pool, const wire::AnyMessage &request, const Exchange &how);

// The reply, which has to be of this kind.
template <class Reply> Result<Reply> only(Result<wire::AnyMessage> reply, const wire::AnyMessage &request) {
    if (!reply) return reply.status();
    if (auto *wanted = std::get_if<Reply>(&*reply)) return std::move(*wanted);
    return fail(Code::protocol,
                std::string("the scheduler answered ") + wire::kind_name(request) + " with " + wire::kind_name(*reply));
}

// How long an open connection may be silent; longer than one that broke is tried: a busy disk is no failure.
Duration silence_of(Duration patience);
// What the scheduler refused to a program with this token.
Status refusal_of(Pool &pool, const std::string &token, const wire::ErrorReply &error);

}  // namespace dcs::client
