// dcs host ls, show.
#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/row_text.h"
#include "host_changes.h"
#include "commands/dcs/frame/json.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/unicode.h"

namespace dcs::commands {
namespace {

std::string load_text(double load) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.2f", load);
    return digits;
}

void print_table(const std::vector<wire::HostRow> &rows) {
    const bool resources =
        std::any_of(rows.begin(), rows.end(), [](const auto &row) { return !resources_text(row).empty(); });
    const bool addresses = std::any_of(rows.begin(), rows.end(), [](const auto &row) { return !row.address.empty(); });
    std::vector<const char *> headings{"HOST",         ">CLASS",    "BINARY",        "*STATE",
                                       ">SLOTS",       ">RUNNING",  ">LAST CALL-IN", ">LOAD",
                                       ">FREE MEMORY", ">FINISHED", ">FAILED",       "CONFINEMENT"};
    headings.push_back("VERSION");
    if (addresses) headings.push_back("ADDRESS");
    if (resources) headings.push_back("RESOURCES");
    Table table(headings);
    int active = 0, slots = 0, running = 0;
    for (const wire::HostRow &row : rows) {
        const bool known = row.last_call_in_s >= 0, figures = known && row.free_memory_kb >= 0;
        std::vector<std::string> cells{
            row.name,
            row.class_names.empty() ? class_text(row.host_class) : printable(row.class_names),
            row.binary_class,
            state_text(row),
            std::to_string(row.slots),
            std::to_string(row.running),
            seconds_text(row.last_call_in_s),
            figures ? load_text(row.load) : "-",
            figures ? bytes_text(static_cast<std::uint64_t>(row.free_memory_kb) * 1024) : "-",
            std::to_string(row.finished),
            std::to_string(row.failed),
            known ? row.confinement : "-"};
        cells.push_back(or_dash(row.version));
        if (addresses) cells.push_back(or_dash(row.address));
        if (resources) cells.push_back(resources_text(row));
        table.add(std::move(cells));
        if (row.state == "active") {
            ++active;
            slots += row.slots;
        }
        running += row.running;
    }
    if (!rows.empty()) std::printf("%s\n", table.text().c_str());
    std::printf("%s, %d active with %s, %d running\n", counted(static_cast<std::int64_t>(rows.size()), "host").c_str(),
                active, counted(slots, "slot").c_str(), running);
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
        std::vector<std::string> hosts, members;
        for (const wire::HostRow &row : rows) hosts.push_back(wire::to_json(row));
        for (const wire::MemberRow &row : chosen.members) members.push_back(wire::to_json(row));
        JsonObject json("dcs.host.list/1");
        json.add_raw("hosts", json_array(hosts)).add_raw("members", json_array(members));
        std::printf("%s\n", json.text().c_str());
    } else if (call.format == Format::name) {
        for (const wire::HostRow &row : rows) std::printf("%s\n", row.name.c_str());
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
host gets no new grains. Of a member: joined or not; a backup's: connected or not; expired (its certificate has
ended: join again). JOINED is - for hosts that joined with release 0.1. VERSION is the release of the grain server, - if
it has not said it since it connected; ADDRESS is where it connects from.
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

}  // namespace dcs::commands
