// A host without a certificate asks for one. With a code that counts it gets it; without one it waits for an operator.
// The same call with the same key may come again: who did not hear the answer repeats it.
#include "base/limits.h"
#include "base/words.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

// A host that waits asks every few seconds; one that does not any more has given up.
constexpr Duration pending_patience = seconds(120);


void turn_away(Draft &d, const JoinCall &in, const Status &why) {
    d.effect(Reply{in.conn, in.request, wire::ErrorReply{static_cast<std::int32_t>(why.code), why.text}});
    d.effect(CloseConnection{in.conn});
    d.event("audit: a host at " + in.address + " was not let in: " + why.text);
}

Status check_code(const JoinCall &in, const JoinCode *code) {
    if (!code)
        return fail(Code::refused, "the code is not known: it was revoked, or mistyped; `dcs token create` on the "
                                   "scheduler's host makes a new one");
    if (code->expires_s <= in.wall_s)
        return fail(Code::refused, "the code has expired; `dcs token create` on the scheduler's host makes a new one");
    if (code->key && *code->key != in.key)
        return fail(Code::refused, "the code was used already, by host " + code->host +
                                       "; `dcs token create` makes a new one");
    if (!in.host.empty() && !code->host.empty() && in.host != code->host)
        return fail(Code::refused, "the code is for host " + code->host + ", not for " + in.host);
    return Status::ok();
}

// Nobody may take a host's name with a code that does not name it.
Status check_name(const State &state, const JoinCall &in, const JoinCode &code, const std::string &name) {
    const Host *host = state.host(state.host_id(name));
    if (!host || !host->configured)
        return fail(Code::refused, "host \"" + name + "\" is not in the scheduler's host table: add a line for it "
                                   "there and have it reread with `dcs reload`");
    const auto key = state.trust.keys.find(name);
    if (code.used && (key == state.trust.keys.end() || key->second != in.key))
        return fail(Code::refused, "host " + name + " was taken out of the pool, or another machine has joined under "
                                   "that name, since this code was used; `dcs token create` makes a new one");
    if (code.host.empty() && key != state.trust.keys.end() && key->second != in.key)
        return fail(Code::refused, "host " + name + " has joined already; to let another machine take its place make a "
                                   "code with --host " + name);
    return Status::ok();
}

void wait_for_approval(Draft &d, const JoinCall &in, const std::string &name) {
    PendingHosts pending = d.state.pending;
    std::erase_if(pending, [&](const auto &entry) { return entry.second.asked + pending_patience < d.now; });
    const bool known = pending.count(in.key) > 0;
    std::size_t of_address = 0;
    for (const auto &[key, host] : pending) of_address += host.address == in.address;
    if (!known && (pending.size() >= limits::pending_hosts || of_address >= limits::pending_of_address))
        return turn_away(d, in, fail(Code::limit, "too many hosts wait to be let in; try again later, or use a code"));
    if (!known)
        d.event("audit: host " + name + " at " + in.address + " asks to be let in, key " + in_words(in.key) +
                "; `dcs host approve` does it");
    pending[in.key] = PendingHost{name, in.address, d.now};
    d.change(SetPending{std::move(pending)});
    d.effect(Reply{in.conn, in.request, wire::JoinPending{name}});
    d.effect(CloseConnection{in.conn});
}

void let_in(Draft &d, const JoinCall &in, const TokenHash &hash, const std::string &name) {
    const bool had_other_key = d.state.trust.keys.count(name) > 0 && d.state.trust.keys.at(name) != in.key;
    Trust trust = d.state.trust;
    JoinCode &code = trust.codes.at(hash);
    code.used = true;
    code.key = in.key;
    code.host = name;
    trust.keys[name] = in.key;
    if (trust != d.state.trust) {
        d.change(SetTrust{std::move(trust)});
        const JoinCode &was = d.state.trust.codes.at(hash);
        d.event("audit: host " + name + " joined from " + in.address + " with " +
                (in.has_code ? "the code " + id_of_code(hash) : std::string("the consent")) + " of " + was.by +
                ", key " + in_words(in.key) + (had_other_key ? "; its former certificate is revoked" : ""));
    }
    if (PendingHosts rest = d.state.pending; rest.erase(in.key) > 0) d.change(SetPending{std::move(rest)});
    const Host *host = d.state.host(d.state.host_id(name));
    if (had_other_key && host->conn != 0) d.effect(CloseConnection{host->conn});
    d.effect(SendCertificate{in.conn, in.request, name, in.public_key});
    d.effect(CloseConnection{in.conn});
}

}  // namespace

void join_host(Draft &d, const JoinCall &in) {
    const TokenHash &hash = in.has_code ? in.code : in.key;
    const auto found = d.state.trust.codes.find(hash);
    const JoinCode *code = found == d.state.trust.codes.end() ? nullptr : &found->second;
    if (!in.has_code && code && !check_code(in, code)) code = nullptr;  // an approval that came to nothing
    std::string name = in.host;
    if (name.empty() && code) name = code->host;
    if (name.empty()) name = in.own_name;
    if (!good_name(name))
        return turn_away(d, in, fail(Code::invalid, "a host's name is 1 to 64 letters, digits, '.', '_' or '-', and "
                                                    "does not begin with '.' or '-'"));
    if (!in.has_code && !code) return wait_for_approval(d, in, name);
    if (Status s = check_code(in, code); !s) return turn_away(d, in, s);
    if (Status s = check_name(d.state, in, *code, name); !s) return turn_away(d, in, s);
    let_in(d, in, hash, name);
}

Status check_certified(const State &state, const Certified &certified, const std::string &host) {
    if (certified.host.empty()) return Status::ok();
    if (certified.host != host)
        return fail(Code::refused, "the certificate of this server is of host " + certified.host +
                                       ", but it calls itself " + host);
    const auto key = state.trust.keys.find(host);
    if (key == state.trust.keys.end())
        return fail(Code::refused, "the certificate of host " + host + " has been revoked: the host must join anew");
    if (key->second != certified.key)
        return fail(Code::refused, "the certificate of host " + host + " has been revoked: a machine with another key "
                                   "has joined under that name since");
    return Status::ok();
}

}  // namespace dcs::core
