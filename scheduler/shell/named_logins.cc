#include "scheduler/shell/named_logins.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "daemon/log.h"
#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
namespace {

constexpr Duration look_for = seconds(2), between_looks = seconds(60), after_slow_look = seconds(600);

bool is_uid_name(std::string_view name) {
    std::uint32_t uid = 0;
    return name.starts_with("uid") && read_number(name.substr(3), uid);
}

void add_login(std::vector<NamedLogin> &logins, const std::string &place, std::string_view key,
               std::string_view login) {
    if (!is_uid_name(login)) logins.push_back({place, std::string(key) + std::string(login), std::string(login)});
}

}  // namespace

std::vector<NamedLogin> logins_of_hosts(std::string_view text, const std::string &file) {
    std::vector<NamedLogin> logins;
    for (const NumberedLine &line : lines_with_words(text))
        for (const std::string_view word : line.words)
            for (const std::string_view key : {"users=", "accounts="})
                if (word.starts_with(key))
                    for (const std::string_view login : words_of(word.substr(key.size()), ","))
                        add_login(logins, file + ":" + std::to_string(line.number), key, login);
    return logins;
}

std::vector<NamedLogin> logins_of_policy(std::string_view text, const std::string &file) {
    std::vector<NamedLogin> logins;
    bool admits_uid = false;
    for (const NumberedLine &line : lines_with_words(text)) {
        if (line.words.size() != 2 || (line.words[0] != "user" && line.words[0] != "deny")) continue;
        const bool user = line.words[0] == "user";
        const std::size_t before = logins.size();
        add_login(logins, file + ":" + std::to_string(line.number), std::string(line.words[0]) + " ", line.words[1]);
        if (logins.size() > before) logins.back().admits = user;
        else admits_uid = admits_uid || user;
    }
    if (admits_uid)
        for (NamedLogin &named : logins) named.admits = false;
    return logins;
}

std::vector<NamedLogin> logins_of_masters(const std::vector<std::string> &names) {
    std::vector<NamedLogin> logins;
    for (const std::string &name : names) add_login(logins, "option --master", "", name);
    return logins;
}

const char *why_no_effect(const NamedLogin &named) {
    return named.words == "deny root" ? "root may always call" : "no grain runs under root's login";
}

std::string unknown_login_text(const NamedLogin &named) {
    if (named.no_effect()) return named.place + ": `" + named.words + "`: " + why_no_effect(named);
    return named.place + ": `" + named.words + "`: this host knows no login " + named.login +
           (named.shuts_out ? ", nor another one of the list: only root and masters may use the pool" : "");
}

void warn_of(const std::vector<NamedLogin> &unknown) {
    for (const NamedLogin &named : unknown) log_warn(unknown_login_text(named));
}

void UnknownLogins::take(std::vector<NamedLogin> named) {
    named_ = std::move(named);
    unknown_.clear();
    first_look_ = true;
    next_look_ = Instant{};
}

const std::vector<NamedLogin> &UnknownLogins::look() {
    const Instant begun = clock_();
    if (begun < next_look_) return unknown_;
    // An account that was there does not go unnoticed for ever: the next reload looks them all up.
    const std::vector<NamedLogin> doubtful = std::exchange(first_look_, false) ? named_ : std::move(unknown_);
    unknown_.clear();
    std::map<std::string, bool> asked;
    bool slow = false;
    for (const NamedLogin &named : doubtful) {
        auto at = asked.find(named.login);
        if (at == asked.end()) {
            slow = clock_() - begun > look_for;
            if (slow) break;
            at = asked.emplace(named.login, knows_(named.login)).first;
        }
        if (!at->second || named.no_effect()) unknown_.push_back(named);
    }
    const auto admitting = [](const NamedLogin &named) { return named.admits; };
    const bool shuts_out = std::count_if(named_.begin(), named_.end(), admitting) ==
                           std::count_if(unknown_.begin(), unknown_.end(), admitting);
    for (NamedLogin &named : unknown_) named.shuts_out = shuts_out && named.admits;
    if (slow) first_look_ = true;
    next_look_ = clock_() + (slow ? after_slow_look : between_looks);
    return unknown_;
}

}  // namespace dcs::shell
