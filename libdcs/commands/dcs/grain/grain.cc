// dcs grain ls, show, cat.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/session_events.h"
#include "commands/dcs/query/row_text.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/live_output.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/frame/pool_directory.h"
#include "dcs.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_items = 2000;

// They are read from the parameters of each grain: of the first ones.
std::vector<std::string> items_of(const ChosenGrains &chosen) {
    std::vector<std::string> items(chosen.grains.rows.size(), "-");
    DetailedRows details(chosen.grains.rows);
    for (std::size_t i = 0; i < std::min(items.size(), most_items); ++i)
        if (std::string item = details.item_at(i); !item.empty()) items[i] = std::move(item);
    return items;
}

// What the scheduler says of some: as few lines as there are different words.
void print_notes(const ChosenGrains &chosen) {
    std::map<std::string, std::vector<std::string>> notes;
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i)
        if (!chosen.grains.rows[i].note.empty()) notes[chosen.grains.rows[i].note].push_back(chosen.name(i));
    for (const auto &[note, names] : notes)
        std::printf("%s%s: %s\n", names[0].c_str(),
                    names.size() == 1 ? "" : (" and " + std::to_string(names.size() - 1) + " more").c_str(),
                    printable(note).c_str());
}

void print_logs(const ChosenGrains &chosen) {
    for (const std::string &log : chosen.logs)
        if (!log.empty()) std::printf("`dcs submit` says in %s what failed or does not run, and why\n", log.c_str());
}

void print_table(const ChosenGrains &chosen) {
    Table table{">GRAIN", "*STATE", "HOST", ">STARTS", ">FAILURES", "END", ">CPU", ">OUT", ">ERR", "ITEM"};
    const std::vector<std::string> items = items_of(chosen);
    std::map<std::string, int> in_state;
    int failed = 0;
    double cpu_s = 0;
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const wire::GrainRow &row = chosen.grains.rows[i];
        const std::string state = chosen.state(i), &host = row.host;
        table.add({chosen.name(i), is_failed(row) ? "failed" : state, host.empty() ? "-" : host,
                   std::to_string(row.starts), std::to_string(row.failures), end_text(row), seconds_text(row.cpu_s),
                   bytes_text(row.out_length), bytes_text(row.err_length), items[i]});
        ++in_state[state];
        failed += is_failed(row);
        cpu_s += row.cpu_s;
    }
    if (!chosen.grains.rows.empty()) std::printf("%s\n", table.text().c_str());
    if (items.size() > most_items) std::printf("items of the first %zu grains; -o json has all\n", most_items);
    std::string ended;
    if (const int n = in_state["withdrawn"]) ended += ", " + std::to_string(n) + " withdrawn by the close";
    if (const int n = in_state["not run"]) ended += ", " + std::to_string(n) + " did not run";
    std::printf("%s: %d ready, %d running, %d finished (%d failed), %d killed%s; %s of CPU\n",
                counted(chosen.grains.rows.size(), "grain").c_str(), in_state["ready"], in_state["running"],
                in_state["finished"], failed, in_state["killed"], ended.c_str(), seconds_text(cpu_s).c_str());
    print_notes(chosen);
    if (chosen.not_submitted > 0)
        std::printf(
            "%s not yet submitted; `dcs submit` submits a grain when those that it comes after have succeeded\n",
            counted(chosen.not_submitted, "more grain").c_str());
    print_logs(chosen);
}

// A grain that did not make its outputs has failed, too.
JsonObject json_of(const wire::GrainRow &row) {
    return JsonObject().add_members(wire::to_json(row)).add("failed", is_failed(row));
}

// As print_document, row by row: DetailedRows holds only some of them.
int print_json(const Call &call, const ChosenGrains &chosen) {
    DetailedRows details(chosen.grains.rows);
    const char *before = R"({"schema":"dcs.grain.list/1","grains":[)";
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const auto row = details.at(i);
        if (!row) return call.fail(call_failure("grain " + chosen.name(i), row.status()));
        std::printf("%s%s", before, json_of(*row).text().c_str());
        before = ",";
    }
    std::printf("%s]}\n", chosen.grains.rows.empty() ? before : "");
    return exits::ok;
}

// Or that is not known now.
bool is_host(const std::string &name) {
    Info info;
    if (!info.ask(wire::QueryType::hosts)) return true;
    return std::any_of(info.hosts.begin(), info.hosts.end(), [&](const auto &row) { return row.name == name; });
}

