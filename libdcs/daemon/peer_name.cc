#include "daemon/peer_name.h"

#include <cerrno>
#include <grp.h>
#include <vector>

#include "base/text.h"
#include "base/planted.h"

namespace dcs {
namespace {

constexpr std::size_t most_known = 4096;
constexpr Duration good_for = seconds(60), bad_for = seconds(5);

std::string number_name(std::uint32_t uid) { return "uid" + std::to_string(uid); }

}  // namespace

bool usable_login_name(const std::string &name, std::uint32_t uid) {
    if (!is_name(name)) return false;
    // A login "uid7" must not own the sessions of uid 7, which has no name.
    bool number =
        name.size() > 3 && name.rfind("uid", 0) == 0 && name.find_first_not_of("0123456789", 3) == std::string::npos;
    return !number || name == number_name(uid);
}

Result<LocalGroup> find_group(const std::string &group) {
    std::vector<char> buffer(1024);
    for (;;) {
        struct group entry = {};
        struct group *found = nullptr;
        const int error = ::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found);
        if (error == EINTR) continue;
        if (error == ERANGE && buffer.size() < (1u << 24)) {
            buffer.resize(buffer.size() * 4);
            continue;
        }
        if (found != nullptr) {
            LocalGroup known{found->gr_gid, {}};
            for (char **member = found->gr_mem; *member != nullptr; ++member) known.members.emplace_back(*member);
            return known;
        }
        if (error != 0) return fail_errno(Code::io_error, "cannot look up the group " + group, error);
        return fail(Code::not_found, "there is no group " + group + ": create it with `groupadd " + group + "`");
    }
}

Result<std::uint32_t> group_number(const std::string &group) {
    const auto known = find_group(group);
    return known ? Result<std::uint32_t>(known->number) : known.status();
}

const Result<KnownPeer> &PeerNames::look_up(std::uint32_t uid, Instant now) {
    const auto found = known_.find(uid);
    if (found != known_.end() && (now < found->second.until || planted("daemon.uid_for_ever")))
        return found->second.peer;
    Entry entry{look_up_(uid), {}};
    // Each attempt may take the tables a while.
    if (!entry.peer && found != known_.end() && found->second.good()) {
        found->second.until = now + good_for;
        return found->second.peer;
    }
    if (entry.peer.status().code == Code::not_found) entry.peer = KnownPeer{};
    entry.until = now + (entry.good() ? good_for : bad_for);
    if (known_.size() >= most_known) known_.clear();
    return known_.insert_or_assign(uid, std::move(entry)).first->second.peer;
}

// They are asked again; if they do not answer, who is known is served.
void PeerNames::forget() {
    if (planted("daemon.uid_for_ever")) return;
    for (auto &[uid, entry] : known_) entry.until = Instant{};
}

Result<std::string> PeerNames::of(std::uint32_t uid, bool own, Instant now) {
    const Result<KnownPeer> &known = look_up(uid, now);
    if (!known) return known.status();
    const KnownPeer &peer = *known;
    if (!own && peer.login.empty())
        return fail(Code::refused, "uid " + std::to_string(uid) +
                                       " has no login name on the scheduler's host, so it "
                                       "is not a user of the pool: use the account that "
                                       "owns the pool, or create a login for it");
    if (!own && !peer.may_call) return peer.may_call;
    return usable_login_name(peer.login, uid) ? peer.login : number_name(uid);
}

}  // namespace dcs
