// dcs reload, dcs log-level: for operators.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>

#include "base/text.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/this_pool.h"
#include "commands/dcs/frame/unicode.h"
#include "commands/dcs/query/scheduler.h"
#include "client/call.h"
#include "wire/message.h"

namespace dcs::commands {
namespace {

// What has been taken, and is probably not meant.
void print_warnings() {
    const auto reply = client::ask<wire::DoctorReply>(this_pool(), wire::Doctor{}, client::How{client::With::any});
    if (!reply) return;
    for (const wire::ProblemRow &row : reply->problems)
        if (row.entity.starts_with("login "))
            std::fprintf(stderr, "warning: %s: %s\n", printable(row.file).c_str(), printable(row.problem).c_str());
}

std::set<std::string> host_names() {
    std::set<std::string> names;
    Info info;
    if (info.ask(wire::QueryType::hosts))
        for (const wire::HostRow &row : info.hosts) names.insert(row.name);
    return names;
}

// What a mistake in the table has done is said at once.
void print_removed(const std::set<std::string> &before) {
    constexpr std::size_t most = 10;
    std::vector<std::string> removed;
    const std::set<std::string> after = host_names();
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(removed));
    if (removed.empty() || after.empty()) return;
    const std::string all =
        std::to_string(removed.size()) + " of " + counted(static_cast<std::int64_t>(before.size()), "host");
    const std::size_t more = removed.size() > most ? removed.size() - most : 0;
    if (more > 0) removed.resize(most);
    std::fprintf(stderr, "warning: %s left the pool: %s%s; grains that run there start again elsewhere\n", all.c_str(),
                 printable(joined(removed)).c_str(),
                 more > 0 ? (" and " + std::to_string(more) + " more").c_str() : "");
}

int reload(const Call &call) {
    const std::set<std::string> before = host_names();
    const auto reply = client::ask<wire::Done>(this_pool(), wire::Reload{}, client::How{client::With::any});
    if (reply) print_removed(before);
    if (reply) print_warnings();
    if (reply) return exits::ok;
    Failure failure = failure_of("the settings were not reread", reply.status());
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
    .noun = "",
    .name = "reload",
    .summary = "make the scheduler reread its settings",
    .about = R"(Makes the scheduler reread its configuration, host table, policy and limits, as SIGHUP does. All files
are read and checked before anything changes; if one has an error, its line is named and nothing
changes, and so if the host table would remove all hosts or all connected ones. A login that this host
does not know is a warning, and so are hosts that leave the pool. Grains on hosts that are no longer in the table are
moved; settings of `dcs host set` stay.
`dcs status` lists options that take effect only after a restart.
For root, the scheduler's account and the owner of a private pool.

Examples:
  dcs reload
)",
    .run = reload,
    .formats = false};

extern const Verb log_level_verb = {
    .noun = "",
    .name = "log-level",
    .words = "off|error|warn|info|debug [HOST]",
    .summary = "set what the scheduler or a grain server logs",
    .about = R"(Sets the log level of the scheduler, or with HOST of that host's grain server, until its next start:
off, error, warn, info or debug. For root, the scheduler's account and the owner of a private pool.

Examples:
  dcs log-level debug          the scheduler logs everything
  dcs log-level info local1    a grain server logs less
)",
    .run = log_level,
    .formats = false};

}  // namespace dcs::commands
