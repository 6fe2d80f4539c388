#pragma once
// The journal of turns: one file of a fixed size, written in full when it is made and then overwritten in place from
// its start, so that a commit is one sync of bytes that the file system has allocated already.
//
// The file consists of blocks. A block is
//   u32 crc32c of the rest of the block   u32 its place in the root, from 0   u32 length of the root   u64 turn
//   and a part of the root's bytes, zeros behind its end
// A root is stored twice, one copy after the other. Each block says what it is, so a reader needs no position: what a
// caller stores never begins a block and cannot pose as one, blocks up to the turn that `turns/applied` names are
// old, and of the others each part is taken from the copy whose block is valid.
//
// A turn with a part that neither copy has was never acknowledged if no later turn exists: a crash interrupted its
// writing. If one does, it is damaged, because a turn is written when the one before is durable.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace dcs::store {

inline constexpr std::size_t journal_head = 20;  // bytes of a block that are not the root's

// The bytes that a root of this length takes in the journal.
std::size_t journal_bytes_for(std::size_t root, std::size_t block);
std::string encode_for_journal(std::uint64_t turn, std::string_view root, std::size_t block);

struct JournalTurn {
    std::string root;       // empty: not complete
    bool repaired = false;  // complete, but a block of one copy is damaged
};
struct JournalTurns {
    std::map<std::uint64_t, JournalTurn> turns;  // those above `applied` of which a block is valid
    std::size_t used = 0;                        // the end of the last of these blocks
    bool any = false;                            // a valid block of whatever turn
};
// `check_sums` is false only in the test build.
JournalTurns read_journal(std::string_view file, std::uint64_t applied, std::size_t block, bool check_sums);

}  // namespace dcs::store
