#include "backupd/record/format.h"

#include "base/bytes.h"
#include "base/text.h"

namespace dcs::backup::record {
namespace {

Status damaged(const char *what) { return fail(Code::io_error, what); }

constexpr std::string_view plain = "_-";

}  // namespace

std::string host_directory(const std::string &host) {
    return std::string(hosts_directory) + "/" + percent_encoded(host, plain);
}

std::optional<std::string> host_of(std::string_view name) {
    return name.empty() ? std::nullopt : percent_decoded(name, plain);
}

Result<Head> next_head(std::string_view &bytes) {
    ByteReader prefix(bytes);
    const std::uint32_t length = prefix.u32(), sum = prefix.u32();
    if (!prefix.good() || length > head_bytes_max || length > prefix.left()) return damaged("a record without a head");
    const std::string_view text = prefix.raw(length);
    if (crc32c(text) != sum) return damaged("a record's head has a wrong checksum");
    ByteReader r(text);
    if (r.u8() != head_version) return damaged("a record of another format");
    Head head;
    head.key.session.user = std::string(r.text());
    head.key.session.number = static_cast<std::int32_t>(r.u32());
    head.key.grain = static_cast<GrainNumber>(r.u32());
    head.incarnation = r.u32();
    head.first_seq = r.u32();
    head.last_seq = r.u32();
    head.ended = r.u8() != 0;
    head.body_length = r.u32();
    head.body_sum = r.u32();
    if (!r.at_end()) return damaged("a record's head cannot be decoded");
    bytes.remove_prefix(prefix_bytes + length);
    return head;
}

std::string encode_host(const HostReports &host) {
    ByteWriter w;
    w.u8(host_version);
    w.u64(host.last);
    w.u64(host.forgotten);
    w.u64(host.log_length);
    w.u32(crc32c(w.bytes()));
    return std::move(w.bytes());
}

Result<HostReports> decode_host(std::string_view file) {
    if (file.size() < 4) return damaged("it is truncated");
    ByteReader r(file);
    const std::uint8_t version = r.u8();
    HostReports host;
    host.last = r.u64();
    host.forgotten = r.u64();
    host.log_length = r.u64();
    const std::uint32_t sum = r.u32();
    if (!r.at_end() || sum != crc32c(file.substr(0, file.size() - 4))) return damaged("its checksum is wrong");
    if (version != host_version) return damaged("it has another format");
    if (host.forgotten > host.last) return damaged("its numbers are inconsistent");
    return host;
}

}  // namespace dcs::backup::record
