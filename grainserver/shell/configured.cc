#include "grainserver/shell/configured.h"

#include <cinttypes>
#include <cstdio>
#include <string>

#include "base/text.h"
#include "base/limits.h"
#include "base/files.h"
#include "base/require.h"

namespace dcs::server {
namespace {
constexpr std::size_t file_bytes = 1024;
}  // namespace

// Text: interval in nanoseconds, slots, epoch; name of the backup's store and number; name, address and key of a backup
// on another host. Later groups are missing in files of older versions.
void load_configured(int directory, State &state) {
    const Result<std::string> text = read_file(directory, configured_name, file_bytes);
    std::int64_t interval = 0;
    std::int32_t slots = 0;
    std::uint64_t epoch = 0;
    std::uint64_t store = 0, number = 0;
    char name[limits::name_bytes + 1] = "", address[wire::place_bytes + 1] = "", key[2 * sizeof(TokenHash) + 1] = "";
    constexpr const char *format = "%" SCNd64 " %" SCNd32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %64s %255s %64s";
    static_assert(sizeof name == 65 && sizeof address == 256 && sizeof key == 65);
    if (!text || std::sscanf(text->c_str(), format, &interval, &slots, &epoch, &store, &number, name, address, key) < 3)
        return;
    if (interval <= 0 || slots < 0) return;
    state.interval = Duration{interval};
    state.slots = slots;
    state.epoch = epoch;
    state.backup_store = store;
    state.backup_number = number;
    const auto hash = bytes_of_hex(key, sizeof(TokenHash));
    if (!state.asks_for_backup || !hash) return;
    state.backup_place = wire::BackupPlace{name, address, *hash};
    state.has_backup = true;
}

Status save_configured(int directory, const State &state) {
    DCS_REQUIRE(state.interval.ns > 0 && state.slots >= 0, "saved values are valid");
    std::string text = std::to_string(state.interval.ns) + " " + std::to_string(state.slots) + " " +
                       std::to_string(state.epoch) + " " + std::to_string(state.backup_store) + " " +
                       std::to_string(state.backup_number);
    if (const wire::BackupPlace &at = state.backup_place; !at.address.empty())
        text += " " + at.name + " " + at.address + " " + hex_of(at.key);
    return replace_file(directory, configured_name, text + "\n");
}

}  // namespace dcs::server
