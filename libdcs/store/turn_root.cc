#include "store/turn_root.h"

#include <limits>

#include "base/bytes.h"
#include "store/names.h"

namespace dcs::store {
namespace {

constexpr std::string_view magic = "DCSTURN\n";
constexpr std::uint32_t root_version = 2;
constexpr std::size_t start_bytes = 8 + 4 + 4 + 8 + 8 + 1 + 4;
constexpr std::size_t end_bytes = 4 + 4;
constexpr std::size_t least_step_bytes = 1 + 4 + 1;  // a removal
constexpr std::size_t most_bytes = std::numeric_limits<std::uint32_t>::max();

Status bad(const char *why) { return fail(Code::io_error, why); }

std::size_t head_bytes(const std::vector<Step> &steps) {
    std::size_t bytes = start_bytes + end_bytes;
    for (const Step &step : steps) {
        bytes += 1 + 4 + step.directory.size();
        if (step.kind == StepKind::remove) continue;
        bytes += 4 + step.tree.size() + 4 + step.file.size() + 1 + 8 + 8 + 4;
    }
    return bytes;
}

void put_step(ByteWriter &out, const Step &step) {
    out.u8(static_cast<std::uint8_t>(step.kind));
    out.text(step.directory);
    if (step.kind == StepKind::remove) return;
    out.text(step.tree);
    out.text(step.file);
    out.u8(static_cast<std::uint8_t>(step.action));
    out.u64(step.old_length);
    out.u64(step.length);
    out.u32(step.checksum);
}

bool sensible(const Step &step) {
    if (!valid_tree_directory(step.directory)) return false;
    if (step.kind == StepKind::remove) return true;
    return valid_node_name(step.file);
}

Status take_step(ByteReader &in, Step &step) {
    const std::uint8_t kind = in.u8();
    if (kind < 1 || kind > 5) return bad("it has a step of an unknown kind");
    step.kind = static_cast<StepKind>(kind);
    step.directory = in.text();
    if (step.kind != StepKind::remove) {
        step.tree = in.text();
        step.file = in.text();
        const std::uint8_t action = in.u8();
        if (action > static_cast<std::uint8_t>(Action::discard)) return bad("it has an unknown action");
        step.action = static_cast<Action>(action);
        step.old_length = in.u64();
        step.length = in.u64();
        step.checksum = in.u32();
    }
    return in.good() && sensible(step) ? Status::ok() : bad("one of its steps is invalid");
}

struct Head {
    std::size_t length = 0;  // in bytes
    std::uint64_t file_length = 0;
    bool twice = false;
    std::vector<Step> steps;
};

// Decodes the head at the start of `bytes`; the head contains its own length.
Result<Head> take_head(std::string_view bytes, std::uint64_t turn, bool check_sums) {
    if (bytes.size() < start_bytes + end_bytes) return bad("it is too short");
    ByteReader start(bytes);
    if (start.raw(magic.size()) != magic) return bad("it does not begin with the magic of a turn's root");
    const std::uint32_t written_by = start.u32();
    Head head{.length = start.u32()};
    if (head.length < start_bytes + end_bytes || head.length > bytes.size()) return bad("its head is truncated");
    ByteReader end(bytes.substr(head.length - end_bytes));
    if (check_sums && end.u32() != head.length) return bad("its head has two lengths");
    if (check_sums && end.u32() != crc32c(bytes.substr(0, head.length - 4))) return bad("its checksum is wrong");
    if (written_by != root_version) return fail(Code::invalid, "it was written by another version of DCS");
    ByteReader in(bytes.substr(0, head.length - end_bytes));
    (void)in.raw(magic.size() + 4 + 4);
    head.file_length = in.u64();
    if (in.u64() != turn) return bad("it is the root of another turn");
    head.twice = in.u8() != 0;
    const std::uint32_t count = in.u32();
    if (count > in.left() / least_step_bytes) return bad("it states more steps than it can contain");
    head.steps.resize(count);
    for (Step &step : head.steps)
        if (Status status = take_step(in, step); !status) return status;
    if (!in.at_end()) return bad("there are bytes after its last step");
    return head;
}

std::string_view copy_at_end(std::string_view root) {
    if (root.size() < start_bytes + end_bytes) return {};
    ByteReader end(root.substr(root.size() - end_bytes));
    const std::uint32_t length = end.u32();
    return length <= root.size() ? root.substr(root.size() - length) : std::string_view();
}

// Takes the bytes of each step from a copy with a valid checksum.
void take_bytes(std::string_view root, Head &head, bool check_sums, bool &repaired) {
    std::uint64_t all = 0;
    for (const Step &step : head.steps)
        if (step.kind == StepKind::inside) all += step.length;
    std::uint64_t at = head.length;
    // Meaningless without a second copy, and then not used.
    std::uint64_t again = head.file_length - head.length - all;
    const auto piece = [&](std::uint64_t from, std::uint64_t length) {
        return from <= root.size() && length <= root.size() - from ? root.substr(from, length) : std::string_view();
    };
    const auto fits = [&](const Step &step, std::string_view bytes) {
        return bytes.size() == step.length && (!check_sums || crc32c(bytes) == step.checksum);
    };
    for (Step &step : head.steps) {
        if (step.kind != StepKind::inside) continue;
        step.bytes = piece(at, step.length);
        if (!fits(step, step.bytes)) {
            step.bytes = head.twice ? piece(again, step.length) : std::string_view();
            step.damaged = !head.twice || !fits(step, step.bytes);
            repaired |= !step.damaged;
        }
        at += step.length;
        again += step.length;
    }
}

}  // namespace

std::string encode_turn(std::uint64_t turn, const std::vector<Step> &steps, const RootLayout &layout) {
    std::size_t inside = 0;
    for (const Step &step : steps)
        if (step.kind == StepKind::inside) inside += step.bytes.size();
    const std::size_t head = head_bytes(steps);
    DCS_REQUIRE(head <= most_bytes, "the head of a turn is at most 4 GiB");
    const bool twice = !layout.one_head && inside <= layout.twice_limit;
    const std::size_t second = (head + inside + layout.block - 1) / layout.block * layout.block;
    const std::size_t length = layout.one_head ? head + inside : second + (twice ? inside : 0) + head;

    ByteWriter out;
    out.bytes().reserve(length);
    out.raw(magic);
    out.u32(root_version);
    out.u32(static_cast<std::uint32_t>(head));
    out.u64(length);
    out.u64(turn);
    out.u8(twice ? 1 : 0);
    out.u32(static_cast<std::uint32_t>(steps.size()));
    for (const Step &step : steps) put_step(out, step);
    out.u32(static_cast<std::uint32_t>(head));
    out.u32(crc32c(out.bytes()));
    DCS_REQUIRE(out.size() == head, "the head of a turn has the computed length");
    for (const Step &step : steps)
        if (step.kind == StepKind::inside) out.raw(step.bytes);
    std::string &root = out.bytes();
    if (layout.one_head) return std::move(root);
    root.resize(second);
    if (twice) root.append(root, head, inside);
    root.append(root, 0, head);
    return std::move(root);
}

Result<DecodedTurn> decode_turn(std::string_view root, std::uint64_t turn, bool check_sums) {
    DecodedTurn decoded;
    Result<Head> head = take_head(root, turn, check_sums);
    if (!head && head.status().code == Code::invalid) return head.status();
    if (!head) {
        Result<Head> second = take_head(copy_at_end(root), turn, check_sums);
        if (!second) return second.status().code == Code::invalid ? second.status() : head.status();
        decoded.repaired = head.status().text;
        head = std::move(second);
    } else if (head->file_length != root.size()) {
        decoded.repaired = "its length is not the recorded one";
    }
    bool repaired = false;
    take_bytes(root, *head, check_sums, repaired);
    if (repaired) decoded.repaired = "the checksum of a node in it is wrong";
    decoded.steps = std::move(head->steps);
    return decoded;
}

}  // namespace dcs::store
