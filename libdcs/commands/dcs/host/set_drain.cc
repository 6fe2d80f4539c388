// dcs host drain, undrain, set.
#include <cstdio>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/grains.h"
#include "host_changes.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/this_pool.h"

namespace dcs::commands {
namespace {

// Tells how the hosts stand after what was done.
int tell(const Call &call, const std::vector<std::string> &names, std::string (*words)(const wire::HostRow &)) {
    const ChosenHosts chosen = choose_hosts(names);
    if (chosen.failure) return call.fail(*chosen.failure);
    for (const wire::HostRow &row : chosen.rows) {
        if (call.format == Format::json) print_document("dcs.host/1", "host", wire::to_json(row));
        else if (call.format == Format::name) std::printf("%s\n", row.name.c_str());
        else std::printf("host %s: %s\n", row.name.c_str(), words(row).c_str());
    }
    return exits::ok;
}

std::string set_text(const wire::HostRow &row) {
    return row.settings.empty() ? "values of the host table" : "set: " + row.settings;
}

std::string drained_text(const wire::HostRow &row) {
    if (!row.drained) return "no longer drained: another command undrained it in the meantime";
    const std::string what = row.slots > 0 ? " still running there" : " about to leave";
    return "drained, no new grains start there; " +
           (row.running == 0 ? "nothing runs there" : counted(row.running, "grain") + what);
}

std::string undrained_text(const wire::HostRow &row) {
    const std::string still = row.settings.empty() ? "" : "; still set: " + row.settings;
    if (row.drained) return "drained again by another command in the meantime" + still;
    return "accepts grains, " + counted(row.slots, "slot") + still;
}

struct Names {
    std::vector<std::string> names;
    std::optional<Failure> failure;
};

// Does `change_of(row)` to each host that the words name.
template <class ChangeOf> Names change_each(const std::vector<std::string> &words, ChangeOf change_of) {
    const ChosenHosts chosen = choose_hosts(words);
    Names done{{}, chosen.failure};
    if (done.failure) return done;
    for (const wire::HostRow &row : chosen.rows) {
        const d_host_change change = change_of(row);
        if (const int error = d_pool_sethost(&this_pool(), row.name.c_str(), &change); error != NO_ERROR) {
            done.failure = call_failure("host " + row.name + " was not changed", error);
            return done;
        }
        done.names.push_back(row.name);
    }
    return done;
}

int drain(const Call &call) {
    const bool evict = call.arguments.has("evict");
    const Names done = change_each(call.arguments.words, [&](const wire::HostRow &) { return drain_change(evict); });
    if (done.failure) return call.fail(*done.failure);
    return tell(call, done.names, drained_text);
}

int undrain(const Call &call) {
    const Names done =
        change_each(call.arguments.words, [](const wire::HostRow &row) { return undrain_change(row.settings); });
    if (done.failure) return call.fail(*done.failure);
    return tell(call, done.names, undrained_text);
}

// All that the order says about one host's place in nogo sets.
std::optional<Failure> clear_nogo(const std::string &host, const ChosenGrains &chosen, bool of_all) {
    const auto failed = [&](int error) { return call_failure("host " + host + " is still avoided", error); };
    if (of_all) {
        const int error = d_pool_clear_nogo(&this_pool(), nullptr, -1, -1, host.c_str());
        return error == NO_ERROR ? std::nullopt : std::optional<Failure>(failed(error));
    }
    for (const wire::GrainRow &row : chosen.grains.rows) {
        const int error = d_pool_clear_nogo(&this_pool(), row.user.c_str(), row.session, row.grain, host.c_str());
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
    const ChosenHosts hosts = choose_hosts(order.hosts);
    if (hosts.failure) return call.fail(*hosts.failure);
    std::vector<std::string> names;
    for (const wire::HostRow &row : hosts.rows) names.push_back(row.name);
    if (order.changes) {
        const Names done = change_each(names, [&](const wire::HostRow &) { return order.change; });
        if (done.failure) return call.fail(*done.failure);
    }
    for (const std::string &name : names) {
        if (!order.clear_nogo) break;
        if (const auto failure = clear_nogo(name, grains, order.grains.empty())) return call.fail(*failure);
    }
    return tell(call, names, set_text);
}

}  // namespace

extern const Verb host_drain_verb = {
    .noun = "host",
    .name = "drain",
    .words = "NAME...",
    .summary = "start no new grains on a host",
    .about = R"(Drains hosts: no new grain is started there, and running grains end by themselves.
With --evict they leave at once, with a checkpoint where possible, and continue on other hosts. For
root, scheduler_master and the pool's owner. A drain outlives restarts of the scheduler, until `dcs host undrain`.

Examples:
  dcs host drain local1
  dcs host drain --evict local1 local2
)",
    .options = {{"evict", 0, nullptr, {}, "running grains leave now (the host is drained and its slots set to 0)"}},
    .notes = R"(NAME is a host of the host table, or all. With -o json one document per host, with its new state.
)",
    .run = drain};

extern const Verb host_undrain_verb = {
    .noun = "host",
    .name = "undrain",
    .words = "NAME...",
    .summary = "let a drained host accept grains again",
    .about = R"(Lets drained hosts accept grains again.
Slots that were set to 0 (`dcs host drain --evict`) get the host table's number again; other
settings stay, and are listed. For root, scheduler_master and the pool's owner.

Examples:
  dcs host undrain local1
  dcs host undrain all
)",
    .notes = R"(NAME is a host of the host table, or all. With -o json one document per host, with its new state.
)",
    .run = undrain};

extern const Verb host_set_verb = {
    .noun = "host",
    .name = "set",
    .words = "NAME... [SES:G...]",
    .summary = "change slots, intervals or class of a host",
    .about = R"(Changes settings of hosts that override the host table.
They take effect at once and outlive restarts of the scheduler, until --reset. For root, scheduler_master and the
pool's owner.

Examples:
  dcs host set local1 --slots 4
  dcs host set local1 --interval 5m --alert 15m --limit 30m --extended 2h
  dcs host set local1 --reset
  dcs host set local1 --clear-nogo          all grains may be tried there again
  dcs host set local1 --clear-nogo 7:1-20   these may
)",
    .options = {{"slots", 0, "N", whole_number(0, most_slots_of_a_host),
                 "grains at a time; with 0, running grains leave at once"},
                {"interval", 0, "S", seconds_from(least_time_s), "seconds between its reports (also 5m, 1:30:00)"},
                {"alert", 0, "S", seconds_from(least_time_s), "after this silence it is delinquent"},
                {"limit", 0, "S", seconds_from(least_time_s), "after this silence it is dead, and its grains move"},
                {"extended", 0, "S", seconds_from(least_time_s),
                 "the same while probes are answered; interval <= alert <= limit <= extended"},
                {"class", 0, "CLASS[,..]", class_names_or_mask,
                 "the classes that it belongs to: names, or a mask such as 0x3"},
                {"reset", 0, nullptr, {}, "first reset to the host table; other options apply after that"},
                {"clear-nogo", 0, nullptr, {}, "clear the nogo marks there of all grains, or of the named ones"}},
    .notes = R"(NAME is a host of the host table, or all. With -o json one document per host, with its new state.
)",
    .run = set};

}  // namespace dcs::commands
