#include "store/journal.h"

#include "base/bytes.h"
#include "base/require.h"

namespace dcs::store {
namespace {

std::size_t blocks_for(std::size_t root, std::size_t block) {
    DCS_REQUIRE(block > journal_head && root > 0, "a block has room for a part of the root");
    return (root + block - journal_head - 1) / (block - journal_head);
}

struct Block {
    std::uint32_t place = 0, length = 0;
    std::uint64_t turn = 0;
    std::string_view part;
};

bool take_block(std::string_view bytes, bool check_sums, Block &block) {
    ByteReader in(bytes);
    const std::uint32_t sum = in.u32();
    block.place = in.u32();
    block.length = in.u32();
    block.turn = in.u64();
    block.part = bytes.substr(journal_head);
    if (block.turn == 0 || block.length == 0 || block.place >= blocks_for(block.length, bytes.size())) return false;
    return !check_sums || sum == crc32c(bytes.substr(4));
}

// The blocks of one turn that were found.
struct Parts {
    std::uint32_t length = 0;
    std::size_t found = 0;
    std::map<std::uint32_t, std::string_view> at;  // by place
};

}  // namespace

std::size_t journal_bytes_for(std::size_t root, std::size_t block) { return 2 * blocks_for(root, block) * block; }

std::string encode_for_journal(std::uint64_t turn, std::string_view root, std::size_t block) {
    const std::size_t count = blocks_for(root.size(), block), room = block - journal_head;
    std::string file;
    file.reserve(2 * count * block);
    for (std::size_t place = 0; place < count; ++place) {
        ByteWriter rest;
        rest.u32(static_cast<std::uint32_t>(place));
        rest.u32(static_cast<std::uint32_t>(root.size()));
        rest.u64(turn);
        rest.raw(root.substr(place * room, room));
        rest.bytes().resize(block - 4);
        ByteWriter sum;
        sum.u32(crc32c(rest.bytes()));
        file += sum.bytes();
        file += rest.bytes();
    }
    file += file;
    return file;
}

JournalTurns read_journal(std::string_view file, std::uint64_t applied, std::size_t block, bool check_sums) {
    JournalTurns journal;
    std::map<std::uint64_t, Parts> turns;
    for (std::size_t at = 0; at + block <= file.size(); at += block) {
        Block found;
        if (!take_block(file.substr(at, block), check_sums, found)) continue;
        journal.any = true;
        if (found.turn <= applied) continue;
        Parts &parts = turns[found.turn];
        if (parts.length == 0) parts.length = found.length;
        if (parts.length != found.length) continue;
        ++parts.found;
        parts.at.emplace(found.place, found.part);
        journal.used = at + block;
    }
    for (const auto &[turn, parts] : turns) {
        JournalTurn &read = journal.turns[turn];
        const std::size_t count = blocks_for(parts.length, block);
        if (parts.at.size() != count) continue;
        for (const auto &[place, part] : parts.at) read.root += part;
        read.root.resize(parts.length);
        read.repaired = parts.found < 2 * count;
    }
    return journal;
}

}  // namespace dcs::store
