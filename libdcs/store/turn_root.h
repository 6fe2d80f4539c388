#pragma once
// The root of a turn, as a file: what one turn does to which trees, in order, with everything that
// is needed to do it again. Any one damaged block of it is survived: the head is there twice, in
// different blocks, and every node's bytes have a checksum of their own. A small root is there
// twice as a whole.
//
//   head, bytes, padding to the next block, [the bytes again,] the head again
//
// head (little-endian):
//   "DCSTURN\n"  u32 version  u32 length of the head  u64 length of the file  u64 turn
//   u8 1 if the bytes are there twice, else 0   u32 number of steps
//   per step: u8 kind, text directory, and unless it removes the tree:
//             text tree, text file, u8 action, u64 old length, u64 length, u32 crc32c of the bytes
//   u32 length of the head   u32 crc32c of all of the above
// bytes: of the steps that travel inside, in the order of the steps.
//
// The copy at the end is found by its last eight bytes, so a reader need not know the block size.
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

// Owns nothing: the names and bytes are the caller's updates, or the root that was read.
struct Step {
    StepKind kind = StepKind::inside;
    std::string_view directory, tree, file;
    Action action = Action::replace;
    std::uint64_t old_length = 0;
    std::uint64_t length = 0;
    std::uint32_t checksum = 0;
    std::string_view bytes;  // `beside`: only while the turn is being committed
    bool damaged = false;    // read back, and no copy of the bytes fits the checksum
    std::string path() const { return std::string(directory) + "/" + std::string(file); }
};

struct RootLayout {
    std::size_t block = 4096;       // what the disk damages as a whole
    std::size_t twice_limit = 8192; // bytes up to this are there twice
};
std::string encode_turn(std::uint64_t turn, const std::vector<Step> &steps, const RootLayout &layout);

struct DecodedTurn {
    std::vector<Step> steps;  // they point into the root
    std::string repaired;     // which copy did not verify while the other did; empty: none
};
// io_error when neither head verifies, invalid when another version of DCS wrote it.
// `check_sums` is false only in the test build.
Result<DecodedTurn> decode_turn(std::string_view root, std::uint64_t turn, bool check_sums);

}  // namespace dcs::store
