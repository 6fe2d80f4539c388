// The small files of a grain's directory, the owner's rules, the launcher's socket, lines of /proc: with and without
// right checksums.
#include "grainserver/files/grain_record.h"

#include "base/bytes.h"
#include "fuzz.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/files/owner_rules.h"
#include "grainserver/shell/host_gauge.h"
#include "process/table.h"

namespace dcs::fuzz {
namespace {

enum What : std::uint8_t { launch, exits, ending, outputs, rules, acked, pid, call, stat, figures, sequence, last };
constexpr const char *kind_of[] = {"DGL5", "DGE2", "DGW3", "DGO1", "DOR1", "DGA1"};

// Whatever was read is written to bytes that are read as the same.
template <class Record> void round_trip(const Result<Record> &read, Result<Record> (*unpack)(std::string_view)) {
    if (!read) return;
    const std::string bytes = files::pack(*read);
    const Result<Record> again = unpack(bytes);
    expect(again && files::pack(*again) == bytes, "a record is read back as it was");
}

void read_pid(const std::string &text) {
    const auto record = files::parse_pid(text);
    if (!record) return;
    expect(record->pid > 1, "signals never go to init or to all processes");
    char again[256];
    const std::size_t n =
        files::format_pid(again, sizeof again, record->pid, record->start_time, record->boot_id.c_str());
    const bool plain = record->boot_id.find('\0') == std::string::npos && record->boot_id.size() < 200;
    if (plain) expect(n > 0 && files::parse_pid({again, n})->pid == record->pid, "a pid is read back as it was");
}

void read_call(const std::string &text) {
    const files::LauncherCall call = files::parse_call(text);
    if (call.verb == files::Verb::none) return;
    expect(call.dir.find('/') == std::string::npos && !call.dir.starts_with('.'), "a call stays in its directory");
    const std::string again = files::format(call);
    const files::LauncherCall back = files::parse_call(again);
    expect(again.size() == files::launcher_packet_max || files::format(back) == again, "a call is read back as it was");
}

}  // namespace

void run(std::string_view bytes) {
    if (bytes.empty()) return;
    const What what = static_cast<What>((bytes[0] & 0x7f) % last);
    std::string text(bytes.substr(1));
    if ((bytes[0] & 0x80) != 0 && what <= acked) {  // the checksum that fits
        const std::uint32_t sum = crc32c(text);
        std::string front = kind_of[what];
        for (int i = 0; i < 4; ++i) front += static_cast<char>(sum >> (8 * i));
        text.insert(0, front);
    }
    ProcessStat line;
    switch (what) {
    case launch: return round_trip(files::unpack_launch(text), &files::unpack_launch);
    case exits: return round_trip(files::unpack_exit(text), &files::unpack_exit);
    case ending: return round_trip(files::unpack_ending(text), &files::unpack_ending);
    case outputs: return round_trip(files::unpack_outputs(text), &files::unpack_outputs);
    case rules: return round_trip(files::unpack_rules(text), &files::unpack_rules);
    case acked:
        if (const auto n = files::unpack_acked(text)) expect(files::pack_acked(*n) == text, "one encoding");
        return;
    case pid: return read_pid(text);
    case call: return read_call(text);
    case stat: return static_cast<void>(parse_stat(text, line));
    case figures: return expect(server::number_after(text, "MemAvailable") >= -1, "a figure or none");
    default: expect(has_variable(text + '\0' + "A=1", "A=1"), "a variable that is there is found");
    }
}

std::vector<Seed> seeds() {
    files::LaunchRecord start;
    start.boot_id = "boot", start.program = "/bin/x", start.argv = {"x", "y"}, start.env = {"A=1"},
    start.directory = "/tmp";
    start.account.change = true, start.account.groups = {4, 5}, start.runner = {"/bin/run", "{name}"};
    start.files = {{wire::FileRole::program, "program", std::string(32, 'd'), 7, "x86_64-linux-gnu"}};
    files::ExitRecord end;
    end.known = true, end.status = 9, end.reason = "r";
    const std::vector<std::pair<What, std::string>> texts = {
        {launch, files::pack(start)},
        {exits, files::pack(end)},
        {ending, files::pack(files::EndingRecord{files::Ending::asked, "why", 0, 1})},
        {outputs, files::pack(files::OutputsRecord{start.files, "words"})},
        {rules, files::pack(files::OwnerRules{true, {"ann"}, 2000, 3000, {1, 2, 3, 4, 5}, 6, {"/scratch"}, "/home"})},
        {acked, files::pack_acked(7)},
        {pid, "4711 123456 0f8fad5b-d9cb-469f-a165-70867728950e\n"},
        {call, "START local1,ann,3,17,2 4"},
        {call, "FAILED local1,ann,3,17,2 21 1 no such program"},
        {call, "LIST"},
        {figures, "MemTotal: 17 kB\nMemAvailable: 9 kB\n"},
        {stat, "12 (a) b) S 1 12 12 0 -1 4194304 90 0 2 0 7 3 1 1 20 0 1 0 5512 1000000 88 18446744073709551615 0 0"},
        {sequence, "out.17"}};
    std::vector<Seed> list;
    for (const auto &[what, text] : texts) {
        const std::string name = "what-" + std::to_string(what) + "-" + std::to_string(list.size());
        list.push_back({name, static_cast<char>(what) + text});
        if (what <= acked) list.push_back({name + "-fields", static_cast<char>(what | 0x80) + text.substr(8)});
    }
    return list;
}

}  // namespace dcs::fuzz
