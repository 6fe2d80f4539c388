#include "scheduler/keeper/keeper_calls.h"

#include <algorithm>
#include <cstring>

namespace dcs::keeper {
namespace {

// SubjectPublicKeyInfo of an uncompressed point on P-256, up to the point.
constexpr unsigned char key_start[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
                                       0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                       0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};

bool may_name(Ask ask) {
    return ask == Ask::certificate || ask == Ask::remove_host || ask == Ask::check_login || ask == Ask::knows_login;
}
bool may_key(Ask ask) { return ask == Ask::certificate || ask == Ask::own_certificate; }
bool is_role(pki::Role role) {
    return role == pki::Role::grain_server || role == pki::Role::client || role == pki::Role::program ||
           role == pki::Role::backup;
}

// Each field is used by its rows and by no other.
bool is_one(const Request &r) {
    if ((r.ask == Ask::certificate) != is_role(r.role)) return false;
    if (r.ask != Ask::certificate && r.role != pki::Role::none) return false;
    if (r.ask != Ask::settings && r.which != Settings::hosts) return false;
    if (r.name.empty() == may_name(r.ask)) return false;
    if (!may_key(r.ask) && r.point != Point{}) return false;
    if (r.ask == Ask::echo_socket) return r.number == 4 || r.number == 6;
    return r.ask == Ask::user_name || r.number == 0;
}

}  // namespace

std::string to_packet(const Request &request) {
    Packet packet{};
    packet.ask = static_cast<std::uint8_t>(request.ask);
    packet.role = static_cast<std::uint8_t>(request.role);
    packet.which = static_cast<std::uint8_t>(request.which);
    packet.number = request.number;
    std::memcpy(packet.name, request.name.data(), std::min(request.name.size(), name_max - 1));
    std::copy(request.point.begin(), request.point.end(), packet.point);
    return std::string(reinterpret_cast<const char *>(&packet), sizeof packet);
}

std::optional<Request> read_packet(std::string_view bytes) {
    Packet packet{};
    if (bytes.size() != sizeof packet) return {};
    std::memcpy(&packet, bytes.data(), sizeof packet);
    const bool known = packet.ask >= 1 && packet.ask <= static_cast<std::uint8_t>(Ask::last) &&
                       packet.role <= static_cast<std::uint8_t>(pki::Role::backup) &&
                       packet.which <= static_cast<std::uint8_t>(Settings::last);
    if (!known || packet.name[name_max - 1] != '\0') return {};
    Request request;
    request.ask = static_cast<Ask>(packet.ask);
    request.role = static_cast<pki::Role>(packet.role);
    request.which = static_cast<Settings>(packet.which);
    request.number = packet.number;
    request.name = packet.name;
    std::copy(std::begin(packet.point), std::end(packet.point), request.point.begin());
    // Encoding the result gives the same bytes: nothing hides behind the end of the name or in unused parts.
    if (!is_one(request) || to_packet(request) != bytes) return {};
    return request;
}

std::optional<Point> point_of(std::string_view public_key) {
    if (public_key.size() != sizeof key_start + point_size) return {};
    if (std::memcmp(public_key.data(), key_start, sizeof key_start) != 0) return {};
    Point point{};
    std::memcpy(point.data(), public_key.data() + sizeof key_start, point_size);
    return point;
}

std::string public_key_of(const Point &point) {
    std::string key(reinterpret_cast<const char *>(key_start), sizeof key_start);
    return key.append(reinterpret_cast<const char *>(point.data()), point.size());
}

}  // namespace dcs::keeper
