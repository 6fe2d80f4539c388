#include "job_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "base/text.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/run/demand_options.h"
#include "commands/dcs/run/file_options.h"
#include "commands/dcs/run/placeholders.h"
#include "commands/dcs/run/caller_environment.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace dcs::commands {
namespace {

constexpr std::size_t most_file_bytes = 64u << 20, most_key_parts = 1000;
const std::vector<std::string> own_keys = {"name", "command", "after", "input", "input-file", "array", "each-line"};

struct AfterWord {
    std::size_t grain = 0;
    std::string name;
    toml::source_position at;
};

std::string text_of_number(const toml::node &node) {
    if (const auto *whole = node.as_integer()) return std::to_string(whole->get());
    char text[64];
    const auto [end, error] =
        std::to_chars(text, text + sizeof text, node.as_floating_point()->get(), std::chars_format::fixed);
    return error == std::errc() ? std::string(text, end) : "";
}

class JobReader {
public:
    JobReader(const std::string &name, std::vector<std::string> &errors) : name_(name), errors_(errors) {}
    JobFile read(const toml::table &table, const std::optional<std::vector<std::string>> &command_items);

private:
    std::string place(toml::source_position at) const {
        return name_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
    }
    void wrong(toml::source_position at, const std::string &what) { errors_.push_back(place(at) + ": " + what); }
    void unknown(const toml::key &key, std::vector<std::string> known);
    bool is_string(const std::string &key, const toml::node &node, std::string &into);
    bool strings(const std::string &key, const toml::node &node, std::vector<std::string> &into);
    void option(const OptionRow &row, const toml::node &node, Arguments &into);
    bool one_option(const OptionRow &row, const toml::node &node, Arguments &into);
    void environment(const OptionRow &row, const toml::table &table, Arguments &into);
    void options(const toml::table &table, const OptionTable &known, const std::vector<std::string> &others,
                 Arguments &into);
    void grain(const toml::table &table, const Arguments &defaults);
    void items(const toml::table &table, JobGrain &grain);
    void input(const toml::table &table, JobGrain &grain);
    void resolve_after();
    void find_circles();
    void number_grains();

