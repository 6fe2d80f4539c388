#include "client/auth.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "client/exchange.h"
#include "client/remote.h"

namespace dcs::client {
namespace {

constexpr const char *auth_variable = "DCS_AUTH_FD";

// What dcs_begin leaves is a sealed memory file: 32 bytes, or the text of remote.h. Anything else under that number is
// a descriptor of the program's and stays as it is.
constexpr std::size_t credentials_bytes = 16 * 1024;

// A program that was begun for a scheduler elsewhere does not mean one of this host, also after the first error.
Status remote_result;  // as all here that threads share, made at load (pool.cc)

struct Inherited {
    int fd = -1;
    std::string where, bytes;  // for people; of the file
};

Status wrong(const Inherited &in, const std::string &what) {
    return fail(Code::no_auth, in.where + " " + what +
                                   ": start the program by dcs_begin again; on the scheduler's "
                                   "host it also works without");
}

Status look(Inherited &in) {
    struct stat st {};
    if (in.fd < 0 || ::fstat(in.fd, &st) != 0) return wrong(in, "is not an open descriptor");
    const int seals = ::fcntl(in.fd, F_GET_SEALS);
    const bool size_fits =
        st.st_size >= static_cast<off_t>(sizeof(Token)) && st.st_size <= static_cast<off_t>(credentials_bytes);
    if (seals < 0 || (seals & F_SEAL_WRITE) == 0 || !size_fits) return wrong(in, "does not hold a token");
    in.bytes.resize(static_cast<std::size_t>(st.st_size));
    // By offset: other programs may have inherited the same open file.
    const ssize_t n = ::pread(in.fd, in.bytes.data(), in.bytes.size(), 0);
    return n == static_cast<ssize_t>(in.bytes.size()) ? Status::ok() : wrong(in, "cannot be read");
}

// Once: the descriptor is closed.
Status take(Pool &pool, Inherited &in) {
    std::string token = in.bytes;
    if (token.size() != sizeof(Token)) {
        auto elsewhere = read_remote_credentials(in.bytes);
        if (!elsewhere) return wrong(in, "does not hold a token (" + elsewhere.status().text + ")");
        ::close(in.fd);
        if (Status s = use_remote(pool, *elsewhere); !s) return wrong(in, "holds invalid credentials (" + s.text + ")");
        token = std::move(elsewhere->token);
    } else {
        ::close(in.fd);
    }
    pool.set_inherited_token(std::move(token));
    return Status::ok();
}

// What the environment names, for a pool that the environment names; nothing: there is no such variable.
std::optional<Inherited> named(const Pool &pool) {
    const char *text = pool.by_environment() ? std::getenv(auth_variable) : nullptr;
    if (!text) return std::nullopt;
    Inherited in{-1, std::string(auth_variable) + "=" + text, {}};
    if (!read_number(text, in.fd)) in.fd = -1;
    return in;
}

Status take_inherited(Pool &pool) {
    auto in = named(pool);
    if (!in) return Status::ok();
    ::unsetenv(auth_variable);  // neither we nor our children try again
    const Status s = look(*in);
    return s ? take(pool, *in) : s;
}

}  // namespace

Status check_ident(const char *ident) {
    if (!ident || !*ident) return fail(Code::invalid, "control_ident is empty: give this control program a name");
    const std::string s = ident;
    if (s.size() > limits::name_bytes)
        return fail(Code::invalid, "control_ident has " + std::to_string(s.size()) + " bytes, at most 64 are allowed");
    if (s[0] == '.' || s[0] == '-') return fail(Code::invalid, "control_ident may not begin with . or -");
    for (const char c : s)
        if (!is_name_character(c)) return fail(Code::invalid, "control_ident may consist of A-Z a-z 0-9 . _ - only");
    return Status::ok();
}

Status get_auth(Pool &pool, const std::string &ident) {
    const AuthTurn alone(pool);
    if (Status s = take_inherited(pool); !s) return s;
    if (pool.credentials().ident == ident && pool.inherited_token().empty()) return Status::ok();
    if (pool.remote() && pool.inherited_token().empty() && pool.credentials().token.empty())
        return fail(Code::no_auth, "the scheduler no longer knows this program: start it by dcs_begin again");
    // The token of dcs_begin says who we are; the one that comes back is bound to this ident.
    if (Status s = adopt_remote(pool); !s) return s;
    std::string token = pool.inherited_token();
    if (token.empty() && pool.remote()) token = pool.credentials().token;
    const wire::AnyMessage request = wire::GetAuth{ident};
    auto reply = only<wire::AuthReply>(exchange(pool, request, {std::move(token)}), request);
    if (!reply) return reply.status();
    if (reply->token.size() != sizeof(Token))
        return fail(Code::protocol, "the scheduler sent a token of the wrong length");
    pool.set_credentials({ident, reply->token});
    return Status::ok();
}

Status adopt(Pool &pool, int fd) {
    Inherited in{fd, "auth_fd " + std::to_string(fd), {}};
    const Status s = look(in);
    return s ? take(pool, in) : s;
}

Status adopt_remote(Pool &pool) {
    if (!pool.by_environment()) return Status::ok();
    const std::lock_guard lock(process_mutex());
    auto in = named(pool);
    if (!in || !look(*in) || in->bytes.size() == sizeof(Token)) return remote_result;
    ::unsetenv(auth_variable);
    return remote_result = take(pool, *in);
}

}  // namespace dcs::client
