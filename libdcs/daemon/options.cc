#include "daemon/options.h"

#include <climits>
#include <cmath>

#include "base/text.h"
#include "base/version.h"
#include "daemon/log.h"

namespace dcs {
namespace {

Takes takes_of(const Option &option) {
    if (option.takes) return *option.takes;
    if (std::holds_alternative<int *>(option.into)) return whole_number(0, INT_MAX);
    if (std::holds_alternative<Duration *>(option.into)) return seconds_from(0);
    return {};
}

// For docs/man/make_pages.py.
std::string for_programs(const CommandLine &line, const OptionTable &table) {
    return line_for_programs("command", line.program) + line_for_programs("about", line.purpose) +
           line_for_programs("usage", usage_line(line.program, table, "")) + table_for_programs(table);
}

int whole_of(const Takes &takes, const std::string &value) {
    if (takes.kind == Takes::Kind::megabytes) return static_cast<int>(*megabytes_of_text(value));
    if (takes.kind == Takes::Kind::seconds) return static_cast<int>(std::ceil(*seconds_of_text(value)));
    return static_cast<int>(*number_of(value, INT_MIN, INT_MAX));
}

void store(const Option &option, const std::string &value) {
    if (auto flag = std::get_if<bool *>(&option.into)) **flag = value != "false";
    if (auto field = std::get_if<std::string *>(&option.into)) **field = value;
    if (auto list = std::get_if<std::vector<std::string> *>(&option.into)) (*list)->push_back(value);
    if (auto number = std::get_if<int *>(&option.into)) **number = whole_of(takes_of(option), value);
    if (auto time = std::get_if<Duration *>(&option.into)) **time = seconds_of(*seconds_of_text(value));
}

// The field as a text, however it was set.
std::string value_of(const Option &option) {
    if (auto flag = std::get_if<bool *>(&option.into)) return **flag ? "true" : "false";
    if (auto field = std::get_if<std::string *>(&option.into)) return **field;
    if (auto list = std::get_if<std::vector<std::string> *>(&option.into)) return joined(**list, ",");
    if (auto number = std::get_if<int *>(&option.into)) return std::to_string(**number);
    return formatted("%.10g", (*std::get<Duration *>(option.into)).seconds());
}

void take(const CommandLine &line, std::vector<Setting> &settings, std::size_t which,
          const std::vector<std::string> &values, const std::string &origin) {
    const Option &option = line.options[which];
    auto list = std::get_if<std::vector<std::string> *>(&option.into);
    // What an earlier file said, or the file before the command line, is replaced, not added to.
    if (list != nullptr && settings[which].origin != origin) (*list)->clear();
    for (const std::string &value : values) store(option, value);
    settings[which].origin = origin;
}

}  // namespace

std::string with_places(const CommandLine &line, const std::vector<Setting> &settings, std::string text) {
    std::string places;
    for (std::size_t i = 0; i < settings.size(); ++i) {
        const bool of_file = settings[i].origin != by_default && settings[i].origin != by_line;
        const std::string name = std::string("--") + line.options[i].name;
        const std::size_t at = text.find(name);
        if (!of_file || at == text.npos ||
            text.find_first_of("abcdefghijklmnopqrstuvwxyz-", at + name.size()) == at + name.size())
            continue;
        places += (places.empty() ? "" : ", ") + settings[i].origin;
    }
    return places.empty() ? text : places + ": " + text;
}

ParsedOptions usage_error(const CommandLine &line, const std::vector<std::string> &why) {
    const std::string program = line.program;
    ParsedOptions parsed{false, 2, "", "", joined(why, "; ")};
    for (const std::string &text : why) parsed.error += program + ": " + escape_text(text) + "\n";
    parsed.error += "Try '" + program + " --help'.\n";
    return parsed;
}

// Behind the program's own stand those that every daemon has.
OptionTable table_of(const CommandLine &line) {
    OptionTable table;
    for (const Option &option : line.options) {
        OptionRow row{option.name,
                      0,
                      option.value,
                      takes_of(option),
                      option.help,
                      "",
                      option.required ? Given::always : Given::once};
        if (std::holds_alternative<bool *>(option.into)) row.value = nullptr;
        if (std::holds_alternative<std::vector<std::string> *>(option.into)) row.given = Given::many;
        table.push_back(row);
    }
    table.push_back(
        {"config", 0, "FILE", some_text,
         "configuration file, with FILE.d/*.toml after it; usual: that of /etc/dcs, if there is one; none: no "
         "file (default: none with --dir, else usual)"});
    table.push_back({"check-config", 0, nullptr, no_value,
                     "read and check the configuration, print the origin of each setting, and exit"});
    table.push_back({"help", 'h', nullptr, no_value, "print this and exit"});
    table.push_back({"version", 0, nullptr, no_value, "print the version and exit"});
    return table;
}

ConfigWords config_words(const CommandLine &line, const std::vector<std::string> &arguments) {
    const OptionTable table = table_of(line);
    OptionReader reader{arguments, table};
    ConfigWords words;
    bool directory = false;
    for (std::string value;;) {
        const auto row = reader.next(value);
        if (!row || *row == nullptr) break;
        const std::string_view name = (*row)->name;
        directory = directory || name == "dir";
        if (name == "config") words.file = value;
        words.check = words.check || name == "check-config";
        words.asks = words.asks || name == "help" || name == "version";
    }
    if (words.file == usual_config) words.file.reset();
    else if (!words.file && directory) words.file = no_config;
    return words;
}

ParsedOptions parse_options(const CommandLine &line, const std::vector<std::string> &arguments,
                            const std::vector<FileValue> &from_files, bool may_lack) {
    const OptionTable table = table_of(line);
    const std::string program = line.program;
    if (arguments.size() == 1 && arguments[0] == "__tables") return {false, 0, for_programs(line, table), ""};
    std::vector<Setting> settings;
    for (const Option &option : line.options) settings.push_back({option.name, "", by_default});
    for (const FileValue &value : from_files) take(line, settings, value.option, value.values, value.origin);
    OptionReader reader{arguments, table};
    for (std::string value;;) {
        const auto row = reader.next(value);
        if (!row) return usage_error(line, {row.status().text});
        if (*row == nullptr && !reader.only_words && reader.at == arguments.size()) break;
        if (*row == nullptr)
            return usage_error(line, {"unexpected argument " + (reader.only_words ? "--" : arguments[reader.at])});
        const auto which = static_cast<std::size_t>(*row - table.data());
        const std::string_view name = (*row)->name;
        if (which < line.options.size()) take(line, settings, which, {value}, by_line);
        else if (name == "help")
            return {false, 0, line.purpose + ("\n\n" + usage_line(program, table, "")) + "\n" + option_list(table), ""};
        else if (name == "version") return {false, 0, program + " (DCS) " DCS_VERSION "\n", ""};
    }
    ParsedOptions parsed{true, 0, "", ""};
    for (std::size_t i = 0; i < line.options.size(); ++i) {
        settings[i].value = value_of(line.options[i]);
        if (!line.options[i].required || settings[i].origin != by_default) continue;
        if (!may_lack) return usage_error(line, {shown(table[i]) + " " + table[i].value + " is required"});
        parsed.complete = false;
    }
    if (parsed.complete && line.check)
        if (const Status s = line.check(); !s) return usage_error(line, {with_places(line, settings, s.text)});
    parsed.settings = std::move(settings);
    return parsed;
}

}  // namespace dcs
