// The only file that instantiates Writer and Reader for every message.
#include "wire/message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "base/bytes.h"
#include "base/text.h"
#include "base/planted.h"
#include "wire/archives.h"

namespace dcs::wire {

AnyMessage::AnyMessage() = default;
AnyMessage::AnyMessage(const AnyMessage &) = default;
AnyMessage::AnyMessage(AnyMessage &&) noexcept = default;
AnyMessage &AnyMessage::operator=(const AnyMessage &other) { return *this = AnyMessage(other); }
AnyMessage &AnyMessage::operator=(AnyMessage &&) noexcept = default;
AnyMessage::~AnyMessage() = default;

namespace {

constexpr std::string_view magic = "DCS1";
constexpr std::size_t kinds = std::variant_size_v<AnyMessageOf>;

template <class Message, std::size_t I = 0> constexpr std::uint16_t kind_number_of() {
    if constexpr (std::is_same_v<Message, std::variant_alternative_t<I, AnyMessageOf>>) return I + 1;
    else return kind_number_of<Message, I + 1>();
}
template <class Message> constexpr std::uint16_t kind_number = kind_number_of<Message>();

constexpr std::array<const char *, kinds> names = {
    "Hello",         "Welcome",      "GetAuth",      "AuthReply",      "OpenSession", "OpenReply",
    "CloseSession",  "CleanSession", "Gexec",        "Gkill",          "Done",        "Gwait",
    "GrainResult",   "Fetch",        "Piece",        "Query",          "QueryReply",  "ErrorReply",
    "FirstCall",     "CallIn",       "GrainReport",  "LaunchResult",   "Configure",   "Refused",
    "Launch",        "ReportAck",    "Withdraw",     "ExportPage",     "ExportReply", "ImportPiece",
    "ImportSession", "Doctor",       "DoctorReply",  "Explain",        "Explanation", "SetHost",
    "RestartGrain",  "Reload",       "SetLogLevel",  "LogLevel",       "AskContents", "MissingContents",
    "PutContent",    "ContentTaken", "WantContent",  "ContentPiece",   "GexecMany",   "GwaitMany",
    "GrainResults",  "CreateToken",  "TokenCreated", "ListTokens",     "TokenList",   "RevokeToken",
    "ApproveHost",   "RemoveHost",   "JoinHost",     "Joined",         "JoinPending", "RenewCertificate",
    "Renewed",       "BeginControl", "Begun",        "HeldByBackup",   "BackupReady", "BackupHas",
    "BackupCall",    "BackupKnown",  "HandOver",     "HandOverTaken",  "AskBackup",   "BackupStatus",
    "BackupPlace",   "MemberKeys",   "MirrorCall",   "MirrorContents", "MirrorPage",  "MirrorHas",
    "AskMirror",     "MirrorStatus", "Peek",         "Peeked",         "SetSession"};

// Kinds above these came with later forms.
struct KindsOf {
    Form form;
    std::size_t last;
};
constexpr KindsOf kinds_of[] = {{8, 80}, {9, 83}};
static_assert(kinds_of[std::size(kinds_of) - 1].last == kinds, "a new kind of message belongs to a form");

Form form_of_kind(std::size_t kind) {
    for (const KindsOf &all : kinds_of)
        if (kind <= all.last) return all.form;
    return newest_form;
}

using Decoder = Result<AnyMessage> (*)(std::string_view, Form);

// What is the same for all kinds stands here, so that it is not compiled for each.
Result<AnyMessage> decoded(const Reader &reader, AnyMessage &&message, Form form) {
    Status status = reader.status();
    if (!status) return fail(status.code, kind_name(message) + (": " + status.text));
    if (auto *launch = std::get_if<LaunchResult>(&message); launch && form == 8)
        launch->code = static_cast<std::int32_t>(launch_code_of_8(static_cast<Code>(launch->code)));
    return std::move(message);
}

template <std::size_t I> Result<AnyMessage> decode_as(std::string_view payload, Form form) {
    AnyMessage message;
    Reader reader(payload, form);
    reader >> message.emplace<I>();
    return decoded(reader, std::move(message), form);
}

template <std::size_t... I> constexpr std::array<Decoder, kinds> make_decoders(std::index_sequence<I...>) {
    return {&decode_as<I>...};
}
constexpr std::array<Decoder, kinds> decoders = make_decoders(std::make_index_sequence<kinds>{});

template <class Message> std::string payload_after(std::size_t head_room, const Message &message, Form form) {
    Writer writer(form, head_room);
    if constexpr (std::is_same_v<Message, LaunchResult>) {
        LaunchResult told = message;
        if (form == 8) told.code = static_cast<std::int32_t>(launch_code_for_8(static_cast<Code>(told.code)));
        writer << told;
    } else {
        writer << message;
    }
    return std::move(writer.bytes());
}

std::string frame_of(const AnyMessage &message, std::uint64_t request, Form form) {
    std::string frame = std::visit([&](const auto &m) { return payload_after(header_bytes, m, form); }, message);
    const std::string_view payload = std::string_view(frame).substr(header_bytes);
    DCS_REQUIRE(payload.size() <= UINT32_MAX, "a payload does not fit into a frame");
    ByteWriter header;
    header.raw(magic);
    header.u16(kind_of(message));
    header.u16(form);
    header.u32(static_cast<std::uint32_t>(payload.size()));
    header.u64(request);
    header.u32(crc32c(payload));
    DCS_REQUIRE(header.size() == header_bytes, "the header has its own size");
    std::memcpy(frame.data(), header.bytes().data(), header_bytes);
    return frame;
}

Status check_sayable(const AnyMessage &message, Form form) {
    const std::string name = kind_name(message);
    const auto unknown = [&](const std::string &what, Form since) {
        return fail(Code::invalid, "the peer speaks protocol version " + std::to_string(form) +
                                       ", which does not know " + what + ": upgrade it to one that speaks version " +
                                       std::to_string(since));
    };
    if (const Form since = form_of_kind(kind_of(message)); since > form) return unknown(name, since);
    const Needed needed = std::visit([](const auto &m) { return needed_for(m); }, message);
    return needed.form > form ? unknown(needed.what + " of " + name, needed.form) : Status::ok();
}

template <class Struct> Result<Struct> unpacked(std::string_view bytes, const char *what) {
    Struct value;
    const Status status = Reader::stored(bytes, value);
    if (!status) return fail(status.code, std::string(what) + ": " + status.text);
    return value;
}

}  // namespace

bool opens(std::uint16_t kind) {
    constexpr std::array first = {kind_number<Hello>,        kind_number<FirstCall>,  kind_number<JoinHost>,
                                  kind_number<BeginControl>, kind_number<BackupCall>, kind_number<MirrorCall>,
                                  kind_number<AskBackup>,    kind_number<AskMirror>};
    return std::find(first.begin(), first.end(), kind) != first.end();
}

Result<std::string> encode(const AnyMessage &message, std::uint64_t request, Form form) {
    if (opens(kind_of(message))) return encode(message, request);
    if (form < newest_form)
        if (Status s = check_sayable(message, form); !s) return s;
    return frame_of(message, request, form);
}

std::string encode(const AnyMessage &message, std::uint64_t request) {
    if (opens(kind_of(message))) return frame_of(message, offer_of(our_forms), opening_form);
    return frame_of(message, request, newest_form);
}

Status PeerForm::hear(const FrameHeader &header) {
    Form theirs = header.protocol;
    if (const auto offer = opens(header.kind) ? offer_in(header.request) : std::nullopt) {
        const auto common = common_form(*offer);
        if (!common) return common.status();
        theirs = *common;
    }
    form_ = planted("wire.newest_to_all") ? newest_form : std::max(form_, theirs);
    return Status::ok();
}

Result<FrameHeader> decode_header(std::string_view bytes, std::size_t max_payload) {
    DCS_REQUIRE(bytes.size() == header_bytes, "decode_header takes a whole header");
    ByteReader reader(bytes);
    if (reader.raw(magic.size()) != magic)
        return fail(Code::protocol,
                    "this is not a DCS frame: it begins with the bytes " + hex_of(bytes.substr(0, magic.size())));
    FrameHeader header;
    header.kind = reader.u16();
    header.protocol = reader.u16();
    header.length = reader.u32();
    header.request = reader.u64();
    header.crc = reader.u32();
    if (Status s = check_form(header.protocol); !s) return s;
    const std::size_t place = header.kind - std::size_t{1};
    if (place >= kinds) return fail(Code::protocol, "unknown kind of message: " + std::to_string(header.kind));
    if (header.length > max_payload)
        return fail(Code::limit, std::string(names[place]) + " of " + std::to_string(header.length) +
                                     " bytes, the limit is " + std::to_string(max_payload));
    return header;
}

Result<AnyMessage> decode_payload(const FrameHeader &header, std::string_view payload) {
    const std::size_t place = header.kind - std::size_t{1};
    if (place >= kinds) return fail(Code::protocol, "unknown kind of message: " + std::to_string(header.kind));
    const char *name = names[place];
    if (payload.size() != header.length)
        return fail(Code::protocol, std::string(name) + ": the payload has " + std::to_string(payload.size()) +
                                        " bytes, but its header says " + std::to_string(header.length));
    if (crc32c(payload) != header.crc) return fail(Code::protocol, std::string(name) + ": the checksum is wrong");
    return decoders[place](payload, header.protocol);
}

std::uint16_t kind_of(const AnyMessage &message) { return static_cast<std::uint16_t>(message.index() + 1); }

const char *kind_name(const AnyMessage &message) { return names[message.index()]; }

const std::string *refusal(const AnyMessage &message) {
    if (const auto *refused = std::get_if<Refused>(&message)) return &refused->text;
    const auto *error = std::get_if<ErrorReply>(&message);  // of the loop at the other end
    return error ? &error->text : nullptr;
}

std::string pack(const GrainReport &report) { return Writer::stored(report); }
std::string pack(const GrainSpec &spec) {
    std::string bytes = Writer::stored(spec);
    if (needed_for(spec).form == positional_form) bytes.resize(bytes.size() - left_out_of_spec_8(spec));
    return bytes;
}
std::string pack(const ExportedSession &session) { return Writer::stored(session); }
std::string pack(const ExportedGrain &grain) { return Writer::stored(grain); }

Result<GrainSpec> unpack_spec(std::string_view bytes) { return unpacked<GrainSpec>(bytes, "grain parameters"); }
Result<GrainReport> unpack_report(std::string_view bytes) { return unpacked<GrainReport>(bytes, "a report"); }
Result<ExportedSession> unpack_exported_session(std::string_view bytes) {
    return unpacked<ExportedSession>(bytes, "the session's record");
}
Result<ExportedGrain> unpack_exported_grain(std::string_view bytes) {
    return unpacked<ExportedGrain>(bytes, "a grain's record");
}

}  // namespace dcs::wire
