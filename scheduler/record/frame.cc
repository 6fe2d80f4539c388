#include "scheduler/record/frame.h"

#include "base/bytes.h"

namespace dcs::record {
namespace {

// Far above any record; a length beyond it is damage and not worth a checksum run.
constexpr std::uint32_t max_body = 64u << 20;

}  // namespace

Status damaged(const std::string &what) { return fail(Code::io_error, what); }

std::string framed(const std::string &body) {
    DCS_REQUIRE(!body.empty() && body.size() <= max_body, "a record that is written can be read");
    ByteWriter w;
    w.bytes().reserve(body.size() + 9);
    w.var(body.size());
    w.u32(crc32c(body));
    w.raw(body);
    return std::move(w.bytes());
}

Result<std::string_view> next_body(std::string_view &in) {
    ByteReader r(in);
    const std::uint64_t length = r.var();
    const std::uint32_t sum = r.u32();
    if (!r.good()) return damaged("it ends inside a record");
    if (length > max_body || length > r.left()) return damaged("a record is longer than the file");
    const std::string_view body = r.raw(length);
    if (crc32c(body) != sum) return damaged("a checksum does not match");
    in.remove_prefix(in.size() - r.left());
    return body;
}

}  // namespace dcs::record
