// dcs host drain, undrain, set.
#include <cstdio>

#include "call.h"
#include "grains.h"
#include "hosts.h"
#include "json.h"
#include "table.h"

namespace dcs::commands {
namespace {

// Tells how the hosts stand after what was done.
int tell(const Call &call, const std::vector<std::string> &names, std::string (*words)(const d_host_row &)) {
    Info info;
    const ChosenHosts chosen = choose_hosts(names, info);
    if (chosen.failure) return call.fail(*chosen.failure);
    for (const d_host_row *row : chosen.rows) {
        if (call.format == Format::json) print_document("dcs.host/1", "host", json_of(*row));
        else if (call.format == Format::name) std::printf("%s\n", row->name);
        else std::printf("host %s: %s\n", row->name, words(*row).c_str());
    }
    return exits::ok;
}

std::string set_text(const d_host_row &row) {
    return row.settings[0] == '\0' ? "as the host table has it" : "set: " + std::string(row.settings);
}

std::string drained_text(const d_host_row &row) {
    if (!row.drained) return "not drained any more, somebody undrained it meanwhile";
    const std::string what = row.slots > 0 ? " still running there" : " about to leave";
    return "drained, nothing new is started there; " +
           (row.running == 0 ? "nothing runs there" : counted(row.running, "grain") + what);
}

std::string undrained_text(const d_host_row &row) {
    const std::string still = row.settings[0] == '\0' ? "" : "; still set: " + std::string(row.settings);
    if (row.drained) return "drained again by somebody meanwhile" + still;
    return "takes grains, " + counted(row.slots, "slot") + still;
}

struct Names {
    std::vector<std::string> names;
    std::optional<Failure> failure;
};

// Does `change_of(row)` to each host that the words name.
template <class ChangeOf>
Names change_each(const std::vector<std::string> &words, ChangeOf change_of) {
    Info info;
    const ChosenHosts chosen = choose_hosts(words, info);
    Names done{{}, chosen.failure};
    if (done.failure) return done;
    for (const d_host_row *row : chosen.rows) {
        const d_host_change change = change_of(*row);
        if (const int error = d_sethost(row->name, &change); error != NO_ERROR) {
            done.failure = call_failure("host " + std::string(row->name) + " was not changed", error);
            return done;
        }
        done.names.push_back(row->name);
    }
    return done;
}

Failure which_host(const std::string &verb) {
    return usage_failure("dcs host " + verb + ": which host?", "dcs host " + verb + " NAME, or all");
}

int drain(const Call &call) {
    if (call.arguments.words.empty()) return call.fail(which_host("drain"));
    const bool evict = call.arguments.has("--evict");
    const Names done = change_each(call.arguments.words, [&](const d_host_row &) { return drain_change(evict); });
    if (done.failure) return call.fail(*done.failure);
    return tell(call, done.names, drained_text);
}

int undrain(const Call &call) {
    if (call.arguments.words.empty()) return call.fail(which_host("undrain"));
    const Names done =
        change_each(call.arguments.words, [](const d_host_row &row) { return undrain_change(row.settings); });
    if (done.failure) return call.fail(*done.failure);
    return tell(call, done.names, undrained_text);
}

// All that the order says about one host's place in nogo sets.
std::optional<Failure> clear_nogo(const std::string &host, const ChosenGrains &chosen, bool of_all) {
    const auto failed = [&](int error) { return call_failure("host " + host + " is still avoided", error); };
    if (of_all) {
        const int error = d_clear_nogo(nullptr, -1, -1, host.c_str());
        return error == NO_ERROR ? std::nullopt : std::optional<Failure>(failed(error));
    }
    for (const d_grain_row *row : chosen.grains.rows) {
        const int error = d_clear_nogo(row->user, row->session, row->grain, host.c_str());
        if (error != NO_ERROR) return failed(error);
    }
    return std::nullopt;
}

int set(const Call &call) {
    HostOrder order;
    if (const auto failure = take_host_order(call.arguments, order)) return call.fail(*failure);
    // All names are looked up before anything is done.
    const ChosenGrains grains = choose_grains(order.grains, false);
    if (grains.failure) return call.fail(*grains.failure);
    Info info;
    const ChosenHosts hosts = choose_hosts(order.hosts, info);
    if (hosts.failure) return call.fail(*hosts.failure);
    std::vector<std::string> names;
    for (const d_host_row *row : hosts.rows) names.push_back(row->name);
    if (order.changes) {
        const Names done = change_each(names, [&](const d_host_row &) { return order.change; });
        if (done.failure) return call.fail(*done.failure);
    }
    for (const std::string &name : names) {
        if (!order.clear_nogo) break;
        if (const auto failure = clear_nogo(name, grains, order.grains.empty())) return call.fail(*failure);
    }
    return tell(call, names, set_text);
}

}  // namespace

const Verb host_drain_verb = {"host",
                           "drain",
                           "start nothing new on a host",
                           R"(Drains hosts: nothing new is started there, what runs there ends by itself.
With --evict it is given back at once, with a checkpoint where possible, and goes on elsewhere. For
root, scheduler_master and the pool's owner; it outlives restarts of the scheduler, until `dcs host undrain`.

Examples:
  dcs host drain local1
  dcs host drain --evict local1 local2

Usage: dcs host drain [--evict] [-o table|json|name] NAME...

  --evict   what runs there leaves now (drained, and its slots set to 0)

NAME is a host of the host table, or all. With -o json one document per host, how it stands then.
)",
                           {{"--evict", 0, false}},
                           false,
                           0,
                           drain};

