#pragma once
// The scheduler's rows as they come, for our own commands; d_query shows them to programs.
#include "client/pool.h"
#include "wire/message.h"

namespace dcs::client {

// All that are asked for, page by page, with whatever credentials there are.
Status query_rows(Pool &pool, const wire::Query &query, wire::QueryReply &into);

// "gpu,0x8" by the names of the pool's host table, which is asked for unless it is a number alone.
Result<std::uint32_t> mask_of_classes(Pool &pool, std::string_view names);

}  // namespace dcs::client
