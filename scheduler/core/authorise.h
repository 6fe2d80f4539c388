#pragma once
// Who may say what: the one place that knows. The turn asks it about each message that arrives, decide() about each
// call before it does anything else, so that no decision needs a check of its own. docs/AUTHORISATION.md is the same
// table for people; tests/process/security/authorisation.py tries every cell of it.
#include <cstdint>
#include <string>

#include "scheduler/state/input.h"
#include "wire/message.h"

namespace dcs::core {

// In which role a peer connected.
enum class Party : std::uint8_t {
    user,     // a process of this host, its user known from the kernel
    program,  // a control program of another host, by its certificate
    begin,    // dcs_begin of another host, by that host's certificate
    server,   // a grain server: by its certificate, or a process of the scheduler's own account
    backup,   // the passive backup of another host, by its certificate
    stranger  // another host, without a certificate
};

enum class Right : std::uint8_t {
    none,       // not a message of this party: the connection ends
    any,        // any peer of this party
    caller,     // a user whom the pool's policy admits; it concerns no session, or only the caller's own
    holder,     // a caller with a token, about the session that this token holds
    owner,      // a caller, about an own session; an operator, about any
    operators,  // root, the scheduler's account (in a private pool: its owner), scheduler_master
    link,       // a server that was taken in as one host of the table, about that host
    lease       // the same, about grains that are leased to it now
};

struct Rule {
    Right user = Right::none, server = Right::none, stranger = Right::none;
    const char *what = nullptr;   // for people and the audit log: "change hosts"; null: it is no secure command
    Right program = Right::none;  // what a program of another host may say besides what users may
    Right begin = Right::none;
    Right backup = Right::none;
};

const Rule &rule_of(const wire::AnyMessage &message);
// False: the sender speaks nonsense.
bool may_say(Party party, const wire::AnyMessage &message);

// May the caller have this decided? refused; or no_auth: the token is missing or another user's.
Status authorise(const State &state, const Caller &caller, const UserRequest &request);
// For the audit log, if the call is a secure command: what was asked for, "kill a grain, ann/3:17". Otherwise empty.
std::string secure_command(const Caller &caller, const UserRequest &request);
inline constexpr const char *reads_grain = "read what a grain has";
// The line about that, which `dcs page` of root causes every few seconds.
bool is_audited_read(const std::string &event);

// In the list of users, if there is one (policy.cc).
Status check_user(const State &state, const Caller &caller);
// A caller on another host: may programs call from there, does its token count with its key? Ok for others.
Status check_program(const State &state, const Caller &caller);
// May this user's control programs call from that host?
// Of a host of control programs: whether its key is the one that joined.
Status check_client(const State &state, const Certified &certified);
Status check_source(const State &state, const std::string &host, const std::string &user);
// May this host begin a control program of this user?
Status check_origin(const State &state, const Certified &certified, const std::string &user);
// The caller's token is known and the caller's own; otherwise no_auth.
Status check_token(const State &state, const Caller &caller);
// The session of a call that needs its token. Succeeds for an active session, and for a terminated
// one that is being replayed, when the caller's token holds it. Otherwise no_auth,
// session_unknown, session_closed or session_taken.
Result<SessionKey> held_session(const State &state, const Caller &caller, std::int32_t number);
Status taken_session(const State &state, const SessionKey &key, const Caller &caller);
Status taken_over(const SessionKey &key, const SessionInfo &info);  // by who holds it now

// ---- grain servers -------------------------------------------------------------------------
// Why a server with this certificate may not call itself `host`; ok if it may.
Status check_certified(const State &state, const Certified &certified, const std::string &host);
// Why who came as the backup is not it: another host than the table's, or another key; ok for a process of this host.
Status check_backup(const State &state, const Certified &certified);
// A4: a server gets what a grain names that is leased to it, and brings what such a grain may have made.
Status may_fetch(const State &state, HostId host, const std::string &digest);
Status may_bring(const State &state, HostId host);

}  // namespace dcs::core
