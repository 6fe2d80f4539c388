// dcs host ls, show.
#include <cstdio>

#include "call.h"
#include "facts.h"
#include "hosts.h"
#include "json.h"
#include "table.h"

namespace dcs::commands {
namespace {

std::string load_text(double load) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.2f", load);
    return digits;
}

void print_table(const std::vector<const d_host_row *> &rows) {
    Table table{"HOST",     ">CLASS",        "BINARY", "STATE",       ">SLOTS",
                ">RUNNING", ">LAST CALL-IN", ">LOAD",  ">FREE MEMORY",
                ">FINISHED", ">FAILED", "CONFINEMENT"};
    int active = 0, slots = 0, running = 0;
    for (const d_host_row *row : rows) {
        const bool known = row->last_call_in_s >= 0, figures = known && row->free_memory_kb >= 0;
        table.add(
            {text(row->name), class_text(row->host_class), text(row->binary_class),
             state_text(*row), std::to_string(row->slots), std::to_string(row->running),
             seconds_text(row->last_call_in_s), figures ? load_text(row->load) : "-",
             figures ? bytes_text(static_cast<std::uint64_t>(row->free_memory_kb) * 1024) : "-",
             std::to_string(row->finished), std::to_string(row->failed),
             known ? text(row->confinement) : "-"});
        if (text(row->state) == "active") {
            ++active;
            slots += row->slots;
        }
        running += row->running;
    }
    if (!rows.empty()) std::printf("%s\n", table.text().c_str());
    std::printf("%s, %d active with %s, %d running\n",
                counted(static_cast<std::int64_t>(rows.size()), "host").c_str(), active,
                counted(slots, "slot").c_str(), running);
}

int list_hosts(const Call &call) {
    Info info;
    const ChosenHosts chosen = choose_hosts(call.arguments.words, info);
    if (chosen.failure) return call.fail(*chosen.failure);
    const std::vector<const d_host_row *> &rows = chosen.rows;
    if (call.format == Format::json) {
        std::vector<std::string> json;
        for (const d_host_row *row : rows) json.push_back(json_of(*row));
        print_document("dcs.host.list/1", "hosts", json_array(json));
    } else if (call.format == Format::name) {
        for (const d_host_row *row : rows) std::printf("%s\n", row->name);
    } else {
        print_table(rows);
    }
    return exits::ok;
}

int show_host(const Call &call) {
    if (call.arguments.words.empty())
        return call.fail(usage_failure("dcs host show: which host?", "dcs host show NAME, or all"));
    Info info;
    const ChosenHosts chosen = choose_hosts(call.arguments.words, info);
    if (chosen.failure) return call.fail(*chosen.failure);
    for (std::size_t i = 0; i < chosen.rows.size(); ++i) {
        if (call.format == Format::json) print_document("dcs.host/1", "host", json_of(*chosen.rows[i]));
        else if (call.format == Format::name) std::printf("%s\n", chosen.rows[i]->name);
        else std::printf("%s%s", i > 0 ? "\n" : "", host_facts(*chosen.rows[i]).c_str());
    }
    return exits::ok;
}

}  // namespace

const Verb host_ls_verb = {"host",
                           "ls",
                           "list the hosts of the pool",
                           R"(Lists the grain hosts with their classes, states and slots.

Examples:
  dcs host ls
  dcs host ls -o json | jq '.hosts[] | select(.state != "active").name'

Usage: dcs host ls [-o table|json|name] [NAME...]

States: active; delinquent (late with its report); dead (its grains went elsewhere); unknown (has not
called in yet). A drained host gets nothing new.
)",
                           {},
                           false,
                           0,
                           list_hosts};

const Verb host_show_verb = {
    "host",
    "show",
    "show everything about one host",
    R"(Shows hosts in detail, one fact a line: state and what is being waited for, what was set against the
host table, intervals, memory and cores, what became of the grains that it was given.

Examples:
  dcs host show local1
  dcs host show all -o json | jq .host.settings

Usage: dcs host show [-o table|json|name] NAME...

NAME is a host of the host table, or all. With -o json one document per host.
)",
    {},
    false,
    0,
    show_host};

}  // namespace dcs::commands
