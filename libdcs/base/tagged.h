#pragma once
// Numbered fields in bytes, so that a reader skips what it does not know and a field that has its default takes no
// room. The messages of wire/ and the records of the scheduler are written in this form.
//
//   fields  = { tag value } 0        tags ascend; the 0 ends them
//   tag     = var(8 * number + kind) numbers from 1
//   value   = natural: var; integer: svar; real: 8 bytes; bytes: var length and the bytes;
//             fields: as above; list: one byte kind, var count, and so many values of that kind
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace dcs {

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
    bool at(std::uint32_t number, FieldKind kind) { return number_ <= number && find(number, kind); }
    // Skips the rest, to behind the 0.
    void finish();
    // A field was skipped: another version than this one wrote the struct.
    bool skipped() const { return skipped_; }

private:
    static constexpr std::uint32_t none_left = UINT32_MAX;
    bool find(std::uint32_t number, FieldKind kind);
    bool peek();  // the next tag is in number_ and kind_; false at the end
    void pass_over();
    ByteReader &in_;
    std::uint32_t number_ = 0;  // of the tag that was read and not used; 0: none; none_left: at the end
    std::uint32_t last_ = 0;
    FieldKind kind_ = FieldKind::natural;
    bool skipped_ = false;
};

// Passes over one value, nested ones up to a depth that no struct of ours has. Linear in the bytes.
void skip_value(ByteReader &in, FieldKind kind);

}  // namespace dcs
