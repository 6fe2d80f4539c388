// A full disk: turns are refused in time, some may use the reserve, and a committed turn is
// completed with it.
#include <algorithm>

#include "base/failpoint.h"
#include "base/require.h"
#include "store/engine.h"
#include "store/names.h"

namespace dcs::store {
namespace {

// Incompressible, so that the file occupies the space of its length. Any part of it is, too.
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

Status no_room(std::uint64_t free, std::uint64_t need) {
    return fail(Code::no_space, "the backing store's disk has " + std::to_string(free) + " bytes free, but " +
                                    std::to_string(need) + " are needed: free some space, then repeat");
}

// What is applied may make a file and a directory for each step, and other turns wait to be applied. The rest is for
// roots, and for what is a way out of it: the removal of sessions.
constexpr std::uint64_t files_for_step = 2, files_for_turn = 8, files_kept = 64;

}  // namespace

Result<Space> Engine::space() {
    Result<std::uint64_t> free = disk_.free_bytes();
    if (!free) return free.status();
    Result<std::uint64_t> files = disk_.free_files();
    if (!files) return files.status();
    return Space{*free, *files, reserve_ == options_.reserve_bytes};
}

Status Engine::check_files(const TurnPlan &plan, Room room) {
    const std::uint64_t need = files_for_step * plan.steps.size() + behind_.files().size() + files_for_turn +
                               (room == Room::ordinary ? files_kept : 0);
    Result<std::uint64_t> free = disk_.free_files();
    if (!free) return free.status();
    if (*free >= need) return Status::ok();
    return fail(Code::no_space, "the backing store's disk can hold " + std::to_string(*free) +
                                    " more files (free inodes), but " + std::to_string(need) +
                                    " are needed: remove some files, then repeat");
}

// Before the commit a turn needs room for its root and big temporaries, afterwards for their final
// files in the trees, and for the stamp.
Status Engine::check_space(const TurnPlan &plan, Room room) {
    if (Status status = check_files(plan, room); !status) return status;
    const std::uint64_t before = plan.root_bytes + plan.big_bytes + options_.turn_room / 2;
    const std::uint64_t own =
        plan.all_bytes - plan.placed_bytes + options_.step_room * plan.steps.size() + options_.turn_room / 2;
    std::uint64_t after = own + behind_.room(options_.step_room);
    const std::uint64_t missing = options_.reserve_bytes - std::min<std::uint64_t>(reserve_, options_.reserve_bytes);
    Result<std::uint64_t> free = disk_.free_bytes();
    if (!free) return free.status();
    if (*free < before + after + missing && (pending_.bytes > 0 || !dead_roots_.empty())) {
        // Roots that wait for the flush occupy space, too.
        if (Status status = flush_pending(); !status && doubt_) return status;
        after = own + behind_.room(options_.step_room);
        drop_roots(dead_roots_.size());
        free = disk_.free_bytes();
        if (!free) return free.status();
    }
    if (*free >= before + after + missing) {
        Status grown = grow_reserve();
        if (grown || doubt_ || room == Room::ordinary) return grown;
    }
    if (room == Room::ordinary) return no_room(*free, before + after + missing);
    if (*free >= before + after) return Status::ok();
    return use_reserve(*free, before, after);
}

// Releases as much of the reserve as the root needs. The rest must suffice to complete the turn, even if
// other programs use all free space from now on.
Status Engine::use_reserve(std::uint64_t free, std::uint64_t before, std::uint64_t after) {
    DCS_REQUIRE(free < before + after, "the reserve is used only if free space does not suffice");
    if (free + reserve_ < before + after) return no_room(free + reserve_, before + after);
    if (planted("reserve_all_at_once")) {
        (void)shrink_reserve(reserve_);
        return Status::ok();
    }
    if (free < before) (void)shrink_reserve(before - free);
    return Status::ok();
}

// Appends what is missing, so that no part is given up meanwhile.
Status Engine::grow_reserve() {
    if (reserve_ == options_.reserve_bytes) return Status::ok();
    failpoint("store.reserve_grow.before");
    while (reserve_ < options_.reserve_bytes) {
        const std::uint64_t piece = std::min<std::uint64_t>(chunk_bytes, options_.reserve_bytes - reserve_);
        if (Status status = disk_.truncate_append(reserve_file, reserve_, filling(piece)); !status) {
            (void)disk_.truncate_append(reserve_file, reserve_, {});
            return status;
        }
        reserve_ += piece;
    }
    // Otherwise a power failure could release it.
    Status status;
    if (!planted("no_sync_reserve")) status = sync_file(reserve_file);
    if (status && !planted("no_sync_reserve")) status = sync_dir("");
    failpoint("store.reserve_grow.after");
    return status;
}

bool Engine::shrink_reserve(std::uint64_t bytes) {
    if (reserve_ == 0) return false;
    const std::uint64_t block = options_.layout.block;
    const std::uint64_t rest = reserve_ - std::min(reserve_, (bytes + block - 1) / block * block);
    failpoint("store.reserve_shrink.before");
    // A reserve that cannot be shrunk is removed.
    if (rest > 0 && disk_.truncate_append(reserve_file, rest, {})) reserve_ = rest;
    else if (disk_.remove(reserve_file)) reserve_ = 0;
    else return false;
    failpoint("store.reserve_shrink.after");
    return true;
}

// A changed setting, or a crash, may have left the reserve larger or smaller than configured. On a full
// disk it is completed by the next commit that finds space.
Status Engine::check_reserve() {
    Result<std::uint64_t> size = disk_.size(reserve_file);
    reserve_ = size ? *size : 0;
    if (reserve_ > options_.reserve_bytes) (void)shrink_reserve(reserve_ - options_.reserve_bytes);
    Status grown = grow_reserve();
    return doubt_ ? grown : Status::ok();
}

}  // namespace dcs::store
