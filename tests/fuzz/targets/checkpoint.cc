// The checkpoint file that a grain wrote: as it came, or with a trailer that fits its state text.
#include "grainserver/core/checkpoint_file.h"

#include <cinttypes>

#include "fuzz.h"

namespace dcs::fuzz {
namespace {

std::string with_trailer(std::string_view head, std::string_view state) {
    char trailer[64];
    std::snprintf(trailer, sizeof trailer, "dcs-end %zu %08" PRIX32 "\n", state.size(), server::crc32_ieee(state));
    return std::string(head) + std::string(state) + trailer;
}

std::string head_of(std::string_view message, std::uint64_t offset) {
    return "dcs-checkpoint 1\ninput_offset " + std::to_string(offset) + "\nusage_us 1 2\nmessage " +
           std::to_string(message.size()) + "\n\n" + std::string(message) + "\n";
}

}  // namespace

void run(std::string_view bytes) {
    Choices input(bytes);
    const std::uint64_t input_size = input.number(), older = input.number(), base = input.number();
    std::string file;
    if (input.byte() % 2 == 1) {
        const std::string_view head = input.piece();
        file = with_trailer(head, input.rest());
    } else {
        file = input.rest();
    }
    const auto checkpoint = server::parse_checkpoint(file, input_size);
    if (!checkpoint) return expect(checkpoint.status().code == Code::invalid, "what does not fit is invalid");
    expect(checkpoint->input_offset <= input_size, "it read no more than there was");
    expect(checkpoint->user_us >= 0 && checkpoint->system_us >= 0, "time is not negative");
    for (const std::string_view part : {checkpoint->message, checkpoint->state})
        expect(part.data() >= file.data() && part.data() + part.size() <= file.data() + file.size(),
               "its parts lie inside it");
    const server::Normalised n = server::normalise(checkpoint->input_offset, older, base);
    expect(n.input_position >= base && n.carry_from <= older, "a restart reads on where the run stopped");
}

std::vector<Seed> seeds() {
    const std::string front{100, 0, 7, 0, 9, 0};
    const std::string head = head_of("half way", 50), state = "state text\nof the grain\n";
    return {{"raw", front + '\0' + with_trailer(head, state)},
            {"built", front + '\1' + piece_of(head) + state},
            {"nothing-in-it", front + '\1' + piece_of(head_of("", 0))},
            {"unknown-line", front + '\1' + piece_of("dcs-checkpoint 1\nlater 7\n" + head.substr(17)) + state}};
}

}  // namespace dcs::fuzz
