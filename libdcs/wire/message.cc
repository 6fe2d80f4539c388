// The only file that instantiates Writer and Reader for every message.
#include "wire/message.h"

#include <array>
#include <cstring>
#include <limits>

#include "base/checksum.h"
#include "base/limits.h"
#include "wire/json.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace dcs::wire {

AnyMessage::AnyMessage() = default;
AnyMessage::AnyMessage(const AnyMessage &) = default;
AnyMessage::AnyMessage(AnyMessage &&) noexcept = default;
AnyMessage &AnyMessage::operator=(const AnyMessage &) = default;
AnyMessage &AnyMessage::operator=(AnyMessage &&) noexcept = default;
AnyMessage::~AnyMessage() = default;

namespace {

constexpr std::string_view magic = "DCS1";
constexpr std::size_t kinds = std::variant_size_v<AnyMessageOf>;

constexpr std::array<const char *, kinds> names = {"Hello", "Welcome", "GetAuth", "AuthReply",
    "OpenSession", "OpenReply", "CloseSession", "CleanSession", "Gexec", "Gkill", "Done", "Gwait",
    "GrainResult", "Fetch", "Piece", "Query", "QueryReply", "ErrorReply", "FirstCall", "CallIn",
    "GrainReport", "LaunchResult", "Configure", "Refused", "Launch", "ReportAck", "Withdraw",
    "ExportPage", "ExportReply", "ImportPiece", "ImportSession", "Doctor", "DoctorReply",
    "Explain", "Explanation", "SetHost", "RestartGrain", "Reload", "SetLogLevel", "LogLevel",
    "AskContents", "MissingContents", "PutContent", "ContentTaken", "WantContent", "ContentPiece",
    "GexecMany", "GwaitMany", "GrainResults",
    "CreateToken", "TokenCreated", "ListTokens", "TokenList", "RevokeToken", "ApproveHost", "RemoveHost", "JoinHost",
    "Joined", "JoinPending", "RenewCertificate", "Renewed", "BeginControl", "Begun",
    "HeldByBackup", "BackupReady", "BackupHas", "BackupCall", "BackupKnown", "HandOver", "HandOverTaken", "AskBackup",
    "BackupStatus", "BackupPlace", "MemberKeys", "MirrorCall", "MirrorContents", "MirrorPage", "MirrorHas", "AskMirror",
    "MirrorStatus"};

struct Cap { std::string_view field; std::size_t most; };
constexpr Cap caps[] = {
    {"token", sizeof(Token)},
    {"user", limits::name_bytes},
    {"ident", limits::name_bytes},
    {"host", limits::name_bytes},
    {"name", limits::path_bytes},
    {"file", limits::path_bytes},
    {"binary_class", limits::name_bytes},
    {"status", limits::name_bytes},
    {"level", limits::name_bytes},
    {"label", limits::label_bytes},
    {"directory", limits::path_bytes},
    {"argv", limits::argv_items},
    {"env", limits::argv_items},
    {"nogo", limits::nogo_items},
    {"digest", limits::digest_bytes},
    {"key", limits::digest_bytes},
    {"id", limits::name_bytes},
    {"by", limits::name_bytes},
    {"own_name", limits::name_bytes},
    {"words", limits::name_bytes},
    {"address", limits::path_bytes},
    {"certificate", limits::certificate_bytes},
    {"authority", limits::certificate_bytes},
    {"request", limits::certificate_bytes},
    {"tokens", limits::join_codes},
    {"pending", limits::pending_hosts},
    {"digests", limits::grain_files},
    {"files", limits::grain_files},
    {"shut", limits::message_bytes},
    {"orders", limits::batch_grains},
    {"held", limits::held_grains},
    {"members", limits::connections},
    {"path", limits::path_bytes},
    {"mode", limits::name_bytes},
    {"state", limits::name_bytes},
    {"bytes", limits::fetch_chunk_bytes},
};

using Decoder = Result<AnyMessage> (*)(std::string_view);

template <std::size_t I> Result<AnyMessage> decode_as(std::string_view payload) {
    std::variant_alternative_t<I, AnyMessageOf> message;
    Reader reader(payload);
    reader >> message;
    Status status = reader.status();
    if (!status) return fail(status.code, std::string(names[I]) + ": " + status.text);
    return AnyMessage(std::move(message));
}

template <std::size_t... I>
constexpr std::array<Decoder, kinds> make_decoders(std::index_sequence<I...>) {
    return {&decode_as<I>...};
}
constexpr std::array<Decoder, kinds> decoders = make_decoders(std::make_index_sequence<kinds>{});

template <class Struct> std::string packed(const Struct &value) {
    Writer writer;
    writer << value;
    return std::move(writer.bytes());
}

template <class Struct> Result<Struct> unpacked(std::string_view bytes, const char *what) {
    Struct value;
    Reader reader(bytes);
    reader >> value;
    Status status = reader.status();
    if (!status) return fail(status.code, std::string(what) + ": " + status.text);
    return value;
}

}  // namespace

