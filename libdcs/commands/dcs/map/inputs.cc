#include "inputs.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <regex>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "commands/dcs/run/caller_environment.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_input_bytes = 1u << 30;
static_assert(most_input_bytes < INT_MAX, "each input is a byte at least, and each is a grain");

using Inputs = std::vector<std::string>;
// One list of the command line: inputs as they are combined, each of one column or, by :::+, of several.
using Rows = std::vector<Inputs>;

Result<std::string> read_all(int fd, const std::string &name) {
    std::string text;
    struct stat about = {};
    if (::fstat(fd, &about) != 0) return fail_errno(Code::io_error, name, errno);
    const bool too_large = S_ISREG(about.st_mode) && about.st_size > static_cast<off_t>(most_input_bytes);
    if (!too_large && !read_to_end(fd, most_input_bytes, text)) return fail_errno(Code::io_error, name, errno);
    if (!too_large && text.size() <= most_input_bytes) return text;
    return fail(Code::limit, name + " is larger than 1 GiB: give its lines to several runs of dcs map");
}

Result<std::string> input_text(const std::optional<std::string> &path) {
    if (!path || *path == "-") {
        if (::isatty(STDIN_FILENO) == 1)
            std::fputs(
                "dcs map: reading inputs from the terminal, one per line, until Ctrl-D; -a FILE or ::: ARG... "
                "replace them\n",
                stderr);
        return read_all(STDIN_FILENO, "standard input");
    }
    const Fd fd(::open(path->c_str(), O_RDONLY | O_CLOEXEC));
    return fd ? read_all(fd.get(), *path) : fail_errno(Code::not_found, *path, errno);
}

Result<Inputs> inputs_of_file(const Call &call, const std::optional<std::string> &path) {
    const auto text = input_text(path);
    if (!text) return text.status();
    return split_inputs(*text, call.arguments.has("null") ? '\0' : '\n');
}

bool is_marker(const std::string &word) { return word == ":::" || word == ":::+" || word == "::::" || word == "::::+"; }

// In step with the list before; the shorter one ends both.
void link(Rows &rows, const Inputs &inputs) {
    rows.resize(std::min(rows.size(), inputs.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(inputs[i]);
}

// Lists, each with its marker before it.
Result<std::vector<Rows>> lists_of(const Call &call, const std::vector<std::string> &words) {
    std::vector<Rows> lists;
    auto at = words.begin();
    const auto end = words.end();
    while (at != end) {
        const std::string marker = *at++;
        const auto next = std::find_if(at, end, is_marker);
        const bool files = marker.rfind("::::", 0) == 0;
        bool linked = marker.back() == '+';
        if (linked && lists.empty()) return fail(Code::invalid, marker + " comes first: it needs a list before it");
        std::vector<Inputs> found;
        if (!files) found.emplace_back(at, next);
        for (; files && at != next; ++at) {
            auto inputs = inputs_of_file(call, *at);
            if (!inputs) return inputs.status();
            found.push_back(std::move(*inputs));
        }
        at = next;
        for (const Inputs &inputs : found) {
            if (linked) link(lists.back(), inputs);
            else lists.emplace_back();
            if (!linked)
                for (const std::string &input : inputs) lists.back().push_back({input});
        }
    }
    return lists;
}

// Each combination; the last list varies first.
Result<std::vector<Inputs>> combinations(const std::vector<Rows> &lists) {
    std::vector<Inputs> all = {{}};
    for (const Rows &rows : lists) {
        if (rows.size() > 0 && all.size() > most_input_bytes / 16 / rows.size())
            return fail(Code::limit, "the lists have more than 64 million combinations");
        std::vector<Inputs> longer;
        for (const Inputs &row : all)
            for (const Inputs &more : rows) {
                longer.push_back(row);
                longer.back().insert(longer.back().end(), more.begin(), more.end());
            }
        all = std::move(longer);
    }
    return all;
}

std::string trimmed(const std::string &text) {
    const std::size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
    return from == std::string::npos ? "" : text.substr(from, to + 1 - from);
}

Status divide(std::vector<Inputs> &rows, const std::string &separator) {
    std::regex expression;
    try {
        expression.assign(separator);
    } catch (const std::regex_error &error) {
        return fail(Code::invalid, "--colsep " + separator + " is no regular expression: " + error.what());
    }
    for (Inputs &row : rows) {
        Inputs columns;
        for (const std::string &input : row) {
            auto from = input.begin();
            for (std::sregex_iterator at(from, input.end(), expression), end; at != end; from = (*at++)[0].second)
                columns.push_back(trimmed({from, (*at)[0].first}));
            columns.push_back(trimmed({from, input.end()}));
        }
        row = std::move(columns);
    }
    return Status::ok();
}

// Every `count` of them become one input, which has their columns; the last one may have fewer.
std::vector<Inputs> together(const std::vector<Inputs> &rows, std::size_t count) {
    std::vector<Inputs> groups;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % count == 0) groups.emplace_back();
        groups.back().insert(groups.back().end(), rows[i].begin(), rows[i].end());
    }
    return groups;
}