    const std::string &name_;
    std::vector<std::string> &errors_;
    JobFile file_;
    std::vector<AfterWord> after_;
    std::map<std::string, std::size_t> by_name_;
    std::vector<toml::source_position> places_;
    bool many_ = false;  // the command line has the items
};

void JobReader::unknown(const toml::key &key, std::vector<std::string> known) {
    const std::string name(key.str()), meant = nearest(name, known);
    wrong(key.source().begin, "unknown key `" + name + "`" + (meant.empty() ? "" : "; did you mean `" + meant + "`?"));
}

bool JobReader::is_string(const std::string &key, const toml::node &node, std::string &into) {
    const auto *text = node.as_string();
    if (text == nullptr) wrong(node.source().begin, key + " must be a string, in quotes");
    else into = text->get();
    if (text != nullptr && into.find('\0') != std::string::npos)
        wrong(node.source().begin, key + " contains a NUL byte");
    return text != nullptr;
}

// A string, or an array of strings.
bool JobReader::strings(const std::string &key, const toml::node &node, std::vector<std::string> &into) {
    const auto *array = node.as_array();
    if (array == nullptr) return is_string(key, node, into.emplace_back());
    bool good = true;
    for (const toml::node &item : *array) good = is_string(key, item, into.emplace_back()) && good;
    return good;
}

bool JobReader::one_option(const OptionRow &row, const toml::node &node, Arguments &into) {
    const std::string key = row.name;
    if (row.value == nullptr) {
        const auto *flag = node.as_boolean();
        if (flag == nullptr) wrong(node.source().begin, key + " must be true or false");
        else if (flag->get()) into.options.emplace_back(key, "");
        return flag != nullptr;
    }
    const bool number = node.is_integer() || node.is_floating_point();
    const bool takes_number = row.takes.kind != Takes::Kind::text && row.takes.kind != Takes::Kind::word;
    std::string value = number && takes_number ? text_of_number(node) : "";
    if (value.empty() && !is_string(key, node, value)) return false;
    if (const std::string why = complaint(row.takes, value); !why.empty()) {
        wrong(node.source().begin, key + " is " + (number ? value : "\"" + value + "\"") + ": it must be " + why);
        return false;
    }
    into.options.emplace_back(key, value);
    return true;
}

void JobReader::environment(const OptionRow &row, const toml::table &table, Arguments &into) {
    for (const auto &[name, node] : table) {
        const bool number = node.is_integer() || node.is_floating_point();
        std::string value = number ? text_of_number(node) : "";
        if (number || is_string(std::string(name.str()), node, value))
            into.options.emplace_back(row.name, std::string(name.str()) + "=" + value);
    }
}

void JobReader::option(const OptionRow &row, const toml::node &node, Arguments &into) {
    const auto *array = row.given == Given::many ? node.as_array() : nullptr;
    const bool named = row.name == std::string_view("env") || row.takes.kind == Takes::Kind::resources;
    if (named && node.is_table()) return environment(row, *node.as_table(), into);
    if (array == nullptr) return void(one_option(row, node, into));
    for (const toml::node &item : *array) (void)one_option(row, item, into);
}

void JobReader::options(const toml::table &table, const OptionTable &known, const std::vector<std::string> &others,
                        Arguments &into) {
    std::vector<std::string> names = others;
    for (const OptionRow &row : known) names.emplace_back(row.name);
    for (const auto &[key, node] : table) {
        const auto row =
            std::find_if(known.begin(), known.end(), [&, &k = key](const auto &r) { return k.str() == r.name; });
        if (row != known.end()) option(*row, node, into);
        else if (std::find(others.begin(), others.end(), key.str()) == others.end()) unknown(key, names);
    }
}

void JobReader::items(const toml::table &table, JobGrain &grain) {
    const auto *array = table.get("array"), *lines = table.get("each-line");
    if (array != nullptr && lines != nullptr)
        return wrong(lines->source().begin, "array and each-line exclude each other");
    std::string text, why;
    if (array != nullptr && is_string("array", *array, text)) {
        auto numbers = items_of_array(text);
        if (!numbers) return wrong(array->source().begin, "array: " + numbers.status().text);
        grain.items = std::move(*numbers);
    }
    if (lines != nullptr && is_string("each-line", *lines, text)) {
        grain.items = lines_of_file(text, why);
        if (!why.empty()) return wrong(lines->source().begin, "each-line: " + why);
    }
    grain.many = array != nullptr || lines != nullptr;
}

void JobReader::input(const toml::table &table, JobGrain &grain) {
    const auto *text = table.get("input"), *file = table.get("input-file");
    if (text != nullptr && file != nullptr)
        return wrong(file->source().begin, "input and input-file exclude each other");
    if (text != nullptr) {
        if (!text->is_string()) return wrong(text->source().begin, "input must be a string, in quotes");
        grain.input = text->as_string()->get();
    }
    std::string path;
    if (file == nullptr || !is_string("input-file", *file, path)) return;
    if ((grain.many || many_) && has_placeholder(path)) return void(grain.input_path = path);
    auto content = read_document(path, most_file_bytes);
    if (!content) return wrong(file->source().begin, "input-file: " + content.status().text);
    grain.input = std::move(*content);
}

void JobReader::grain(const toml::table &table, const Arguments &defaults) {
    JobGrain grain{.place = place(table.source().begin), .options = defaults};
    options(table, grain_options(), own_keys, grain.options);
    const toml::source_position at = table.source().begin;
    const auto *name = table.get("name"), *command = table.get("command"), *after = table.get("after");
    grain.name = "grain" + std::to_string(file_.grains.size() + 1);
    if (name != nullptr && is_string("name", *name, grain.name) && !is_name(grain.name))
        wrong(name->source().begin,
              "name must be of letters, digits, '.', '_' and '-', and begin with none of '.' and '-'");
    if (!by_name_.emplace(grain.name, file_.grains.size()).second)
        wrong(name != nullptr ? name->source().begin : at, "another grain has the name " + grain.name);
    if (command == nullptr) wrong(at, "command is missing");
    else if (!command->is_array())
        wrong(command->source().begin, "command must be an array of words: [\"prog\", \"arg\"]");
    else if (strings("command", *command, grain.command) && (grain.command.empty() || grain.command[0].empty()))
        wrong(command->source().begin, "command is empty");
    std::vector<std::string> names;
    if (after != nullptr && strings("after", *after, names))
        for (const std::string &one : names) after_.push_back({file_.grains.size(), one, after->source().begin});
    items(table, grain);
    input(table, grain);
    places_.push_back(at);
    file_.grains.push_back(std::move(grain));
}

void JobReader::resolve_after() {
    std::vector<std::string> names;
    for (const auto &[name, grain] : by_name_) names.push_back(name);
    for (const AfterWord &word : after_) {
        const auto found = by_name_.find(word.name);
        const std::string meant = found == by_name_.end() ? nearest(word.name, names) : "";
        if (found == by_name_.end())
            wrong(word.at,
                  "after: there is no grain " + word.name + (meant.empty() ? "" : "; did you mean " + meant + "?"));
        else file_.grains[word.grain].after.push_back(found->second);
    }
}

// What can never start because it comes after itself.
void JobReader::find_circles() {
    std::vector<bool> can(file_.grains.size());
    for (bool more = true; std::exchange(more, false);)
        for (std::size_t i = 0; i < can.size(); ++i) {
            const auto &after = file_.grains[i].after;
            if (can[i] || !std::all_of(after.begin(), after.end(), [&](std::size_t j) { return can[j]; })) continue;
            can[i] = more = true;
        }
    std::string names;
    for (std::size_t i = 0; i < can.size(); ++i)
        if (!can[i]) names += (names.empty() ? "" : ", ") + file_.grains[i].name;
    if (const auto first = std::find(can.begin(), can.end(), false); first != can.end())
        wrong(places_[static_cast<std::size_t>(first - can.begin())],
              "these grains wait for each other by after: " + names);
}

void JobReader::number_grains() {
    std::int64_t next = 1;
    for (JobGrain &grain : file_.grains) {
        grain.first = static_cast<std::int32_t>(next);
        next += grain.count();
        if (next - 1 > most_job_grains) return errors_.push_back(name_ + ": more than a million grains");
    }
    file_.count = static_cast<std::int32_t>(next - 1);
}

JobFile JobReader::read(const toml::table &table, const std::optional<std::vector<std::string>> &command_items) {
    many_ = command_items.has_value();
    static const OptionTable of_session = with_start({});
    OptionTable session;
    for (const OptionRow &row : of_session)
        if (row.name == std::string_view("label") || row.name == std::string_view("nice")) session.push_back(row);
    options(table, session, {"grain", "defaults"}, file_.session);
    Arguments defaults;
    if (const auto *node = table.get("defaults")) {
        if (node->is_table()) options(*node->as_table(), grain_options(), {}, defaults);
        else wrong(node->source().begin, "defaults must be a table: [defaults]");
    }
    const auto *grains = table.get("grain");
    const auto *list = grains != nullptr ? grains->as_array() : nullptr;
    if (list == nullptr || list->empty()) {
        errors_.push_back(name_ + ": there is no table [[grain]]");
        return std::move(file_);
    }
    for (const toml::node &node : *list)
        if (node.is_table()) grain(*node.as_table(), defaults);
        else wrong(node.source().begin, "grain must be a table: [[grain]]");
    if (command_items && (file_.grains.size() != 1 || file_.grains[0].many))
        errors_.push_back(name_ + ": --array and --each-line are for a file with one table [[grain]] that has neither");
    if (command_items && errors_.empty()) {
        file_.grains[0].items = *command_items;
        file_.grains[0].many = true;
    }
    resolve_after();
    if (errors_.empty()) find_circles();
    number_grains();
    return std::move(file_);
}

}  // namespace

