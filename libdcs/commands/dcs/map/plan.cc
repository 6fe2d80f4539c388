#include "plan.h"

#include <algorithm>
#include <cstdlib>

#include "base/bytes.h"
#include "base/text.h"
#include "commands/dcs/frame/failure.h"
#include "pki/digest.h"
#include "wire/demands.h"

namespace dcs::commands {
namespace {

constexpr std::size_t digest_bytes = 12;  // 96 bits: no two of a user's maps ever meet by chance

void add_words(ByteWriter &writer, const std::vector<std::string> &words, std::size_t most = SIZE_MAX) {
    const std::size_t count = std::min(words.size(), most);
    writer.u64(count);
    for (std::size_t i = 0; i < count; ++i) {
        writer.u64(words[i].size());
        writer.raw(words[i]);
    }
}

std::string name_of(std::string_view variable) { return std::string(variable.substr(0, variable.find('='))); }

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

std::string ident_of(const MapPlan &plan, std::size_t inputs) {
    ByteWriter writer;
    writer.raw("dcs map 1");
    add_words(writer, plan.command);
    add_words(writer, {plan.directory});
    if (plan.spread) writer.raw("spread");
    if (!plan.settings.empty()) add_words(writer, plan.settings);
    add_words(writer, plan.inputs, inputs);
    return "map-" + hex_of(pki::sha256_text(writer.bytes()).substr(0, digest_bytes));
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

bool only_environment_differs(const std::string &difference, const std::vector<std::string> &environment,
                              std::string &variable) {
    variable.clear();
    std::string_view rest = difference;
    bool environment_differs = false;
    while (!rest.empty()) {
        const std::string_view line = take_line(rest);
        // The field's name precedes the first quoted value.
        const std::string head(line.substr(0, line.find('"')));
        for (const char *other : {"argv:", "argv[", "input:", "directory:"})
            if (head.find(other) != std::string::npos) return false;
        for (const wire::DemandRow &demand : wire::demand_rows)
            if (head.find(std::string(demand.name) + ":") != std::string::npos) return false;
        const std::size_t item = head.find("env[");
        environment_differs =
            environment_differs || item != std::string::npos || head.find("env:") != std::string::npos;
        if (item == std::string::npos || !variable.empty()) continue;
        const std::size_t index = std::strtoul(head.c_str() + item + 4, nullptr, 10);
        if (index < environment.size()) variable = name_of(environment[index]);
        // A variable that was there and is gone now shifts the sorted list: the smaller name is it.
        static constexpr std::string_view whole = "]: recorded \"";  // long values are shown as excerpts
        const std::size_t recorded = line.find(whole);
        const std::size_t equals = recorded == std::string_view::npos ? recorded : line.find('=', recorded);
        if (equals == std::string_view::npos || recorded != line.find(']')) continue;
        const std::string before(line.substr(recorded + whole.size(), equals - recorded - whole.size()));
        if (before.find('"') == std::string::npos && (variable.empty() || before < variable)) variable = before;
    }
    return environment_differs;
}

int exit_for_failed(std::int64_t failed) { return failed > 100 ? exits::map_many : static_cast<int>(failed); }

}  // namespace dcs::commands
