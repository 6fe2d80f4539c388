#pragma once
// A copy of a store in another directory, usually on another host: how its initial content is made a store, and how
// each later turn of the original is applied (Store::commit_copied). The copy uses the turn numbers of the original, so
// its last turn tells how far it is.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/disk.h"
#include "store/turn_root.h"

namespace dcs::store {

// A turn as it is sent to a copy: its root, which contains the bytes of all steps.
std::string encode_for_copy(std::uint64_t turn, const std::vector<Step> &steps);
// The steps of a turn, decoded from that root. Their texts point into `root`.
Result<std::vector<Step>> steps_of_copy(std::uint64_t turn, std::string_view root);

// Whether a file of the original may have this path: not the store's own files, no temporary.
bool valid_copied_path(std::string_view path);

// `path` of one disk, with all below it, in another one, which lacks it. Not synced.
Status copy_tree(Disk &from, Disk &to, const std::string &path, int depth = 0);
Status remove_tree(Disk &disk, const std::string &directory);  // absent: ok
Status sync_everything(Disk &disk);

// Makes all files below `disk`, the original's after that turn, durable, and then a store of which it is the last turn.
// Before that, Store::open() does not accept the directory.
Status found_copy(Disk &disk, std::uint64_t turn);

}  // namespace dcs::store