std::size_t cap_of_field(const char *name) {
    const std::string_view wanted = name;
    for (const Cap &cap : caps)
        if (cap.field == wanted) return cap.most;
    return std::numeric_limits<std::size_t>::max();
}

std::string encode(const AnyMessage &message, std::uint64_t request) {
    Writer writer(header_bytes);
    std::visit([&](const auto &m) { writer << m; }, message);
    std::string frame = std::move(writer.bytes());
    const std::string_view payload = std::string_view(frame).substr(header_bytes);
    DCS_REQUIRE(payload.size() <= UINT32_MAX, "a payload does not fit into a frame");
    ByteWriter header;
    header.raw(magic);
    header.u16(kind_of(message));
    header.u16(protocol_version);
    header.u32(static_cast<std::uint32_t>(payload.size()));
    header.u64(request);
    header.u32(crc32c(payload));
    DCS_REQUIRE(header.size() == header_bytes, "the header has its own size");
    std::memcpy(frame.data(), header.bytes().data(), header_bytes);
    return frame;
}

Result<FrameHeader> decode_header(std::string_view bytes, std::size_t max_payload) {
    DCS_REQUIRE(bytes.size() == header_bytes, "decode_header takes a whole header");
    ByteReader reader(bytes);
    if (reader.raw(magic.size()) != magic)
        return fail(Code::protocol, "this is not a DCS frame: it begins with the bytes " +
                                        in_hex(bytes.substr(0, magic.size())));
    FrameHeader header;
    header.kind = reader.u16();
    header.protocol = reader.u16();
    header.length = reader.u32();
    header.request = reader.u64();
    header.crc = reader.u32();
    if (header.protocol != protocol_version)
        return fail(Code::protocol, "the peer speaks protocol version " +
                                        std::to_string(header.protocol) + ", this program " +
                                        std::to_string(protocol_version));
    const std::size_t place = header.kind - std::size_t{1};
    if (place >= kinds) return fail(Code::protocol, "unknown kind of message: " + std::to_string(header.kind));
    if (header.length > max_payload)
        return fail(Code::limit, std::string(names[place]) + " of " +
                                     std::to_string(header.length) + " bytes, the limit is " +
                                     std::to_string(max_payload));
    return header;
}

Result<AnyMessage> decode_payload(const FrameHeader &header, std::string_view payload) {
    const std::size_t place = header.kind - std::size_t{1};
    if (place >= kinds) return fail(Code::protocol, "unknown kind of message: " + std::to_string(header.kind));
    const char *name = names[place];
    if (payload.size() != header.length)
        return fail(Code::protocol, std::string(name) + ": the payload has " +
                                        std::to_string(payload.size()) + " bytes, its header says " +
                                        std::to_string(header.length));
    if (crc32c(payload) != header.crc)
        return fail(Code::protocol, std::string(name) + ": the checksum is wrong");
    return decoders[place](payload);
}

std::uint16_t kind_of(const AnyMessage &message) { return static_cast<std::uint16_t>(message.index() + 1); }

const char *kind_name(const AnyMessage &message) { return names[message.index()]; }

namespace {
// The last fields of a spec: cores, memory_mb, wall_s; files. Most grains ask for nothing; and what was
// recorded before there were such fields must keep its fingerprint.
constexpr std::size_t demand_bytes = 3 * sizeof(std::int32_t);
constexpr std::size_t no_files_bytes = sizeof(std::uint32_t);  // their number
}  // namespace

std::string pack(const GrainSpec &spec) {
    std::string bytes = packed(spec);
    if (!spec.files.empty()) return bytes;
    bytes.resize(bytes.size() - no_files_bytes);
    if (spec.cores == 0 && spec.memory_mb == 0 && spec.wall_s == 0) bytes.resize(bytes.size() - demand_bytes);
    return bytes;
}
std::string pack(const ExportedSession &session) { return packed(session); }
std::string pack(const ExportedGrain &grain) { return packed(grain); }

Result<GrainSpec> unpack_spec(std::string_view bytes) {
    auto spec = unpacked<GrainSpec>(bytes, "grain parameters");
    if (spec) return spec;
    std::string whole(bytes);
    for (const std::size_t left_out : {no_files_bytes, demand_bytes}) {
        whole.append(left_out, '\0');
        auto short_one = unpacked<GrainSpec>(whole, "grain parameters");
        if (short_one) return short_one;
    }
    return spec;
}
std::string pack(const GrainReport &report) { return packed(report); }
Result<GrainReport> unpack_report(std::string_view bytes) { return unpacked<GrainReport>(bytes, "a report"); }
Result<ExportedSession> unpack_exported_session(std::string_view bytes) {
    return unpacked<ExportedSession>(bytes, "the session's record");
}
Result<ExportedGrain> unpack_exported_grain(std::string_view bytes) {
    return unpacked<ExportedGrain>(bytes, "a grain's record");
}

}  // namespace dcs::wire
