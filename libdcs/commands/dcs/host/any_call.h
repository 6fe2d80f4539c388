#pragma once
#include "client/call.h"
#include "commands/dcs/frame/this_pool.h"

namespace dcs::commands {

// One call that the public header does not have, with whatever credentials there are.
template <class Reply> Result<Reply> ask_any(const wire::AnyMessage &request) {
    return client::ask<Reply>(this_pool(), request, client::How{client::With::any});
}

}  // namespace dcs::commands
