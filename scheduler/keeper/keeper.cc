#include "scheduler/keeper/keeper.h"

#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>

#include "daemon/peer_name.h"
#include "scheduler/keeper/login.h"
#include "scheduler/keeper/settings_file.h"

namespace dcs::keeper {
namespace {

Reply say(Status status) { return Reply{std::move(status), ""}; }

Reply open_echo_socket(std::uint32_t family, int *fd) {
    *fd = raw_echo_socket(family == 6);
    return *fd >= 0 ? Reply{} : say(fail_errno(Code::refused, "a socket for echo requests", errno));
}

}  // namespace

int raw_echo_socket(bool v6) {
    return ::socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP});
}

Reply Keeper::answer(std::string_view packet, std::int64_t now_s, int *fd) {
    *fd = -1;
    const std::optional<Request> request = read_packet(packet);
    if (!request) return say(fail(Code::invalid, "the keeper does not know this request"));
    return grant(*request, now_s, fd);
}

Reply Keeper::grant(const Request &request, std::int64_t now_s, int *fd) {
    switch (request.ask) {
    case Ask::authority: {
        const auto known = authority(now_s);
        return known ? Reply{Status::ok(), (*known)->certificate.der} : say(known.status());
    }
    case Ask::own_certificate: return sign_own(request.point, now_s);
    case Ask::certificate: return sign(request.role, request.name, request.point, now_s);
    case Ask::settings: return open(request.which, fd);
    case Ask::remove_host: return say(remove_from_host_table(place_.hosts, request.name));
    case Ask::user_name: return Reply{Status::ok(), login_name(request.number)};
    case Ask::check_login: return say(check_login(request.name, place_.group));
    case Ask::knows_login: return say(knows_login(request.name));
    case Ask::echo_socket: break;
    }
    return open_echo_socket(request.number, fd);
}

Result<const pki::Authority *> Keeper::authority(std::int64_t now_s) {
    if (!authority_) {
        auto known = pki::authority_in(place_.pki, now_s);
        if (!known) return known.status();
        authority_ = std::move(*known);
    }
    return &*authority_;
}

// Its validity depends on the role, not on the request. A bad name or key is refused there.
Reply Keeper::sign(pki::Role role, const std::string &name, const Point &point, std::int64_t now_s) {
    const auto known = authority(now_s);
    if (!known) return say(known.status());
    const auto life_s = role == pki::Role::program ? pki::program_life_s : pki::certificate_life_s;
    auto issued = pki::issue(**known, public_key_of(point), role, name, now_s, life_s);
    return issued ? Reply{Status::ok(), std::move(*issued)} : say(issued.status());
}

// The first one asks before a byte of strangers was read.
Reply Keeper::sign_own(const Point &point, std::int64_t now_s) {
    if (own_ && *own_ != point)
        return say(fail(Code::refused, "another key has the scheduler's certificate: there is one key for each start"));
    Reply reply = sign(pki::Role::scheduler, "scheduler", point, now_s);
    if (reply.status) own_ = point;
    return reply;
}

Reply Keeper::open(Settings which, int *fd) const {
    Result<int> file = which == Settings::hosts    ? open_settings(place_.hosts, "the host table")
                       : which == Settings::policy ? open_settings(place_.policy, "the policy")
                                                   : open_settings(place_.limits, "the limits");
    if (file) *fd = *file;
    return say(file.status());
}

}  // namespace dcs::keeper
