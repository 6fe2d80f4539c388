#include "store/stamp.h"

#include <charconv>
#include <cstdio>

#include "base/checksum.h"

namespace dcs::store {

std::string encode_stamp(std::uint64_t turn) {
    char text[64];
    std::snprintf(text, sizeof text, "dcs applied %020llu ", static_cast<unsigned long long>(turn));
    std::string stamp = text;
    std::snprintf(text, sizeof text, "%08x\n", crc32c(stamp));
    return stamp + text;
}

Result<std::uint64_t> decode_stamp(std::string_view text) {
    constexpr std::size_t prefix = 12, digits = 20;
    std::uint64_t turn = 0;
    if (text.size() > prefix + digits) {
        const char *first = text.data() + prefix;
        (void)std::from_chars(first, first + digits, turn);
    }
    if (encode_stamp(turn) != text)
        return fail(Code::io_error, "it is not a stamp, or its checksum is wrong");
    return turn;
}

}  // namespace dcs::store
