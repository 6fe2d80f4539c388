// dcs grain ls, show, cat.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "call.h"
#include "grains.h"
#include "json.h"
#include "launch_words.h"
#include "table.h"
#include "unicode.h"

namespace dcs::commands {
namespace {

std::string text(const char *value) { return value == nullptr ? "" : value; }

std::string end_text(const d_grain_row &row) {
    if (text(row.state) != "finished") return "-";
    if (row.signal != 0) return "signal " + std::to_string(row.signal);
    return std::to_string(row.exit_code);
}

struct Chosen {
    GrainsAnswer grains;                // of all selectors
    std::vector<std::string> sessions;  // name of each row's session
    std::optional<Failure> failure;
};

// What the selectors mean. A selector that names grains of which none exists is an error.
Chosen choose(const std::vector<std::string> &words, bool bare_session, const std::string &state) {
    Chosen chosen;
    for (const std::string &word : words) {
        const auto selector = grain_selector(word, bare_session);
        if (!selector) {
            chosen.failure = usage_failure(selector.status().text);
            return chosen;
        }
        const SessionsAnswer sessions = sessions_of(selector->session);
        if (sessions.failed) {
            chosen.failure = sessions.failure;
            return chosen;
        }
        GrainsAnswer answer = grains_of(sessions.sessions[0], selector->ranges, state);
        if (answer.failed) {
            chosen.failure = answer.failure;
            return chosen;
        }
        if (answer.rows.empty() && !selector->ranges.empty() && state.empty()) {
            chosen.failure = not_found_failure(
                "there is no grain " + word,
                "`dcs grain ls " + sessions.sessions[0].name() + "` lists those that there are");
            chosen.failure->code = "grain_unknown";
            return chosen;
        }
        for (const d_grain_row *row : answer.rows) {
            chosen.grains.rows.push_back(row);
            chosen.sessions.push_back(sessions.sessions[0].name());
        }
        for (auto &info : answer.infos) chosen.grains.infos.push_back(std::move(info));
    }
    return chosen;
}

void print_table(const Chosen &chosen) {
    Table table{">GRAIN", "STATE", "HOST", ">STARTS", ">FAILURES", "END", ">CPU", ">OUT", ">ERR"};
    int ready = 0, running = 0, finished = 0, killed = 0, failed = 0;
    double cpu_s = 0;
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const d_grain_row &row = *chosen.grains.rows[i];
        const std::string state = text(row.state);
        const std::string host = text(row.host);
        table.add({chosen.sessions[i] + ":" + std::to_string(row.grain), state,
                   host.empty() ? "-" : host, std::to_string(row.incarnation),
                   std::to_string(row.failures), end_text(row), seconds_text(row.cpu_s),
                   bytes_text(row.out_length), bytes_text(row.err_length)});
        ready += state == "ready";
        running += state == "running";
        finished += state == "finished";
        killed += state == "killed";
        failed += is_failed(row);
        cpu_s += row.cpu_s;
    }
    if (!chosen.grains.rows.empty()) std::printf("%s\n", table.text().c_str());
    std::printf("%s: %d ready, %d running, %d finished (%d failed), %d killed; %s of CPU\n",
                counted(static_cast<std::int64_t>(chosen.grains.rows.size()), "grain").c_str(),
                ready, running, finished, failed, killed, seconds_text(cpu_s).c_str());
}

void print_names(const Chosen &chosen) {
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i)
        std::printf("%s:%d\n", chosen.sessions[i].c_str(), chosen.grains.rows[i]->grain);
}

int list(const Call &call) {
    const std::string state = call.arguments.value("--state").value_or("");
    if (!is_grain_state(state))
        return call.fail(
            usage_failure("--state " + state + ": ready, running, finished, killed or failed"));
    const auto words =
        call.arguments.words.empty() ? std::vector<std::string>{"last"} : call.arguments.words;
    const Chosen chosen = choose(words, true, state);
    if (chosen.failure) return call.fail(*chosen.failure);
    if (call.format == Format::json) {
        std::vector<std::string> rows;
        chosen.grains.each([&](const d_grain_row &row) { rows.push_back(json_of(row)); });
        print_document("dcs.grain.list/1", "grains", json_array(rows));
    } else if (call.format == Format::name) {
        print_names(chosen);
    } else {
        print_table(chosen);
    }
    return exits::ok;
}

void print_one(const std::string &session, const d_grain_row &row) {
    std::vector<std::string> words;
    for (char **word = row.argv; word != nullptr && *word != nullptr; ++word)
        words.push_back(*word);
    const std::string state = text(row.state), host = text(row.host);
    std::printf("grain        %s:%d\n", session.c_str(), row.grain);
    if (!text(row.label).empty()) std::printf("label        %s\n", printable(row.label).c_str());
    std::printf("command      %s\n", label_of(words, 2000).c_str());
    std::printf("state        %s%s%s\n", state.c_str(), host.empty() ? "" : " on ", host.c_str());
    if (state == "finished")
        std::printf("end          %s%s, result %d of the session\n",
                    row.signal != 0 ? "" : "exit code ", end_text(row).c_str(), row.result_index);
    std::printf("starts       %u, of which %d failed; moved or restarted %d times\n",
                row.incarnation, row.failures, row.restarts);
    std::printf("class        %s\n", class_text(row.host_class).c_str());
    std::printf("cpu          %s\n", seconds_text(row.cpu_s).c_str());
    if (row.checkpoint_length > 0)
        std::printf("checkpoint   %s, %s old\n", bytes_text(row.checkpoint_length).c_str(),
                    seconds_text(row.checkpoint_age_s).c_str());
    if (row.last_contact_s >= 0)
        std::printf("last contact %s ago\n", seconds_text(row.last_contact_s).c_str());
    std::printf("output       %s, %s of errors\n", bytes_text(row.out_length).c_str(),
                bytes_text(row.err_length).c_str());
    if (!text(row.message).empty())
        std::printf("message      %s\n", printable(row.message).c_str());
}

