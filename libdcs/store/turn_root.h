#pragma once
// The root of a turn, as a file: what one turn does to which trees, in order, with everything that
// is needed to do it again. Layout (little-endian):
//   "DCSTURN\n"  u32 version  u64 length of the file  u64 turn  u32 number of steps
//   per step: u8 kind, text directory, and unless it removes the tree:
//             text tree, text file, u8 action, u64 old length, u64 length, u32 crc32c of the bytes,
//             and where they travel inside: the bytes
//   u32 crc32c of all of the above
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/tree_template.h"

namespace dcs::store {

enum class StepKind : std::uint8_t {
    inside = 1,   // the bytes are in the root
    beside = 2,   // the bytes are in a temporary of their own
    noted = 3,    // information for the root only (rule iii): nothing is applied
    remove = 4    // the whole tree goes
};

struct Step {
    StepKind kind = StepKind::inside;
    std::string directory, tree, file;
    Action action = Action::replace;
    std::uint64_t old_length = 0;
    std::uint64_t length = 0;
    std::uint32_t checksum = 0;
    std::string_view bytes;  // not owned; `beside`: only while the turn is being committed
    std::string path() const { return directory + "/" + file; }
};

std::string encode_turn(std::uint64_t turn, const std::vector<Step> &steps);

// The steps point into `root`. io_error with a reason when anything does not verify.
// `check_sums` is false only in the test build.
Result<std::vector<Step>> decode_turn(std::string_view root, std::uint64_t turn, bool check_sums);

}  // namespace dcs::store
