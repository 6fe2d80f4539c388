#include "files.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/text.h"
#include "commands/dcs/run/caller_environment.h"
#include "commands/dcs/run/placeholders.h"
#include "pki/digest.h"

namespace dcs::commands {
namespace {

constexpr std::int64_t most_of_one = 16 << 20, most_of_all = 64 << 20;
constexpr std::size_t most_inputs = 10'000;

struct Width {
    MapFile::Part part;
    std::size_t at, digits;
};
constexpr Width widths[] = {
    {MapFile::program, 0, 6}, {MapFile::word_odd, 6, 5}, {MapFile::word_even, 11, 5}, {MapFile::input, 16, 8}};
constexpr std::size_t all_digits = 24;

bool add_contents(pki::Sha256 &sum, const std::string &path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) return false;
    char buffer[65536];
    ssize_t n = 0;
    std::int64_t left = most_of_one;  // it may grow meanwhile
    while (left > 0 && ((n = ::read(fd.get(), buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0) continue;
        sum.add({buffer, static_cast<std::size_t>(n)});
        left -= n;
    }
    return n >= 0;
}

class FileLook {
public:
    explicit FileLook(std::string directory) : directory_(std::move(directory)) {}

    void look(MapFile::Part part, std::size_t place, const std::string &name, const std::string &path) {
        struct stat st = {};
        const std::string whole = path.empty() || path[0] == '/' ? path : directory_ + "/" + path;
        if (path.empty() || !seen_.insert({part, name}).second) return;
        if (::stat(whole.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return;
        MapFile file{part, name, "", std::int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec};
        ByteWriter head;
        head.u64(place);
        pki::Sha256 sum;
        sum.add(head.bytes());
        const bool small = st.st_size <= most_of_one && read_ + st.st_size <= most_of_all;
        if (small) read_ += st.st_size;
        if (!small || !add_contents(sum, whole)) {
            ByteWriter facts;
            facts.u64(static_cast<std::uint64_t>(st.st_size));
            facts.u64(static_cast<std::uint64_t>(file.modified_ns));
            sum.add(facts.bytes());
        }
        file.digest = sum.finish();
        files.push_back(std::move(file));
    }

    std::vector<MapFile> files;

private:
    const std::string directory_;
    std::set<std::pair<MapFile::Part, std::string>> seen_;
    std::int64_t read_ = 0;
};

std::string digits_of(const std::vector<MapFile> &files, const Width &width) {
    std::string all;
    for (const MapFile &file : files)
        if (file.part == width.part) all += file.digest;
    if (all.empty()) return std::string(width.digits, '0');
    return hex_of(pki::sha256_text(all)).substr(0, width.digits);
}

bool differs(const std::string &recorded, const std::vector<MapFile> &files, const Width &width) {
    return recorded.size() == all_digits && recorded.compare(width.at, width.digits, digits_of(files, width)) != 0;
}

bool had_none(const std::string &recorded, const Width &width) {
    return recorded.substr(width.at, width.digits).find_first_not_of('0') == std::string::npos;
}

// One of several: the one that was written last is the likely one, and is only called so.
std::string name_of(const std::vector<MapFile> &files, MapFile::Part part, const std::string &kind) {
    const MapFile *last = nullptr;
    std::size_t count = 0;
    for (const MapFile &file : files) {
        if (file.part != part) continue;
        ++count;
        if (last == nullptr || file.modified_ns > last->modified_ns) last = &file;
    }
    if (last == nullptr) return "a file that " + kind + " (removed)";
    if (count == 1) return last->name;
    return "one of the files that " + kind + " (the last one written is " + last->name + ")";
}

}  // namespace

std::string place_brought(const MapPlan &plan, const std::string &path) {
    const auto here = current_directory();
    return path.empty() || path[0] == '/' || !here || *here == plan.directory ? path : *here + "/" + path;
}

static void look_at(FileLook &reader, const PlannedFiles &planned) {
    const auto &[plan, program, brought, most] = planned;
    const std::size_t inputs = std::min(plan.inputs.size(), most);
    reader.look(MapFile::program, 0, plan.command.empty() ? "" : plan.command[0], program);
    for (std::size_t i = 1; i < plan.command.size(); ++i)
        if (const std::string &word = plan.command[i]; !has_placeholder(word, plan.columns)) {
            const MapFile::Part part = i % 2 == 1 ? MapFile::word_odd : MapFile::word_even;
            reader.look(part, i, word, word);
            if (const auto at = word.find('='); at != std::string::npos)  // --config=FILE
                reader.look(part, i, word.substr(at + 1), word.substr(at + 1));
        }
    const auto look_brought = [&, &of = plan](std::size_t at, const std::string &path) {
        if (const std::string place = place_brought(of, path); at >= inputs || place != of.inputs[at])
            reader.look(MapFile::input, at, place, place);
    };
    FileWords by_input;
    for (const FileWords::Pair &file : brought.files)
        if (has_placeholder(file.path, plan.columns)) by_input.files.push_back(file);
        else look_brought(inputs, file.path);
    if (has_placeholder(brought.input, plan.columns)) by_input.input = brought.input;
    else look_brought(inputs, brought.input);
    for (std::size_t i = 0; i < std::min(inputs, most_inputs); ++i) {
        for (const std::string &column : columns_of(plan.inputs[i])) reader.look(MapFile::input, i, column, column);
        const FileWords own = by_input.for_input(plan.inputs[i], static_cast<std::int32_t>(i + 1));
        for (const FileWords::Pair &file : own.files) look_brought(i, file.path);
        look_brought(i, own.input);
    }
}

std::vector<MapFile> files_of(const std::vector<PlannedFiles> &planned) {
    FileLook reader(planned.empty() ? "" : planned[0].plan.directory);
    for (const PlannedFiles &one : planned) look_at(reader, one);
    return std::move(reader.files);
}

std::string fingerprint_of(const std::vector<MapFile> &files) {
    std::string text;
    for (const Width &width : widths) text += digits_of(files, width);
    return text;
}

std::string changed_in_command(const std::string &recorded, const std::vector<MapFile> &files) {
    std::string names;
    for (const Width &width : widths) {
        if (width.part == MapFile::input || !differs(recorded, files, width) || had_none(recorded, width)) continue;
        names += (names.empty() ? "" : " and ") + name_of(files, width.part, "the command names");
    }
    return names;
}

std::string changed_in_inputs(const std::string &recorded, const std::vector<MapFile> &files) {
    const Width &width = widths[MapFile::input];
    return differs(recorded, files, width) ? name_of(files, MapFile::input, "the inputs or --file name") : "";
}

std::string changed_since(const std::string &ident, const std::string &base, const std::vector<MapFile> &files) {
    const std::string recorded = fingerprint_in(ident, base), command = changed_in_command(recorded, files);
    return command.empty() ? changed_in_inputs(recorded, files) : command;
}

}  // namespace dcs::commands
