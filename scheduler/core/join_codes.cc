// What operators do about hosts that join the pool: codes, approval, removal. The host's own side is join_host.cc.
#include <algorithm>
#include <cctype>

#include "base/limits.h"
#include "base/text.h"
#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

constexpr std::int64_t least_ttl_s = 1, most_ttl_s = 30 * 24 * 3600;
// A host that was approved has so long to come back for its certificate.
constexpr std::int64_t approval_s = 24 * 3600;

Trust without_expired(Trust trust, std::int64_t wall_s) {
    std::erase_if(trust.codes, [wall_s](const auto &entry) { return has_expired(entry.second, wall_s); });
    const std::int64_t day_ago_s = wall_s - 24 * 3600;  // ends of certificates are recorded to the day
    std::erase_if(trust.removed,
                  [day_ago_s](const auto &entry) { return entry.second != 0 && entry.second <= day_ago_s; });
    return trust;
}

using Waiting = std::pair<TokenHash, PendingHost>;

Result<Waiting> chosen(const State &state, const ApproveHost &call) {
    std::vector<Waiting> fit;
    for (const auto &[key, host] : state.pending)
        if (in_words(key) == call.words && (call.host.empty() || host.host == call.host)) fit.emplace_back(key, host);
    if (fit.size() == 1) return fit.front();
    const std::string who = call.host.empty() ? "of any name" : call.host;
    if (fit.empty())
        return fail(Code::not_found, "no host " + who +
                                         " with these words waits for approval; a waiting host asks "
                                         "again every few seconds, and `dcs host approve` lists them");
    return fail(Code::invalid, std::to_string(fit.size()) + " hosts with these words wait: name the host as well");
}

}  // namespace

bool has_expired(const JoinCode &code, std::int64_t wall_s) {
    return code.expires_s <= wall_s || code.expires_s - wall_s > most_ttl_s;
}

bool in_table(const State &state, HostRole role, const std::string &name) {
    if (role == HostRole::client) return state.sources.count(name) > 0;
    if (role == HostRole::backup) return !name.empty() && state.backup_host.name == name;
    const Host *host = state.host(state.host_id(name));
    return host && host->configured;
}