namespace {

// Line of a key like a.b.c with too many parts, or 0. Each part is a table in a table; their ends nest on the stack.
std::size_t line_of_deep_key(std::string_view text) {
    std::size_t line = 1, parts = 0;
    bool gap = false;
    char last = '\n';
    for (const char c : text) {
        line += c == '\n';
        if (c == ' ' || c == '\t') {
            gap = true;
            continue;
        }
        const bool of_key =
            std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '"' || c == '\'';
        if (c == '.') ++parts;
        else if (!of_key || (gap && last != '.')) parts = 0;
        if (parts > most_key_parts) return line;
        gap = false;
        last = c;
    }
    return 0;
}

}  // namespace

const OptionTable &grain_options() {
    static const OptionTable table = [] {
        OptionTable all = with_demands({{"file", 0, "[NAME=]PATH", any_text, "", "", Given::many},
                                        {"output", 0, "NAME[=PATH]", any_text, "", "", Given::many},
                                        image_option()});
        for (const OptionRow &row : with_start({}))
            if (row.name == std::string_view("cwd") || row.name == std::string_view("env")) all.push_back(row);
        return all;
    }();
    return table;
}

namespace {

struct Range {
    std::int64_t first = 0, last = 0, step = 1;
    std::int64_t count() const { return (last - first) / step + 1; }
};

// N, N-M or N-M:STEP.
Result<Range> range_of(std::string_view text) {
    const auto wrong = [&](const std::string &why) { return fail(Code::invalid, std::string(text) + why); };
    if (text.find('%') != text.npos)
        return wrong(": there is no limit (%) of grains that run at a time: the pool's slots limit them");
    const std::size_t colon = std::min(text.find(':'), text.size()), dash = std::min(text.find('-'), colon);
    const auto number = [&](std::string_view word) { return number_of(word, 0, INT32_MAX); };
    const auto first = number(text.substr(0, dash));
    const auto last = dash == colon ? first : number(text.substr(dash + 1, colon - dash - 1));
    const auto step = colon == text.size() ? std::optional<std::int64_t>(1) : number(text.substr(colon + 1));
    if (!first || !last || !step || *step == 0)
        return wrong(": it must be N, N-M or N-M:STEP, with numbers from 0 to 2147483647");
    if (*last < *first) return wrong(": the last number is less than the first");
    return Range{*first, *last, *step};
}

}  // namespace

