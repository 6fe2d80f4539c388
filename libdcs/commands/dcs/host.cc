// dcs host ls.
#include <cstdio>

#include "ask.h"
#include "call.h"
#include "json.h"
#include "table.h"

namespace dcs::commands {
namespace {

std::string text(const char *value) { return value == nullptr ? "" : value; }

std::string load_text(double load) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.2f", load);
    return digits;
}

void print_table(const std::vector<const d_host_row *> &rows) {
    Table table{"HOST",     ">CLASS",        "BINARY", "STATE",       ">SLOTS",
                ">RUNNING", ">LAST CALL-IN", ">LOAD",  ">FREE MEMORY",
                ">FINISHED", ">FAILED"};
    int active = 0, slots = 0, running = 0;
    for (const d_host_row *row : rows) {
        const bool known = row->last_call_in_s >= 0;
        table.add(
            {text(row->name), class_text(row->host_class), text(row->binary_class),
             text(row->state), std::to_string(row->slots), std::to_string(row->running),
             seconds_text(row->last_call_in_s), known ? load_text(row->load) : "-",
             known ? bytes_text(static_cast<std::uint64_t>(row->free_memory_kb) * 1024) : "-",
             std::to_string(row->finished), std::to_string(row->failed)});
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

int list(const Call &call) {
    Info info;
    const int error = info.ask(D_Q_HOSTS);
    if (error != NO_ERROR) return call.fail(call_failure("the list of hosts", error));
    std::vector<const d_host_row *> rows;
    for (std::size_t i = 0; i < info->host_count; ++i) {
        bool wanted = call.arguments.words.empty();
        for (const std::string &word : call.arguments.words)
            wanted = wanted || word == "all" || word == text(info->hosts[i].name);
        if (wanted) rows.push_back(&info->hosts[i]);
    }
    for (const std::string &word : call.arguments.words) {
        bool found = word == "all";
        for (const d_host_row *row : rows) found = found || word == text(row->name);
        if (!found)
            return call.fail(not_found_failure("there is no host " + word,
                                               "`dcs host ls` lists those that there are"));
    }
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
called in yet).
)",
                           {},
                           false,
                           0,
                           list};

}  // namespace dcs::commands
