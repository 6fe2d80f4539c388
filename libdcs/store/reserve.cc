// A full disk: turns are refused in time, and a committed one is finished with the reserve.
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

// Blocks and directory entries that each node may cost beyond its bytes.
constexpr std::uint64_t step_room = 8 * 1024;
constexpr std::uint64_t turn_room = 64 * 1024;

// Not compressible, so that the file takes the space it pretends to take.
std::string filling(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::uint64_t x = 0x9E3779B97F4A7C15u;
    for (char &c : text) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        c = static_cast<char>(x >> 32);
    }
    return text;
}

}  // namespace

// Temporaries and applied copies exist side by side, so a turn needs its bytes twice.
Status Engine::check_space(const TurnPlan &plan) {
    Result<std::uint64_t> free = disk_.free_bytes();
    if (!free) return free.status();
    const std::uint64_t need = 2 * plan.all_bytes + step_room * plan.steps.size() + turn_room;
    const std::uint64_t reserve = reserve_ ? 0 : options_.reserve_bytes;
    if (*free < need + reserve)
        return fail(Code::no_space, "the backing store's disk has " + std::to_string(*free) +
                                        " bytes free, " + std::to_string(need + reserve) +
                                        " are needed to be safe: make room, then repeat");
    return reserve_ ? Status::ok() : make_reserve();
}

Result<Room> Engine::room() {
    Result<std::uint64_t> free = disk_.free_bytes();
    if (!free) return free.status();
    return Room{*free, reserve_};
}

Status Engine::make_reserve() {
    if (options_.reserve_bytes == 0) {
        reserve_ = true;
        return Status::ok();
    }
    Status status = disk_.remove(reserve_temporary);
    if (status) status = disk_.create(reserve_temporary, filling(options_.reserve_bytes));
    if (status) status = disk_.rename(reserve_temporary, reserve_file);
    if (status) reserve_ = true;
    else (void)disk_.remove(reserve_temporary);
    return status;
}

bool Engine::release_reserve() {
    if (!reserve_ || options_.reserve_bytes == 0) return false;
    reserve_ = false;
    return bool(disk_.remove(reserve_file));
}

}  // namespace dcs::store
