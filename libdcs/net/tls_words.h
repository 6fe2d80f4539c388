#pragma once
// What the handshake says and commands give advice about.

namespace dcs::net {

inline constexpr const char *other_authority_words = "its pool has another authority than the given hash";

}  // namespace dcs::net
