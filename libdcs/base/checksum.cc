#include "base/checksum.h"

#include <boost/crc.hpp>

namespace dcs {
std::uint32_t crc32c(std::string_view bytes) {
    boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> sum;
    sum.process_bytes(bytes.data(), bytes.size());
    return static_cast<std::uint32_t>(sum.checksum());
}
}  // namespace dcs
