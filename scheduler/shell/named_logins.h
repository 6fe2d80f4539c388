#pragma once
// Logins that the host table and the policy name. A mistyped one is no error, as its account may come later or from a
// directory service that is down, but its line permits or denies nothing to a login.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/instant.h"

namespace dcs::shell {

struct NamedLogin {
    std::string place;  // "FILE:LINE", or the option
    std::string words;  // "deny eve" or "users=eve"
    std::string login;
    bool admits = false;     // a line `user` of a policy whose lines `user` are all of this kind
    bool shuts_out = false;  // of an unknown one that admits: so are all others, and no user is admitted
    // No grain runs under root's login, and root may always call.
    bool no_effect() const { return words == "accounts=root" || words == "deny root"; }
    bool operator==(const NamedLogin &) const = default;
};
// Of texts without errors. Names of uids without a login, "uid1234", are left out.
std::vector<NamedLogin> logins_of_hosts(std::string_view text, const std::string &file);
std::vector<NamedLogin> logins_of_policy(std::string_view text, const std::string &file);

std::vector<NamedLogin> logins_of_masters(const std::vector<std::string> &names);  // of the option --master

const char *why_no_effect(const NamedLogin &named);
// "FILE:LINE: ..."
std::string unknown_login_text(const NamedLogin &named);
void warn_of(const std::vector<NamedLogin> &unknown);  // in the log

// Which of them this host does not know, or have no effect.
class UnknownLogins {
public:
    using Knows = std::function<bool(const std::string &login)>;
    using Clock = std::function<Instant()>;
    UnknownLogins(Knows knows, Clock clock) : knows_(std::move(knows)), clock_(std::move(clock)) {}
    void take(std::vector<NamedLogin> named);
    // All after take(), then the unknown ones once a minute; for some seconds at most, as a directory service may be
    // slow.
    const std::vector<NamedLogin> &look();

private:
    const Knows knows_;
    const Clock clock_;
    std::vector<NamedLogin> named_, unknown_;
    bool first_look_ = true;
    Instant next_look_{};
};

}  // namespace dcs::shell
