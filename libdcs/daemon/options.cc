#include "daemon/options.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/clean_start.h"
#include "base/option_table.h"
#include "daemon/escape.h"

namespace dcs {
namespace {

ParsedOptions usage_error(const CommandLine &line, const std::string &why) {
    const std::string program = line.program;
    return {false, 2, "", program + ": " + escape_text(why) + "\nTry '" + program + " --help'.\n"};
}

// --help and --version stand behind the program's own.
OptionTable table_of(const CommandLine &line) {
    OptionTable table;
    for (const Option &option : line.options) {
        OptionRow row{option.name, 0, option.value, {}, option.help, "", option.required ? Given::always : Given::once};
        if (std::holds_alternative<bool *>(option.into)) row.value = nullptr;
        if (std::holds_alternative<int *>(option.into)) row.takes = whole_number(0, INT_MAX);
        if (std::holds_alternative<Duration *>(option.into)) row.takes = seconds_from(0);
        if (std::holds_alternative<std::vector<std::string> *>(option.into)) row.given = Given::many;
        table.push_back(row);
    }
    table.push_back({"help", 'h', nullptr, {}, "print this and exit"});
    table.push_back({"version", 0, nullptr, {}, "print the version and exit"});
    return table;
}

// For docs/man/make_pages.py.
std::string for_programs(const CommandLine &line, const OptionTable &table) {
    return line_for_programs("command", line.program) + line_for_programs("about", line.purpose) +
           line_for_programs("usage", usage_line(line.program, table, "")) + table_for_programs(table);
}

void store(const Option &option, const std::string &value) {
    if (auto flag = std::get_if<bool *>(&option.into)) **flag = true;
    if (auto field = std::get_if<std::string *>(&option.into)) **field = value;
    if (auto list = std::get_if<std::vector<std::string> *>(&option.into)) (*list)->push_back(value);
    if (auto number = std::get_if<int *>(&option.into)) **number = static_cast<int>(*number_of(value, 0, INT_MAX));
    if (auto time = std::get_if<Duration *>(&option.into)) **time = seconds_of(*seconds_of_text(value));
}

}  // namespace

ParsedOptions parse_options(const CommandLine &line, const std::vector<std::string> &arguments) {
    const OptionTable table = table_of(line);
    const std::string program = line.program;
    if (arguments.size() == 1 && arguments[0] == "__tables") return {false, 0, for_programs(line, table), ""};
    std::vector<bool> given(table.size(), false);
    OptionReader reader{arguments, table};
    for (std::string value;;) {
        const auto row = reader.next(value);
        if (!row) return usage_error(line, row.status().text);
        if (*row == nullptr && !reader.only_words && reader.at == arguments.size()) break;
        if (*row == nullptr)
            return usage_error(line, "unexpected argument " + (reader.only_words ? "--" : arguments[reader.at]));
        const auto which = static_cast<std::size_t>(*row - table.data());
        given[which] = true;
        if (which < line.options.size()) store(line.options[which], value);
        else if (which == line.options.size())
            return {false, 0, line.purpose + ("\n\n" + usage_line(program, table, "")) + "\n" + option_list(table), ""};
        else return {false, 0, program + " (DCS) " DCS_VERSION "\n", ""};
    }
    for (std::size_t i = 0; i < table.size(); ++i)
        if (table[i].given == Given::always && !given[i])
            return usage_error(line, shown(table[i]) + " " + table[i].value + " is required");
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
