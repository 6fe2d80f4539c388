#pragma once
// Blocks of fixed size in lock files: little-endian fields, zeros, and in the last eight bytes a checksum
// against torn writes and foreign content (not against malice).
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <unistd.h>

#include "process/identity.h"

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

    void put(std::uint64_t v, std::size_t n) {
        if (n <= room()) store(at_, v, n);
        at_ += n;
    }
    void raw(const void *from, std::size_t n) {
        if (n > room()) n = room();
        std::memcpy(bytes_ + at_, from, n);
        at_ += n;
    }
    // Length byte and at most `most` (< 256) bytes; always occupies 1 + most bytes.
    void text(std::string_view v, std::size_t most) {
        if (v.size() > most) v = v.substr(0, most);
        put(v.size(), 1);
        const std::size_t end = at_ + most;
        raw(v.data(), v.size());
        at_ = end;
    }
    // False with errno, ENOSPC if it is incomplete.
    bool write_sealed(int fd, std::int64_t at) {
        store(Bytes - 8, block_sum(bytes_, Bytes - 8), 8);
        errno = ENOSPC;
        return ::pwrite(fd, bytes_, Bytes, at) == static_cast<ssize_t>(Bytes);
    }
    bool read_sealed(int fd, std::int64_t at) {
        return ::pread(fd, bytes_, Bytes, at) == static_cast<ssize_t>(Bytes) && sealed();
    }
    bool sealed() const { return load(Bytes - 8, 8) == block_sum(bytes_, Bytes - 8); }

    std::uint64_t get(std::size_t n) {
        const std::uint64_t v = n <= room() ? load(at_, n) : 0;
        at_ += n;
        return v;
    }
    void raw(void *to, std::size_t n) {
        if (n > room()) n = room();
        std::memcpy(to, bytes_ + at_, n);
        at_ += n;
    }
    std::string_view text(std::size_t most) {
        const std::size_t n = get(1);
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
    unsigned char bytes_[Bytes] = {};
    std::size_t at_ = 0;
};

// Both ways to take a list of fields, which is a template over them. A field has as many bytes as in memory.
template <std::size_t Bytes> struct Writing {
    Block<Bytes> &block;
    template <class... T> void operator()(const T &...v) { (block.put(static_cast<std::uint64_t>(v), sizeof v), ...); }
    template <class... T> void in_32_bits(const T &...v) { (block.put(static_cast<std::uint64_t>(v), 4), ...); }
    template <class Array> void raw(const Array &v) { block.raw(v.data(), v.size()); }
    void text(std::string_view v, std::size_t most) { block.text(v, most); }
    void whole_text(std::string_view v, std::size_t most) { text(v.size() <= most ? v : std::string_view(), most); }
};
template <std::size_t Bytes> struct Reading {
    Block<Bytes> &block;
    template <class... T> void operator()(T &...v) { ((v = static_cast<T>(block.get(sizeof v))), ...); }
    template <class... T> void in_32_bits(T &...v) { ((v = static_cast<T>(block.get(4))), ...); }
    template <class Array> void raw(Array &v) { block.raw(v.data(), v.size()); }
    void text(std::string &v, std::size_t most) { v = block.text(most); }
    void whole_text(std::string &v, std::size_t most) { text(v, most); }
};

// A process as stored in the blocks of a lock file: 20 bytes.
template <class Io, class Process> void process_fields(Io &io, Process &p) { io(p.pid, p.start_ticks, p.pidfs_inode); }

}  // namespace dcs::locks
