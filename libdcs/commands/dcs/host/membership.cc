// dcs host approve, rm; dcs token create, ls, revoke.
#include <algorithm>
#include <cstdio>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/text.h"
#include "commands/dcs/query/scheduler.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/table.h"
#include "host_changes.h"
#include "net/socket_calls.h"
#include "wire/message.h"
#include "client_host.h"

namespace dcs::commands {
namespace {

// Of a key's SHA-256; none: "".
std::string key_words(const std::string &key) {
    TokenHash hash{};
    if (key.size() != hash.size()) return "";
    std::copy(key.begin(), key.end(), hash.begin());
    return in_words(hash);
}

int list_pending(const Call &call) {
    const auto found = ask_any<wire::TokenList>(wire::ListTokens{});
    if (!found) return call.fail(failure_of("the list of waiting hosts", found.status()));
    Listing hosts(call, "dcs.host.pending/1", "hosts");
    Table table{"HOST", "ADDRESS", "KEY", ">ASKED AGO"};
    for (const wire::PendingRow &row : found->pending) {
        JsonObject one;
        one.add("name", row.host).add("address", row.address).add("key_words", key_words(row.key));
        hosts.add(row.host, "", one.add("asked_s", row.asked_s).text());
        table.add({row.host, row.address, key_words(row.key), seconds_text(row.asked_s)});
    }
    const std::string how =
        "\nhosts ask with: dcs host join " + found->address + " --ca-hash " + hex_of(found->authority);
    return hosts.end(table,
                     counted(hosts.size(), "host") + " waiting for approval" + (found->address.empty() ? "" : how));
}

int approve(const Call &call) {
    const auto &words = call.arguments.words;
    if (words.empty()) return list_pending(call);
    if (words.size() != 2)
        return call.fail(usage_failure("dcs host approve takes a host and the words that it shows",
                                       "`dcs host approve` without words lists the waiting hosts with theirs"));
    const bool replace = call.arguments.has("replace");
    const auto done = ask_any<wire::Done>(wire::ApproveHost{words[0], words[1], static_cast<std::uint8_t>(replace)});
    if (!done) return call.fail(failure_of("host " + words[0] + " was not approved", done.status()));
    const std::string names = json_array({json_string(words[0])});
    return print_as_asked(call, JsonObject("dcs.host.approve/1").add_raw("approved", names), words[0],
                          "host " + words[0] + " approved" + (replace ? "; another machine of that name is out" : ""));
}

// The scheduler serves on without hosts; nothing else says why nothing runs.
void tell_if_last(const Call &call) {
    const ChosenHosts left = choose_hosts({});
    if (left.failure || !left.rows.empty()) return;
    const bool own = Pool(call.directory).maker() == Pool::Maker::dcs_up;
    std::fprintf(stderr, "dcs host rm: no host is left in the pool, and grains wait; %s\n",
                 own ? "`dcs up` brings the local hosts back"
                     : "put lines for hosts into the host table, `dcs reload`, and let them join again");
}

std::vector<std::string> roles_of(const ChosenHosts &all, const std::string &name) {
    std::vector<std::string> roles;
    for (const wire::HostRow &row : all.rows)
        if (row.name == name) roles.push_back("server");
    for (const wire::MemberRow &row : all.members)
        if (row.name == name) roles.push_back(row.role);
    return roles;
}

// One name alone may have a key and no line.
std::optional<Failure> wrong_name(const ChosenHosts &all, const std::vector<std::string> &names) {
    if (names.size() < 2) return {};
    for (const std::string &name : names) {
        if (!all.failure && roles_of(all, name).empty())
            return not_found_failure(
                "no host was removed: host \"" + name + "\" is not in the host table",
                "`dcs host ls` lists them; alone, `dcs host rm " + shell_word(name) + "` revokes a certificate");
    }
    return all.failure;
}

int remove(const Call &call) {
    const ChosenHosts all = choose_hosts({}, Which::with_members);
    if (const auto failure = wrong_name(all, call.arguments.words)) return call.fail(*failure);
    const bool moves = call.arguments.has("move-grains");
    for (const std::string &name : call.arguments.words) {
        std::int32_t running = 0;
        for (const wire::HostRow &row : all.rows)
            if (moves && row.name == name) running = row.running;
        const std::vector<std::string> roles = roles_of(all, name);
        const std::string all_roles = roles.size() > 1 ? ", in all of its roles: " + joined(roles) : "";
        if (const auto done = ask_any<wire::Done>(wire::RemoveHost{name, moves}); !done)
            return call.fail(failure_of("host " + name + " was not removed from the pool", done.status()));
        const std::string grains =
            running == 0 ? ""
                         : "; what ran there, " + counted(running, "grain") + ", is ended and starts again elsewhere";
        std::printf("host %s removed from the pool%s%s\n", name.c_str(), all_roles.c_str(), grains.c_str());
    }
    tell_if_last(call);
    return exits::ok;
}

constexpr double usual_ttl_s = 3600, most_ttl_s = 30.0 * 24 * 3600;

bool is_loopback(const sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohl(reinterpret_cast<const sockaddr_in *>(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
}

// Whether this machine knows the name as addresses of its own only, or not at all.
bool means_only_itself(const std::string &host) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return true;
    bool own = true;
    for (const addrinfo *at = found; at != nullptr; at = at->ai_next) own = own && is_loopback(at->ai_addr);
    ::freeaddrinfo(found);
    return own;
}

// The line is run on another host.
void tell_of_address(const std::string &address) {
    const auto at = net::parse_tcp_address(address);
    if (at && means_only_itself(at->host))
        std::fprintf(stderr,
                     "note: on this host, %s means this host alone: where others do not know it as an address of the "
                     "scheduler's host, put one in its place\n",
                     at->host.c_str());
}

struct JoinCode {
    wire::TokenCreated made;
    std::string line, json;
};

Result<JoinCode> create_one(const wire::CreateToken &order, const std::string &role) {
    auto made = ask_any<wire::TokenCreated>(order);
    if (!made) return made.status();
    JoinCode code{std::move(*made), "", ""};
    const std::string token = hex_of(code.made.token), authority = hex_of(code.made.authority);
    code.line = "dcs host join " + code.made.address + (order.role != 0 ? " --role " + role : "") + " --token " +
                token + " --ca-hash " + authority;
    JsonObject json;
    json.add("id", code.made.id).add("host", order.host).add("role", role).add("token", token);
    json.add("address", code.made.address).add("ca_hash", authority).add("expires", code.made.expires_s);
    code.json = json.add("command", code.line).text();
    return code;
}

int create(const Call &call) {
    const double ttl_s = call.arguments.seconds("ttl").value_or(usual_ttl_s);
    const std::string role = call.arguments.value("role").value_or("server");
    const auto count = call.arguments.number("count");
    const wire::CreateToken order{call.arguments.value("host").value_or(""), static_cast<std::int64_t>(ttl_s),
                                  number_of_role(role)};
    if (count && !order.host.empty())
        return call.fail(usage_failure("--count and --host exclude each other", "a code is used once, by one host"));
    Listing codes(call, "dcs.token.created/1", "tokens");
    for (std::int64_t i = 0; i < count.value_or(1); ++i) {
        const auto code = create_one(order, role);
        if (!code) return call.fail(failure_of("no code was created", code.status()));
        if (i == 0) tell_of_address(code->made.address);
        if (!count)
            return print_as_asked(call, JsonObject("dcs.token/1").add_raw("token", code->json), code->made.id,
                                  code->line);
        codes.add(code->made.id, code->line, code->json);
    }
    return codes.end();
}

int list_tokens(const Call &call) {
    auto found = ask_any<wire::TokenList>(wire::ListTokens{});
    if (!found) return call.fail(failure_of("the list of codes", found.status()));
    std::stable_sort(found->tokens.begin(), found->tokens.end(),
                     [](const wire::TokenRow &a, const wire::TokenRow &b) { return a.expires_in_s < b.expires_in_s; });
    Listing codes(call, "dcs.token.list/1", "tokens");
    Table table{"CODE", "HOST", "ROLE", "BY", ">EXPIRES IN", "USED BY KEY"};
    for (const wire::TokenRow &row : found->tokens) {
        JsonObject one;
        const std::string role = word_of_role(row.role);
        one.add("id", row.id).add("host", row.host).add("role", role).add("by", row.by);
        one.add("expires_in_s", row.expires_in_s);
        codes.add(row.id, "", one.add("used", !row.key.empty()).add("key_words", key_words(row.key)).text());
        table.add({row.id, row.host.empty() ? "any" : row.host, role, row.by,
                   seconds_text(static_cast<double>(row.expires_in_s)), key_words(row.key)});
    }
    return codes.end(table, counted(codes.size(), "code"));
}

int revoke(const Call &call) {
    for (const std::string &id : call.arguments.words)
        if (const auto done = ask_any<wire::Done>(wire::RevokeToken{id}); !done)
            return call.fail(failure_of("code " + id + " was not revoked", done.status()));
    return exits::ok;
}

}  // namespace

extern const Verb host_approve_verb = {.noun = "host",
                                       .name = "approve",
                                       .words = "[NAME WORDS]",
                                       .summary = "admit a host that asked to join without a code",
                                       .about = R"(Without a name: lists the hosts that ask to join without a code.
The list shows each host's key as words. That host's screen shows the same words; compare them,
because any machine can ask under any name.
With a host's name and its words: admits it. For root, scheduler_master and the pool's owner.

Examples:
  dcs host approve
  dcs host approve h1 lusab-babad-gutih-tugad-kibod-zabos
)",
                                       .options = {{"replace", 0, nullptr, no_value,
                                                    "replace another machine that has joined under that name; the\n"
                                                    "other machine's certificate is revoked"}},
                                       .notes = R"(NAME must be in the host table.
)",
                                       .run = approve};

