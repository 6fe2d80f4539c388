#pragma once
// The names of things. A session is (login name, number); a grain is a number inside a session;
// an incarnation is the number of one lease of a grain to a host and only ever grows.
#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace dcs {

struct SessionKey {
    std::string user;
    std::int32_t number = 0;
    auto operator<=>(const SessionKey &) const = default;
};

using GrainNumber = std::int32_t;   // 0 .. 2^31-1
using Incarnation = std::uint32_t;  // 0: never started

struct GrainKey {
    SessionKey session;
    GrainNumber grain = 0;
    auto operator<=>(const GrainKey &) const = default;
};

// "ann/3", "ann/3:17"
inline std::string to_text(const SessionKey &key) { return key.user + "/" + std::to_string(key.number); }
inline std::string to_text(const GrainKey &key) { return to_text(key.session) + ":" + std::to_string(key.grain); }

// A connection of the event loop. Never reused while the process lives.
enum class ConnId : std::uint64_t {};
inline constexpr ConnId no_connection{0};
inline std::string to_text(ConnId conn) { return std::to_string(static_cast<std::uint64_t>(conn)); }

// 256-bit bearer token; the scheduler keeps and stores only its SHA-256 (TokenHash).
using Token = std::array<std::uint8_t, 32>;
using TokenHash = std::array<std::uint8_t, 32>;

// Fingerprint of a grain's parameters: equal parameters, equal fingerprint. First half of SHA-256.
using Fingerprint = std::array<std::uint8_t, 16>;

}  // namespace dcs
