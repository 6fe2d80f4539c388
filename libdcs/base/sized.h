#pragma once
// The structs of the installed headers as a program knows them: it may have been compiled with headers whose structs
// are shorter or longer than those of this library. New fields come at the end, and their default is 0.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "base/version.h"

namespace dcs {

inline constexpr std::size_t longest_struct = 4096;  // beyond it, it is something else than a struct_size

inline Status bad_struct_size(const char *what, std::size_t size) {
    return fail(Code::invalid, std::string(what) + ".struct_size is " + std::to_string(size) +
                                   ": it was not set by the init call of its struct");
}

inline Status newer_struct(const char *what) {
    return fail(Code::invalid, std::string("the program set a field of ") + what + " that this library, version " +
                                   DCS_VERSION + ", does not have: install a newer library");
}

template <class T> bool sound_size(std::size_t size) {
    return size > sizeof(std::size_t) && size <= longest_struct && size % alignof(T) == 0;
}

// What the program filled; the fields that it does not have are as in `defaults`.
template <class T> Result<T> known(const T *from, const char *what, T defaults = {}) {
    if (from == nullptr) return fail(Code::invalid, std::string(what) + " is NULL");
    const std::size_t size = from->struct_size;
    if (!sound_size<T>(size)) return bad_struct_size(what, size);
    const char *bytes = reinterpret_cast<const char *>(from);
    if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](char c) { return c != 0; }))
        return newer_struct(what);
    std::memcpy(&defaults, bytes, std::min(size, sizeof(T)));
    if constexpr (requires { defaults.reserved; })  // room for a field of a later version
        if (defaults.reserved != 0) return newer_struct(what);
    return defaults;
}

// To the program's struct of `size` bytes: the fields that it has, and 0 in those that the library does not have.
template <class T> void copy_out(T value, void *to, std::size_t size) {
    value.struct_size = size;
    std::memset(to, 0, size);
    std::memcpy(to, &value, std::min(size, sizeof(T)));
}

// The struct behind `at` in the program's array.
template <class T> T *at_stride(T *array, std::size_t stride, std::size_t index) {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return reinterpret_cast<T *>(reinterpret_cast<Byte *>(array) + index * stride);
}

// Rows for the program, `size` bytes each. size 0: it does not know them.
template <class Row> class Rows {
public:
    explicit Rows(std::size_t size) : size_(size) {}
    void add(const Row &row) {
        if (size_ == 0) return;
        bytes_.resize(bytes_.size() + size_);
        copy_out(row, bytes_.data() + bytes_.size() - size_, size_);
    }
    std::size_t count() const { return size_ == 0 ? 0 : bytes_.size() / size_; }
    Row *data() { return bytes_.empty() ? nullptr : reinterpret_cast<Row *>(bytes_.data()); }
    const Row *data() const { return const_cast<Rows *>(this)->data(); }

private:
    std::size_t size_;
    std::vector<char> bytes_;
};

}  // namespace dcs
