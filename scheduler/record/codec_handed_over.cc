// How far the backup's reports were taken in, by host.
#include "scheduler/record/codec.h"
#include "scheduler/record/frame.h"

namespace dcs::record {
namespace {
constexpr std::uint8_t handed_over_version = 1;
}

std::string encode_handed_over(const HandedOver &table) {
    ByteWriter w;
    w.u8(handed_over_version);
    for (const auto &[host, up_to] : table) {
        put_text(w, host);
        w.u64(up_to.store);
        w.var(up_to.number);
    }
    return framed(w.bytes());
}

Result<HandedOver> decode_handed_over(std::string_view file) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("bytes follow its record");
    ByteReader r(*body);
    if (auto s = check_version(r.u8(), handed_over_version); !s) return s;
    HandedOver table;
    while (r.good() && !r.at_end()) {
        core::HandedOver &up_to = table[get_text(r)];
        up_to.store = r.u64();
        up_to.number = r.var();
    }
    if (!r.good()) return damaged("a record does not decode");
    return table;
}

}  // namespace dcs::record
