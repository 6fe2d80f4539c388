// A directory that is said to be an export: the command reads all of it before it sends any.
#include "commands/dcs/session/export_reader.h"

#include "commands/dcs/session/export_writer.h"
#include "fuzz.h"
#include "scratch.h"
#include "unit/wire/samples.h"

namespace dcs::fuzz {
namespace {
constexpr const char *names[] = {"session", "grains", "files/17.out", "files/packed", "files/content-x"};
}

void run(std::string_view bytes) {
    static const Scratch scratch;
    scratch.empty();
    Choices input(bytes);
    for (int n = 0; n < 8 && !input.empty(); ++n) {
        const std::size_t name = input.byte() % std::size(names);
        scratch.write(names[name], input.piece());
    }
    const auto session = commands::read_export(scratch.path());
    if (!session) return expect(!session.status().text.empty(), "a refusal says why");
    expect(session->length > 0 && session->stream != nullptr, "what is sent is there");
}

std::vector<Seed> seeds() {
    const Scratch scratch;
    std::vector<Seed> list;
    for (const bool files : {false, true}) {
        const std::string to = scratch.path() + (files ? "/files" : "/line");
        auto writer = commands::ExportWriter::create(to, {files, false});
        expect(static_cast<bool>(writer), "an export is begun");
        wire::GrainLine line;
        line.grain = wire::samples::exported_grain();
        line.grain.state = "finished", line.grain.result_index = 0, line.grain.queued = false,
        line.grain.spec.files.clear();
        line.grain.input_position = 0, line.grain.checkpoint = {}, line.grain.host.clear();
        line.out = *(*writer)->keep("17.out", std::string("\0\1 binary", 9));
        line.err = *(*writer)->keep("17.err", "text");
        expect((*writer)->add(line) && (*writer)->finish({"ann", 3, "prog", "terminated", 1, 0, 1, 1}),
               "an export is written");
        std::string all;
        for (std::size_t i = 0; i < std::size(names); ++i) {
            std::ifstream in(to + "/" + names[i], std::ios::binary);
            const std::string bytes{std::istreambuf_iterator<char>(in), {}};
            if (!bytes.empty()) all += static_cast<char>(i) + piece_of(bytes);
        }
        list.push_back({files ? "files" : "line", all});
    }
    return list;
}

}  // namespace dcs::fuzz
