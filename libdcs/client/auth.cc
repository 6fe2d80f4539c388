// d_get_auth (C1).
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <mutex>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "client/call.h"
#include "client/remote.h"

namespace dcs::client {
namespace {

constexpr const char *auth_variable = "DCS_AUTH_FD";

bool ident_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

Status check_ident(const char *ident) {
    if (!ident || !*ident)
        return fail(Code::invalid, "control_ident is empty: give this control program a name");
    const std::string s = ident;
    if (s.size() > limits::name_bytes)
        return fail(Code::invalid,
                    "control_ident has " + std::to_string(s.size()) + " bytes, at most 64 are allowed");
    if (s[0] == '.' || s[0] == '-') return fail(Code::invalid, "control_ident may not begin with . or -");
    for (const char c : s)
        if (!ident_character(c))
            return fail(Code::invalid, "control_ident may consist of A-Z a-z 0-9 . _ - only");
    return Status::ok();
}

// What dcs_begin leaves is a sealed memory file: 32 bytes, or the text of remote.h. Anything else under that number is
// somebody else's descriptor and stays as it is.
constexpr std::size_t credentials_bytes = 16 * 1024;

struct Inherited {
    int fd = -1;
    std::string value, bytes;  // of the variable; of the file
};

Status wrong(const Inherited &in, const std::string &what) {
    return fail(Code::no_auth, "DCS_AUTH_FD=" + in.value + " " + what +
                                   ": start the program by dcs_begin again; on the scheduler's host it also "
                                   "works without");
}

Status look(Inherited &in) {
    char *end = nullptr;
    errno = 0;
    const long fd = std::strtol(in.value.c_str(), &end, 10);
    const bool is_number = !in.value.empty() && *end == '\0' && errno == 0 && fd >= 0 && fd <= INT_MAX;
    struct stat st {};
    if (!is_number || ::fstat(static_cast<int>(fd), &st) != 0) return wrong(in, "is not an open descriptor");
    const int seals = ::fcntl(static_cast<int>(fd), F_GET_SEALS);
    const bool size_fits = st.st_size >= static_cast<off_t>(sizeof(Token)) &&
                           st.st_size <= static_cast<off_t>(credentials_bytes);
    if (seals < 0 || (seals & F_SEAL_WRITE) == 0 || !size_fits) return wrong(in, "does not hold a token");
    in.bytes.resize(static_cast<std::size_t>(st.st_size));
    // By offset: other programs may have inherited the same open file.
    const ssize_t n = ::pread(static_cast<int>(fd), in.bytes.data(), in.bytes.size(), 0);
    if (n != static_cast<ssize_t>(in.bytes.size())) return wrong(in, "cannot be read");
    in.fd = static_cast<int>(fd);
    return Status::ok();
}

// Once: neither we nor our children try again.
Status take(Inherited &in) {
    ::unsetenv(auth_variable);
    if (in.bytes.size() == sizeof(Token)) {
        ::close(in.fd);
        set_inherited_token(std::move(in.bytes));
        return Status::ok();
    }
    auto elsewhere = read_remote_credentials(in.bytes);
    if (!elsewhere) return wrong(in, "does not hold a token (" + elsewhere.status().text + ")");
    ::close(in.fd);
    if (Status s = use_remote(*elsewhere); !s) return wrong(in, "holds what cannot be used (" + s.text + ")");
    set_inherited_token(std::move(elsewhere->token));
    return Status::ok();
}

Status take_inherited() {
    const char *text = std::getenv(auth_variable);
    if (!text) return Status::ok();
    Inherited in{-1, text, {}};
    const Status s = look(in);
    if (s) return take(in);
    ::unsetenv(auth_variable);
    return s;
}

Status get_auth(const char *ident) {
    if (Status s = check_ident(ident); !s) return s;
    if (Status s = take_inherited(); !s) return s;
    if (credentials().ident == ident && inherited_token().empty()) return Status::ok();
    if (remote() && inherited_token().empty() && credentials().token.empty())
        return fail(Code::no_auth, "the scheduler does not know this program any more: start it by dcs_begin again");
    // The token of dcs_begin says who we are; the one that comes back is bound to this ident.
    auto reply = ask<wire::AuthReply>(wire::GetAuth{ident}, How{With::inherited});
    if (!reply) return reply.status();
    if (reply->token.size() != sizeof(Token))
        return fail(Code::protocol, "the scheduler sent a token of a wrong length");
    set_credentials({ident, reply->token});
    return Status::ok();
}

}  // namespace

Status adopt_remote() {
    // Who was begun for a scheduler elsewhere does not mean one of this host, also after the first error.
    static std::mutex mutex;
    static Status result;
    const std::lock_guard lock(mutex);
    const char *text = std::getenv(auth_variable);
    if (!text) return result;
    Inherited in{-1, text, {}};
    if (look(in) && in.bytes.size() != sizeof(Token)) result = take(in);
    return result;
}

}  // namespace dcs::client

extern "C" int d_get_auth(const char *control_ident) {
    return dcs::client::c_call([&] { return dcs::client::get_auth(control_ident); });
}
