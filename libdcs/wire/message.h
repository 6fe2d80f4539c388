#pragma once
// A message is one of the structs of user_calls.h, batch_calls.h, wait_calls.h, session_calls.h, policy_calls.h,
// content_calls.h, server_calls.h, join_calls.h or backup_calls.h, in a frame.
//
// Frame on the wire, all numbers little-endian:
//   0  4  magic "DCS1"
//   4  2  kind (place in AnyMessage, from 1; never reordered, only appended)
//   6  2  form of the payload (form.h), also called protocol version
//   8  4  payload length
//  12  8  request id (user calls; 0 on server links; of who opens a connection: an offer, form.h)
//  20  4  CRC-32C of the payload
//  24  .. payload: the struct, by Writer
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "wire/backup_calls.h"
#include "wire/batch_calls.h"
#include "wire/join_calls.h"
#include "wire/content_calls.h"
#include "wire/policy_calls.h"
#include "wire/server_calls.h"
#include "wire/session_calls.h"
#include "wire/user_calls.h"

namespace dcs::wire {

using AnyMessageOf =
    std::variant<Hello, Welcome, GetAuth, AuthReply, OpenSession, OpenReply, CloseSession, CleanSession, Gexec, Gkill,
                 Done, Gwait, GrainResult, Fetch, Piece, Query, QueryReply, ErrorReply, FirstCall, CallIn, GrainReport,
                 LaunchResult, Configure, Refused, Launch, ReportAck, Withdraw, ExportPage, ExportReply, ImportPiece,
                 ImportSession, Doctor, DoctorReply, Explain, Explanation, SetHost, RestartGrain, Reload, SetLogLevel,
                 LogLevel, AskContents, MissingContents, PutContent, ContentTaken, WantContent, ContentPiece, GexecMany,
                 GwaitMany, GrainResults, CreateToken, TokenCreated, ListTokens, TokenList, RevokeToken, ApproveHost,
                 RemoveHost, JoinHost, Joined, JoinPending, RenewCertificate, Renewed, BeginControl, Begun,
                 HeldByBackup, BackupReady, BackupHas, BackupCall, BackupKnown, HandOver, HandOverTaken, AskBackup,
                 BackupStatus, BackupPlace, MemberKeys, MirrorCall, MirrorContents, MirrorPage, MirrorHas, AskMirror,
                 MirrorStatus, Peek, Peeked, SetSession>;
// A variant whose copies, moves and end are compiled once (message.cc): with so many alternatives they are most of
// what a compiler has to do for a file that holds one.
class AnyMessage : public AnyMessageOf {
public:
    using AnyMessageOf::AnyMessageOf;
    AnyMessage();
    AnyMessage(const AnyMessage &);
    AnyMessage(AnyMessage &&) noexcept;
    AnyMessage &operator=(const AnyMessage &);
    AnyMessage &operator=(AnyMessage &&) noexcept;
    ~AnyMessage();
};

std::uint16_t kind_of(const AnyMessage &message);

inline constexpr std::size_t header_bytes = 24;

struct FrameHeader {
    std::uint16_t kind = 0, protocol = 0;
    std::uint32_t length = 0, crc = 0;
    std::uint64_t request = 0;
};

// Messages of this kind begin a connection: they are in the opening form, and their request id is an offer.
bool opens(std::uint16_t kind);

// One whole frame, header and payload, for a peer that reads `form`. It fails if that form cannot say the message: then
// the peer would take it for another one. `request` counts for messages that begin no connection.
Result<std::string> encode(const AnyMessage &message, std::uint64_t request, Form form);
// For a peer of this release.
std::string encode(const AnyMessage &message, std::uint64_t request);

// `bytes` has exactly header_bytes. Fails on a wrong magic, an unknown kind, a form that this program does not read, or
// a length above `max_payload`: checked before a byte of payload is read.
Result<FrameHeader> decode_header(std::string_view bytes, std::size_t max_payload);

// Checks length and checksum, then decodes with bounds; trailing bytes are an error.
Result<AnyMessage> decode_payload(const FrameHeader &header, std::string_view payload);

// In which form the peer of one connection is written to, as its frames tell.
class PeerForm {
public:
    Form form() const { return form_; }
    // Fails if there is no common one.
    Status hear(const FrameHeader &header);

private:
    Form form_ = opening_form;
};

const char *kind_name(const AnyMessage &message);  // "Gexec"
// Of a message that refuses the sender of the one before, on a link between daemons: why. Else nullptr.
const std::string *refusal(const AnyMessage &message);

// One struct without a frame (records of the backing store, fingerprints, an import's stream): Writer::stored(). The
// fingerprint of a spec that release 0.1 could say is the one that it had there.
std::string pack(const GrainReport &report);
Result<GrainReport> unpack_report(std::string_view bytes);
std::string pack(const GrainSpec &spec);
Result<GrainSpec> unpack_spec(std::string_view bytes);
std::string pack(const ExportedSession &session);
std::string pack(const ExportedGrain &grain);
Result<ExportedSession> unpack_exported_session(std::string_view bytes);
Result<ExportedGrain> unpack_exported_grain(std::string_view bytes);

// Which fields of two specs differ, one line each: `argv[2]: recorded "x", now "y"`.
std::string difference(const GrainSpec &recorded, const GrainSpec &now);

// JSON object of a row, snake_case, for `-o json`.
std::string to_json(const HostRow &);
std::string to_json(const MemberRow &);
std::string to_json(const SessionRow &);
std::string to_json(const StoredRow &);
std::string to_json(const GrainRow &);
std::string to_json(const ProblemRow &);
std::string to_json(const Explanation &);

}  // namespace dcs::wire
