// dcs host approve, rm.
#include <algorithm>
#include <cstdio>

#include "base/hex.h"
#include "base/words.h"
#include "any_call.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/table.h"
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
    if (!found) return call.fail(failure_of("the list of hosts that wait", found.status()));
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
    std::printf("%s to be let in\n", counted(static_cast<std::int64_t>(json.size()), "host").c_str());
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
                                       "`dcs host approve` alone lists those that wait, with the words of each"));
    const bool replace = call.arguments.has("replace");
    const auto done = ask_any<wire::Done>(wire::ApproveHost{words[0], words[1], static_cast<std::uint8_t>(replace)});
    if (!done) return call.fail(failure_of("host " + words[0] + " was not let in", done.status()));
    return exits::ok;
}

int remove(const Call &call) {
    for (const std::string &name : call.arguments.words)
        if (const auto done = ask_any<wire::Done>(wire::RemoveHost{name}); !done)
            return call.fail(failure_of("host " + name + " was not taken out of the pool", done.status()));
    return exits::ok;
}

}  // namespace

extern const Verb host_approve_verb = {
    .noun = "host", .name = "approve", .words = "[NAME WORDS]",
    .summary = "let a host in that asked to join without a code",
    .about = R"(Without a name: lists the hosts that ask to join without a code.
Each has its key in words beside it. The same words stand on the screen of that host; compare them,
because anybody can ask under any name.
With a host's name and its words: lets it in. For root, scheduler_master and the pool's owner.

Examples:
  dcs host approve
  dcs host approve h1 lusab-babad-gutih-tugad-kibod-zabos
)",
    .options = {
     {"replace", 0, nullptr, {}, "another machine has joined under that name: from now on this one is it, and the\n"
      "certificate of the other is revoked"}},
    .notes = R"(NAME must be in the host table.
)",
    .run = approve};

extern const Verb host_rm_verb = {
    .noun = "host", .name = "rm", .words = "NAME...",
    .summary = "take a host out of the pool",
    .about = R"(Takes hosts out of the pool, and makes their certificates useless.
Their lines go out of the host table, their certificates are revoked for good, their links end at once,
and their grains go on elsewhere. To come back a host needs a line in the table and must join anew.
For root, scheduler_master and the pool's owner.

Of a host from which control programs call, these are no longer heard, and their tokens count no more.

Examples:
  dcs host rm h1
)",
    .run = remove, .formats = false};

}  // namespace dcs::commands
