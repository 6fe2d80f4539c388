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

std::uint64_t ByteReader::long_var() {
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < left() && i < 10; ++i) {
        const auto byte = static_cast<std::uint8_t>(at_[i]);
        const std::uint64_t bits = byte & 0x7f;
        if (i == 9 && bits > 1) break;
        v |= bits << (7 * i);
        if (byte >= 0x80) continue;
        at_ += i + 1;
        return v;
    }
    spoil();
    return 0;
}

void FieldReader::pass_over() {
    FieldKind kind{};
    if (split_tag(in_, tag_, last_, last_, kind)) skip_value(in_, kind);
    skipped_ = true;
    tag_ = in_.var();  // 0 from spoilt bytes, too
}

bool FieldReader::find(std::uint32_t number, FieldKind kind) {
    while (tag_ != 0 && tag_ / 8 < number) pass_over();
    if (tag_ / 8 != number) return false;
    if (tag_ % 8 == static_cast<std::uint8_t>(kind)) return true;
    in_.spoil();
    tag_ = 0;
    return false;
}

void FieldReader::finish() {
    if (tag_ == unread) tag_ = in_.var();
    while (tag_ != 0) pass_over();
}

}  // namespace dcs
