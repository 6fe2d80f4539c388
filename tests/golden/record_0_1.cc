// Wrote release_0_1/*.txt: it was compiled against the tree R of release 0.1 (commit ed0ac33):
//   g++ -std=c++20 -I R/libdcs -I R -I tests record_0_1.cc
//       R/build/.../libdcs_part_{grainserver_files,wire,locks,base}.a -lboost_json -lisal -o record
//   ./record tests/golden/release_0_1
// Each block is: what it is, its bytes in hex, its fields; and an empty line. Nothing of the files is ever edited.
#include <fstream>
#include <utility>

#include <boost/serialization/nvp.hpp>

#include "golden/fields.h"
#include "grainserver/files/grain_record.h"
#include "wire/json.h"
#include "wire/message.h"

using namespace dcs;

namespace {

template <class T> using Nvp = boost::serialization::nvp<T>;
using Told = golden::Told<Nvp>;
using Filler = golden::Filler<Nvp>;

template <class T> T filled(golden::Fill how) {
    T value;
    Filler filler(how);
    filler << value;
    return value;
}

void write(std::ofstream &to, const std::string &what, const std::string &bytes,
           const std::vector<std::string> &lines) {
    to << what << "\n" << wire::in_hex(bytes) << "\n";
    for (const std::string &line : lines) to << line << "\n";
    to << "\n";
}

template <class T> std::vector<std::string> told(const T &value) {
    Told all;
    all << value;
    return std::move(all.lines);
}

template <std::size_t I> void write_kind(std::ofstream &to) {
    using Kind = std::variant_alternative_t<I, wire::AnyMessageOf>;
    const std::pair<const char *, Kind> all[] = {{"few", filled<Kind>(golden::Fill::few)},
                                                 {"extreme", filled<Kind>(golden::Fill::extreme)},
                                                 {"default", Kind{}}};
    for (const auto &[how, message] : all)
        write(to, std::string(wire::kind_name(wire::AnyMessage(message))) + " " + how,
              wire::encode(wire::AnyMessage(message), 0x0102030405060708ull), told(message));
}

template <std::size_t... I> void write_kinds(std::ofstream &to, std::index_sequence<I...>) { (write_kind<I>(to), ...); }

template <class T> void write_packed(std::ofstream &to, const char *name) {
    for (const auto &[how, fill] : {std::pair{"few", golden::Fill::few}, std::pair{"extreme", golden::Fill::extreme}})
        write(to, std::string(name) + " " + how, wire::pack(filled<T>(fill)), told(filled<T>(fill)));
    write(to, std::string(name) + " default", wire::pack(T{}), told(T{}));
}

void write_specs(std::ofstream &to) {
    write_packed<wire::GrainSpec>(to, "GrainSpec");
    for (int which = 0; which < 16; ++which) {
        auto spec = filled<wire::GrainSpec>(golden::Fill::few);
        if ((which & 1) == 0) spec.files.clear();
        if ((which & 2) == 0) spec.cores = 0;
        if ((which & 4) == 0) spec.memory_mb = 0;
        if ((which & 8) == 0) spec.wall_s = 0;
        write(to, "GrainSpec " + std::to_string(which), wire::pack(spec), told(spec));
    }
}

// Its records have no lists of fields.
files::LaunchRecord launch_record() {
    files::LaunchRecord x;
    x.boot_id = "boot", x.program = "/bin/x", x.argv = {"x", "", "y z"}, x.env = {"A=1"}, x.directory = "/work";
    x.checkpoint_length = 7, x.input_base = 1ull << 40, x.next_seq = 9, x.notice = -1, x.epoch = 4, x.wall_s = 3600;
    x.tentative = true, x.account = {true, 1001, 1002, {3, 4}, true}, x.limits = {64, 5, 6, 7, 8};
    x.files = {{2, "", std::string(32, 'd'), 9, "class"}, {4, "out", "", 0, ""}};
    x.placed = false, x.rungs = 3, x.writable = {"/scratch"}, x.runner = {"/bin/run", "{name}"};
    return x;
}

void write_records(std::ofstream &to) {
    write(to, "LaunchRecord few", files::pack(launch_record()), {});
    write(to, "LaunchRecord default", files::pack(files::LaunchRecord{}), {});
    write(to, "ExitRecord few", files::pack(files::ExitRecord{true, 9, true, "why", 24, 1, 2, 3, 4, 5, 6, 7}), {});
    write(to, "EndingRecord few", files::pack(files::EndingRecord{files::Ending::overrun, "long", 24, 2}), {});
    write(to, "OutputsRecord few", files::pack(files::OutputsRecord{launch_record().files, "words"}), {});
    write(to, "acked few", files::pack_acked(17), {});
}

}  // namespace

int main(int, char **argv) {
    const std::string folder = argv[1];
    std::ofstream messages(folder + "/messages.txt"), stored(folder + "/stored.txt");
    std::ofstream records(folder + "/grain_records.txt");
    write_kinds(messages, std::make_index_sequence<std::variant_size_v<wire::AnyMessageOf>>{});
    write_specs(stored);
    write_packed<wire::GrainReport>(stored, "GrainReport");
    write_packed<wire::ExportedSession>(stored, "ExportedSession");
    write_packed<wire::ExportedGrain>(stored, "ExportedGrain");
    write_records(records);
    return messages && stored && records ? 0 : 1;
}
