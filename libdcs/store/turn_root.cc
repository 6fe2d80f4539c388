#include "store/turn_root.h"

#include <limits>

#include "base/bytes.h"
#include "base/checksum.h"
#include "store/names.h"

namespace dcs::store {
namespace {

constexpr std::string_view magic = "DCSTURN\n";
constexpr std::uint32_t version = 1;
constexpr std::size_t header_bytes = 8 + 4 + 8 + 8 + 4;

Status bad(const char *why) { return fail(Code::io_error, why); }

void put_u64_at(std::string &bytes, std::size_t at, std::uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
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
    if (step.kind == StepKind::inside) out.text(step.bytes);
}

bool sensible(const Step &step) {
    if (!valid_tree_directory(step.directory)) return false;
    if (step.kind == StepKind::remove) return true;
    return valid_component(step.file) && !is_temporary(step.file) &&
           (step.kind != StepKind::inside || step.bytes.size() == step.length);
}

Status take_step(ByteReader &in, Step &step, bool check_sums) {
    const std::uint8_t kind = in.u8();
    if (kind < 1 || kind > 4) return bad("it has a step of no known kind");
    step.kind = static_cast<StepKind>(kind);
    step.directory = in.text();
    if (step.kind != StepKind::remove) {
        step.tree = in.text();
        step.file = in.text();
        const std::uint8_t action = in.u8();
        if (action > static_cast<std::uint8_t>(Action::discard))
            return bad("it has an action of no known kind");
        step.action = static_cast<Action>(action);
        step.old_length = in.u64();
        step.length = in.u64();
        step.checksum = in.u32();
        if (step.kind == StepKind::inside) step.bytes = in.text();
    }
    if (!in.good() || !sensible(step)) return bad("a step of it makes no sense");
    if (check_sums && step.kind == StepKind::inside && crc32c(step.bytes) != step.checksum)
        return bad("the checksum of a node in it is wrong");
    return Status::ok();
}

}  // namespace

std::string encode_turn(std::uint64_t turn, const std::vector<Step> &steps) {
    ByteWriter out;
    std::size_t expected = header_bytes + 4;
    for (const Step &step : steps) {
        expected += 64 + step.directory.size() + step.tree.size() + step.file.size();
        if (step.kind == StepKind::inside) expected += step.bytes.size();
        DCS_REQUIRE(step.bytes.size() <= std::numeric_limits<std::uint32_t>::max(),
                    "a node of more than 4 GiB");
    }
    out.bytes().reserve(expected);
    out.raw(magic);
    out.u32(version);
    out.u64(0);  // the length, known at the end
    out.u64(turn);
    out.u32(static_cast<std::uint32_t>(steps.size()));
    for (const Step &step : steps) put_step(out, step);
    put_u64_at(out.bytes(), magic.size() + 4, out.size() + 4);
    out.u32(crc32c(out.bytes()));
    return std::move(out.bytes());
}

Result<std::vector<Step>> decode_turn(std::string_view root, std::uint64_t turn, bool check_sums) {
    if (root.size() < header_bytes + 4) return bad("it is too short");
    const std::string_view body = root.substr(0, root.size() - 4);
    ByteReader in(body);
    if (in.raw(magic.size()) != magic) return bad("it does not begin like the root of a turn");
    if (in.u32() != version) return bad("it was written by another version of DCS");
    if (in.u64() != root.size() && check_sums) return bad("its length is not the recorded one");
    ByteReader sum(root.substr(body.size()));
    if (check_sums && sum.u32() != crc32c(body)) return bad("its checksum is wrong");
    if (in.u64() != turn) return bad("it is the root of another turn");
    const std::uint32_t count = in.u32();
    if (count > in.left()) return bad("it names more steps than it can hold");
    std::vector<Step> steps(count);
    for (Step &step : steps)
        if (Status status = take_step(in, step, check_sums); !status) return status;
    if (!in.at_end()) return bad("something follows its last step");
    return steps;
}

}  // namespace dcs::store
