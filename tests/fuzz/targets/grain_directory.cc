// Directories of grains as a server finds them at its start and looks at them later: its own records, damaged, and
// the grain's room, which is foreign anyhow.
#include "grainserver/shell/grain_files.h"

#include "base/bytes.h"
#include "fuzz.h"
#include "scratch.h"

namespace dcs::fuzz {
namespace {

constexpr const char *names[] = {"launch",
                                 "exit",
                                 "acked",
                                 "outputs",
                                 "withdrawn",
                                 "pid",
                                 "room/announce",
                                 "room/out.1",
                                 "room/err.1",
                                 "room/checkpoint.1",
                                 "room/checkpoint.2",
                                 "room/input",
                                 "room/out.4294967295",
                                 "room/out.01"};
constexpr const char *kinds_of[] = {"DGL5", "DGE2", "DGA1", "DGO1", "DGW3"};
const std::string grain = "grains/h1,ann,3,17,2/";

std::string sealed(std::size_t kind, std::string_view fields) {
    const std::uint32_t sum = crc32c(fields);
    std::string bytes = kinds_of[kind];
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(sum >> (8 * i));
    return bytes.append(fields);
}

void read_directory(const Scratch &scratch) {
    server::GrainFiles files;
    if (!files.open(scratch.path(), "h1", "boot")) return;
    for (const server::Adopted &a : files.adopt()) {
        for (const wire::GrainFile &file : a.files)
            expect(file.role <= wire::last_of(file.role), "a file has a role that there is");
        const server::DirFacts facts = files.look(a.id, a.acked);
        server::SendReport plan;
        plan.id = a.id, plan.first = a.next_seq, plan.last = a.acked + 2;
        if (plan.last - plan.first > 4) plan.last = plan.first + 4;
        plan.checkpoint = facts.checkpoints.empty() ? 0 : facts.checkpoints.rbegin()->first;
        plan.cut = true;
        const auto report = files.build(plan);
        if (const auto *r = std::get_if<wire::GrainReport>(&report))
            expect(!wire::encode(*r, 0).empty(), "a report can be sent");
        (void)files.write_acked(a.id, a.acked + 1);
    }
}

}  // namespace

void run(std::string_view bytes) {
    static const Scratch scratch;
    scratch.empty();
    Choices input(bytes);
    for (int n = 0; n < 20 && !input.empty(); ++n) {
        const std::uint8_t what = input.byte();
        const std::size_t name = (what & 0x7f) % std::size(names);
        const std::string_view piece = input.piece();
        const bool seal = (what & 0x80) != 0 && name < std::size(kinds_of);
        scratch.write(grain + names[name], seal ? sealed(name, piece) : std::string(piece));
    }
    read_directory(scratch);
}

std::vector<Seed> seeds() {
    files::LaunchRecord start;
    start.boot_id = "boot", start.program = "/bin/x", start.argv = {"x"}, start.env = {"A=1"};
    start.files = {{wire::FileRole::executable, "f", std::string(32, 'd'), 7, ""}};
    files::ExitRecord end;
    end.known = true, end.reason = "r";
    const auto part = [](std::size_t name, const std::string &bytes, bool fields = false) {
        return static_cast<char>(name | (fields ? 0x80 : 0)) + piece_of(fields ? bytes.substr(8) : bytes);
    };
    const std::string checkpoint =
        "dcs-checkpoint 1\ninput_offset 3\nusage_us 1 2\nmessage 1\n\nm\nhellodcs-end 5 3610A686\n";
    const std::string room = part(6, "") + part(7, "out") + part(8, "err") + part(9, checkpoint) + part(11, "input");
    std::vector<Seed> list;
    for (const bool fields : {false, true})
        list.push_back({fields ? "fields" : "whole",
                        part(0, files::pack(start), fields) + part(1, files::pack(end), fields) +
                            part(2, files::pack_acked(0), fields) +
                            part(3, files::pack(files::OutputsRecord{start.files, "w"}), fields) +
                            part(4, files::pack(files::EndingRecord{files::Ending::asked, "why", 0, 1}), fields) +
                            part(5, "999999 123 boot\n") + room});
    list.push_back({"half-made", room});
    return list;
}

}  // namespace dcs::fuzz
