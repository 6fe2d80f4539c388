#include "daemon/options.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/clean_start.h"
#include "daemon/escape.h"

namespace dcs {
namespace {

constexpr double most_seconds = 1e9;

ParsedOptions usage_error(const CommandLine &line, const std::string &why) {
    ParsedOptions result;
    result.exit_code = 2;
    result.error = std::string(line.program) + ": " + why + "\nTry '" + line.program + " --help'.\n";
    return result;
}

std::string help_text(const CommandLine &line) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Option &option : line.options) {
        std::string left = std::string("--") + option.name;
        if (!std::holds_alternative<bool *>(option.into)) left += std::string(" ") + option.value;
        rows.emplace_back(left, option.help + std::string(option.required ? " (required)" : ""));
    }
    rows.emplace_back("--help", "print this and exit");
    rows.emplace_back("--version", "print the version and exit");
    std::size_t width = 0;
    for (const auto &row : rows) width = std::max(width, row.first.size());
    std::string text = std::string("usage: ") + line.program + " [options]\n" + line.purpose + "\n\n";
    for (const auto &row : rows)
        text += "  " + row.first + std::string(width - row.first.size() + 2, ' ') + row.second + "\n";
    return text;
}

bool parse_int(const std::string &text, int *out) {
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return false;
    errno = 0;
    long value = std::strtol(text.c_str(), nullptr, 10);
    if (errno != 0 || value > INT_MAX) return false;
    *out = static_cast<int>(value);
    return true;
}

bool parse_seconds(const std::string &text, Duration *out) {
    // Digits and one point only: strtod would also take "inf", "0x1p3" and signs.
    if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos) return false;
    char *end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (*end != '\0' || end == text.c_str() || !(value <= most_seconds)) return false;
    *out = seconds_of(value);
    return true;
}

// Empty when the value went into its field, else what is wrong with it.
std::string store(const Option &option, const std::string &value) {
    if (auto field = std::get_if<std::string *>(&option.into)) **field = value;
    else if (auto list = std::get_if<std::vector<std::string> *>(&option.into)) (*list)->push_back(value);
    else if (auto number = std::get_if<int *>(&option.into)) {
        if (!parse_int(value, *number)) return "a whole number, 0 or more";
    } else if (auto time = std::get_if<Duration *>(&option.into)) {
        if (!parse_seconds(value, *time)) return "a number of seconds";
    }
    return "";
}

}  // namespace

ParsedOptions parse_options(const CommandLine &line, const std::vector<std::string> &arguments) {
    std::vector<bool> given(line.options.size(), false);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string &argument = arguments[i];
        if (argument == "--help" || argument == "-h") return {false, 0, help_text(line), ""};
        if (argument == "--version")
            return {false, 0, std::string(line.program) + " (DCS) " DCS_VERSION "\n", ""};
        const std::string shown = "'" + escape_text(argument) + "'";
        if (argument.rfind("--", 0) != 0 || argument.size() == 2)
            return usage_error(line, "unexpected argument " + shown);
        const std::size_t equals = argument.find('=');
        const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
        auto option = std::find_if(line.options.begin(), line.options.end(),
                                   [&](const Option &o) { return name == o.name; });
        if (option == line.options.end()) return usage_error(line, "unknown option " + shown);
        given[static_cast<std::size_t>(option - line.options.begin())] = true;
        if (auto flag = std::get_if<bool *>(&option->into)) {
            if (equals != std::string::npos) return usage_error(line, "--" + name + " takes no value");
            **flag = true;
            continue;
        }
        if (equals == std::string::npos && i + 1 == arguments.size())
            return usage_error(line, "--" + name + " needs a value: " + option->value);
        const std::string value = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
        const std::string wrong = store(*option, value);
        if (!wrong.empty())
            return usage_error(line, "--" + name + " needs " + wrong + ", not '" + escape_text(value) + "'");
    }
    for (std::size_t i = 0; i < given.size(); ++i)
        if (line.options[i].required && !given[i])
            return usage_error(line, std::string("--") + line.options[i].name + " " +
                                         line.options[i].value + " is required");
    return {true, 0, "", ""};
}

void take_options(const CommandLine &line, int argc, char **argv) {
    clean_start();
    ParsedOptions parsed = parse_options(line, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.error.c_str(), stderr);
    if (parsed.proceed) return;
    // A help text that did not get out is a failure, too.
    std::exit(std::fflush(stdout) == 0 ? parsed.exit_code : 1);
}

}  // namespace dcs
