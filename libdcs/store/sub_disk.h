#pragma once
// A directory of a disk, as a disk.
#include "store/disk.h"
#include "store/names.h"

namespace dcs::store {

class SubDisk final : public Disk {
public:
    // `disk` outlives it; the directory exists before any call.
    SubDisk(Disk &disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}

    Status create(const std::string &path, std::string_view bytes) override { return disk_.create(at(path), bytes); }
    Status truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) override {
        return disk_.truncate_append(at(path), length, bytes);
    }
    Status overwrite(const std::string &path, std::uint64_t offset, std::string_view bytes) override {
        return disk_.overwrite(at(path), offset, bytes);
    }
    Status rewrite(const std::string &path, std::string_view bytes) override { return disk_.rewrite(at(path), bytes); }
    Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) override {
        return disk_.read(at(path), offset, max);
    }
    Result<std::uint64_t> size(const std::string &path) override { return disk_.size(at(path)); }
    Status rename(const std::string &from, const std::string &to) override { return disk_.rename(at(from), at(to)); }
    Status link(const std::string &from, const std::string &to) override { return disk_.link(at(from), at(to)); }
    Status remove(const std::string &path) override { return disk_.remove(at(path)); }
    Result<bool> make_dir(const std::string &path) override { return disk_.make_dir(at(path)); }
    Status remove_dir(const std::string &path) override { return disk_.remove_dir(at(path)); }
    Result<std::vector<std::string>> list(const std::string &path) override { return disk_.list(at(path)); }
    Status sync_file(const std::string &path) override { return disk_.sync_file(at(path)); }
    Status sync_dir(const std::string &path) override { return disk_.sync_dir(at(path)); }
    Status sync_all() override { return disk_.sync_all(); }
    bool sync_all_reports() const override { return disk_.sync_all_reports(); }
    Result<std::uint64_t> free_bytes() override { return disk_.free_bytes(); }
    Result<std::uint64_t> free_files() override { return disk_.free_files(); }

private:
    std::string at(const std::string &path) const { return path.empty() ? directory_ : join(directory_, path); }

    Disk &disk_;
    const std::string directory_;
};

}  // namespace dcs::store
