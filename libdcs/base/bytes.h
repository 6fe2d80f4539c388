#pragma once
// Fixed-width little-endian primitives over byte strings, with bounds. Everything binary that DCS
// writes (frames, update roots, records) is made of these; the archives of wire/ sit on top.
#include <cstdint>
#include <string>
#include <string_view>

namespace dcs {

class ByteWriter {
public:
    void u8(std::uint8_t v) { out_.push_back(static_cast<char>(v)); }
    void u16(std::uint16_t v) { le(v, 2); }
    void u32(std::uint32_t v) { le(v, 4); }
    void u64(std::uint64_t v) { le(v, 8); }
    // 7 bits a byte, the low ones first: small numbers are short. svar: of either sign.
    void var(std::uint64_t v) {
        char bytes[10];
        std::size_t n = 0;
        for (; v >= 0x80; v >>= 7) bytes[n++] = static_cast<char>(v | 0x80);
        bytes[n++] = static_cast<char>(v);
        out_.append(bytes, n);
    }
    void svar(std::int64_t v) { var((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63)); }
    void raw(std::string_view bytes) { out_.append(bytes); }
    void text(std::string_view bytes) {
        u32(static_cast<std::uint32_t>(bytes.size()));
        raw(bytes);
    }
    std::string &bytes() { return out_; }
    std::size_t size() const { return out_.size(); }

private:
    void le(std::uint64_t v, int n) {
        char bytes[8];
        for (int i = 0; i < n; ++i) bytes[i] = static_cast<char>(v >> (8 * i));
        out_.append(bytes, static_cast<std::size_t>(n));
    }
    std::string out_;
};

// Reads never pass the end: the first short read makes the reader bad, and a bad reader
// yields zeros and empty strings. Check good() once at the end (and at_end() against trailing junk).
class ByteReader {
public:
    explicit ByteReader(std::string_view in) : at_(in.data()), end_(in.data() + in.size()) {}
    std::uint8_t u8() { return static_cast<std::uint8_t>(le(1)); }
    std::uint16_t u16() { return static_cast<std::uint16_t>(le(2)); }
    std::uint32_t u32() { return static_cast<std::uint32_t>(le(4)); }
    std::uint64_t u64() { return le(8); }
    [[gnu::always_inline]] std::uint64_t var() {
        if (at_ == end_ || static_cast<std::uint8_t>(*at_) >= 0x80) return long_var();
        return static_cast<std::uint8_t>(*at_++);
    }
    std::int64_t svar() {
        const std::uint64_t v = var();
        return static_cast<std::int64_t>((v >> 1) ^ (~(v & 1) + 1));
    }
    // A number that is too large for `out` spoils the reader.
    template <class Number> void get_var(Number &out) {
        const std::uint64_t read = var();
        out = static_cast<Number>(read);
        if (static_cast<std::uint64_t>(out) != read) spoil();
    }
    template <class Number> void get_svar(Number &out) {
        const std::int64_t read = svar();
        out = static_cast<Number>(read);
        if (out != read) spoil();
    }
    std::string_view raw(std::size_t n) {
        if (n > left()) {
            spoil();
            return {};
        }
        at_ += n;
        return {at_ - n, n};
    }
    std::string_view text() { return raw(u32()); }
    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
    bool good() const { return good_; }
    bool at_end() const { return good_ && at_ == end_; }
    void spoil() {
        good_ = false;
        at_ = end_;
    }

private:
    std::uint64_t long_var();
    std::uint64_t le(std::size_t n) {
        std::string_view r = raw(n);
        std::uint64_t v = 0;
        for (std::size_t i = 0; i < r.size(); ++i) v |= std::uint64_t{static_cast<std::uint8_t>(r[i])} << (8 * i);
        return v;
    }
    const char *at_, *end_;
    bool good_ = true;
};

// CRC-32C (Castagnoli): against rot and torn writes, not against malice. `before` is the sum of
// the bytes in front of these: crc32c(b, crc32c(a)) is the sum of a and b joined.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

// Numbered fields in bytes, so that a reader skips what it does not know and a field that has its default takes no
// room. The messages of wire/ and the records of the scheduler are written in this form.
//
//   fields  = { tag value } 0        tags ascend; the 0 ends them
//   tag     = var(8 * number + kind) numbers from 1
//   value   = natural: var; integer: svar; real: 8 bytes; bytes: var length and the bytes;
//             fields: as above; list: one byte kind, var count, and so many values of that kind

enum class FieldKind : std::uint8_t { natural, integer, real, bytes, fields, list };

// The tag of a field, before its value.
inline void put_tag(ByteWriter &out, std::uint32_t number, FieldKind kind) {
    out.var(std::uint64_t{number} * 8 + static_cast<std::uint8_t>(kind));
}
inline void end_fields(ByteWriter &out) { out.var(0); }
inline void put_bytes(ByteWriter &out, std::string_view bytes) {
    out.var(bytes.size());
    out.raw(bytes);
}
inline std::string_view get_bytes(ByteReader &in) {
    const std::uint64_t size = in.var();
    if (size <= in.left()) return in.raw(static_cast<std::size_t>(size));
    in.spoil();
    return {};
}

// The fields of one struct, asked for in the order of their numbers.
class FieldReader {
public:
    explicit FieldReader(ByteReader &in) : in_(in) {}

    // Field `number` comes next: its value is to be read now. Fields with smaller numbers are skipped: the program that
    // wrote them is newer, or this one has dropped them. Another kind than `kind` spoils the bytes.
    [[gnu::always_inline]] bool at(std::uint32_t number, FieldKind kind) {
        if (tag_ == unread) tag_ = in_.var();
        if (tag_ / 8 > number || tag_ == 0) return false;
        if (tag_ != std::uint64_t{number} * 8 + static_cast<std::uint8_t>(kind) && !find(number, kind)) return false;
        last_ = number;
        tag_ = unread;
        return true;
    }
    // Skips the rest, to behind the 0.
    void finish();
    // A field was skipped: another version than this one wrote the struct.
    bool skipped() const { return skipped_; }

private:
    static constexpr std::uint64_t unread = 1;  // which no field has
    bool find(std::uint32_t number, FieldKind kind);
    void pass_over();
    ByteReader &in_;
    std::uint64_t tag_ = unread;  // the next one; 0: there is none
    std::uint32_t last_ = 0;
    bool skipped_ = false;
};

// Passes over one value, nested ones up to a depth that no struct of ours has. Linear in the bytes.
void skip_value(ByteReader &in, FieldKind kind);

}  // namespace dcs
