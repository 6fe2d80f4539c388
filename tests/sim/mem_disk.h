#pragma once
// A disk that only remembers: no crashes, no faults, next to no cost. For runs in which the scheduler's
// own work is measured.
#include <map>

#include "sim/scheduler_node.h"
#include "sim/thread_time.h"

namespace dcs::sim {

class MemDisk final : public store::Disk {
public:
    Status create(const std::string &path, std::string_view bytes) override;
    Status truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) override;
    Status overwrite(const std::string &path, std::uint64_t offset, std::string_view bytes) override;
    Status rewrite(const std::string &path, std::string_view bytes) override;
    Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) override;
    Result<std::uint64_t> size(const std::string &path) override;
    Status rename(const std::string &from, const std::string &to) override;
    Status link(const std::string &from, const std::string &to) override;
    Status remove(const std::string &path) override;
    Result<bool> make_dir(const std::string &path) override;
    Status remove_dir(const std::string &path) override;
    Result<std::vector<std::string>> list(const std::string &path) override;
    Status sync_file(const std::string &) override { return Status::ok(); }
    Status sync_dir(const std::string &) override { return Status::ok(); }
    Status sync_all() override { return Status::ok(); }
    Result<std::uint64_t> free_bytes() override { return std::uint64_t{1} << 50; }

    Duration spent{};

private:
    // Directories have a null content and a name that ends in '/'.
    std::map<std::string, std::shared_ptr<std::string>> files_;
};

class MemMedium final : public Medium {
public:
    store::Disk &disk() override { return disk_; }
    test::SimDisk *sim() override { return nullptr; }
    Duration spent() const override { return disk_.spent; }

private:
    MemDisk disk_;
};

}  // namespace dcs::sim