Result<std::vector<std::string>> items_of_array(std::string_view text) {
    if (text.empty() || text.back() == ',')
        return fail(Code::invalid, "it must be ranges of numbers, such as 1-1000 or 1-5,9");
    std::vector<std::string> items;
    for (const std::string_view word : dcs::words_of(text, ",")) {
        const auto range = range_of(word);
        if (!range) return range.status();
        if (range->count() + static_cast<std::int64_t>(items.size()) > most_job_grains)
            return fail(Code::limit, std::string(text) + ": more than a million numbers");
        for (std::int64_t i = range->first; i <= range->last; i += range->step) items.push_back(std::to_string(i));
    }
    return items;
}

std::vector<std::string> lines_of_file(const std::string &path, std::string &wrong) {
    std::vector<std::string> lines;
    if (const auto text = read_document(path, most_file_bytes); !text) wrong = text.status().text;
    else if (text->find('\0') != std::string::npos) wrong = path + " contains a NUL byte, which no argument can";
    else
        for (std::string_view rest = *text; !rest.empty();) lines.emplace_back(take_line(rest));
    return lines;
}

JobFile parse_job_file(std::string_view text, const std::string &name,
                       const std::optional<std::vector<std::string>> &command_items, std::vector<std::string> &errors) {
    if (const std::size_t line = line_of_deep_key(text); line > 0) {
        errors.push_back(name + ":" + std::to_string(line) + ": a key has more than " + std::to_string(most_key_parts) +
                         " parts");
        return {};
    }
    const toml::parse_result parsed = toml::parse(text);
    if (parsed) return JobReader(name, errors).read(parsed.table(), command_items);
    const toml::source_position at = parsed.error().source().begin;
    errors.push_back(name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
                     std::string(parsed.error().description()));
    return {};
}

}  // namespace dcs::commands
