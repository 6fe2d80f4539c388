#pragma once
// Images as files, each unpacked once per host. Below the store, `HEX` is the root file system of the image with that
// digest; `HEX.lock` is locked exclusively while that is made or removed and shared while a grain runs in it.
#include <cstdint>
#include <string>

#include "base/fd.h"

namespace dcs::container {

inline constexpr const char *lock_end = ".lock", *making_end = ".new";

// Makes the file if it is missing. `how`: as of flock(2). Empty: it is not to be had.
Fd locked(const std::string &path, int how);

// What the tree takes of a disk: blocks, but at least 16 KiB for each name, as a file system has no more inodes.
std::uint64_t taken_by(const std::string &path);

// How much the unpacked images of a store take, and what goes for a new one. `HEX.lock` has the size of the image
// `HEX`, in bytes; what is being unpacked is measured.
class ImageRoom {
public:
    // `except`: the image that is made, whose lock this process has.
    ImageRoom(std::string store, std::string except, std::uint64_t most)
        : store_(std::move(store)), except_(std::move(except)), most_(most) {}
    // Removes images that no grain uses, those not used for longest first, until there is room for one of this size
    // and not too many are kept. False: those in use leave no room.
    bool make(std::uint64_t size) const;
    std::uint64_t most() const { return most_; }

private:
    std::string store_, except_;
    std::uint64_t most_;
};

// Of an image whose lock this process has.
void record_size(int lock, std::uint64_t size);

struct Rootfs {
    std::string path;
    Fd lock;
    std::string error;      // not empty: there is none
    bool of_image = false;  // the error is of the image: the same on each host
};
// Waits while another process unpacks the same image. Removes images that were not used lately. `archive`: open for
// reading. `most`: bytes that the unpacked images of the store may take.
Rootfs take_rootfs(int archive, const std::string &store, const std::string &hex, std::uint64_t most);

}  // namespace dcs::container
