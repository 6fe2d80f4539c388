#pragma once
// Which user a process of this host is, and whether it may call, by the tables that the keeper looks up.
#include <cstdint>
#include <string>
#include <vector>

#include "base/instant.h"
#include "base/status.h"
#include "daemon/peer_name.h"
#include "scheduler/keeper/keeper.h"
#include "wire/session_calls.h"

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
    Status check_login(const std::string &login);  // of a user of another host, too
    // For `dcs doctor`, while the user database does not answer.
    void add_problem(std::vector<wire::ProblemRow> &rows) const;

private:
    Result<KnownPeer> look_up(std::uint32_t uid);
    Status unknown(const Status &why);

    keeper::KeeperClient &keeper_;
    const bool members_only_;
    PeerNames names_;
    std::string silence_;                   // why the user database could not be asked; empty: it could always
    Instant silent_at_{}, silence_told_{};  // the last time, and the last time that the log has it
};

}  // namespace dcs::shell