int show(const Call &call) {
    if (call.arguments.words.empty())
        return call.fail(usage_failure("dcs grain show: which grain?",
                                       "dcs grain show SES:G, for example dcs grain show last:1"));
    const Chosen chosen = choose(call.arguments.words, false, "");
    if (chosen.failure) return call.fail(*chosen.failure);
    if (call.format == Format::name) {
        print_names(chosen);
        return exits::ok;
    }
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const d_grain_row &row = *chosen.grains.rows[i];
        Info info;
        const int error = info.ask(D_Q_GRAIN, text(row.user), row.session, row.grain);
        if (error != NO_ERROR)
            return call.fail(call_failure(
                "grain " + chosen.sessions[i] + ":" + std::to_string(row.grain), error));
        if (info->grain_count == 0)
            return call.fail(not_found_failure("there is no grain " + chosen.sessions[i] + ":" +
                                               std::to_string(row.grain)));
        if (call.format == Format::json) {
            print_document("dcs.grain.show/1", "grain", json_of(info->grains[0]));
        } else {
            if (i > 0) std::printf("\n");
            print_one(chosen.sessions[i], info->grains[0]);
        }
    }
    return exits::ok;
}

std::optional<Failure> cat_one(const std::string &name, const d_grain_row &row,
                               const char *stream) {
    FILE *file = nullptr;
    const int error = d_grain_stream(row.user, row.session, row.grain, stream, &file);
    if (error != NO_ERROR)
        return call_failure("the stream " + std::string(stream) + " of grain " + name, error);
    char buffer[65536];
    std::size_t n = 0;
    bool good = true;
    while (good && (n = std::fread(buffer, 1, sizeof buffer, file)) > 0)
        good = std::fwrite(buffer, 1, n, stdout) == n;
    const int why = errno;
    const bool read_well = std::ferror(file) == 0;
    std::fclose(file);
    if (!good) return failure_of("", fail_errno(Code::io_error, "standard output", why));
    if (!read_well)
        return failure_of("", fail_errno(Code::io_error, "the stream of grain " + name, why));
    return std::nullopt;
}

int cat(const Call &call) {
    const char *stream = "out";
    int chosen_streams = 0;
    for (const char *option : {"--out", "--err", "--checkpoint", "--message", "--input"})
        if (call.arguments.has(option)) {
            stream = option + 2;
            ++chosen_streams;
        }
    if (chosen_streams > 1)
        return call.fail(usage_failure("dcs grain cat prints one stream at a time"));
    if (call.arguments.words.empty())
        return call.fail(usage_failure("dcs grain cat: which grain?",
                                       "dcs grain cat SES:G, for example dcs grain cat last:1"));
    const Chosen chosen = choose(call.arguments.words, false, "");
    if (chosen.failure) return call.fail(*chosen.failure);
    for (std::size_t i = 0; i < chosen.grains.rows.size(); ++i) {
        const d_grain_row &row = *chosen.grains.rows[i];
        if (const auto failure =
                cat_one(chosen.sessions[i] + ":" + std::to_string(row.grain), row, stream))
            return call.fail(*failure);
    }
    if (std::fflush(stdout) != 0)
        return call.fail(failure_of("", fail_errno(Code::io_error, "standard output", errno)));
    return exits::ok;
}

}  // namespace

const Verb grain_ls_verb = {"grain",
                            "ls",
                            "list grains of a session",
                            R"(Lists grains, with their states, hosts, ends and sizes of outputs.

Examples:
  dcs grain ls                       of your last session
  dcs grain ls 7 --state failed
  dcs grain ls 7:1-20 -o json | jq '.grains[].cpu_s'

Usage: dcs grain ls [--state STATE] [-o table|json|name] [SEL...]

  --state STATE   ready, running, finished, killed, or failed (finished with an exit code or a signal)

SEL is SES or SES:G, SES:1-20, SES:1,5-7, SES:all; SES is NUM, USER/NUM or last (your session with the
highest number).
)",
                            {{"--state", 0, true}},
                            false,
                            0,
                            list};

const Verb grain_show_verb = {
    "grain",
    "show",
    "show one grain in detail",
    R"(Shows grains in detail: command, host, starts, checkpoint, latest message.

Examples:
  dcs grain show 7:12
  dcs grain show last:1 -o json

Usage: dcs grain show [-o table|json|name] SEL...

SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all; SES is NUM, USER/NUM or last (your session with the highest number).
With -o json one document per grain.
)",
    {},
    false,
    0,
    show};

const Verb grain_cat_verb = {"grain",
                             "cat",
                             "print a grain's output",
                             R"(Prints what grains have written so far, one after the other.

Examples:
  dcs grain cat 7:12
  dcs grain cat 7:all >everything
  dcs grain cat --err last:1

Usage: dcs grain cat [--out|--err|--checkpoint|--message|--input] SEL...

  --out          standard output (the default)
  --err          standard error
  --checkpoint   the newest checkpoint
  --message      the latest message
  --input        the input that it was given

SEL is SES:G, SES:1-20, SES:1,5-7 or SES:all; SES is NUM, USER/NUM or last (your session with the highest number).
)",
                             {{"--out", 0, false},
                              {"--err", 0, false},
                              {"--checkpoint", 0, false},
                              {"--message", 0, false},
                              {"--input", 0, false}},
                             false,
                             0,
                             cat};

}  // namespace dcs::commands
