#include "base/bytes.h"

#include <algorithm>
#include <climits>

#include <isa-l/crc.h>

namespace dcs {
namespace {

constexpr std::uint8_t kinds = static_cast<std::uint8_t>(FieldKind::list) + 1;
constexpr int deepest_value = 16;

bool split_tag(ByteReader &in, std::uint64_t tag, std::uint32_t last, std::uint32_t &number, FieldKind &kind) {
    const std::uint64_t n = tag / 8;
    if (tag % 8 >= kinds || n <= last || n >= UINT32_MAX) {
        in.spoil();
        return false;
    }
    number = static_cast<std::uint32_t>(n);
    kind = static_cast<FieldKind>(tag % 8);
    return true;
}

void skip(ByteReader &in, FieldKind kind, int depth) {
    if (depth == 0) return in.spoil();
    switch (kind) {
    case FieldKind::natural:
    case FieldKind::integer: in.var(); return;
    case FieldKind::real: in.u64(); return;
    case FieldKind::bytes: get_bytes(in); return;
    case FieldKind::fields: {
        std::uint32_t number = 0;
        FieldKind inner{};
        for (std::uint64_t tag = in.var(); tag != 0 && split_tag(in, tag, number, number, inner); tag = in.var())
            skip(in, inner, depth - 1);
        return;
    }
    case FieldKind::list: {
        const std::uint8_t element = in.u8();
        const std::uint64_t count = in.var();
        if (element >= kinds || count > in.left()) return in.spoil();  // each takes a byte at least
        for (std::uint64_t i = 0; i < count && in.good(); ++i) skip(in, static_cast<FieldKind>(element), depth - 1);
    }
    }
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
    std::uint32_t sum = ~before;
    while (!bytes.empty()) {
        const std::size_t part = std::min<std::size_t>(bytes.size(), INT_MAX);
        // The library's parameter is not const, the bytes are left alone all the same.
        auto *data = reinterpret_cast<unsigned char *>(const_cast<char *>(bytes.data()));
        sum = crc32_iscsi(data, static_cast<int>(part), sum);
        bytes.remove_prefix(part);
    }
    return ~sum;
}

void skip_value(ByteReader &in, FieldKind kind) { skip(in, kind, deepest_value); }

bool FieldReader::peek() {
    if (number_ != 0) return number_ != none_left;
    const std::uint64_t tag = in_.var();  // 0 from spoilt bytes, too
    if (tag != 0 && split_tag(in_, tag, last_, number_, kind_)) return true;
    number_ = none_left;
    return false;
}

void FieldReader::pass_over() {
    last_ = number_;
    number_ = 0;
    skipped_ = true;
    skip_value(in_, kind_);
}

bool FieldReader::find(std::uint32_t number, FieldKind kind) {
    while (peek() && number_ < number) pass_over();
    if (number_ != number) return false;
    last_ = number_;
    number_ = 0;
    if (kind_ == kind) return true;
    in_.spoil();
    return false;
}

void FieldReader::finish() {
    while (peek()) pass_over();
}

}  // namespace dcs
