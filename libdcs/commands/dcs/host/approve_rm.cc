// dcs host approve, rm.
#include <algorithm>
#include <cstdio>

#include "base/hex.h"
#include "any_call.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/table.h"
#include "host_changes.h"
#include "wire/message.h"

namespace dcs::commands {
namespace {

std::string key_words_of(const wire::PendingRow &row) {
    TokenHash hash{};
    if (row.key.size() == hash.size()) std::copy(row.key.begin(), row.key.end(), hash.begin());
    return in_words(hash);
}

int list_pending(const Call &call) {
    const auto found = ask_any<wire::TokenList>(wire::ListTokens{});
    if (!found) return call.fail(failure_of("the list of waiting hosts", found.status()));
    std::vector<std::string> json;
    Table table{"HOST", "ADDRESS", "KEY", ">ASKED AGO"};
    for (const wire::PendingRow &row : found->pending) {
        JsonObject one;
        one.add("name", row.host).add("address", row.address).add("key_words", key_words_of(row));
        json.push_back(one.add("asked_s", row.asked_s).text());
        table.add({row.host, row.address, key_words_of(row), seconds_text(row.asked_s)});
        if (call.format == Format::name) std::printf("%s\n", row.host.c_str());
    }
    if (call.format == Format::json) print_document("dcs.host.pending/1", "hosts", json_array(json));
    if (call.format != Format::table) return exits::ok;
    if (!json.empty()) std::printf("%s\n", table.text().c_str());
    std::printf("%s waiting for approval\n", counted(static_cast<std::int64_t>(json.size()), "host").c_str());
    if (!found->address.empty())
        std::printf("hosts ask with: dcs host join %s --ca-hash %s\n", found->address.c_str(),
                    hex_of(found->authority).c_str());
    return exits::ok;
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
    return exits::ok;
}

// None if it is not a host with a grain server.
std::int32_t running_on(const std::string &name) {
    for (const wire::HostRow &row : choose_hosts({name}).rows)
        if (row.name == name) return row.running;
    return 0;
}

int remove(const Call &call) {
    for (const std::string &name : call.arguments.words) {
        const std::int32_t running = running_on(name);
        if (const auto done = ask_any<wire::Done>(wire::RemoveHost{name}); !done)
            return call.fail(failure_of("host " + name + " was not removed from the pool", done.status()));
        const std::string grains =
            running == 0 ? ""
                         : "; what ran there, " + counted(running, "grain") + ", is ended and starts again elsewhere";
        std::printf("host %s removed from the pool%s\n", name.c_str(), grains.c_str());
    }
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
                                       .options = {{"replace",
                                                    0,
                                                    nullptr,
                                                    {},
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
forgotten. Their grains are ended there and continue on other hosts; a host that is not connected ends its grains when
it calls again. To come back, a host needs a line in the table and must join again. For root, scheduler_master and the
pool's owner.

Control programs of a removed client host are refused, and their tokens become invalid.

Examples:
  dcs host rm h1
)",
    .run = remove,
    .formats = false};

}  // namespace dcs::commands
