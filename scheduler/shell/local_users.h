#pragma once
// Which user a process of this host is, and whether it may call, by the tables that the keeper looks up.
#include <cstdint>
#include <string>

#include "base/instant.h"
#include "base/status.h"
#include "daemon/peer_name.h"
#include "scheduler/keeper/keeper.h"

namespace dcs::shell {

// Root and the account that the scheduler runs under.
bool owner_or_root(std::uint32_t uid);

class LocalUsers {
public:
    // `members_only`: of the group that the keeper knows.
    LocalUsers(keeper::KeeperClient &keeper, bool members_only)
        : keeper_(keeper), members_only_(members_only), names_([this](std::uint32_t uid) { return look_up(uid); }) {}
    LocalUsers(const LocalUsers &) = delete;
    LocalUsers &operator=(const LocalUsers &) = delete;

    // As PeerNames::of().
    Result<std::string> name_of(std::uint32_t uid);
    void forget() { names_.forget(); }
    bool knows_login(const std::string &login);

private:
    Result<KnownPeer> look_up(std::uint32_t uid);
    Status unknown(const Status &why);

    keeper::KeeperClient &keeper_;
    const bool members_only_;
    PeerNames names_;
    Instant silence_told_{};  // until when the log says that the user database does not answer
};

}  // namespace dcs::shell
