#pragma once
// The scheduler's rows as they come, for our own commands; d_query shows them to programs.
#include "client/pool.h"
#include "wire/message.h"

namespace dcs::client {

// All that are asked for, page by page, with whatever credentials there are.
Status query_rows(Pool &pool, const wire::Query &query, wire::QueryReply &into);

}  // namespace dcs::client
