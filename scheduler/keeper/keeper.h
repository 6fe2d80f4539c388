#pragma once
// The keeper: answers the scheduler's requests, one after the other (keeper_calls.h is the table), until the scheduler
// is gone. It reads what root wrote, and packets of one fixed form; no message of the pool ever comes here.
#include <optional>
#include <string>

#include "base/status.h"
#include "pki/authority.h"
#include "scheduler/keeper/keeper_calls.h"

namespace dcs::keeper {

// A raw socket for echo requests (ICMP) and their answers, the caller's. -1 and errno: not here, or not for us.
int raw_echo_socket(bool v6);

struct Place {
    std::string pki;                    // directory of the authority
    std::string hosts, policy, limits;  // the files
    std::string group;                  // whose members may call from other hosts
};

class Keeper {
public:
    explicit Keeper(Place place) : place_(std::move(place)) {}
    // What it answers to a packet; `fd` is a descriptor to go with it, or -1, and the caller's.
    Reply answer(std::string_view packet, std::int64_t now_s, int *fd);

private:
    Reply grant(const Request &request, std::int64_t now_s, int *fd);
    Result<const pki::Authority *> authority(std::int64_t now_s);
    Reply sign(pki::Role role, const std::string &name, const Point &point, std::int64_t now_s);
    Reply sign_own(const Point &point, std::int64_t now_s);
    Reply open(Settings which, int *fd) const;

    const Place place_;
    std::optional<pki::Authority> authority_;
    std::optional<Point> own_;  // whose key has the scheduler's certificate
};

// Of files it may change those of the directories of the authority and of the three files, and read these, /etc, and
// what the user database of this host may consist of. False: this kernel has no Landlock.
Result<bool> fence_keeper(const Place &place);

// This process, just forked, becomes the keeper: of all that was open it keeps `socket` and standard error.
[[noreturn]] void run_keeper(int socket, Place place);

// Who of another host's users is known here, by this host's tables of users and groups.
// refused: this host has no such user, or the user is not in the group. An empty group: all are, known here or not.
// May look up names at a server of the site.
Status check_login(const std::string &user, const std::string &group);

// not_found: this host has no such login. unreachable: the server of the site that knows does not answer; that takes no
// longer than some seconds.
Status knows_login(const std::string &user);

}  // namespace dcs::keeper