int list_grains(const Call &call) {
    if (call.arguments.has("failed") && call.arguments.has("state"))
        return call.fail(usage_failure("dcs grain ls: --failed is --state failed: it excludes --state"));
    const std::string state = call.arguments.has("failed") ? "failed" : call.arguments.value("state").value_or("");
    const std::string host = call.arguments.value("host").value_or("");
    const char *when_none = host.empty() ? "last" : "all";
    const auto words = call.arguments.words.empty() ? std::vector<std::string>{when_none} : call.arguments.words;
    const ChosenGrains chosen = choose_grains(words, true, state, host);
    if (chosen.failure) return call.fail(*chosen.failure);
    if (!host.empty() && chosen.grains.rows.empty() && !is_host(host))
        return call.fail(not_found_failure("there is no host " + host, "`dcs host ls` lists the existing ones"));
    if (call.format == Format::json) return print_json(call, chosen);
    if (call.format == Format::name) print_grain_names(chosen);
    else print_table(chosen);
    if (call.format == Format::table && call.arguments.words.empty() && host.empty() && !state.empty())
        std::printf("of your last session only; `dcs grain ls all --state %s` lists those of all\n", state.c_str());
    return exits::ok;
}

// From the event log of their session, which is read once for all of them. None of those of other users.
class Times {
public:
    explicit Times(const ChosenGrains &chosen) {
        std::map<Key, std::set<std::int32_t>> grains;
        for (const wire::GrainRow &row : chosen.grains.rows) grains[{row.user, row.session}].insert(row.grain);
        for (const auto &[key, numbers] : grains) {
            Session session{{.user = key.first, .session = key.second}};
            if (auto history = history_of(session, numbers)) histories_.emplace(key, std::move(*history));
        }
    }
    std::optional<GrainTimes> of(const wire::GrainRow &row) const {
        const auto history = histories_.find({row.user, row.session});
        if (history == histories_.end()) return std::nullopt;
        const auto grain = history->second.grains.find(row.grain);
        if (grain == history->second.grains.end()) return std::nullopt;
        return times_of(grain->second, row.starts, wall_clock_ms());
    }

private:
    using Key = std::pair<std::string, int>;
    std::map<Key, wire::History> histories_;
};

int show_grain(const Call &call) {
    const ChosenGrains chosen = choose_grains(call.arguments.words, false, "");
    if (chosen.failure) return call.fail(*chosen.failure);
    if (call.format == Format::name) {
        print_grain_names(chosen);
        return exits::ok;
    }
    const Times all_times(chosen);
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const wire::GrainRow &row = chosen.grains.rows[i];
        Info info;
        if (const Status s = info.ask(wire::QueryType::grain, row.user, row.session, row.grain); !s)
            return call.fail(call_failure("grain " + chosen.name(i), s));
        if (info.grains.empty()) return call.fail(not_found_failure("there is no grain " + chosen.name(i)));
        const auto times = all_times.of(info.grains[0]);
        if (call.format == Format::json) {
            JsonObject json = json_of(info.grains[0]);
            print_document("dcs.grain.show/1", "grain", json.add_members(json_of(times ? &*times : nullptr)).text());
        } else {
            if (i > 0) std::printf("\n");
            info.grains[0].state = chosen.state(i);
            std::fputs(grain_facts(chosen.name(i), info.grains[0], times ? times_text(*times) : "").c_str(), stdout);
            if (is_failed(row) || row.state == "killed") print_logs(chosen);
            if (!call.arguments.has("env")) continue;
            for (const std::string &variable : info.grains[0].env) std::printf("  %s\n", printable(variable).c_str());
        }
    }
    return exits::ok;
}

// So far, with what its host has not reported yet.
std::optional<Failure> cat_running(const std::string &name, const wire::GrainRow &row, const std::string &stream) {
    LiveOutput output(row.user, row.session, row.grain, stream == "out" ? wire::Stream::out : wire::Stream::err);
    while (true) {
        const auto bytes = output.next();
        if (!bytes) return failure_of("the stream " + stream + " of grain " + name, bytes.status());
        if (bytes->empty()) return std::nullopt;
        if (std::fwrite(bytes->data(), 1, bytes->size(), stdout) != bytes->size())
            return failure_of("", fail_errno(Code::io_error, "standard output", errno));
    }
}

// `output`: of a file that came back, instead of a stream.
std::optional<Failure> cat_one(const std::string &name, const wire::GrainRow &row, const char *stream,
                               const std::optional<std::string> &output) {
    const std::string which = stream;
    if (!output && row.state == "running" && (which == "out" || which == "err")) return cat_running(name, row, which);
    FILE *file = nullptr;
    const char *user = row.user.c_str();
    const int error = output ? d_pool_grain_file(&this_pool(), user, row.session, row.grain, output->c_str(), &file)
                             : d_pool_grain_stream(&this_pool(), user, row.session, row.grain, stream, &file);
    if (error != NO_ERROR)
        return call_failure(
            (output ? "the file " + *output : std::string("the stream ") + stream) + " of grain " + name, error);
    const Copied copied = copy_stream(file, stdout);
    std::fclose(file);
    if (!copied.written) return failure_of("", fail_errno(Code::io_error, "standard output", copied.error));
    if (!copied.read) return failure_of("", fail_errno(Code::io_error, "the stream of grain " + name, copied.error));
    return std::nullopt;
}

