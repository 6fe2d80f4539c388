#pragma once
// What the scheduler may ask of its keeper: the one process that has the key of the pool's authority, and the rights of
// who started it. This is all of it. A request is one packet of one fixed form; what a row does not name is zero.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "daemon/side_process.h"
#include "pki/authority.h"
#include "pki/certificate.h"

namespace dcs::keeper {

enum class Ask : std::uint8_t {
    authority = 1,    // -> the authority's certificate; it is made if there is none
    own_certificate,  // key -> a certificate for the scheduler: for the first key that asks, and then for no other
    certificate,      // role, name, key -> one for a host or a control program, for as long as such a role has
    settings,         // which -> the file of --hosts, --policy or --limits, open for reading
    remove_host,      // name -> the host's line is out of the file of --hosts
    user_name,        // number -> the login name of a uid
    check_login,      // name -> may this login name use the pool from other hosts
    echo_socket,      // number (4 or 6) -> a socket for echo requests, where only root may have one
    knows_login,      // name -> has this host such a login
    last = knows_login
};
enum class Settings : std::uint8_t { hosts, policy, limits, last = limits };

inline constexpr unsigned patience_s = 30;  // for one answer
inline constexpr std::size_t name_max = 208, point_size = 64;

// The x and y of a public key; certificates are for keys on P-256 only.
using Point = std::array<std::uint8_t, point_size>;

struct Request {
    Ask ask = Ask::authority;
    pki::Role role = pki::Role::none;
    Settings which = Settings::hosts;
    std::uint32_t number = 0;
    std::string name;
    Point point{};
    bool operator==(const Request &) const = default;
};
std::string to_packet(const Request &request);
// Nothing unless it is exactly what some request makes.
std::optional<Request> read_packet(std::string_view packet);

// A reply may have a descriptor besides.
using Reply = SideAnswer;

// A public key as SubjectPublicKeyInfo, in its one form, and its point. Nothing for another kind of key.
std::optional<Point> point_of(std::string_view public_key);
std::string public_key_of(const Point &point);

// The keeper: answers the scheduler's requests, one after the other, until the scheduler
// is gone. It reads what root wrote, and packets of one fixed form; no message of the pool ever comes here.

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

// The scheduler's side. Its calls wait for the answer, like those of the C library that they stand for. When the keeper
// is gone, or does not answer for half a minute, they fail with `unreachable`, now and ever after. Thread-safe.
class KeeperClient {
public:
    // Forks it, as who this process is now. Before any thread starts, and before anything is read that it should not
    // know.
    static Result<std::unique_ptr<KeeperClient>> start(const Place &place);

    SideProcess &process() { return *process_; }

    Result<std::string> authority();                                   // its certificate, DER
    Result<std::string> own_certificate(std::string_view public_key);  // DER, as the next
    Result<std::string> certificate(pki::Role role, const std::string &name, std::string_view public_key);
    Result<std::string> settings(Settings which, const std::string &file, const std::string &what);  // its text
    Status remove_host(const std::string &host);
    Result<std::string> user_name(std::uint32_t uid);  // as login_of(), and the next two as logins.h has them
    Status check_login(const std::string &user);
    Status knows_login(const std::string &user);
    int echo_socket(bool v6);  // the caller's; -1: none

private:
    explicit KeeperClient(std::unique_ptr<SideProcess> process) : process_(std::move(process)) {}
    Result<std::string> call(const Request &request, Fd *fd = nullptr);

    const std::unique_ptr<SideProcess> process_;
};

}  // namespace dcs::keeper
