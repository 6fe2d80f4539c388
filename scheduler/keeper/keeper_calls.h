#pragma once
// What the scheduler may ask of its keeper: the one process that has the key of the pool's authority, and the rights of
// who started it. This is all of it. A request is one packet of one fixed form; what a row does not name is zero.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "daemon/side_process.h"
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

struct Packet {
    std::uint8_t ask, role, which, unused;
    std::uint32_t number;
    char name[name_max];  // zeros to its end
    std::uint8_t point[point_size];
};
static_assert(sizeof(Packet) == 280, "no padding");

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

}  // namespace dcs::keeper
