#include "base/bytes.h"

#include <algorithm>
#include <climits>

#include <isa-l/crc.h>

namespace dcs {
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
    std::uint32_t sum = ~before;
    while (!bytes.empty()) {
        const std::size_t part = std::min<std::size_t>(bytes.size(), INT_MAX);
        // The library's parameter is not const, the bytes are left alone all the same.
        auto *data = reinterpret_cast<unsigned char *>(const_cast<char *>(bytes.data()));
        sum = crc32_iscsi(data, static_cast<int>(part), sum);
        bytes.remove_prefix(part);
    }
    return ~sum;
}
}  // namespace dcs
