// dcs reload, dcs log-level: for whoever operates the daemons.
#include <cstdio>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/this_pool.h"
#include "client/call.h"
#include "wire/message.h"

namespace dcs::commands {
namespace {

int reload(const Call &call) {
    const auto reply = client::ask<wire::Done>(this_pool(), wire::Reload{}, client::How{client::With::any});
    if (reply) return exits::ok;
    Failure failure = failure_of("the settings were not read again", reply.status());
    if (failure.exit == exits::usage) failure.exit = exits::error;  // it is a file that is wrong, not the line
    return call.fail(failure);
}

int log_level(const Call &call) {
    const auto &words = call.arguments.words;
    const wire::SetLogLevel order{words.size() > 1 ? words[1] : "", words[0]};
    const auto reply = client::ask<wire::Done>(this_pool(), order, client::How{client::With::any});
    return reply ? exits::ok : call.fail(failure_of("the level was not set", reply.status()));
}

}  // namespace

extern const Verb reload_verb = {
    .noun = "", .name = "reload",
    .summary = "have the scheduler read its settings again",
    .about = R"(Has the scheduler read its configuration, host table, policy and limits again, as SIGHUP does. All files
are read and checked, whole, before anything changes; if one of them is wrong, the line is named and everything
stays as it is. Grains on hosts that are no longer in the table are moved; what `dcs host set` changed stays.
Options that count only after a restart are named by `dcs status`.
For root, the scheduler's account and the owner of a private pool.

Examples:
  dcs reload
)",
    .run = reload, .formats = false};

extern const Verb log_level_verb = {
    .noun = "", .name = "log-level", .words = "off|error|warn|info|debug [HOST]",
    .summary = "what the scheduler or a host's grain server logs",
    .about = R"(Sets what the scheduler logs, or with HOST that host's grain server, until it is started again:
off, error, warn, info or debug. For root, the scheduler's account and the owner of a private pool.

Examples:
  dcs log-level debug          the scheduler tells everything
  dcs log-level info local1    and a grain server a little
)",
    .run = log_level, .formats = false};

}  // namespace dcs::commands