extern const Verb host_rm_verb = {
    .noun = "host",
    .name = "rm",
    .words = "NAME...",
    .summary = "remove a host from the pool",
    .about = R"(Removes hosts from the pool. Their lines are removed from the host table, their certificates are
permanently revoked, their connections are closed at once, and what `dcs host set` and `dcs host drain` changed is
forgotten. A host with lines for several roles loses all of them; to end one role, take its line out of the table and
use `dcs reload --move-grains`. A host that runs grains is removed only with --move-grains; `dcs host drain NAME` lets
them end first. A host that is not connected ends its grains when it calls again. To come back, a host needs a line in
the table and joins with --new-key. For root, scheduler_master and the pool's owner.

Control programs of a removed client host are refused, and their tokens become invalid.

Examples:
  dcs host rm h1
)",
    .options = {{"move-grains", 0, nullptr, no_value,
                 "also if it runs grains: they end there and start again on others, from their last checkpoint"}},
    .run = remove,
    .formats = false};

extern const Verb token_create_verb = {
    .noun = "token",
    .name = "create",
    .summary = "create a code for a host to join the pool",
    .about = R"(Creates a code that can be used once, and prints the command that uses it.
Run that command on the host that joins, under the account of its grain server; with --role client as root, after
which dcs_begin can start users' control programs there. The code is a secret: any machine that has it can join.
For root, scheduler_master and the pool's owner; the scheduler must run with --tls.

Examples:
  dcs token create --host h1
  dcs token create --host h1 --ttl 5m | ssh h1 sh
  dcs token create --count 20 --ttl 1d
  dcs token create --host desk1 --role client
  dcs token create --host vault --role backup
)",
    .options = {{"host", 0, "NAME", any_text,
                 "only for that host of the host table, also to replace one that has joined\n"
                 "(default: any host of the table that has not joined yet)"},
                {"role", 0, "ROLE", one_of(role_words),
                 "role of the host: server, which runs grains (default); client, for control programs;\n"
                 "backup, which takes servers' reports while the scheduler is away"},
                {"ttl", 0, "S", seconds_from(1, most_ttl_s),
                 "time until it expires (default 1h; also 90s, 5m; at most 30 days)"},
                {"count", 0, "N", whole_number(1, 1000), "that many codes, each for a host (default 1)"}},
    .run = create};

extern const Verb token_ls_verb = {.noun = "token",
                                   .name = "ls",
                                   .summary = "list the codes for hosts to join",
                                   .about = R"(Lists the codes with which hosts can join.
Used codes are listed until they expire, because the host that used one may repeat it. Codes themselves
are shown only once, when they are created.

Examples:
  dcs token ls
  dcs token ls -o json | jq '.tokens[] | select(.used)'
)",
                                   .run = list_tokens};

extern const Verb token_revoke_verb = {.noun = "token",
                                       .name = "revoke",
                                       .words = "CODE...",
                                       .summary = "revoke a code",
                                       .about = R"(Revokes codes before they expire.
A host that has joined with a code stays in the pool: `dcs host rm` removes hosts.

Examples:
  dcs token revoke 0a1b2c3d4e
)",
                                       .notes = R"(CODE is the short name that `dcs token ls` shows.
)",
                                       .run = revoke,
                                       .formats = false};

}  // namespace dcs::commands