std::string lowered(std::string name) {
    for (char &c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name;
}

Status not_in_table(const State &state, HostRole role, const std::string &name) {
    for (const HostRole other : {HostRole::client, HostRole::backup})
        if (other != role && in_table(state, other, name)) {
            const std::string word = other == HostRole::client ? "client" : "backup";
            return fail(Code::not_found, "host \"" + name + "\" is in the scheduler's host table with role=" + word +
                                             " only: add `--role " + word + "`");
        }
    const char *as = role == HostRole::client   ? " as a host of control programs"
                     : role == HostRole::backup ? " as the passive backup"
                                                : "";
    const char *with = role == HostRole::client   ? " with role=client"
                       : role == HostRole::backup ? " with role=backup and address=HOST:PORT"
                                                  : "";
    std::string like;
    for (const Host &host : state.hosts)
        if (host.configured && host.config->name != name && lowered(host.config->name) == lowered(name))
            like = ", which lists \"" + host.config->name + "\", and upper and lower case count";
    return fail(
        Code::not_found,
        "host \"" + name + "\" is not in the scheduler's host table" + as + like + ": add a line for it" + with +
            " to the file of --hosts (as a rule `hosts` in its directory, or /etc/dcs/hosts) and run `dcs reload`");
}

void end_programs(Draft &d, const std::string &host) {
    for (const auto &[hash, entry] : d.state.auth)
        if (entry.host == host) d.change(EraseAuth{hash});
    d.effect(ClosePrograms{host});
}

std::string id_of_code(const TokenHash &hash) {
    constexpr char digits[] = "0123456789abcdef";
    std::string id;
    for (std::size_t i = 0; i < 5; ++i) {
        id += digits[hash[i] >> 4];
        id += digits[hash[i] & 15];
    }
    return id;
}

void remove_key(Trust &trust, const TokenHash &key) {
    const auto member = trust.members.find(key);
    if (member == trust.members.end()) return void(trust.removed.emplace(key, 0));
    trust.removed[key] = member->second.expires_s;
    trust.members.erase(member);
}

void create_code(Draft &d, const Caller &caller, const CreateCode &call) {
    if (call.address.empty())
        return d.refuse(caller,
                        fail(Code::refused, "this scheduler accepts no other hosts: start it with --tls ADDRESS:PORT"));
    if (!call.host.empty() && !in_table(d.state, call.role, call.host))
        return d.refuse(caller, not_in_table(d.state, call.role, call.host));
    if (call.ttl_s < least_ttl_s || call.ttl_s > most_ttl_s)
        return d.refuse(caller, fail(Code::invalid, "the lifetime of a code must be from 1 second to 30 days"));
    Trust trust = without_expired(d.state.trust, call.wall_s);
    if (trust.codes.size() >= limits::join_codes)
        return d.refuse(caller, fail(Code::limit, "there are " + std::to_string(limits::join_codes) +
                                                      " codes already: revoke some"));
    const std::int64_t expires_s = call.wall_s + call.ttl_s;
    trust.codes[call.hash] = JoinCode{call.host, caller.user, expires_s, false, std::nullopt, call.role};
    d.change(SetTrust{std::move(trust)});
    const std::string id = id_of_code(call.hash);
    d.reply(caller, wire::TokenCreated{std::string(call.fresh.begin(), call.fresh.end()), id, call.address,
                                       call.authority, expires_s});
    d.event("audit: " + caller.user + " made the code " + id + " for " +
            (call.host.empty() ? "any host" : "host " + call.host) +
            (call.role == HostRole::client   ? " of control programs"
             : call.role == HostRole::backup ? " as the passive backup"
                                             : "") +
            ", valid for " + std::to_string(call.ttl_s) + " s");
}

void list_codes(Draft &d, const Caller &caller, const ListCodes &call) {
    wire::TokenList list;
    for (const auto &[hash, code] : d.state.trust.codes) {
        if (has_expired(code, call.wall_s)) continue;
        std::string key = code.key ? std::string(code.key->begin(), code.key->end()) : std::string();
        list.tokens.push_back({id_of_code(hash), code.host, code.by, code.expires_s - call.wall_s, std::move(key),
                               static_cast<std::uint8_t>(code.role)});
    }
    for (const auto &[key, host] : d.state.pending)
        list.pending.push_back({host.host,
                                host.address + (host.role == HostRole::client   ? " (for control programs)"
                                                : host.role == HostRole::backup ? " (the backup)"
                                                                                : ""),
                                std::string(key.begin(), key.end()), (d.now - host.asked).seconds()});
    list.address = call.address;
    list.authority = call.authority;
    d.reply(caller, std::move(list));
}

void revoke_code(Draft &d, const Caller &caller, const wire::RevokeToken &call) {
    Trust trust = d.state.trust;
    const auto gone = std::erase_if(trust.codes, [&](const auto &entry) { return id_of_code(entry.first) == call.id; });
    if (gone == 0)
        return d.refuse(caller, fail(Code::not_found, "there is no code " + call.id + "; `dcs token ls` lists them"));
    d.change(SetTrust{std::move(trust)});
    d.reply(caller, wire::Done{});
    d.event("audit: " + caller.user + " revoked the code " + call.id);
}

void approve_host(Draft &d, const Caller &caller, const ApproveHost &call) {
    if (call.words.empty())
        return d.refuse(caller, fail(Code::invalid,
                                     "which host? Give the words that it shows, because any machine "
                                     "can ask under any name; `dcs host approve` lists the waiting hosts"));
    const auto found = chosen(d.state, call);
    if (!found) return d.refuse(caller, found.status());
    const auto &[key, host] = *found;
    if (!in_table(d.state, host.role, host.host)) return d.refuse(caller, not_in_table(d.state, host.role, host.host));
    const auto &keys = d.state.trust.of(host.role);
    if (const auto had = keys.find(host.host); had != keys.end() && had->second != key && !call.replace)
        return d.refuse(caller, fail(Code::refused,
                                     "another machine has already joined as " + host.host +
                                         ", with another key: to give its place to the machine that shows these words, "
                                         "and revoke the other's certificate, add --replace"));
    Trust trust = without_expired(d.state.trust, call.wall_s);
    trust.codes[key] = JoinCode{host.host, caller.user, call.wall_s + approval_s, false, key, host.role};
    PendingHosts rest = d.state.pending;
    rest.erase(key);
    d.change(SetTrust{std::move(trust)});
    d.change(SetPending{std::move(rest)});
    d.reply(caller, wire::Done{});
    d.event("audit: " + caller.user + " approved host " + host.host + ", key " + in_words(key) + ", requested from " +
            host.address);
}

// The certificate does not count from now on, whatever becomes of the line in the table.
void remove_host(Draft &d, const Caller &caller, const wire::RemoveHost &call) {
    const HostId id = d.state.host_id(call.host);
    Trust trust = d.state.trust;
    for (const auto *keys : {&trust.keys, &trust.clients, &trust.backups})
        if (const auto key = keys->find(call.host); key != keys->end()) remove_key(trust, key->second);
    const bool client = trust.clients.erase(call.host) > 0, backup = trust.backups.erase(call.host) > 0;
    const bool had_key = trust.keys.erase(call.host) > 0 || client || backup;
    const bool server = in_table(d.state, HostRole::server, call.host);
    const bool listed =
        server || in_table(d.state, HostRole::client, call.host) || in_table(d.state, HostRole::backup, call.host);
    if (!had_key && !listed)
        return d.refuse(caller, fail(Code::not_found, "there is no host \"" + call.host +
                                                          "\" in the host table; `dcs host ls` lists them"));
    const std::size_t grains = server ? d.state.running[static_cast<std::size_t>(id)].size() : 0;
    if (grains > 0 && !call.move_grains)
        return d.refuse(caller,
                        fail(Code::refused, "it runs " + std::to_string(grains) + (grains == 1 ? " grain" : " grains") +
                                                ", which would end there and start again elsewhere, from the "
                                                "last checkpoint: drain it first (`dcs host drain " +
                                                call.host + "`), or let them move by `dcs host rm " + call.host +
                                                " --move-grains`"));
    const auto codes = std::erase_if(trust.codes, [&](const auto &entry) { return entry.second.host == call.host; });
    if (had_key || codes > 0) d.change(SetTrust{std::move(trust)});
    PendingHosts rest = d.state.pending;
    std::erase_if(rest, [&](const auto &entry) { return entry.second.host == call.host; });
    if (rest.size() != d.state.pending.size()) d.change(SetPending{std::move(rest)});
    if (server) {
        if (d.state.host(id)->setting != HostSetting()) d.host_durably(id).setting = HostSetting();
        leave_table(d, id, true);
    }
    if (client) end_programs(d, call.host);
    if (backup) end_backup(d, call.host);
    if (had_key) d.follow_up(TellOfBackup{backup});
    d.effect(RemoveHostLine{caller.conn, caller.request, call.host});
    d.event("audit: " + caller.user + " removed host " + call.host + " from the pool" +
            (had_key ? "; its certificate is revoked" : ""));
}

}  // namespace dcs::core