// An input of -n's first grain, from 1, that no word takes, though one takes another; 0: there is none.
std::size_t left_out(const std::vector<std::string> &words, const std::vector<Inputs> &rows, std::size_t count) {
    std::string input;
    const auto mark = [](std::size_t i) { return '\1' + std::to_string(i) + '\1'; };
    const std::size_t most = std::min(count, rows.size());
    for (std::size_t i = 0; i < most; ++i)  // paths, of which {/} and {//} take their part
        for (std::size_t n = rows[i].size(); n > 0; --n) input += "/" + mark(i) + "/" + mark(i) + '\0';
    const std::string taken = joined(words_of(words, input, 1, true, true), " ");
    std::size_t found = 0, missing = 0;
    for (std::size_t i = most; i > 0; --i) (taken.find(mark(i - 1)) != taken.npos ? found : missing) = i;
    return found > 0 ? missing : 0;
}

// The columns of the inputs of one grain are numbered through: {1} and {2} alone are those of its first input.
std::optional<Failure> check_columns(const MapPlan &plan, const std::vector<Inputs> &rows, std::size_t count) {
    std::vector<std::string> words = plan.command;
    for (std::size_t i = 0; i + 1 < plan.settings.size(); i += 2)
        if (plan.settings[i] != "env") words.push_back(plan.settings[i + 1]);
    const std::size_t input = left_out(words, rows, count);
    if (input == 0) return std::nullopt;
    std::size_t last = 0;
    for (std::size_t i = 0; i < input; ++i) last += rows[i].size();
    const std::size_t first = last + 1 - rows[input - 1].size();
    return usage_failure("dcs map: -n " + std::to_string(count) + " gives a grain the columns of " +
                             std::to_string(count) + " inputs, and CMD takes none of input " + std::to_string(input),
                         "a word {} takes all; of input " + std::to_string(input) + " {" + std::to_string(first) +
                             (first < last ? "} to {" + std::to_string(last) : "") + "} are the columns");
}

}  // namespace

Call in_our_words(const Call &call) {
    static constexpr const char *names[][2] = {{"max-procs", "jobs"}, {"retries", "attempts"}, {"timeout", "time"},
                                               {"workdir", "cwd"},    {"wd", "cwd"},           {"bar", "progress"},
                                               {"eta", "progress"}};
    Call ours = call;
    for (auto &[name, value] : ours.arguments.options)
        for (const auto &[theirs, our] : names)
            if (name == theirs) {
                name = our;
                if (value.empty()) value = "bar";
            }
    return ours;
}

std::optional<Failure> make_plan(const Call &call, MapPlan &plan) {
    std::vector<std::pair<std::string, std::string>> settings;
    for (const auto &[name, value] : call.arguments.options) {
        if (is_marker(value)) return usage_failure("dcs map: --" + name + " has no value: " + value + " begins inputs");
        if (name == "env" || name == "file" || name == "input") settings.emplace_back(name, value);
    }
    // In any order, but of several for one name the last one counts.
    const auto key = [](const auto &one) { return one.first + "=" + one.second.substr(0, one.second.find('=')); };
    std::stable_sort(settings.begin(), settings.end(), [&](const auto &a, const auto &b) { return key(a) < key(b); });
    for (const auto &[name, value] : settings) plan.settings.insert(plan.settings.end(), {name, value});
    const std::vector<std::string> &words = call.arguments.words;
    const auto colons = std::find_if(words.begin(), words.end(), is_marker);
    plan.command.assign(words.begin(), colons);
    if (plan.command.empty())
        return usage_failure("dcs map: CMD is missing",
                             "dcs map [-a FILE] -- CMD [WORD...] [::: ARG...]; see dcs map --help");
    const auto directory = start_directory(call);
    if (!directory) return failure_of("", directory.status());
    plan.directory = *directory;
    const auto separator = call.arguments.value("colsep"), count = call.arguments.value("max-args");
    std::vector<Inputs> rows;
    std::vector<std::string> sources(colons, words.end()), files = {"::::"};
    for (const auto &[name, value] : call.arguments.options)
        if (name == "arg-file") files.push_back(value);
    if (!sources.empty() && files.size() > 1)
        return usage_failure("dcs map: inputs come from -a FILE or from :::, not both", ":::: FILE takes a file");
    if (files.size() > 2) sources = files;
    if (!sources.empty()) {
        const auto lists = lists_of(call, sources);
        if (!lists) return failure_of("dcs map", lists.status());
        auto all = combinations(*lists);
        if (!all) return failure_of("dcs map", all.status());
        rows = std::move(*all);
        plan.columns = lists->size() > 1 || (!rows.empty() && rows[0].size() > 1);
    } else {
        auto inputs = inputs_of_file(call, call.arguments.value("arg-file"));
        if (!inputs && inputs.status().code == Code::invalid)
            return usage_failure("dcs map: " + inputs.status().text, "--null takes inputs that end in a NUL byte");
        if (!inputs) return failure_of("dcs map", inputs.status());
        if (!separator && !count) plan.inputs = std::move(*inputs);
        else
            for (std::string &input : *inputs) rows.push_back({std::move(input)});
    }
    if (separator) {
        if (Status s = divide(rows, *separator); !s) return usage_failure("dcs map: " + s.text);
        plan.columns = true;
    }
    if (count) {
        const std::size_t number = std::stoul(*count);
        if (auto failure = plan.columns ? check_columns(plan, rows, number) : std::nullopt) return failure;
        rows = together(rows, number);
        plan.columns = plan.spread = true;
    }
    for (const Inputs &row : rows) {
        std::string input = plan.columns ? "" : row[0];
        for (std::size_t i = 0; plan.columns && i < row.size(); ++i) input += row[i] + '\0';
        plan.inputs.push_back(std::move(input));
    }
    return std::nullopt;
}

}  // namespace dcs::commands
