#pragma once
// What all records on disk have in common: see codec.h.
#include <array>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace dcs::record {

Status damaged(const std::string &what);
std::string framed(const std::string &body);
// Takes one record off the front of `in`, verified: its body.
Result<std::string_view> next_body(std::string_view &in);
// Formats from 1 to `known` are read.
Status check_version(std::uint8_t found, std::uint8_t known);

template <std::size_t n> void put(ByteWriter &w, const std::array<std::uint8_t, n> &bytes) {
    for (const std::uint8_t b : bytes) w.u8(b);
}
template <std::size_t n> void get(ByteReader &r, std::array<std::uint8_t, n> &bytes) {
    for (std::uint8_t &b : bytes) b = r.u8();
}
inline void put(ByteWriter &w, std::int32_t v) { w.u32(static_cast<std::uint32_t>(v)); }
inline void put(ByteWriter &w, std::int64_t v) { w.u64(static_cast<std::uint64_t>(v)); }
inline std::int32_t get_i32(ByteReader &r) { return static_cast<std::int32_t>(r.u32()); }
inline std::int64_t get_i64(ByteReader &r) { return static_cast<std::int64_t>(r.u64()); }

inline void put_text(ByteWriter &w, std::string_view text) {
    w.var(text.size());
    w.raw(text);
}
inline std::string get_text(ByteReader &r) { return std::string(r.raw(r.var())); }

}  // namespace dcs::record
