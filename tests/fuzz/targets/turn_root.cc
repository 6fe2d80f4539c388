// The root of a turn, with and without right checksums: what is decoded lies inside the bytes, and what is whole is
// encoded and read back as it was.
#include "store/turn_root.h"

#include "base/bytes.h"
#include "fuzz.h"
#include "store/names.h"

namespace dcs::fuzz {
namespace {

constexpr std::uint64_t turn = 42;
constexpr std::size_t length_at = 12, start_bytes = 37, end_bytes = 8;

void put_u32(std::string &bytes, std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

// Right lengths and checksums for a head that ends where the choice says.
std::string sealed(std::string_view input, std::size_t head) {
    std::string root(input);
    if (root.size() < start_bytes + end_bytes) return root;
    head = std::min(std::max(head, start_bytes + end_bytes), root.size());
    put_u32(root, length_at, static_cast<std::uint32_t>(head));
    put_u32(root, head - 8, static_cast<std::uint32_t>(head));
    put_u32(root, head - 4, crc32c(std::string_view(root).substr(0, head - 4)));
    return root;
}

void check(std::string_view root, const store::DecodedTurn &decoded) {
    bool whole = true;
    for (const store::Step &step : decoded.steps) {
        expect(store::valid_tree_directory(step.directory), "a step stays in the trees");
        if (step.kind != store::StepKind::remove) expect(store::valid_node_name(step.file), "a step names a node");
        if (step.kind == store::StepKind::inside && !step.damaged) {
            expect(step.bytes.size() == step.length, "the bytes of a step are all of them");
            expect(step.bytes.empty() || (step.bytes.data() >= root.data() &&
                                          step.bytes.data() + step.bytes.size() <= root.data() + root.size()),
                   "the bytes of a step lie in the root");
        }
        whole = whole && !step.damaged;
    }
    if (!whole) return;
    const std::string again = store::encode_turn(turn, decoded.steps, {64, 128});
    const auto back = store::decode_turn(again, turn, true);
    expect(back && back->repaired.empty() && back->steps.size() == decoded.steps.size(),
           "a turn is read back as it was");
}

}  // namespace

void run(std::string_view bytes) {
    Choices input(bytes);
    const std::uint32_t head = input.number();
    const std::string root = head == 0 ? std::string(input.rest()) : sealed(input.rest(), head);
    if (const auto decoded = store::decode_turn(root, turn, true)) check(root, *decoded);
    (void)store::decode_turn(root, turn, false);
}

std::vector<Seed> seeds() {
    const std::string bytes(100, 'x');
    std::vector<store::Step> steps(4);
    steps[0] = {store::StepKind::inside,
                "sessions/ann/1",
                "session",
                "status",
                store::Action::replace,
                0,
                100,
                crc32c(bytes),
                bytes};
    steps[1] = {store::StepKind::beside, "sessions/ann/1/g/2", "grain", "out", store::Action::append, 7, 9, 1, {}};
    steps[2] = {store::StepKind::noted, "auth", "auth", "table", store::Action::information, 0, 0, 0, {}};
    steps[3] = {store::StepKind::remove, "sessions/bob/1", {}, {}, store::Action::replace, 0, 0, 0, {}};
    std::vector<Seed> list;
    for (const std::size_t twice : {std::size_t{1000}, std::size_t{0}}) {
        const std::string root = store::encode_turn(turn, steps, {64, twice});
        const std::size_t head =
            static_cast<unsigned char>(root[length_at]) + 256u * static_cast<unsigned char>(root[length_at + 1]);
        const std::string name = twice != 0 ? "twice" : "once";
        list.push_back({name, std::string(2, '\0') + root});
        list.push_back(
            {name + "-sealed", std::string{static_cast<char>(head & 255), static_cast<char>(head >> 8)} + root});
    }
    return list;
}

}  // namespace dcs::fuzz
