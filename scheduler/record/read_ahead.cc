#include "scheduler/record/read_ahead.h"

#include <algorithm>

#include "base/checksum.h"

namespace dcs::record {
namespace {
constexpr std::uint64_t ahead = 256 * 1024;
}

Result<std::string> ReadAhead::read(store::Store &store, const Place &place, std::uint64_t offset,
                                    std::uint64_t length) {
    if (length == 0) return std::string();
    const std::uint64_t from = place.offset + offset;
    const bool there = path_ == place.path && from >= start_ && from + length <= start_ + bytes_.size();
    if (!there) {
        auto bytes = store.read(place.path, from, std::max(length, ahead));
        if (!bytes) return fail(Code::io_error, place.path + ": " + bytes.status().text);
        bytes_ = std::move(*bytes);
        path_ = place.path;
        start_ = from;
    }
    if (from + length > start_ + bytes_.size())
        return fail(Code::io_error, place.path + ": it is shorter than recorded");
    DCS_REQUIRE(from >= start_, "what is returned was read");
    return bytes_.substr(from - start_, length);
}

Result<std::string> ReadAhead::read_whole(store::Store &store, const Place &place) {
    auto bytes = read(store, place, 0, place.length);
    if (bytes && crc32c(*bytes) != place.sum) return fail(Code::io_error, place.path + ": its checksum is wrong");
    return bytes;
}

}  // namespace dcs::record
