#include "scheduler/core/authorise.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "scheduler/state/state.h"
#include "wire/checks.h"

namespace dcs::core {
namespace {

// A message without a rule may not be sent: the scheduler itself sends it, or it is new and has no rule yet.
template <class Message> constexpr Rule rule{};
constexpr Rule of_user(Right right, const char *what = nullptr) { return {right, Right::none, Right::none, what}; }
constexpr Rule of_backup() {
    return {Right::none, Right::any, Right::none, nullptr, Right::none, Right::none, Right::any};
}
constexpr Rule of_server(Right right) { return {Right::none, right, Right::none, nullptr}; }

template <> constexpr Rule rule<wire::Hello> = of_user(Right::any);
template <> constexpr Rule rule<wire::GetAuth> = of_user(Right::caller);
template <> constexpr Rule rule<wire::OpenSession> = of_user(Right::holder);
template <> constexpr Rule rule<wire::CloseSession> = of_user(Right::holder, "close a session");
template <> constexpr Rule rule<wire::CleanSession> = of_user(Right::holder, "remove a session");
template <> constexpr Rule rule<wire::Gexec> = of_user(Right::holder);
template <> constexpr Rule rule<wire::GexecMany> = of_user(Right::holder);
template <> constexpr Rule rule<wire::Gkill> = of_user(Right::holder, "kill a grain");
template <> constexpr Rule rule<wire::Gwait> = of_user(Right::holder);
template <> constexpr Rule rule<wire::GwaitMany> = of_user(Right::holder);
template <> constexpr Rule rule<wire::Fetch> = of_user(Right::owner, reads_grain);
template <> constexpr Rule rule<wire::Query> = of_user(Right::owner, "look at a grain");
template <> constexpr Rule rule<wire::Explain> = of_user(Right::owner, "look at a grain");
template <> constexpr Rule rule<wire::ExportPage> = of_user(Right::owner, "export a session");
template <> constexpr Rule rule<wire::RestartGrain> = of_user(Right::owner, "restart a grain");
template <> constexpr Rule rule<wire::SetSession> = of_user(Right::owner, "change a session");
template <> constexpr Rule rule<wire::ImportPiece> = of_user(Right::caller);
template <> constexpr Rule rule<wire::ImportSession> = of_user(Right::caller);
template <> constexpr Rule rule<wire::Doctor> = of_user(Right::caller);
template <> constexpr Rule rule<wire::AskContents> = of_user(Right::caller);
template <> constexpr Rule rule<wire::SetHost> = of_user(Right::operators, "change a host");
template <> constexpr Rule rule<wire::Reload> = of_user(Right::operators, "have the settings read again");
template <> constexpr Rule rule<wire::SetLogLevel> = of_user(Right::operators, "set what is logged");
template <> constexpr Rule rule<wire::CreateToken> = of_user(Right::operators, "make a code for a host to join");
template <> constexpr Rule rule<wire::ListTokens> = of_user(Right::operators, "see the codes for hosts to join");
template <> constexpr Rule rule<wire::RevokeToken> = of_user(Right::operators, "revoke a code");
template <> constexpr Rule rule<wire::ApproveHost> = of_user(Right::operators, "let a host in");
template <> constexpr Rule rule<wire::RemoveHost> = of_user(Right::operators, "take a host out of the pool");
template <> constexpr Rule rule<wire::PutContent>{Right::caller, Right::lease, Right::none, nullptr};
template <> constexpr Rule rule<wire::FirstCall> = of_server(Right::any);
template <> constexpr Rule rule<wire::CallIn> = of_server(Right::link);
template <>
constexpr Rule rule<wire::RenewCertificate>{Right::none,   Right::link, Right::none, nullptr,
                                            Right::holder, Right::any,  Right::link};
template <>
constexpr Rule rule<wire::BeginControl>{Right::none, Right::none, Right::none, nullptr, Right::none, Right::any};
template <> constexpr Rule rule<wire::GrainReport> = of_server(Right::lease);
template <> constexpr Rule rule<wire::LaunchResult> = of_server(Right::lease);
template <> constexpr Rule rule<wire::WantContent> = of_server(Right::lease);
template <> constexpr Rule rule<wire::Peeked> = of_server(Right::link);
// Only before its first call; and the other two only by who showed a backup's certificate, or none and is of the
// scheduler's account (decode_backup.cc).
template <> constexpr Rule rule<wire::HeldByBackup> = of_server(Right::any);
template <> constexpr Rule rule<wire::BackupCall> = of_backup();
template <> constexpr Rule rule<wire::HandOver> = of_backup();
template <> constexpr Rule rule<wire::JoinHost>{Right::none, Right::none, Right::any, nullptr};

template <std::size_t... I> constexpr std::array<Rule, sizeof...(I)> in_order(std::index_sequence<I...>) {
    return {rule<std::variant_alternative_t<I, wire::AnyMessageOf>>...};
}
constexpr auto rules = in_order(std::make_index_sequence<std::variant_size_v<wire::AnyMessageOf>>{});

// The message that a request came by.
template <class Request> struct Said { using by = Request; };
template <> struct Said<GetAuth> { using by = wire::GetAuth; };
template <> struct Said<SubmitGrain> { using by = wire::Gexec; };
template <> struct Said<SubmitGrains> { using by = wire::GexecMany; };
template <> struct Said<ImportSession> { using by = wire::ImportSession; };
template <> struct Said<CreateCode> { using by = wire::CreateToken; };
template <> struct Said<ListCodes> { using by = wire::ListTokens; };
template <> struct Said<ApproveHost> { using by = wire::ApproveHost; };
template <> struct Said<RenewProgram> { using by = wire::RenewCertificate; };

template <class Request> const Rule &rule_for(const Request &) { return rule<typename Said<Request>::by>; }

// Whose session it names; empty: it names none, the caller's is meant or none at all.
template <class Request> std::string named_user(const Request &r) {
    if constexpr (std::is_same_v<Request, wire::Query>)
        return r.type == wire::QueryType::grain ? r.user : std::string();  // the rest is for all users of the pool
    else if constexpr (requires { r.user; }) return r.user;
    else return {};
}

template <class Request> std::string object_of(const Request &r) {
    std::string text;
    if constexpr (requires { r.host; }) text = r.host;
    if constexpr (requires { r.level; }) text += (text.empty() ? "the scheduler: " : ": ") + r.level;
    if constexpr (requires { r.id; }) text = r.id;
    if constexpr (requires {
                      r.user;
                      r.number;
                  })
        text = to_text(SessionKey{r.user, r.number});
    if constexpr (requires {
                      r.user;
                      r.session;
                      r.grain;
                  } &&
                  !std::is_same_v<Request, wire::SetHost>)
        text = to_text(GrainKey{{r.user, r.session}, r.grain});
    if constexpr (std::is_same_v<Request, wire::ExportPage>) text = to_text(SessionKey{r.user, r.session});
    return text;
}

std::string place(const std::string &host) { return host.empty() ? "the scheduler's host" : "host " + host; }

Status check_operator(const Caller &caller, const char *what) {
    if (caller.privileged) return Status::ok();
    return fail(Code::refused, caller.user + " may not " + what +
                                   ": that is for root, for the scheduler's account "
                                   "or a private pool's owner, and for the scheduler_masters");
}

template <class Keys> Status check_key(const Keys &joined, const Certified &certified) {
    const std::string revoked = "the certificate of host " + certified.host + " has been revoked: ";
    const auto key = joined.find(certified.host);
    if (key == joined.end()) return fail(Code::refused, revoked + "the host must join again");
    if (key->second == certified.key) return Status::ok();
    return fail(Code::refused, revoked + "a machine with another key has since joined under that name");
}

Status check_owner(const Caller &caller, const std::string &user) {
    if (user.empty() || caller.privileged || caller.user == user) return Status::ok();
    return fail(Code::refused, caller.user + " may not do this with a session of " + user);
}

}  // namespace

const Rule &rule_of(const wire::AnyMessage &message) { return rules[message.index()]; }

bool may_say(Party party, const wire::AnyMessage &message) {
    const Rule &r = rule_of(message);
    switch (party) {
    case Party::user: return r.user != Right::none;
    case Party::program: return r.user != Right::none || r.program != Right::none;
    case Party::begin: return r.begin != Right::none;
    case Party::backup: return r.backup != Right::none;
    case Party::server: return r.server != Right::none;
    case Party::stranger: return r.stranger != Right::none;
    }
    return false;
}

Status authorise(const State &state, const Caller &caller, const UserRequest &request) {
    if (Status s = check_user(state, caller); !s) return s;
    if (Status s = check_program(state, caller); !s) return s;
    return std::visit(
        [&](const auto &r) -> Status {
            const Rule &rule = rule_for(r);
            const std::string user = named_user(r);
            switch (rule.user == Right::none ? rule.program : rule.user) {
            case Right::caller: return Status::ok();
            case Right::operators: return check_operator(caller, rule.what);
            case Right::owner: return check_owner(caller, user);
            case Right::holder: return user.empty() ? check_token(state, caller) : check_owner(caller, user);
            default: return fail(Code::refused, "no rule allows that");
            }
        },
        request);
}

std::string secure_command(const Caller &caller, const UserRequest &request) {
    return std::visit(
        [&](const auto &r) -> std::string {
            const Rule &rule = rule_for(r);
            const std::string user = named_user(r);
            const bool others = !user.empty() && user != caller.user;
            const bool order = rule.user == Right::operators || (rule.user == Right::holder && !user.empty()) ||
                               std::is_same_v<std::decay_t<decltype(r)>, wire::RestartGrain>;
            if (rule.what == nullptr || (!order && !others)) return {};
            const std::string object = object_of(r);
            return rule.what + (object.empty() ? "" : ", " + object);
        },
        request);
}

bool is_audited_read(const std::string &event) {
    return is_audit(event) && event.find(std::string(" asked to ") + reads_grain) != std::string::npos;
}

Status check_token(const State &state, const Caller &caller) {
    if (!caller.has_token) return fail(Code::no_auth, "the connection carries no authorization token");
    const auto entry = state.auth.find(caller.token);
    if (entry == state.auth.end()) return fail(Code::no_auth, "the authorization token is unknown or has been revoked");
    if (entry->second.user != caller.user)
        return fail(Code::no_auth, "the authorization token is not one of " + caller.user);
    if (const std::string &bound = entry->second.host; bound != caller.host)
        return fail(Code::no_auth, "the authorization token is for a control program on " + place(bound) +
                                       ", but this one runs on " + place(caller.host));
    if (entry->second.key != caller.key)
        return fail(Code::no_auth,
                    "the authorization token belongs to another key than this connection's "
                    "certificate: each control program has its own");
    return Status::ok();
}

Status check_program(const State &state, const Caller &caller) {
    if (caller.host.empty()) return Status::ok();
    if (Status s = check_source(state, caller.host, caller.user); !s) return s;
    if (state.trust.clients.count(caller.host) == 0)
        return fail(Code::refused,
                    "host " + caller.host + " was removed from the pool: control programs there may no longer connect");
    return check_token(state, caller);
}

Status check_source(const State &state, const std::string &host, const std::string &user) {
    const auto source = state.sources.find(host);
    if (source == state.sources.end())
        return fail(Code::refused, "control programs may not call from host " + host +
                                       ": the scheduler's host table has no line for it with role=client");
    const std::vector<std::string> &users = source->second;
    const bool named = std::find(users.begin(), users.end(), user) != users.end();
    if (named || (users.empty() && user != "root")) return Status::ok();
    return fail(Code::refused,
                user + " may not call from host " + host + ": its line in the scheduler's host table " +
                    (users.empty() ? "lists no users, which lets in all but root" : "does not list this user"));
}

Status check_origin(const State &state, const Certified &certified, const std::string &user) {
    if (Status s = check_client(state, certified); !s) return s;
    if (!is_name(user)) return fail(Code::invalid, "the login name cannot be used");
    return check_source(state, certified.host, user);
}

Status taken_over(const SessionKey &key, const SessionInfo &info) {
    return fail(Code::session_taken, "session " + to_text(key) + " was taken over by a newer run of " + info.ident +
                                         (info.run.empty() ? "" : ", " + info.run));
}

Status taken_session(const State &state, const SessionKey &key, const Caller &caller) {
    const SessionInfo &info = state.session(key)->info;
    const auto entry = state.auth.find(caller.token);
    if (entry != state.auth.end() && entry->second.ident == info.ident) return taken_over(key, info);
    return fail(Code::session_taken, "session " + to_text(key) + " is bound to the control program " + info.ident);
}

Result<SessionKey> held_session(const State &state, const Caller &caller, std::int32_t number) {
    if (Status s = check_token(state, caller); !s) return s;
    const SessionKey key{caller.user, number};
    const Session *session = state.session(key);
    if (!session) return missing_session(state, key);
    if (session->info.token == caller.token) return key;
    if (session->info.status == SessionStatus::terminated)
        return fail(Code::session_closed, "session " + to_text(key) + " is closed");
    return taken_session(state, key, caller);
}

// ---- grain servers -------------------------------------------------------------------------

Status check_certified(const State &state, const Certified &certified, const std::string &host) {
    if (certified.host.empty()) return Status::ok();
    if (certified.host != host)
        return fail(Code::refused, "the certificate of this server names host " + certified.host +
                                       ", but the server reports as " + host);
    return check_key(state.trust.keys, certified);
}

Status check_client(const State &state, const Certified &certified) {
    return check_key(state.trust.clients, certified);
}

Status check_backup(const State &state, const Certified &certified) {
    const auto key = state.trust.backups.find(state.backup_host.name);
    if (certified.host.empty())  // a process of the scheduler's host
        return key == state.trust.backups.end()
                   ? Status::ok()
                   : fail(Code::refused, "the backup of this pool is host " + key->first + ": end this dcs_backupd");
    if (certified.host != state.backup_host.name)
        return fail(Code::refused, "host " + certified.host + " is not the backup in the scheduler's host table");
    if (key != state.trust.backups.end() && key->second == certified.key) return Status::ok();
    return fail(Code::refused,
                "the certificate of the backup " + certified.host + " has been revoked: it must join again");
}

Status may_fetch(const State &state, HostId host, const std::string &digest) {
    for (const GrainKey &key : state.running[static_cast<std::size_t>(host)])
        if (state.grain(key)->files->names(digest)) return Status::ok();
    return fail(Code::refused, "no grain leased to this host names " + wire::digest_text(digest));
}

Status may_bring(const State &state, HostId host) {
    for (const GrainKey &key : state.running[static_cast<std::size_t>(host)])
        if (!state.grain(key)->files->outputs.empty()) return Status::ok();
    return fail(Code::refused, "no grain leased to this host returns files");
}

}  // namespace dcs::core
