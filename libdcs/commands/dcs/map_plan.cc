#include "map_plan.h"

#include <algorithm>
#include <cstdlib>

#include "base/bytes.h"
#include "failure.h"
#include "pki/digest.h"

namespace dcs::commands {
namespace {

constexpr std::size_t digest_bytes = 12;  // 96 bits: no two of a user's maps ever meet by chance

void add_words(ByteWriter &writer, const std::vector<std::string> &words) {
    writer.u64(words.size());
    for (const std::string &word : words) {
        writer.u64(word.size());
        writer.raw(word);
    }
}

constexpr std::string_view placeholders[] = {"{}", "{.}", "{/}", "{//}", "{/.}", "{#}"};

std::string_view placeholder_at(const std::string &word, std::size_t at) {
    if (word[at] == '{')
        for (const std::string_view mark : placeholders)
            if (word.compare(at, mark.size(), mark) == 0) return mark;
    return {};
}

std::string last_component(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

// "a.b/c" has none.
std::string without_extension(const std::string &path) {
    const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
    const bool is_one = dot != std::string::npos && (slash == std::string::npos || slash < dot);
    return is_one ? path.substr(0, dot) : path;
}

std::string directory_of(const std::string &path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string meaning_of(std::string_view placeholder, const std::string &input, std::int32_t number) {
    if (placeholder == "{#}") return std::to_string(number);
    if (placeholder == "{.}") return without_extension(input);
    if (placeholder == "{/}") return last_component(input);
    if (placeholder == "{//}") return directory_of(input);
    if (placeholder == "{/.}") return without_extension(last_component(input));
    return input;
}

std::string name_of(std::string_view variable) {
    return std::string(variable.substr(0, variable.find('=')));
}

}  // namespace

Result<std::vector<std::string>> split_inputs(std::string_view text, char separator) {
    std::vector<std::string> inputs;
    while (!text.empty()) {
        const std::size_t end = text.find(separator);
        const std::string_view input = text.substr(0, end);
        if (input.find('\0') != std::string_view::npos)
            return fail(Code::invalid, "line " + std::to_string(inputs.size() + 1) +
                                           " of the input holds a NUL byte, which no argument can");
        inputs.emplace_back(input);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return inputs;
}

std::vector<std::string> words_of(const std::vector<std::string> &command, const std::string &input,
                                  std::int32_t number) {
    std::vector<std::string> words;
    bool replaced = false;
    for (const std::string &word : command) {
        std::string text;
        for (std::size_t at = 0; at < word.size();) {
            const std::string_view mark = placeholder_at(word, at);
            if (mark.empty()) {
                text += word[at++];
                continue;
            }
            text += meaning_of(mark, input, number);
            at += mark.size();
            replaced = true;
        }
        words.push_back(std::move(text));
    }
    if (!replaced) words.push_back(input);
    return words;
}

bool has_placeholder(const std::string &word) {
    for (std::size_t at = 0; at < word.size(); ++at)
        if (!placeholder_at(word, at).empty()) return true;
    return false;
}

std::string ident_of(const MapPlan &plan) {
    ByteWriter writer;
    writer.raw("dcs map 1");
    add_words(writer, plan.command);
    add_words(writer, {plan.directory});
    add_words(writer, plan.inputs);
    const auto digest = pki::sha256(writer.bytes());
    static const char digits[] = "0123456789abcdef";
    std::string ident = "map-";
    for (std::size_t i = 0; i < digest_bytes; ++i) {
        ident += digits[digest[i] >> 4];
        ident += digits[digest[i] & 15];
    }
    return ident;
}

std::string ident_of_run(const std::string &base, const std::string &fingerprint, const std::string &suffix) {
    return base + "." + fingerprint + "-" + suffix;
}

// Sessions of earlier releases have no fingerprint, and a suffix only where --new was said.
bool is_run_of(const std::string &ident, const std::string &base) {
    return ident == base || ident.rfind(base + "-", 0) == 0 || ident.rfind(base + ".", 0) == 0;
}

std::string fingerprint_in(const std::string &ident, const std::string &base) {
    if (ident.rfind(base + ".", 0) != 0) return "";
    const std::size_t at = base.size() + 1, end = ident.find('-', at);
    return end == std::string::npos ? "" : ident.substr(at, end - at);
}

bool is_shell_text(const std::string &word) {
    return word.find_first_of(" \t\n|&;<>$`\"'*?()") != std::string::npos;
}

std::string through_a_shell(const std::string &text) {
    std::string line;
    bool replaced = false;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view mark = placeholder_at(text, at);
        if (mark == "{}") line += "\"$1\"", replaced = true;
        else if (text[at] == '\'') line += "'\\''";
        else line += mark.empty() ? std::string(1, text[at]) : std::string(mark);
        at += mark.empty() ? 1 : mark.size();
    }
    return "sh -c '" + line + "'" + (replaced ? " sh {}" : "");
}

bool only_environment_differs(const std::string &difference,
                              const std::vector<std::string> &environment, std::string &variable) {
    variable.clear();
    std::string_view rest = difference;
    bool environment_differs = false;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        // The field's name stands before the first quoted value.
        const std::string head(line.substr(0, line.find('"')));
        for (const char *other : {"argv:", "argv[", "input:", "host_class:", "thrash:", "urgent:",
                                  "notice:", "attempts:", "directory:", "cores:", "memory_mb:", "wall_s:"})
            if (head.find(other) != std::string::npos) return false;
        const std::size_t item = head.find("env[");
        environment_differs = environment_differs || item != std::string::npos ||
                              head.find("env:") != std::string::npos;
        if (item == std::string::npos || !variable.empty()) continue;
        const std::size_t index = std::strtoul(head.c_str() + item + 4, nullptr, 10);
        if (index < environment.size()) variable = name_of(environment[index]);
        // A variable that was there and is gone now shifts the sorted list: the smaller name is it.
        static constexpr std::string_view whole =
            "]: recorded \"";  // long values are told by excerpts only
        const std::size_t recorded = line.find(whole);
        const std::size_t equals =
            recorded == std::string_view::npos ? recorded : line.find('=', recorded);
        if (equals == std::string_view::npos || recorded != line.find(']')) continue;
        const std::string before(
            line.substr(recorded + whole.size(), equals - recorded - whole.size()));
        if (before.find('"') == std::string::npos && (variable.empty() || before < variable))
            variable = before;
    }
    return environment_differs;
}

int exit_for_failed(std::int64_t failed) {
    return failed > 100 ? exits::map_many : static_cast<int>(failed);
}

}  // namespace dcs::commands
