// d_get_auth (C1).
#include <cerrno>
#include <climits>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "client/call.h"

namespace dcs::client {
namespace {

constexpr const char *variable = "DCS_AUTH_FD";

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

// What dcs_begin leaves is a sealed memory file of 32 bytes. Anything else under that number is
// somebody else's descriptor and stays as it is.
Status take_inherited() {
    const char *text = std::getenv(variable);
    if (!text) return Status::ok();
    const std::string value = text;
    char *end = nullptr;
    errno = 0;
    const long fd = std::strtol(value.c_str(), &end, 10);
    const bool is_number = !value.empty() && *end == '\0' && errno == 0 && fd >= 0 && fd <= INT_MAX;
    ::unsetenv(variable);  // once: neither we nor our children try again
    const auto wrong = [&](const char *what) {
        return fail(
            Code::no_auth,
            "DCS_AUTH_FD=" + value + " " + what +
                ": start the program by dcs_begin again; on the scheduler's host it also works without");
    };
    struct stat st {};
    if (!is_number || ::fstat(static_cast<int>(fd), &st) != 0) return wrong("is not an open descriptor");
    const int seals = ::fcntl(static_cast<int>(fd), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_WRITE) == 0 || st.st_size != static_cast<off_t>(sizeof(Token)))
        return wrong("does not hold a token");
    std::string token(sizeof(Token), '\0');
    // By offset: other programs may have inherited the same open file.
    const ssize_t n = ::pread(static_cast<int>(fd), token.data(), token.size(), 0);
    if (n != static_cast<ssize_t>(token.size())) return wrong("cannot be read");
    ::close(static_cast<int>(fd));
    set_inherited_token(std::move(token));
    return Status::ok();
}

Status get_auth(const char *ident) {
    if (Status s = check_ident(ident); !s) return s;
    if (Status s = take_inherited(); !s) return s;
    if (credentials().ident == ident && inherited_token().empty()) return Status::ok();
    // The token of dcs_begin says who we are; the one that comes back is bound to this ident.
    auto reply = ask<wire::AuthReply>(wire::GetAuth{ident}, How{With::inherited});
    if (!reply) return reply.status();
    if (reply->token.size() != sizeof(Token))
        return fail(Code::protocol, "the scheduler sent a token of a wrong length");
    set_credentials({ident, reply->token});
    return Status::ok();
}

}  // namespace
}  // namespace dcs::client

extern "C" int d_get_auth(const char *control_ident) {
    return dcs::client::c_call([&] { return dcs::client::get_auth(control_ident); });
}
