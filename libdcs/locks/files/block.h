#pragma once
// Blocks of fixed size in lock files: little-endian fields, zeros, and in the last eight bytes a checksum
// against torn writes and foreign content (not against malice).
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace dcs::locks {

constexpr std::uint64_t little_endian(std::uint64_t v) {
    return std::endian::native == std::endian::little ? v : __builtin_bswap64(v);
}

// FNV-1a over words of eight bytes; `bytes` is a multiple of eight. Never 0, so a block of zeros is invalid.
std::uint64_t block_sum(const unsigned char *data, std::size_t bytes);

template <std::size_t Bytes> class Block {
    static_assert(Bytes % 8 == 0 && Bytes > 8);

public:
    unsigned char *data() { return bytes_; }
    const unsigned char *data() const { return bytes_; }
    static constexpr std::size_t size() { return Bytes; }

    void u8(std::uint8_t v) { put(v, 1); }
    void u32(std::uint32_t v) { put(v, 4); }
    void u64(std::uint64_t v) { put(v, 8); }
    void i64(std::int64_t v) { put(static_cast<std::uint64_t>(v), 8); }
    void raw(const void *from, std::size_t n) {
        if (n > room()) n = room();
        std::memcpy(bytes_ + at_, from, n);
        at_ += n;
    }
    // Length byte and at most `most` (< 256) bytes; always occupies 1 + most bytes.
    void text(std::string_view v, std::size_t most) {
        if (v.size() > most) v = v.substr(0, most);
        u8(static_cast<std::uint8_t>(v.size()));
        const std::size_t end = at_ + most;
        raw(v.data(), v.size());
        at_ = end;
    }
    void seal() { store(Bytes - 8, block_sum(bytes_, Bytes - 8), 8); }
    bool sealed() const { return load(Bytes - 8, 8) == block_sum(bytes_, Bytes - 8); }

    std::uint8_t u8() { return static_cast<std::uint8_t>(get(1)); }
    std::uint32_t u32() { return static_cast<std::uint32_t>(get(4)); }
    std::uint64_t u64() { return get(8); }
    std::int64_t i64() { return static_cast<std::int64_t>(get(8)); }
    void raw(void *to, std::size_t n) {
        if (n > room()) n = room();
        std::memcpy(to, bytes_ + at_, n);
        at_ += n;
    }
    std::string_view text(std::size_t most) {
        const std::size_t n = u8();
        std::string_view v(reinterpret_cast<const char *>(bytes_) + at_, n <= most ? n : most);
        at_ += most;
        return v;
    }

private:
    std::size_t room() const { return at_ < Bytes - 8 ? Bytes - 8 - at_ : 0; }
    void store(std::size_t at, std::uint64_t v, std::size_t n) {
        v = little_endian(v);
        std::memcpy(bytes_ + at, &v, n);
    }
    std::uint64_t load(std::size_t at, std::size_t n) const {
        std::uint64_t v = 0;
        std::memcpy(&v, bytes_ + at, n);
        return little_endian(v);
    }
    void put(std::uint64_t v, std::size_t n) {
        if (n <= room()) store(at_, v, n);
        at_ += n;
    }
    std::uint64_t get(std::size_t n) {
        const std::uint64_t v = n <= room() ? load(at_, n) : 0;
        at_ += n;
        return v;
    }
    unsigned char bytes_[Bytes] = {};
    std::size_t at_ = 0;
};

}  // namespace dcs::locks