const Verb host_undrain_verb = {"host",
                           "undrain",
                           "let a drained host take grains again",
                           R"(Lets drained hosts take grains again.
Where the slots were set to 0 (`dcs host drain --evict`), the host table's number comes back; what
else was set stays, and is told. For root, scheduler_master and the pool's owner.

Examples:
  dcs host undrain local1
  dcs host undrain all

Usage: dcs host undrain [-o table|json|name] NAME...

NAME is a host of the host table, or all. With -o json one document per host, how it stands then.
)",
                           {},
                           false,
                           0,
                           undrain};

const Verb host_set_verb = {"host",
                           "set",
                           "change slots, intervals or class of a host",
                           R"(Changes what hosts may do, against the host table.
It holds at once, and over restarts of the scheduler until --reset. For root, scheduler_master and the pool's owner.

Examples:
  dcs host set local1 --slots 4
  dcs host set local1 --interval 5m --alert 15m --limit 30m --extended 2h
  dcs host set local1 --reset
  dcs host set local1 --clear-nogo          everybody's grains may be tried there again
  dcs host set local1 --clear-nogo 7:1-20   these may

Usage: dcs host set [--slots N] [--interval S] [--alert S] [--limit S] [--extended S] [--class MASK]
                    [--reset] [--clear-nogo] [-o table|json|name] NAME... [SES:G...]

  --slots N      grains at a time; 0 gives back at once what runs there
  --interval S   seconds between its reports (also 5m, 2h)
  --alert S      silent so long it is delinquent
  --limit S      silent so long it is dead, and its grains go elsewhere
  --extended S   the same while something there still answers; interval <= alert <= limit <= extended
  --class MASK   the classes that it belongs to
  --reset        first everything as the host table has it; other options count on top
  --clear-nogo   grains that must not be tried there any more may be: all, or the grains that are named

NAME is a host of the host table, or all. With -o json one document per host, how it stands then.
)",
                           {{"--slots", 0, true},
                            {"--interval", 0, true},
                            {"--alert", 0, true},
                            {"--limit", 0, true},
                            {"--extended", 0, true},
                            {"--class", 0, true},
                            {"--reset", 0, false},
                            {"--clear-nogo", 0, false}},
                           false,
                           0,
                           set};

}  // namespace dcs::commands
