#pragma once
// Why a host accepts no grains, where operators have to act: its server says it, and the scheduler's doctor knows it.
#include <string_view>

namespace dcs {

inline constexpr std::string_view full_disk_words = "the disk of its grains is full";
inline constexpr std::string_view no_launcher_words = "its launcher does not run";

}  // namespace dcs
