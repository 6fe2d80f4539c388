#include "grainserver/shell/identity.h"

#include <algorithm>
#include <set>

#include <fcntl.h>
#include <unistd.h>

#include "base/option_table.h"
#include "base/planted.h"
#include "base/require.h"
#include "base/text.h"
#include "grainserver/files/grain_name.h"
#include "locks/dcs_atoms.h"

namespace dcs::server {
namespace {
constexpr const char *lock_name = "anonymous-uids.lock";
constexpr std::size_t table_max = 64u << 20;
constexpr std::int64_t turn_patience = 5'000'000'000;  // while another server adds a user
}  // namespace

Result<std::vector<std::string>> parse_logins(const std::string &option, const std::string &text, const char *none) {
    if (text == none) return std::vector<std::string>();
    std::vector<std::string> names = split(text, ',');
    for (const std::string &name : names)
        if (name.empty() || name.find_first_of(" /:") != std::string::npos)
            return fail(Code::invalid, option + " must be login names separated by commas without blanks, or " + none);
    return names;
}

Status parse_uids(const std::string &text, std::uint32_t &first, std::uint32_t &last) {
    const std::size_t dash = text.find('-');
    const bool good = dash != std::string::npos && read_number(text.substr(0, dash), first) &&
                      read_number(text.substr(dash + 1), last) && first >= files::first_login && first <= last &&
                      last < 4'294'967'294u && (last < files::nobody_id || first > files::nobody_id + 1);
    return good ? Status::ok()
                : fail(Code::invalid, "--anonymous-uids must be FIRST-LAST, from 1000 on and without 65534 and 65535");
}

Status Identities::open(const std::string &directory, const IdentityOptions &options, const files::Logins &logins) {
    rules_.users = options.users;
    rules_.accounts = options.accounts;
    of_users_ = options.of_users;
    rules_.first = options.first;
    rules_.last = options.last;
    logins_ = &logins;
    directory_ = directory;
    if (!rules_.users) return Status::ok();
    Result<Fd> fd = open_directory(AT_FDCWD, directory);
    if (!fd) return fd.status();
    fd_ = std::move(*fd);
    if (Status s = read(); !s) return s;
    return permitted();
}

Status Identities::permitted() const {
    std::size_t outside = 0;
    std::uint32_t lowest = UINT32_MAX, highest = 0;
    for (const auto &[name, uid] : uids_) {
        lowest = std::min(lowest, uid), highest = std::max(highest, uid);
        if (uid < rules_.first || uid > rules_.last) ++outside;
    }
    if (outside == 0) return Status::ok();
    return fail(Code::invalid, "--anonymous-uids " + std::to_string(rules_.first) + "-" + std::to_string(rules_.last) +
                                   " does not contain " + std::to_string(outside) + " of the " +
                                   std::to_string(uids_.size()) + " uids that " + directory_ + "/" + made_up_name +
                                   " records, " + std::to_string(lowest) + "-" + std::to_string(highest) +
                                   ": give a range that contains them, or, when no grains and homes of these users "
                                   "are to be kept, remove that file together with all homes and grains of this "
                                   "server");
}

// Text: a line "<uid> <encoded user>" per user, and a last line "end".
Status Identities::read() {
    const std::string path = directory_ + "/" + made_up_name;
    const Result<std::string> text = read_file(fd_.get(), made_up_name, table_max);
    if (!text && text.status().code == Code::not_found) return Status::ok();
    if (!text) return text.status();
    std::map<std::string, std::uint32_t> uids;
    std::set<std::uint32_t> taken;
    bool complete = false;
    for (std::string_view rest = *text; !rest.empty() && !complete;) {
        const std::string_view line = take_line(rest);
        complete = line == "end" && rest.empty();
        if (complete) break;
        const std::size_t space = line.find(' ');
        std::uint32_t uid = 0;
        const bool good =
            space != std::string_view::npos && read_number(line.substr(0, space), uid) && uid >= files::first_login;
        if (!good || !taken.insert(uid).second || !uids.emplace(line.substr(space + 1), uid).second)
            return fail(Code::io_error, path + " is damaged at `" + std::string(line) +
                                            "`; correct it, or remove it "
                                            "together with all homes and grains of this server");
    }
    if (!complete)
        return fail(Code::io_error, path +
                                        " is incomplete; restore it, or remove it together with all "
                                        "homes and grains of this server");
    uids_ = std::move(uids);
    return Status::ok();
}

Result<files::Account> Identities::made_up(const std::string &user) {
    files::Account account;
    account.change = account.made_up = true;
    const std::string name = files::encoded_name(user);
    auto known = uids_.find(name);
    if (known == uids_.end()) {
        if (Status s = add(name); !s) return s;
        known = uids_.find(name);
    }
    DCS_REQUIRE(known != uids_.end(), "a uid is recorded before its use");
    DCS_REQUIRE(known->second >= files::first_login, "an anonymous account is not a system account");
    account.uid = account.gid = known->second;
    return account;
}

Status Identities::make_lock(const std::string &directory) {
    return locks::take_dcs_atom(locks::DcsAtom::accounts, directory + "/" + lock_name, turn_patience).status();
}

// Under the lock, because the servers share the table.
Status Identities::add(const std::string &name) {
    const auto turn = locks::take_dcs_atom(locks::DcsAtom::accounts, directory_ + "/" + lock_name, turn_patience);
    if (!turn) return turn.status();
    if (Status s = read(); !s || uids_.count(name) != 0) return s;
    std::set<std::uint32_t> taken;
    for (const auto &[other, uid] : uids_) taken.insert(uid);
    std::uint32_t uid = rules_.first;
    while (uid <= rules_.last && (taken.count(uid) != 0 || logins_->name_of(uid))) ++uid;
    if (uid > rules_.last) return fail(Code::limit, "all uids of --anonymous-uids are in use");
    DCS_REQUIRE(taken.count(uid) == 0 && uid >= rules_.first, "each user has a uid of its own");
    auto uids = uids_;
    uids.emplace(name, uid);
    std::string text;
    for (const auto &[other, number] : uids) text += std::to_string(number) + " " + other + "\n";
    if (Status s = replace_durably(fd_.get(), made_up_name, text + "end\n"); !s) return s;
    uids_ = std::move(uids);
    return Status::ok();
}

Result<files::Account> Identities::of(const std::string &user, bool own_account, std::string &note) {
    const bool ours = of_users_.empty() || std::find(of_users_.begin(), of_users_.end(), user) != of_users_.end();
    if (!ours && !planted("server.any_user"))
        return fail(Code::refused, "the grain server runs no grains of " + user +
                                       ", as its option --users does not name this login; correct users= of the "
                                       "host's line, or start the server with the login");
    if (!rules_.users) return files::Account{};
    if (own_account) {
        Result<files::Account> login = logins_->login(rules_, user);
        if (login) return login;
        note = "the login " + user + " is not used, " + login.status().text + "; an anonymous uid is used instead";
    }
    return made_up(user);
}

}  // namespace dcs::server
