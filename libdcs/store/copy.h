#pragma once
// A copy of a store in another directory, on another host as a rule: how its first content is laid down, and how each
// later turn of the original is taken over (Store::commit_copied). The copy counts its turns as the original does, so
// its last turn says how far it is.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/disk.h"
#include "store/turn_root.h"

namespace dcs::store {

// A turn as it travels to a copy: its root, with the bytes of all steps inside.
std::string encode_for_copy(std::uint64_t turn, const std::vector<Step> &steps);
// What a turn does to files, read back from that. The texts point into `root`.
Result<std::vector<Step>> steps_of_copy(std::uint64_t turn, std::string_view root);

// May a file of the original lie at this path? Not what a store keeps for itself, no temporary.
bool valid_copied_path(std::string_view path);

// All files of the original as after that turn lie below the disk: makes them durable, and last of all a store of it.
// Store::open() finds a store whose last turn this is. Before that the directory is no store.
Status found_copy(Disk &disk, std::uint64_t turn);

}  // namespace dcs::store
