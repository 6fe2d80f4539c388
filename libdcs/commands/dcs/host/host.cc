// dcs host ls, show, drain, undrain, set.
#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "commands/dcs/frame/call.h"
#include "base/text.h"
#include "commands/dcs/query/row_text.h"
#include "host_changes.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/frame/pool_directory.h"

namespace dcs::commands {
namespace {

void print_table(const std::vector<wire::HostRow> &rows) {
    const bool resources =
        std::any_of(rows.begin(), rows.end(), [](const auto &row) { return !resources_text(row).empty(); });
    const bool addresses = std::any_of(rows.begin(), rows.end(), [](const auto &row) { return !row.address.empty(); });
    const bool ends = std::any_of(rows.begin(), rows.end(), [](const auto &row) { return row.ending > 0; });
    std::vector<const char *> headings{"HOST",     ">CLASS",        "BINARY", "*STATE",       ">SLOTS",
                                       ">RUNNING", ">LAST CALL-IN", ">LOAD",  ">FREE MEMORY", ">FINISHED",
                                       ">FAILED",  "CONFINEMENT",   "VERSION"};
    if (addresses) headings.push_back("ADDRESS");
    if (resources) headings.push_back("RESOURCES");
    if (ends) headings.push_back(">ENDING");
    Table table(headings);
    int active = 0, slots = 0, running = 0, ending = 0;
    for (const wire::HostRow &row : rows) {
        std::vector<std::string> cells{
            row.name,
            row.class_names.empty() ? class_text(row.host_class) : printable(row.class_names),
            row.binary_class,
            state_text(row),
            std::to_string(row.slots),
            std::to_string(row.running),
            seconds_text(row.last_call_in_s),
            load_of(row),
            free_memory_of(row),
            std::to_string(row.finished),
            std::to_string(row.failed),
            row.last_call_in_s >= 0 ? row.confinement : "-",
            or_dash(row.version)};
        if (addresses) cells.push_back(or_dash(row.address));
        if (resources) cells.push_back(resources_text(row));
        if (ends) cells.push_back(std::to_string(row.ending));
        table.add(std::move(cells));
        if (row.state == "active") {
            ++active;
            slots += row.slots;
        }
        running += row.running;
        ending += row.ending;
    }
    if (!rows.empty()) std::printf("%s\n", table.text().c_str());
    std::printf("%s, %d active with %s, %d running%s\n", counted(rows.size(), "host").c_str(), active,
                counted(slots, "slot").c_str(), running,
                ending > 0 ? (", " + std::to_string(ending) + " ending").c_str() : "");
}

std::string member_state(const wire::MemberRow &row) {
    if (!row.joined) return "not joined";
    if (row.expires_s > 0 && row.expires_s < wall_clock_s()) return "expired";
    return row.role != "backup" ? "joined" : row.connected ? "connected" : "not connected";
}

void print_members(const std::vector<wire::MemberRow> &members) {
    Table table{"HOST", "ROLE", "STATE", "JOINED", "CERTIFICATE ENDS", "USERS", "ADDRESS"};
    for (const wire::MemberRow &row : members)
        table.add({row.name, row.role, member_state(row), time_text(static_cast<double>(row.joined_s)),
                   time_text(static_cast<double>(row.expires_s)),
                   !row.users.empty()     ? joined(row.users)
                   : row.role == "client" ? "all but root"
                                          : "-",
                   row.address.empty() ? "-" : row.address});
    std::printf("%s\n", table.text().c_str());
}

int list_hosts(const Call &call) {
    const ChosenHosts chosen = choose_hosts(call.arguments.words, Which::with_members);
    if (chosen.failure) return call.fail(*chosen.failure);
    const std::vector<wire::HostRow> &rows = chosen.rows;
    if (call.format == Format::json) {
        JsonObject json("dcs.host.list/1");
        json.add_list("hosts", rows, row_json).add_list("members", chosen.members, row_json);
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::name) {
        for (const wire::HostRow &row : rows) std::printf("%s\n", row.name.c_str());
        if (!call.arguments.words.empty())
            for (const wire::MemberRow &row : chosen.members) std::printf("%s\n", row.name.c_str());
    } else {
        if (!chosen.members.empty()) print_members(chosen.members);
        if (!rows.empty() || chosen.members.empty() || call.arguments.words.empty()) print_table(rows);
    }
    return exits::ok;
}

int show_host(const Call &call) {
    const ChosenHosts chosen = choose_hosts(call.arguments.words, Which::with_members);
    if (chosen.failure) return call.fail(*chosen.failure);
    for (const wire::MemberRow &row : chosen.members) {
        if (call.format == Format::json) print_document("dcs.host.member/1", "member", wire::to_json(row));
        else if (call.format == Format::name) std::printf("%s\n", row.name.c_str());
    }
    if (call.format == Format::table && !chosen.members.empty()) print_members(chosen.members);
    for (std::size_t i = 0; i < chosen.rows.size(); ++i) {
        if (call.format == Format::json) print_document("dcs.host/1", "host", wire::to_json(chosen.rows[i]));
        else if (call.format == Format::name) std::printf("%s\n", chosen.rows[i].name.c_str());
        else std::printf("%s%s", i > 0 ? "\n" : "", host_facts(chosen.rows[i]).c_str());
    }
    return exits::ok;
}

// Tells how the hosts stand after what was done.
int tell(const Call &call, const std::vector<std::string> &names, std::string (*words)(const wire::HostRow &)) {
    const ChosenHosts chosen = choose_hosts(names);
    if (chosen.failure) return call.fail(*chosen.failure);
    for (const wire::HostRow &row : chosen.rows)
        print_as_asked(call, JsonObject("dcs.host/1").add_raw("host", wire::to_json(row)), row.name,
                       "host " + row.name + ": " + words(row));
    return exits::ok;
}

std::string set_text(const wire::HostRow &row) {
    return row.settings.empty() ? "values of the host table" : "set: " + row.settings;
}

std::string drained_text(const wire::HostRow &row) {
    if (!row.drained) return "no longer drained: another command undrained it in the meantime";
    const std::string what = row.slots > 0 ? " still running there (`dcs grain restart SES:G` moves one, with its last "
                                             "checkpoint)"
                                           : " about to leave";
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
    d_host_change change = drain_change(call.arguments.has("evict"));
    const std::string reason = call.arguments.value("reason").value_or("");
    change.drain_reason = reason.c_str();
    const Names done = change_each(call.arguments.words, [&](const wire::HostRow &) { return change; });
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

extern const Verb host_ls_verb = {
    .noun = "host",
    .name = "ls",
    .words = "[NAME...]",
    .summary = "list the hosts of the pool",
    .about = R"(Lists the grain hosts with their classes, states and slots; before them the hosts of control
programs and the backup's, if the host table has some: since when each is a member of the pool, and when its
certificate ends.

Examples:
  dcs host ls
  dcs host ls -o json | jq '.hosts[] | select(.state != "active").name'
  dcs host ls -o json | jq '.members[] | select(.expires_s < now + 7 * 86400).name'
)",
    .notes = R"(States: active; delinquent (late with its report); dead (its grains were moved); unknown (has not
called in yet); no_job (a pilot that no batch job runs now; it does not count as a host of the pool). A drained
host gets no new grains. ENDING counts killed grains whose processes have not ended a second or two later: each keeps
its slot, memory and cores until then, and the next grain for that slot waits on the host, counted as running.
Of a member: joined or not; a backup's: connected or not; expired (its certificate has ended: join again). JOINED is -
for hosts that joined with release 0.1. VERSION is the release of the grain server, - if it has not said it since it
connected; ADDRESS is where it connects from. -o name: the grain hosts alone, unless others are named.
)",
    .run = list_hosts};

extern const Verb host_show_verb = {
    .noun = "host",
    .name = "show",
    .words = "NAME...",
    .summary = "show everything about one host",
    .about = R"(Shows hosts in detail, one fact a line: state, pending checks, settings that differ from the
host table, intervals, memory and cores, and the outcome of the host's grains.

Examples:
  dcs host show local1
  dcs host show all -o json | jq .host.settings
)",
    .notes = R"(NAME is a host of the host table, or all. With -o json one document per host.
)",
    .run = show_host};

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
  dcs host drain local1 --reason 'new disk on Friday'
)",
    .options = {{"evict", 0, nullptr, no_value,
                 "running grains leave now (the host is drained and its slots set to 0)"},
                {"reason", 0, "TEXT", any_text,
                 "why, shown by `dcs host ls` and `dcs grain explain` while it is drained"}},
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
                {"reset", 0, nullptr, no_value, "first reset to the host table; other options apply after that"},
                {"clear-nogo", 0, nullptr, no_value, "clear the nogo marks there of all grains, or of the named ones"}},
    .notes = R"(NAME is a host of the host table, or all. With -o json one document per host, with its new state.
)",
    .run = set};

}  // namespace dcs::commands
