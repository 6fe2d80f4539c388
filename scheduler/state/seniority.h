#pragma once
// The order of sessions is one number: how nice a session is, and below that the counter at its creation. All the nice
// ones stand behind the others, and each keeps its age among its like.
#include <cstdint>

namespace dcs::core {

inline constexpr int age_bits = 48;
constexpr std::uint64_t age_in(std::uint64_t seniority) { return seniority & ((std::uint64_t{1} << age_bits) - 1); }
constexpr std::int32_t nice_in(std::uint64_t seniority) { return static_cast<std::int32_t>(seniority >> age_bits); }
constexpr std::uint64_t seniority_of(std::uint64_t age, std::int32_t nice) {
    return age | static_cast<std::uint64_t>(nice) << age_bits;
}

}  // namespace dcs::core
