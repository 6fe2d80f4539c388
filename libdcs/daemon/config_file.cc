#include "daemon/configuration.h"

#include <algorithm>
#include <charconv>

// The one place with it: it takes seconds to compile.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace dcs {
namespace {

// A value of a file, and the kind of thing that it is.
struct Given {
    std::optional<std::string> text;  // nothing: an array, a table, a time
    bool is_string = false, is_number = false, is_flag = false;
    std::string kind;  // "a whole number"
};

std::string text_of(double number) {
    char text[64];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number, std::chars_format::fixed);
    return error == std::errc() ? std::string(text, end) : "";
}

Given given(const toml::node &node) {
    Given g;
    switch (node.type()) {
    case toml::node_type::string: return {node.as_string()->get(), true, false, false, "a string"};
    case toml::node_type::integer:
        return {std::to_string(node.as_integer()->get()), false, true, false, "a whole number"};
    case toml::node_type::floating_point:
        return {text_of(node.as_floating_point()->get()), false, true, false, "a number"};
    case toml::node_type::boolean:
        return {node.as_boolean()->get() ? "true" : "false", false, false, true, "true or false"};
    case toml::node_type::array: g.kind = "an array"; break;
    case toml::node_type::table: g.kind = "a table"; break;
    case toml::node_type::time: g.kind = "a time of day"; break;
    default: g.kind = "a date"; break;
    }
    return g;
}

// How the value has to be written.
struct Form {
    bool string = false, number = false, flag = false;
    const char *words = "";
};

Form form_of(const Option &option, const Takes &takes) {
    if (std::holds_alternative<bool *>(option.into)) return {false, false, true, "true or false"};
    switch (takes.kind) {
    case Takes::Kind::whole: return {false, true, false, "a whole number, without quotes"};
    case Takes::Kind::seconds:
        return {true, true, false, "seconds, or a time in quotes such as \"90m\" or \"1:30:00\""};
    case Takes::Kind::megabytes: return {true, true, false, "megabytes, or a size in quotes such as \"512 MiB\""};
    default: return {true, false, false, "a string, in quotes"};
    }
}

// One value of an option, or what is wrong with it.
std::string take_value(const Option &option, const Takes &takes, const toml::node &node, std::string &value) {
    const Given g = given(node);
    const Form form = form_of(option, takes);
    const bool fits = (g.is_string && form.string) || (g.is_number && form.number) || (g.is_flag && form.flag);
    if (!g.text || !fits) return std::string("it must be ") + form.words + ", but this is " + g.kind;
    value = *g.text;
    if (form.flag) return "";
    if (option.list && value.find_first_of("\n") != value.npos) return "it contains a line break";
    const std::string wrong = complaint(takes, value);
    return wrong.empty() ? "" : (g.is_string ? "\"" + value + "\"" : value) + " is not " + wrong;
}

struct Reader {
    const CommandLine &line;
    const OptionTable table = table_of(line);
    const std::string &file;
    std::vector<FileValue> &values;
    std::vector<std::string> &why;

    void error(toml::source_position at, const std::string &what) const {
        why.push_back(file + ":" + std::to_string(at.line) + ": " + what);
    }

    void unknown(toml::source_position at, const std::string &key, bool is_table) const {
        std::vector<std::string> names;
        for (const Option &option : line.options)
            if (option.where != Where::line) names.push_back(option.name);
        const std::string meant = nearest(key, names);
        if (is_table)
            return error(
                at, "unknown table `" + key + "`: the options of " + line.program + " are written without headings");
        error(at, "unknown option `" + key + "`" + (meant.empty() ? "" : "; did you mean `" + meant + "`?"));
    }

    void take(const toml::key &key, const toml::node &node) {
        const std::string name(key.str());
        const auto option =
            std::find_if(line.options.begin(), line.options.end(), [&](const Option &o) { return name == o.name; });
        const toml::source_position at = key.source().begin;
        const auto called_so = [&](const OptionRow &row) { return name == row.name; };
        const bool common = option == line.options.end() && std::any_of(table.begin(), table.end(), called_so);
        if (common || (option != line.options.end() && option->where == Where::line))
            return error(at, name + " is permitted only on the command line");
        if (option == line.options.end()) return unknown(at, name, node.is_table());
        const auto which = static_cast<std::size_t>(option - line.options.begin());
        FileValue value{which, {}, file + ":" + std::to_string(at.line)};
        if (take_values(*option, table[which].takes, name, node, value.values)) values.push_back(std::move(value));
    }

    bool take_values(const Option &option, const Takes &takes, const std::string &name, const toml::node &node,
                     std::vector<std::string> &into) const {
        const bool many = std::holds_alternative<std::vector<std::string> *>(option.into);
        const toml::array *array = many || option.list ? node.as_array() : nullptr;
        std::string value, all;
        const auto one = [&](const toml::node &item) {
            std::string wrong = take_value(option, takes, item, value);
            if (array != nullptr && option.list && wrong.empty() && (value.empty() || value.find(',') != value.npos))
                wrong = "\"" + value + "\" is empty or contains a comma";
            if (!wrong.empty()) error(item.source().begin, name + ": " + wrong);
            return wrong.empty();
        };
        if (array == nullptr) {
            if (!one(node)) return false;
            into = {value};
            return true;
        }
        for (const toml::node &item : *array) {
            if (!one(item)) return false;
            into.push_back(value);
            all += (all.empty() ? "" : ",") + value;
        }
        if (option.list) into = {all};
        return true;
    }
};

}  // namespace

std::vector<FileValue> parse_config(const CommandLine &line, const std::vector<ConfigText> &texts,
                                    std::vector<std::string> &why) {
    std::vector<FileValue> values;
    for (const ConfigText &text : texts) {
        const toml::parse_result parsed = toml::parse(text.text, text.file);
        Reader reader{.line = line, .file = text.file, .values = values, .why = why};
        if (!parsed) {
            const toml::parse_error &error = parsed.error();
            reader.error(error.source().begin, std::string(error.description()));
            continue;
        }
        for (auto &&[key, node] : parsed.table()) reader.take(key, node);
    }
    return values;
}

}  // namespace dcs
