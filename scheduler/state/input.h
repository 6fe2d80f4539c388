#pragma once
// Everything that can reach the scheduler. Bulk travels beside the decision, not through it: a
// Payload is carried from input to change, and core looks only at its length.
#include <memory>
#include <optional>
#include <variant>

#include "base/status.h"
#include "scheduler/state/state.h"
#include "wire/batch_calls.h"
#include "wire/join_calls.h"
#include "wire/policy_calls.h"
#include "wire/session_calls.h"

namespace dcs::core {

struct Payload {
    std::shared_ptr<const std::string> bytes;
    std::uint64_t size() const { return bytes ? bytes->size() : 0; }
};

struct Caller {
    ConnId conn{};
    RequestId request{};
    std::string user;         // login name from the peer credentials
    bool privileged = false;  // root, scheduler_master, or the owner of a private pool
    bool has_token = false;
    TokenHash token{};  // hash of the token of the connection's Hello
    std::string host;   // on which the program runs, by its certificate; empty: on this one
    TokenHash key{};    // and the hash of the certificate's key
};

// A d_gexec, its spec packed and fingerprinted by the turn.
struct SubmitGrain {
    std::int32_t session = 0, grain = 0;
    wire::Demands demands;
    std::uint64_t input_length = 0;
    GrainFiles files;
    std::uint32_t program = 0;  // digest of argv[0], not 0
    Fingerprint fingerprint{};
    Fingerprint as_demanded{};       // with the demands and environment of the recorded grain that the call may change
    bool in_its_environment = true;  // that is the recorded grain's, but for what differs from login to login
    bool again = false, from_start = false, only_failed = false, in_order = false;  // as in wire::Gexec
    Payload params;                                                                 // wire::pack(spec)
};
// clang-format off
// All or none of them; each names the same session.
struct SubmitGrains { std::int32_t session = 0; std::shared_ptr<const std::vector<SubmitGrain>> grains; };
// A d_get_auth; the shell drew the token at random.
struct GetAuth { std::string ident; Token fresh{}; TokenHash fresh_hash{}; std::int64_t wall_s = 0; };

// Renews the same connection's certificate: for the key that `request` was signed with.
struct RenewProgram { std::string public_key; TokenHash key{}; std::int64_t wall_s = 0; };

// A session from an export, validated and packed by the turn.
enum class File : std::uint8_t;
struct ImportedFile { GrainNumber grain = 0; File file{}; Payload bytes; };
using GrainList = std::vector<std::pair<GrainNumber, Grain>>;  // ascending
struct ImportContent {
    SessionInfo info;             // status, ident, counts, queue and lengths; the rest is core's
    std::shared_ptr<const GrainList> grains;
    Payload inputs, results, events;  // of the session's append files
    std::vector<ImportedFile> files;
};
// content is null if this connection has no upload, or no longer.
struct ImportSession { std::int32_t number = 0; bool replace = false; std::shared_ptr<const ImportContent> content; };

// The shell drew the token at random and knows where the TLS door is.
struct CreateCode {
    std::string host;
    HostRole role = HostRole::server;
    std::int64_t ttl_s = 0, wall_s = 0;
    Token fresh{};
    TokenHash hash{};
    std::string address, authority;
};
struct ListCodes { std::int64_t wall_s = 0; std::string address, authority; };
struct ApproveHost { std::string host, words; bool replace = false; std::int64_t wall_s = 0; };

using UserRequestOf = std::variant<GetAuth, wire::OpenSession, wire::CloseSession, wire::CleanSession,
    SubmitGrain, wire::Gkill, wire::Gwait, wire::Fetch, wire::Query, wire::ExportPage, ImportSession, wire::Doctor,
    wire::Explain, wire::SetHost, wire::RestartGrain, wire::Reload, wire::SetLogLevel, SubmitGrains, wire::GwaitMany,
    CreateCode, ListCodes, wire::RevokeToken, ApproveHost, wire::RemoveHost, RenewProgram,
    wire::SetSession>;
// Its special members are in variants.cc, as those of AnyMessage are in message.cc.
class UserRequest : public UserRequestOf {
public:
    using UserRequestOf::UserRequestOf;
    UserRequest();
    UserRequest(const UserRequest &);
    UserRequest(UserRequest &&) noexcept;
    UserRequest &operator=(const UserRequest &);
    UserRequest &operator=(UserRequest &&) noexcept;
    ~UserRequest();
};
struct UserCall { Caller caller; UserRequest request; };

// Who is behind a link, by the certificate that it showed; no name: a process of this host, known by the kernel.
struct Certified { std::string host; TokenHash key{}; std::int64_t not_after_s = 0; };
// promised: the backup's reports without which the server is not believed; waited: they did not come in time.
struct ServerFirstCall {
    ConnId conn{};
    std::shared_ptr<const wire::FirstCall> call;
    Certified certified;
    HandedOver promised;
    bool waited = false;
    wire::Form form = wire::positional_form;  // the newest that it reads
    std::string address;  // from which it is connected; empty: by a socket of this host
};
// A wire::JoinHost whose request was read, and found signed with its key.
struct JoinCall {
    ConnId conn{};
    RequestId request{};
    std::string host, own_name, address;
    HostRole role = HostRole::server;
    bool has_code = false;
    TokenHash code{};
    TokenHash key{};
    std::string public_key;
    std::int64_t wall_s = 0, until_s = 0;  // until_s: the end of a certificate that is issued now
};
// A host of the pool has got another certificate for its key.
struct CertificateRenewed { HostRole role = HostRole::server; Certified who; };
// What dcs_begin of another host asks for: a token and a certificate for a program of this user. The shell drew the
// token, read the key, and looked the user up.
struct BeginControl {
    ConnId conn{};
    RequestId request{};
    Certified from;              // the host that vouches for the user
    std::string address, user, ident, public_key;
    TokenHash key{};
    Token fresh{};
    TokenHash fresh_hash{};
    Status login;                // ok: the login is known here, and in the group
    std::int64_t wall_s = 0;
};
struct ServerCallIn { ConnId conn{}; HostId host = no_host; wire::CallIn call; };
struct ServerReport { ConnId conn{}; HostId host = no_host; std::shared_ptr<const wire::GrainReport> report; };
struct BackupCame { ConnId conn{}; std::uint64_t store = 0; Certified certified; };
// report is null when it is useless: only its number counts.
struct ReportHandedOver {
    ConnId conn{};
    std::string host;
    std::uint64_t number = 0;
    std::shared_ptr<const wire::GrainReport> report;
};
struct ServerLaunchResult { ConnId conn{}; HostId host = no_host; wire::LaunchResult result; };
struct ConnectionClosed { ConnId conn{}; };
// The kernel says that the process behind a grain server's link has ended. Of the scheduler's own host only.
struct ServerEnded { ConnId conn{}; };
// At the TLS door, by the name that its certificate claims.
struct ServerRefused { std::string host, address, why; bool clock = false; };
struct Tick {};                                   // core.next_deadline() has passed
struct HostTable { std::vector<HostConfig> hosts; };  // read at the start or reread
struct PolicyTable { Policy policy; };            // the same
// The outcome of ProbeHost. Of each group: did any address answer? Nothing if it has none.
struct ProbeResult {
    HostId host = no_host;
    std::uint32_t probe = 0;
    std::optional<bool> check, file_server, gateway;
};
// From inside, in idle moments: the contents of settled grains of a closed session (`out` to
// `message`; `params` if they have a file of their own), to be moved into the session's tree.
struct PackedGrain { GrainNumber number = 0; Payload params, checkpoint, message, out, err; };
struct PackGrains { SessionKey session; std::vector<PackedGrain> grains; };
struct RemoveOld { SessionKey session; std::int64_t wall_ms = 0; };  // from inside, too: closed for session_age
// Follow-ups: what a decision asks to be decided next, in the same turn, on the state it left.
struct FillHost { HostId host = no_host; };       // one grain for one free slot, then again
struct Usurp { HostId host = no_host; };          // one grain of an older session, then again
struct PlaceGrain { GrainKey key; };              // a host for a grain that became ready outside a submission
struct TellOfBackup { bool place = false; };      // the backup whose certificates count; servers too: where it is
struct AnswerWaiters { SessionKey session; };     // parked d_gwait calls that can be answered now

using InputOf = std::variant<UserCall, JoinCall, BeginControl, ServerFirstCall, ServerCallIn, ServerReport,
    ServerLaunchResult, ConnectionClosed, ServerEnded, ServerRefused, Tick, HostTable, PolicyTable, ProbeResult,
    PackGrains, RemoveOld, FillHost, Usurp, PlaceGrain, AnswerWaiters, BackupCame, ReportHandedOver, TellOfBackup,
    CertificateRenewed>;
class Input : public InputOf {
public:
    using InputOf::InputOf;
    Input();
    Input(const Input &);
    Input(Input &&) noexcept;
    Input &operator=(const Input &);
    Input &operator=(Input &&) noexcept;
    ~Input();
};

// clang-format on
}  // namespace dcs::core
