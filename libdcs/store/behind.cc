#include "store/behind.h"

#include <algorithm>

#include "base/require.h"
#include "store/names.h"

namespace dcs::store {

void Behind::add(const Step &step) {
    DCS_REQUIRE(step.kind == StepKind::inside, "what is applied later has its bytes in the root");
    File &file = files_[step.path()];
    bytes_ -= file.bytes.size();
    const bool continues = file.action == Action::append && step.action == Action::append && !file.name.empty() &&
                           step.old_length >= file.start;
    if (continues) {
        DCS_REQUIRE(step.old_length <= file.start + file.bytes.size(), "an append leaves no hole");
        file.bytes.resize(step.old_length - file.start);
        file.bytes.append(step.bytes);
    } else {
        file = File{std::string(step.directory), std::string(step.file), step.action, step.old_length,
                    std::string(step.bytes)};
    }
    bytes_ += file.bytes.size();
}

bool Behind::has_below(const std::string &directory) const {
    if (directory.empty()) return !files_.empty();
    const auto next = files_.lower_bound(directory + "/");
    return next != files_.end() && is_below(next->first, directory);
}

Result<std::string> Behind::read(Disk &disk, const std::string &path, std::uint64_t offset, std::uint64_t max) const {
    const auto found = files_.find(path);
    if (found == files_.end()) return disk.read(path, offset, max);
    const File &file = found->second;
    const std::uint64_t start = file.action == Action::append ? file.start : 0;
    std::string bytes;
    if (offset < start) {
        const std::uint64_t before = std::min(max, start - offset);
        Result<std::string> there = disk.read(path, offset, before);
        if (!there || there->size() < before) return there;
        bytes = std::move(*there);
    }
    const std::uint64_t at = offset + bytes.size() - start;
    if (bytes.size() < max && at < file.bytes.size()) bytes.append(file.bytes, at, max - bytes.size());
    return bytes;
}

}  // namespace dcs::store
