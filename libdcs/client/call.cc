#include "client/call.h"

#include "base/limits.h"
#include "client/auth.h"

namespace dcs::client {
namespace {

// Programs of other hosts have no identity without a token.
Result<std::string> token_for(const Pool &pool, With with) {
    std::string token = pool.credentials().token;
    const bool elsewhere = pool.remote() != nullptr;
    if (with == With::any) return token.empty() && elsewhere ? pool.inherited_token() : token;
    if (token.empty()) return no_auth_yet();
    return token;
}

}  // namespace

Result<wire::AnyMessage> converse(Pool &pool, const wire::AnyMessage &request, How how) {
    if (Status s = adopt_remote(pool); !s) return s;
    auto token = token_for(pool, how.with);
    if ((!token || token->empty()) && !pool.ident().empty()) {
        if (Status s = get_auth(pool, pool.ident()); !s) return s;
        token = token_for(pool, how.with);
    }
    if (!token) return token.status();
    return exchange(pool, request, {std::move(*token), how.for_ever, how.refused_grain, how.waited});
}

Status check_user(const char *user) {
    if (user && std::char_traits<char>::length(user) > limits::name_bytes)
        return fail(Code::invalid, "user is longer than the longest login name");
    return Status::ok();
}

Status check_session(int session_num) {
    if (session_num >= 0) return Status::ok();
    return fail(Code::invalid,
                "session_num is " + std::to_string(session_num) + ": session numbers are 0 to 2147483647");
}

Status check_grain(int session_num, int grain_num) {
    if (Status s = check_session(session_num); !s) return s;
    if (grain_num >= 0) return Status::ok();
    return fail(Code::invalid, "grain_num is " + std::to_string(grain_num) + ": grain numbers are 0 to 2147483647");
}

std::string text_or_empty(const char *text) { return text ? text : ""; }

}  // namespace dcs::client
