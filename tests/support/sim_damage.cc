// Damage on the medium of a SimDisk: what is changed here is changed in the cache and durably.
#include <algorithm>

#include "support/sim_disk.h"

namespace dcs::test {

void SimDisk::flip(const std::string &path, std::size_t offset, unsigned char mask) {
    damage(path, offset, 1, [mask](char c) { return static_cast<char>(c ^ mask); });
}

void SimDisk::damage(const std::string &path, std::size_t offset, std::size_t length,
                     const std::function<char(char)> &change_byte) {
    const int inode = find(path);
    DCS_REQUIRE(inode >= 0 && offset < at(inode).cached.size(), "nothing there to damage");
    Inode &node = change(inode);
    const std::size_t end = std::min(offset + length, node.cached.size());
    for (std::size_t i = offset; i < end; ++i) node.cached[i] = change_byte(node.cached[i]);
    node.durable = node.cached;
    node.data.clear();
}

void SimDisk::cut(const std::string &path, std::size_t length) {
    const int inode = find(path);
    DCS_REQUIRE(inode >= 0 && length <= at(inode).cached.size(), "nothing there to damage");
    Inode &node = change(inode);
    used_ -= node.cached.size() - length;
    node.cached.resize(length);
    node.durable = node.cached;
    node.data.clear();
}

}  // namespace dcs::test