int cat(const Call &call) {
    const char *stream = "out";
    int chosen_streams = 0;
    for (const char *option : {"out", "err", "checkpoint", "message", "input"})
        if (call.arguments.has(option)) {
            stream = option;
            ++chosen_streams;
        }
    const auto output = call.arguments.value("file");
    if (chosen_streams + output.has_value() > 1)
        return call.fail(usage_failure("dcs grain cat prints one stream at a time"));
    const ChosenGrains chosen = choose_grains(call.arguments.words, false, "");
    if (chosen.failure) return call.fail(*chosen.failure);
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const wire::GrainRow &row = chosen.grains.rows[i];
        if (const auto failure = cat_one(chosen.name(i), row, stream, output)) return call.fail(*failure);
    }
    return exits::ok;
}

}  // namespace

extern const Verb grain_ls_verb = {
    .noun = "grain",
    .name = "ls",
    .words = "[SEL...]",
    .summary = "list grains of sessions",
    .about = R"(Lists grains: label (for dcs map the input), state, host, end and sizes of outputs. A
finished grain with an exit code or a signal is shown as failed. Of a closed session, which nothing starts any more, a
ready grain is shown as withdrawn if it had run, otherwise as not run.

Examples:
  dcs grain ls                       of your last session
  dcs grain ls 7 --state failed
  dcs grain ls all --state running   of all sessions of all users
  dcs grain ls --host node7 --state running   what runs on that host
  dcs grain ls 7:1-20 -o json | jq '.grains[].cpu_s'
)",
    .options = {{"state", 0, "STATE", one_of("ready|running|finished|killed|failed"),
                 "ready, running, finished, killed, or failed (finished with an exit code or a signal)"},
                {"failed", 0, nullptr, no_value, "as --state failed"},
                {"host", 0, "NAME", any_text, "that run on this host or ended there; without SEL of all sessions"}},
    .notes = R"(SEL is SES or SES:G, SES:1-20, SES:1,5-7, SES:all; SES is NUM, USER/NUM or last (your session that was
opened last). `all` lists the grains of all sessions, USER/all those of one user; other users' grains are shown
without their labels and commands unless you run the pool. -o json reads what each was submitted with; -o name is
quicker for very many.
)",
    .run = list_grains};

extern const Verb grain_show_verb = {
    .noun = "grain",
    .name = "show",
    .words = "SEL...",
    .summary = "show one grain in detail",
    .about = R"(Shows grains in detail: command, host and account, starts, demands, hosts that they avoid, latest
moves, resource usage, checkpoint, latest message, output files. `dcs grain explain` says why a grain does not run.

Examples:
  dcs grain show 7:12
  dcs grain show last:1 --env
  dcs grain show last:1 -o json | jq '.grain.max_rss_kb'
)",
    .options = {{"env", 0, nullptr, no_value, "list its environment too"}},
    .notes =
        R"(SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all, or SES alone if it has one grain; SES is NUM, USER/NUM or last
(your session that was opened last). With -o json one document per grain.
)",
    .run = show_grain};

extern const Verb grain_cat_verb = {
    .noun = "grain",
    .name = "cat",
    .words = "SEL...",
    .summary = "print a grain's output",
    .about = R"(Prints the outputs of grains so far, one after the other. That of a running grain includes the part
since its last checkpoint, which it writes again if it moves.

Examples:
  dcs grain cat 7:12
  dcs grain cat 7:all >everything
  dcs grain cat --err last:1
)",
    .options = {{"out", 0, nullptr, no_value, "standard output (the default)"},
                {"err", 0, nullptr, no_value, "standard error"},
                {"checkpoint", 0, nullptr, no_value, "the newest checkpoint"},
                {"message", 0, nullptr, no_value, "the latest message"},
                {"input", 0, nullptr, no_value, "its input"},
                {"file", 0, "NAME", any_text, "an output file; `dcs grain show` lists them"}},
    .notes =
        R"(SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all, or SES alone if it has one grain; SES is NUM, USER/NUM or last
(your session that was opened last).
)",
    .run = cat,
    .formats = false};

}  // namespace dcs::commands
