#pragma once
// Texts that one program says and another one knows.
#include <string>
#include <string_view>

namespace dcs {

// Why there is no current copy of the store at the backup: the scheduler says it, and commands tell what to do.
inline constexpr const char *no_backup_words = "the backup is not connected";
// Before what the backup itself says of its copy.
inline constexpr const char *failing_copy_words = "the backup cannot keep the copy: ";

// What to do about the reason `why`; none: the copy is being made.
inline std::string copy_advice(std::string_view why) {
    if (why.empty()) return "wait until the copy is complete";
    if (why == no_backup_words) return "start the backup (`dcs up` in a private pool, otherwise its service)";
    return "remove this cause on the backup's host; the copy then continues by itself";
}

// Why a host accepts no grains, where operators have to act: its server says it, and the scheduler's doctor knows it.
inline constexpr std::string_view full_disk_words = "the disk of its grains is full";
inline constexpr std::string_view no_launcher_words = "its launcher does not run";

}  // namespace dcs
