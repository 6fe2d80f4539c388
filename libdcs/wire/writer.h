#pragma once
// Writer: the bytes of a struct, by its serialize(). Integers little-endian in their own width,
// bool and enums one byte, double as the 64 bits of IEEE 754, strings and vectors a 32-bit count
// and then their content.
#include <bit>

#include <boost/archive/detail/interface_oarchive.hpp>

#include "base/bytes.h"
#include "base/require.h"
#include "wire/archive_rules.h"

namespace dcs::wire {

class Writer : public boost::archive::detail::interface_oarchive<Writer> {
public:
    // `head_room` zero bytes come first: a frame's header is patched in there later.
    explicit Writer(std::size_t head_room = 0) { out_.bytes().assign(head_room, '\0'); }

    std::string &bytes() { return out_.bytes(); }

    template <class T> void save_override(const boost::serialization::nvp<T> &field) {
        save_override(field.const_value());
    }
    template <class T> void save_override(const T &value) {
        if constexpr (std::is_same_v<T, bool>) {
            out_.u8(value ? 1 : 0);
        } else if constexpr (std::is_same_v<T, double>) {
            out_.u64(std::bit_cast<std::uint64_t>(value));
        } else if constexpr (ByteEnum<T>) {
            out_.u8(static_cast<std::uint8_t>(value));
        } else if constexpr (FixedInteger<T>) {
            integer(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            out_.u32(count_of(value.size()));
            out_.raw(value);
        } else if constexpr (is_vector<T>) {
            out_.u32(count_of(value.size()));
            for (const auto &item : value) save_override(item);
        } else {
            walk_fields(*this, value);
        }
    }

private:
    template <class T> void integer(T value) {
        const auto v = static_cast<std::make_unsigned_t<T>>(value);
        if constexpr (sizeof(T) == 1) out_.u8(v);
        else if constexpr (sizeof(T) == 2) out_.u16(v);
        else if constexpr (sizeof(T) == 4) out_.u32(v);
        else out_.u64(v);
    }
    static std::uint32_t count_of(std::size_t n) {
        DCS_REQUIRE(n <= UINT32_MAX, "a count does not fit into a message");
        return static_cast<std::uint32_t>(n);
    }
    ByteWriter out_;
};

}  // namespace dcs::wire
