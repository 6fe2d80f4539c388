// An exported session as people edit it: what is read is written to text that is read as the same. (A file of an
// export beside it is only opened by its name: see the target export_directory.)
#include "wire/session_text.h"

#include "fuzz.h"
#include "unit/wire/samples.h"
#include "wire/json.h"
#include "wire/message.h"
#include "wire/checks.h"

namespace dcs::fuzz {
namespace {

void read_line(std::string_view text) {
    const auto line = wire::grain_of_line(text);
    if (!line) return expect(!line.status().text.empty(), "a refusal says why");
    const std::string again = wire::to_line(*line);
    expect(valid_utf8(again) && again.find('\n') == std::string::npos, "a line is one");
    const auto back = wire::grain_of_line(again);
    expect(back && wire::pack(back->grain) == wire::pack(line->grain), "a line is read back as it was");
    wire::SessionCheck check;
    (void)check.add(line->grain);
    (void)check.finish({"ann", 3, "prog", "active", 1, 0, 0, 1});
}

void read_head(std::string_view text) {
    const auto session = wire::session_of_text(text);
    if (!session) return expect(!session.status().text.empty(), "a refusal says why");
    const auto back = wire::session_of_text(wire::to_text(*session));
    expect(back && wire::pack(*back) == wire::pack(*session), "a session is read back as it was");
}

}  // namespace

void run(std::string_view bytes) {
    if (bytes.empty()) return;
    if (bytes[0] == 'h') return read_head(bytes.substr(1));
    read_line(bytes.substr(1));
}

std::vector<Seed> seeds() {
    wire::GrainLine line;
    line.grain = wire::samples::exported_grain();
    line.grain.usage = {1, 2, 3, 4, 5, 6, 7};  // what such a line may say
    line.grain.spec.env = {"A=\xff"};
    line.input.text = "text\n", line.out.in_file = true, line.out.file = "files/17.out";
    line.err.in_file = true, line.err.file = "files/packed", line.err.offset = 3, line.err.length = 4, line.err.crc = 5;
    return {{"head", "h" + wire::to_text(wire::samples::exported_session())},
            {"line", "g" + wire::to_line(line)},
            {"empty-line", "g" + wire::to_line(wire::GrainLine{})}};
}

}  // namespace dcs::fuzz
