#pragma once
// The file format of the root of a turn: what a turn does to which trees, in order, with all bytes
// needed to repeat it. It survives damage of any one block: the head is stored twice, in
// different blocks, and every node's bytes have their own checksum. A small root is stored
// twice as a whole.
//
//   head, bytes, padding to the next block, [the bytes again,] the head again
//
// head (little-endian):
//   "DCSTURN\n"  u32 version  u32 length of the head  u64 length of the file  u64 turn
//   u8 1 if the bytes are stored twice, else 0   u32 number of steps
//   per step: u8 kind, text directory, and unless it removes the tree:
//             text tree, text file, u8 action, u64 old length, u64 length, u32 crc32c of the bytes
//   u32 length of the head   u32 crc32c of all of the above
// bytes: of the steps with kind `inside`, in the order of the steps.
//
// In the journal (journal.h) a root has no second head and no padding: it is stored twice as a whole.
//
// The copy at the end is found by its last eight bytes, so a reader does not need the block size.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/tree_template.h"

namespace dcs::store {

enum class StepKind : std::uint8_t {
    inside = 1,  // the bytes are in the root
    beside = 2,  // the bytes are in a separate temporary
    noted = 3,   // information for the root only (rule iii): nothing is applied
    remove = 4,  // removes the whole tree
    placed = 5   // the bytes are in the node's file already, which no earlier root names
};

// Owns nothing: names and bytes belong to the caller's updates, or to the root that was read.
struct Step {
    StepKind kind = StepKind::inside;
    std::string_view directory, tree, file;
    Action action = Action::replace;
    std::uint64_t old_length = 0;
    std::uint64_t length = 0;
    std::uint32_t checksum = 0;
    std::string_view bytes;  // `beside` and `placed`: valid only while the turn is being committed
    bool damaged = false;    // after decoding: no copy of the bytes has a valid checksum
    std::string path() const { return std::string(directory) + "/" + std::string(file); }
};

struct RootLayout {
    std::size_t block = 4096;        // the unit of damage on the disk
    std::size_t twice_limit = 8192;  // bytes up to this size are stored twice
    bool one_head = false;           // for the journal, which stores the whole root twice: head and bytes, no more
};
std::string encode_turn(std::uint64_t turn, const std::vector<Step> &steps, const RootLayout &layout);

struct DecodedTurn {
    std::vector<Step> steps;  // they point into the root
    std::string repaired;     // which copy is damaged while the other is valid; empty: none
};
// io_error if neither head is valid, invalid if another version of DCS wrote it.
// `check_sums` is false only in the test build.
Result<DecodedTurn> decode_turn(std::string_view root, std::uint64_t turn, bool check_sums);

}  // namespace dcs::store
