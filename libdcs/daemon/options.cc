#include "daemon/options.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

namespace dcs::daemon {
namespace {

Parsed wrong(const Usage &usage, const std::string &why) {
    return {false, 2, usage.program + ": " + why + "\n  hint: " + usage.program + " --help\n"};
}

std::string help_text(const Usage &usage) {
    std::string text = "usage: " + usage.program;
    for (const Option &o : usage.options)
        if (o.required) text += " --" + o.name + " " + o.placeholder;
    text += " [options]\n" + usage.summary + "\n\n";
    const auto line = [&](std::string left, const std::string &right) {
        left.resize(std::max<std::size_t>(left.size() + 2, 26), ' ');
        text += "  " + left + right + "\n";
    };
    for (const Option &o : usage.options)
        line("--" + o.name + (o.flag ? "" : " " + o.placeholder), o.help);
    line("--help", "this text");
    line("--version", "the version");
    return text;
}

// Empty if it was taken, else why not.
std::string take_value(const Option &option, const std::string &value) {
    if (option.text) {
        *option.text = value;
        return {};
    }
    char *end = nullptr;
    errno = 0;
    const long number = std::strtol(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || errno != 0 || number < INT_MIN || number > INT_MAX)
        return "--" + option.name + " needs a number, not \"" + value + "\"";
    *option.number = static_cast<int>(number);
    return {};
}

}  // namespace

Parsed parse_options(const Usage &usage, int argc, char **argv) {
    std::vector<const Option *> seen;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--help" || word == "-h") return {false, 0, help_text(usage)};
        if (word == "--version") return {false, 0, usage.program + " " DCS_VERSION "\n"};
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const Option *option = nullptr;
        for (const Option &o : usage.options)
            if (name == "--" + o.name) option = &o;
        if (!option) return wrong(usage, "unknown option " + name);
        seen.push_back(option);
        if (option->flag) {
            if (equals != std::string::npos) return wrong(usage, name + " takes no value");
            *option->flag = true;
            continue;
        }
        if (equals == std::string::npos && i + 1 == argc) return wrong(usage, name + " needs a value");
        const std::string value = equals == std::string::npos ? argv[++i] : word.substr(equals + 1);
        if (const std::string why = take_value(*option, value); !why.empty()) return wrong(usage, why);
    }
    for (const Option &o : usage.options) {
        bool given = !o.required;
        for (const Option *s : seen) given = given || s == &o;
        if (!given) return wrong(usage, "--" + o.name + " " + o.placeholder + " is missing");
    }
    return {true, 0, {}};
}

}  // namespace dcs::daemon
