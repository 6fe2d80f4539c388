#pragma once
// The scheduler's door for other hosts, or its two doors: the pool's authority, our own certificate, and who does not
// get in.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/loop.h"
#include "pki/authority.h"
#include "scheduler/keeper/keeper.h"
#include "scheduler/state/decision.h"
#include "wire/join_calls.h"
#include "wire/session_calls.h"

namespace dcs::shell {

class TlsDoor {
public:
    // Opens the door at `address`; with `users` a second one there, by which alone control programs come in. The
    // authority's key is the keeper's.
    static Result<std::unique_ptr<TlsDoor>> open(net::Loop &loop, keeper::KeeperClient &keeper,
                                                 const std::string &address, const std::string &users);

    bool is(net::Door door) const { return door == main_.door || (users_ && door == users_->door); }
    // As given to hosts of the role.
    const std::string &address(core::HostRole role) const {
        return role == core::HostRole::client && users_ ? users_->told : main_.told;
    }
    std::string authority_hash() const;
    Result<wire::Joined> issue(const std::string &host, const std::string &public_key, core::HostRole role) const;
    Result<wire::Begun> issue(const core::SendProgram &program) const;  // without its token
    // Renews our own certificate in time, and when the wall clock was set.
    void look_after(Instant now);
    std::vector<wire::ProblemRow> problems() const;
    // A peer was refused, or refused us: logged, but at a limited rate. The host is empty if it is no grain server's.
    core::ServerRefused refused(Instant now, const net::Arrival &arrival);

private:
    TlsDoor(net::Loop &loop, keeper::KeeperClient &keeper) : loop_(loop), keeper_(keeper) {}
    struct Entrance {
        std::string told;
        std::vector<pki::Role> roles;  // that come in here, beside hosts that join
        net::Door door = -1;
    };
    Status renew();
    Result<net::TlsContextPtr> context_for(const Entrance &entrance) const;
    Status open(Entrance &entrance, const std::string &option, const std::string &address);

    net::Loop &loop_;
    keeper::KeeperClient &keeper_;
    pki::Certificate authority_, own_;
    std::string key_;  // our own
    Entrance main_;
    std::optional<Entrance> users_;
    Instant look_at_{};
    std::int64_t set_to_s_ = 0;  // the wall clock when it was last read, less the boot clock
    Instant second_{};           // in which `told_lines_` lines were written
    int told_lines_ = 0, untold_ = 0;
    Instant doubted_{};  // when a peer said that our own certificate is not valid at this time
    std::string doubt_;  // how, and who
};

// Which of them is near its end, as rows of `dcs doctor`.
std::vector<wire::ProblemRow> certificate_problems(const pki::Certificate &authority, const pki::Certificate &own,
                                                   std::int64_t now_s);

}  // namespace dcs::shell
