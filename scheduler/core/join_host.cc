// A host without a certificate asks for one. With a code that counts it gets it; without one it waits for an operator.
// The same call with the same key may come again: who did not hear the answer repeats it.
#include "base/limits.h"
#include "base/planted.h"
#include "base/text.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// A host that waits asks every few seconds; one that stops asking has given up.
constexpr Duration pending_patience = seconds(120);
// The end of a certificate is recorded to the day: who asks for many costs no more commits.
constexpr std::int64_t day_s = 24 * 3600;

void renew(Member &member, std::int64_t until_s) {
    if (member.expires_s / day_s != until_s / day_s) member.expires_s = until_s;
}

const char *as_what(HostRole role) {
    if (role == HostRole::client) return ", for control programs to call from";
    return role == HostRole::backup ? ", to be the passive backup" : "";
}

const char *right_use(HostRole role) {
    switch (role) {
    case HostRole::client: return "the code is for a host of control programs: use it with --role client";
    case HostRole::backup: return "the code is for the passive backup: use it with --role backup";
    case HostRole::server: break;
    }
    return "the code is for a host with a grain server: use it without --role";
}

void turn_away(Draft &d, const JoinCall &in, const Status &why) {
    d.effect(Reply{in.conn, in.request, wire::error_reply(why)});
    d.effect(CloseConnection{in.conn});
    d.event("audit: a host at " + in.address + " was refused: " + why.text);
}

Status check_code(const JoinCall &in, const JoinCode *code) {
    if (!code)
        return fail(Code::refused,
                    "the code is unknown: it was mistyped or has been revoked; `dcs token create` on "
                    "the scheduler's host makes a new one");
    if (has_expired(*code, in.wall_s))
        return fail(Code::refused, "the code has expired; `dcs token create` on the scheduler's host makes a new one");
    if (code->role != in.role) return fail(Code::refused, right_use(code->role));
    if (code->key && *code->key != in.key)
        return fail(Code::refused,
                    "the code has already been used by host " + code->host + "; `dcs token create` makes a new one");
    if (!in.host.empty() && !code->host.empty() && in.host != code->host)
        return fail(Code::refused, "the code is for host " + code->host + ", not for " + in.host);
    return Status::ok();
}

// A code that does not name a host must not take over that host's name.
Status check_name(const State &state, const JoinCall &in, const JoinCode &code, const std::string &name) {
    if (!in_table(state, in.role, name)) return fail(Code::refused, not_in_table(state, in.role, name).text);
    const auto &keys = state.trust.of(in.role);
    const auto key = keys.find(name);
    if (code.used && (key == keys.end() || key->second != in.key))
        return fail(Code::refused, "host " + name +
                                       " was removed from the pool, or another machine has joined under "
                                       "that name, since this code was used; `dcs token create` makes a new one");
    if (code.host.empty() && key != keys.end() && key->second != in.key)
        return fail(Code::refused,
                    "host " + name +
                        " has already joined; to give its place to another machine, make a code with --host " + name);
    return Status::ok();
}

Status check_key(const State &state, const JoinCall &in) {
    if (state.trust.removed.count(in.key) == 0 || planted("core.removed_key_joins")) return Status::ok();
    return fail(Code::refused,
                "the key of this host was removed from the pool (dcs host rm, or another machine has its name) and "
                "stays refused: repeat the command with --new-key");
}

// All addresses of this host itself are one: each of its logins has thousands of them.
std::string place_of(const std::string &address) {
    return address.starts_with("127.") || address.starts_with("::ffff:127.") ? "::1" : address;
}

void wait_for_approval(Draft &d, const JoinCall &in, const std::string &name) {
    PendingHosts pending = d.state.pending;
    std::erase_if(pending, [&](const auto &entry) { return entry.second.asked + pending_patience < d.now; });
    const bool known = pending.count(in.key) > 0;
    std::size_t of_address = 0;
    for (const auto &[key, host] : pending) of_address += place_of(host.address) == place_of(in.address);
    if (!known && (pending.size() >= limits::pending_hosts || of_address >= limits::pending_of_address))
        return turn_away(d, in, fail(Code::limit, "too many hosts wait for approval; try again later, or use a code"));
    if (!known)
        d.event("audit: host " + name + " at " + in.address + " asks to join" + as_what(in.role) + ", key " +
                in_words(in.key) + "; `dcs host approve` accepts it");
    pending[in.key] = PendingHost{name, in.address, d.now, in.role};
    d.change(SetPending{std::move(pending)});
    d.effect(Reply{in.conn, in.request, wire::JoinPending{name}});
    d.effect(CloseConnection{in.conn});
}

// The former bearer of the name has no rights from now on.
void end_former(Draft &d, HostRole role, const std::string &name) {
    if (role == HostRole::client) return end_programs(d, name);
    if (role == HostRole::backup) return end_backup(d, name);
    const Host *host = d.state.host(d.state.host_id(name));
    if (host && host->conn != no_connection) d.effect(CloseConnection{host->conn});
}

