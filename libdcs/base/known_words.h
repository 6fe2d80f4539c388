#pragma once
// Texts that one program says and another one knows.
#include <string>
#include <string_view>

namespace dcs {

// Why there is no current copy of the store at the backup: the scheduler says it, and commands tell what to do.
inline constexpr const char *no_backup_words = "the backup is not connected";
// The entity of the doctor's rows about it.
inline constexpr const char *copy_of_store_words = "the backup's copy of the store";
// Before what the backup itself says of its copy.
inline constexpr const char *failing_copy_words = "the backup cannot keep the copy: ";
// The copy has turns that the store lacks; begins the reason.
inline constexpr const char *ahead_words = "its copy is ahead";
inline bool is_ahead(std::string_view why) { return why.rfind(ahead_words, 0) == 0; }

// What to do about the reason `why`; none: the copy is being made.
inline std::string copy_advice(std::string_view why) {
    if (why.empty()) return "wait until the copy is complete";
    if (why == no_backup_words) return "start the backup (`dcs up` in a private pool, otherwise its service)";
    if (is_ahead(why))
        return "`dcs backup promote` makes the copy the scheduler's; to give up what only the copy has, stop the "
               "backup, move `mirror` out of its directory, and start it again";
    return "remove this cause on the backup's host; the copy then continues by itself";
}

// What the handshake says of a scheduler whose authority has not the given hash, which is to be copied again.
inline constexpr const char *other_authority_words = "its pool has another authority than the given hash";

// Why a host accepts no grains, where operators have to act: its server says it, and the scheduler's doctor knows it.
inline constexpr std::string_view full_disk_words = "the disk of its grains is full";
inline constexpr std::string_view no_launcher_words = "its launcher does not run";
// Begins the standard error of a grain that came back too often, or that no host could start: the scheduler writes it.
inline constexpr std::string_view given_up_words = "dcs: the grain was given up: ";
// Begins what a grain server says to a scheduler whose state is out of date.
inline constexpr std::string_view later_epoch_words = "it has worked for epoch ";
// Begins what the scheduler's doctor says of such a host.
inline constexpr std::string_view refuses_scheduler_words = "refuses this scheduler: ";

}  // namespace dcs
