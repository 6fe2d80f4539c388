#include "sim/mem_disk.h"

#include "store/names.h"

namespace dcs::sim {
namespace {
Status absent(const std::string &path) { return fail(Code::not_found, path + ": no such file"); }
}  // namespace

Status MemDisk::create(const std::string &path, std::string_view bytes) {
    const Stopwatch watch(true, spent);
    if (!files_.emplace(path, std::make_shared<std::string>(bytes)).second)
        return fail(Code::io_error, path + " exists");
    return Status::ok();
}

Status MemDisk::truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) {
    const Stopwatch watch(true, spent);
    std::shared_ptr<std::string> &file = files_[path];
    if (!file) file = std::make_shared<std::string>();
    if (file->size() < length) return fail(Code::io_error, path + " is shorter than recorded");
    file->resize(length);
    file->append(bytes);
    return Status::ok();
}

Status MemDisk::overwrite(const std::string &path, std::uint64_t offset, std::string_view bytes) {
    const Stopwatch watch(true, spent);
    const auto file = files_.find(path);
    if (file == files_.end()) return absent(path);
    if (offset + bytes.size() > file->second->size())
        return fail(Code::io_error, path + " is shorter than it was made");
    file->second->replace(offset, bytes.size(), bytes);
    return Status::ok();
}

Status MemDisk::rewrite(const std::string &path, std::string_view bytes) {
    const Stopwatch watch(true, spent);
    const auto file = files_.find(path);
    if (file == files_.end()) return absent(path);
    file->second->assign(bytes);
    return Status::ok();
}

Result<std::string> MemDisk::read(const std::string &path, std::uint64_t offset, std::uint64_t max) {
    const Stopwatch watch(true, spent);
    const auto file = files_.find(path);
    if (file == files_.end()) return absent(path);
    return offset >= file->second->size() ? std::string() : file->second->substr(offset, max);
}

Result<std::uint64_t> MemDisk::size(const std::string &path) {
    const auto file = files_.find(path);
    if (file == files_.end()) return absent(path);
    return std::uint64_t{file->second->size()};
}

Status MemDisk::rename(const std::string &from, const std::string &to) {
    const Stopwatch watch(true, spent);
    const auto file = files_.find(from);
    if (file == files_.end()) return absent(from);
    files_[to] = file->second;
    files_.erase(from);
    return Status::ok();
}

Status MemDisk::link(const std::string &from, const std::string &to) {
    const auto file = files_.find(from);
    if (file == files_.end()) return absent(from);
    if (!files_.emplace(to, file->second).second) return fail(Code::io_error, to + " exists");
    return Status::ok();
}

Status MemDisk::remove(const std::string &path) {
    const Stopwatch watch(true, spent);
    files_.erase(path);
    return Status::ok();
}

Result<bool> MemDisk::make_dir(const std::string &path) { return files_.emplace(path + "/", nullptr).second; }

Status MemDisk::remove_dir(const std::string &path) {
    files_.erase(path + "/");
    return Status::ok();
}

Result<std::vector<std::string>> MemDisk::list(const std::string &path) {
    const std::string top = path.empty() ? path : path + "/";
    if (!path.empty() && files_.count(top) == 0) return absent(path);
    std::vector<std::string> names;
    for (auto it = files_.upper_bound(top); it != files_.end() && it->first.compare(0, top.size(), top) == 0; ++it) {
        const std::string rest = it->first.substr(top.size());
        const std::size_t slash = rest.find('/');
        if (slash == std::string::npos || slash + 1 == rest.size()) names.push_back(rest);
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace dcs::sim
