#include "grainserver/files/sealed.h"

namespace dcs::files {

std::string seal(const char *kind, const std::string &fields) {
    ByteWriter w;
    w.raw(std::string_view(kind, 4));
    w.u32(crc32c(fields));
    w.raw(fields);
    return std::move(w.bytes());
}
Result<std::string_view> unseal(const char *kind, std::string_view bytes) {
    ByteReader r(bytes);
    const bool right_kind = r.raw(4) == std::string_view(kind, 4);
    const std::uint32_t sum = r.u32();
    const std::string_view fields = r.raw(r.left());
    if (!right_kind || !r.good() || crc32c(fields) != sum)
        return fail(Code::io_error, std::string("record ") + kind + " is damaged");
    return fields;
}
void put_list(ByteWriter &w, const std::vector<std::string> &items) {
    w.u32(static_cast<std::uint32_t>(items.size()));
    for (const std::string &item : items) w.text(item);
}
std::vector<std::string> get_list(ByteReader &r) {
    std::vector<std::string> items;
    const std::uint32_t count = r.u32();
    if (count > r.left() / 4) {
        r.spoil();
        return items;
    }
    for (std::uint32_t i = 0; i < count; ++i) items.emplace_back(r.text());
    return items;
}

}  // namespace dcs::files
