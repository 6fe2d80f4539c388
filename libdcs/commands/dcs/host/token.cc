// dcs token create, ls, revoke.
#include <cstdio>

#include "base/hex.h"
#include "any_call.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/json.h"
#include "roles.h"
#include "commands/dcs/frame/table.h"
#include "wire/message.h"

namespace dcs::commands {
namespace {

constexpr double usual_ttl_s = 3600, most_ttl_s = 30.0 * 24 * 3600;

int create(const Call &call) {
    const double ttl_s = call.arguments.seconds("ttl").value_or(usual_ttl_s);
    const std::string host = call.arguments.value("host").value_or("");
    const std::string role = call.arguments.value("role").value_or("server");
    const std::uint8_t number = number_of_role(role);
    const auto made = ask_any<wire::TokenCreated>(wire::CreateToken{host, static_cast<std::int64_t>(ttl_s), number});
    if (!made) return call.fail(failure_of("no code was created", made.status()));
    const std::string token = hex_of(made->token), authority = hex_of(made->authority);
    const std::string line = "dcs host join " + made->address + (number != 0 ? " --role " + role : "") + " --token " +
                             token + " --ca-hash " + authority;
    if (call.format == Format::json) {
        JsonObject json;
        json.add("id", made->id).add("host", host).add("role", role).add("token", token).add("address", made->address);
        json.add("ca_hash", authority).add("expires", made->expires_s).add("command", line);
        print_document("dcs.token/1", "token", json.text());
    } else {
        std::printf("%s\n", call.format == Format::name ? made->id.c_str() : line.c_str());
    }
    return exits::ok;
}

std::string key_words(const std::string &key) {
    TokenHash hash{};
    if (key.size() != hash.size()) return "";
    std::copy(key.begin(), key.end(), hash.begin());
    return in_words(hash);
}

int list_tokens(const Call &call) {
    const auto found = ask_any<wire::TokenList>(wire::ListTokens{});
    if (!found) return call.fail(failure_of("the list of codes", found.status()));
    std::vector<std::string> json;
    Table table{"CODE", "HOST", "BY", ">EXPIRES IN", "USED BY KEY"};
    for (const wire::TokenRow &row : found->tokens) {
        JsonObject one;
        one.add("id", row.id).add("host", row.host).add("by", row.by).add("expires_in_s", row.expires_in_s);
        json.push_back(one.add("used", !row.key.empty()).add("key_words", key_words(row.key)).text());
        table.add({row.id, row.host.empty() ? "any" : row.host, row.by,
                   seconds_text(static_cast<double>(row.expires_in_s)), key_words(row.key)});
        if (call.format == Format::name) std::printf("%s\n", row.id.c_str());
    }
    if (call.format == Format::json) print_document("dcs.token.list/1", "tokens", json_array(json));
    if (call.format == Format::table && !json.empty()) std::printf("%s\n", table.text().c_str());
    if (call.format == Format::table)
        std::printf("%s\n", counted(static_cast<std::int64_t>(json.size()), "code").c_str());
    return exits::ok;
}

int revoke(const Call &call) {
    for (const std::string &id : call.arguments.words)
        if (const auto done = ask_any<wire::Done>(wire::RevokeToken{id}); !done)
            return call.fail(failure_of("code " + id + " was not revoked", done.status()));
    return exits::ok;
}

}  // namespace

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
  dcs token create --host desk1 --role client
  dcs token create --host vault --role backup
)",
    .options = {{"host",
                 0,
                 "NAME",
                 {},
                 "only for that host of the host table, also to replace one that has joined\n"
                 "(default: any host of the table that has not joined yet)"},
                {"role", 0, "ROLE", one_of(role_words),
                 "role of the host: server, which runs grains (default); client, for control programs;\n"
                 "backup, which takes servers' reports while the scheduler is away"},
                {"ttl", 0, "S", seconds_from(1, most_ttl_s),
                 "time until it expires (default 1h; also 90s, 5m; at most 30 days)"}},
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