void let_in(Draft &d, const JoinCall &in, const TokenHash &hash, const std::string &name) {
    Trust trust = d.state.trust;
    TokenHash &counts = trust.of(in.role)[name];
    const TokenHash counted = counts;
    const bool had_other_key = counted != TokenHash{} && counted != in.key;
    counts = in.key;
    if (had_other_key) remove_key(trust, counted);
    Member &member = trust.members[in.key];
    if (member.joined_s == 0) member.joined_s = in.wall_s;
    renew(member, in.until_s);
    JoinCode &code = trust.codes.at(hash);
    code.used = true;
    code.key = in.key;
    code.host = name;
    if (trust != d.state.trust) {
        if (counted != in.key) d.follow_up(TellOfBackup{in.role == HostRole::backup});
        d.change(SetTrust{std::move(trust)});
        const JoinCode &was = d.state.trust.codes.at(hash);
        const std::string as = as_what(in.role);
        d.event("audit: host " + name + " joined from " + in.address + as + (as.empty() ? " with " : ", with ") +
                (in.has_code ? "the code " + id_of_code(hash) : std::string("the consent")) + " of " + was.by +
                ", key " + in_words(in.key) + (had_other_key ? "; its former certificate is revoked" : ""));
    }
    if (PendingHosts rest = d.state.pending; rest.erase(in.key) > 0) d.change(SetPending{std::move(rest)});
    if (had_other_key) end_former(d, in.role, name);
    d.effect(SendCertificate{in.conn, in.request, name, in.public_key, in.role});
    d.effect(CloseConnection{in.conn});
}

// Null: it has not joined, or did with release 0.1.
const Member *member_with(const State &state, HostRole role, const std::string &name) {
    const auto &keys = state.trust.of(role);
    const auto key = keys.find(name);
    const auto known = key == keys.end() ? state.trust.members.end() : state.trust.members.find(key->second);
    return known == state.trust.members.end() ? nullptr : &known->second;
}

wire::MemberRow member_row(const State &state, HostRole role, const std::string &name) {
    wire::MemberRow row;
    row.name = name;
    row.role = role == HostRole::client ? "client" : "backup";
    row.joined = state.trust.of(role).count(name) != 0;
    if (const Member *member = member_with(state, role, name)) {
        row.joined_s = member->joined_s;
        row.expires_s = member->expires_s;
    }
    return row;
}

}  // namespace

std::int64_t certificate_end(const State &state, const std::string &host) {
    const Member *member = member_with(state, HostRole::server, host);
    return member ? member->expires_s : 0;
}

std::vector<wire::MemberRow> member_rows(const State &state) {
    std::vector<wire::MemberRow> rows;
    for (const auto &[name, users] : state.sources) {
        rows.push_back(member_row(state, HostRole::client, name));
        rows.back().users = users;
    }
    if (!state.backup_host.name.empty()) {
        rows.push_back(member_row(state, HostRole::backup, state.backup_host.name));
        rows.back().address = state.backup_host.address;
        rows.back().connected = state.backup.conn != no_connection && state.backup.host == state.backup_host.name;
    }
    return rows;
}

void certificate_renewed(Draft &d, const CertificateRenewed &in) {
    const auto &keys = d.state.trust.of(in.role);
    const auto key = keys.find(in.who.host);
    if (key == keys.end() || key->second != in.who.key) return;
    Trust trust = d.state.trust;
    renew(trust.members[in.who.key], in.who.not_after_s);
    if (trust != d.state.trust) d.change(SetTrust{std::move(trust)});
}

void join_host(Draft &d, const JoinCall &in) {
    const TokenHash &hash = in.has_code ? in.code : in.key;
    const auto found = d.state.trust.codes.find(hash);
    const JoinCode *code = found == d.state.trust.codes.end() ? nullptr : &found->second;
    if (!in.has_code && code && !check_code(in, code)) code = nullptr;  // an approval that came to nothing
    std::string name = in.host;
    if (name.empty() && code) name = code->host;
    if (name.empty()) name = in.own_name;
    if (!is_name(name))
        return turn_away(d, in,
                         fail(Code::invalid,
                              "a host's name is 1 to 64 letters, digits, '.', '_' or '-', and "
                              "does not begin with '.' or '-'"));
    const Status key = check_key(d.state, in);
    if (!in.has_code && !code) return key ? wait_for_approval(d, in, name) : turn_away(d, in, key);
    if (Status s = check_code(in, code); !s) return turn_away(d, in, s);
    if (Status s = check_name(d.state, in, *code, name); !s) return turn_away(d, in, s);
    if (!key) return turn_away(d, in, key);
    let_in(d, in, hash, name);
}

}  // namespace dcs::core
