#include "grainserver/files/owner_rules.h"

#include <algorithm>

#include <grp.h>
#include <pwd.h>

#include "grainserver/files/sealed.h"

namespace dcs::files {
namespace {

Status beyond(const std::string &what) {
    return fail(Code::refused, what +
                                   ", which the owner of this host does not permit: the launch record is not this "
                                   "grain server's, or was written under other options");
}

// Whether the owner's limit, 0 for none, is respected.
bool within(std::int64_t asked, std::int64_t allowed) { return allowed == 0 || (asked > 0 && asked <= allowed); }

bool is_home(const std::string &path, const std::string &homes) {
    if (homes.empty() || path.compare(0, homes.size() + 1, homes + "/") != 0) return false;
    const std::string user = path.substr(homes.size() + 1);
    return !user.empty() && user != "." && user != ".." && user.find('/') == std::string::npos;
}

Status permits_login(const OwnerRules &rules, const Account &account, const Logins &logins) {
    const auto name = logins.name_of(account.uid);
    const std::string whose = name ? "the account of " + *name : "uid " + std::to_string(account.uid);
    if (!name) return beyond("it asks for " + whose);
    const Result<Account> login = logins.login(rules, *name);
    if (!login || login->uid != account.uid || login->gid != account.gid) return beyond("it asks for " + whose);
    for (const std::uint32_t group : account.groups)
        if (std::find(login->groups.begin(), login->groups.end(), group) == login->groups.end())
            return beyond("it asks for " + whose + " and the group " + std::to_string(group));
    return Status::ok();
}

class HostLogins final : public Logins {
public:
    std::optional<std::string> name_of(std::uint32_t uid) const override {
        const passwd *login = ::getpwuid(uid);
        if (login == nullptr) return {};
        return login->pw_name;
    }
    Result<Account> login(const OwnerRules &rules, const std::string &name) const override {
        const auto &list = rules.accounts;
        if (std::find(list.begin(), list.end(), name) == list.end())
            return fail(Code::refused, "--accounts of this server does not name it");
        const passwd *login = ::getpwnam(name.c_str());
        if (login == nullptr || name != login->pw_name) return fail(Code::not_found, "this host has no such login");
        if (login->pw_uid < first_login || login->pw_uid == nobody_id)
            return fail(Code::refused, "it is a system account");
        Account account{.change = true, .uid = login->pw_uid, .gid = login->pw_gid};
        gid_t groups[256];
        int count = 256;
        if (::getgrouplist(login->pw_name, login->pw_gid, groups, &count) < 0) count = 0;  // too many: none
        for (int i = 0; i < count; ++i) account.groups.push_back(groups[i]);
        return account;
    }
};

}  // namespace

std::string pack(const OwnerRules &x) {
    ByteWriter w;
    w.u8(x.users);
    put_list(w, x.accounts);
    w.u32(x.first);
    w.u32(x.last);
    const Limits &l = x.limits;
    for (const std::int64_t v : {l.memory_mb, l.processes, l.cpu_s, l.disk_mb, l.file_mb})
        w.u64(static_cast<std::uint64_t>(v));
    w.u32(x.rungs);
    put_list(w, x.writable);
    w.text(x.homes);
    // Launchers of older releases do not know these.
    if (x.images_mb != usual_images_mb || x.ordinary_priority) w.u32(x.images_mb);
    if (x.ordinary_priority) w.u8(1);
    return seal("DOR1", w.bytes());
}

Result<OwnerRules> unpack_rules(std::string_view bytes) {
    const Result<std::string_view> fields = unseal("DOR1", bytes);
    if (!fields) return fields.status();
    ByteReader r(*fields);
    OwnerRules x{.users = r.u8() != 0, .accounts = get_list(r), .first = r.u32(), .last = r.u32()};
    Limits &l = x.limits;
    for (std::int64_t *v : {&l.memory_mb, &l.processes, &l.cpu_s, &l.disk_mb, &l.file_mb})
        *v = static_cast<std::int64_t>(r.u64());
    x.rungs = r.u32();
    x.writable = get_list(r);
    x.homes = r.text();
    if (!r.at_end()) x.images_mb = r.u32();
    if (!r.at_end()) x.ordinary_priority = r.u8() != 0;
    if (!r.at_end()) return fail(Code::io_error, "record DOR1 is damaged");
    return x;
}

const Logins &logins_of_this_host() {
    static const HostLogins logins;
    return logins;
}

Status permits(const OwnerRules &rules, const Account &account, const Logins &logins) {
    if (!rules.users)
        return account.change ? beyond("it asks for an account of its own, uid " + std::to_string(account.uid))
                              : Status::ok();
    if (!account.change) return beyond("it asks for the account of the grain server itself");
    if (!account.made_up) return permits_login(rules, account, logins);
    const std::string uid = std::to_string(account.uid);
    if (account.uid < rules.first || account.uid > rules.last || account.gid != account.uid || !account.groups.empty())
        return beyond("it asks for the anonymous uid " + uid + " and gid " + std::to_string(account.gid));
    if (const auto whose = logins.name_of(account.uid))
        return fail(Code::refused, "anonymous uid " + uid + " of this user has become the uid of login " + *whose +
                                       ": give that login another one");
    return Status::ok();
}

Status permits(const OwnerRules &rules, const LaunchRecord &record, const Logins &logins) {
    if (Status s = permits(rules, record.account, logins); !s) return s;
    if ((record.rungs & rules.rungs) != rules.rungs)
        return beyond("it asks for less confinement than " + to_words(rules.rungs));
    const Limits &asked = record.limits, &most = rules.limits;
    if (!within(asked.memory_mb, most.memory_mb) || !within(asked.processes, most.processes) ||
        !within(asked.cpu_s, most.cpu_s) || !within(asked.disk_mb, most.disk_mb) ||
        !within(asked.file_mb, most.file_mb))
        return beyond("it asks for higher limits");
    for (const std::string &path : record.writable)
        if (std::find(rules.writable.begin(), rules.writable.end(), path) == rules.writable.end() &&
            !is_home(path, rules.homes))
            return beyond("it asks for write access to " + path);
    return Status::ok();
}

}  // namespace dcs::files
