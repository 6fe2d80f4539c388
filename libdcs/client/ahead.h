#pragma once
// Calls that follow one another, such as the pieces of a file: the next ones leave before the earlier ones are
// answered, so that neither side waits for the other.
#include <functional>

#include "base/status.h"
#include "client/pool.h"
#include "wire/message.h"

namespace dcs::client {

// Unanswered at a time: with pieces of a file about as much as a peer reads before its answers are taken.
inline constexpr std::size_t calls_ahead = 8;

// Makes the next request of the one before; false: there is none.
using NextCall = std::function<Result<bool>(wire::AnyMessage &request)>;
// Gets any reply but ErrorReply, in the order of the requests.
using TakeReply = std::function<Status(const wire::AnyMessage &reply)>;

// On the connection that this thread's last call left open. The first failure ends it, after all answers that are due.
// Code::broken: there is no connection, or it ended; unanswered requests may have been received. Nothing is repeated.
Status call_ahead(Pool &pool, wire::AnyMessage &request, const NextCall &next, const TakeReply &take,
                  std::size_t unanswered = calls_ahead);

}  // namespace dcs::client
