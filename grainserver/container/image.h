#pragma once
// Images as files, each unpacked once per host. Below the store, `HEX` is the root file system of the image with that
// digest; `HEX.lock` is locked exclusively while that is made or removed and shared while a grain runs in it.
#include <cstdint>
#include <string>

#include "base/fd.h"

namespace dcs::container {

struct Rootfs {
    std::string path;
    Fd lock;
    std::string error;      // not empty: there is none
    bool of_image = false;  // the error is of the image: the same on each host
};
// Waits while another process unpacks the same image. Removes images that were not used lately. `most`: bytes that the
// unpacked images of the store may take.
Rootfs take_rootfs(const std::string &archive, const std::string &store, const std::string &hex, std::uint64_t most);

}  // namespace dcs::container
