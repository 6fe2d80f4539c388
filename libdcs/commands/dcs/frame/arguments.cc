#include "arguments.h"

#include <algorithm>
#include <sstream>

namespace dcs::commands {

bool Arguments::has(std::string_view name) const {
    return std::any_of(options.begin(), options.end(), [&](const auto &o) { return o.first == name; });
}

std::optional<std::string> Arguments::value(std::string_view name) const {
    for (auto o = options.rbegin(); o != options.rend(); ++o)
        if (o->first == name) return o->second;
    return std::nullopt;
}

std::optional<std::int64_t> Arguments::number(std::string_view name) const {
    const auto text = value(name);
    return text ? number_of(*text, INT64_MIN, INT64_MAX) : std::nullopt;
}

std::optional<double> Arguments::seconds(std::string_view name) const {
    const auto text = value(name);
    return text ? seconds_of_text(*text) : std::nullopt;
}

std::optional<std::int64_t> Arguments::megabytes(std::string_view name) const {
    const auto text = value(name);
    return text ? megabytes_of_text(*text) : std::nullopt;
}

Status parse_arguments(const std::vector<std::string> &line, const OptionTable &known, bool command_follows,
                       Arguments &found) {
    OptionReader reader{line, known};
    for (std::string value;;) {
        const auto row = reader.next(value);
        if (!row) return row.status();
        if (*row != nullptr) {
            found.options.emplace_back((*row)->name, value);
        } else if (reader.at == line.size()) {
            return Status::ok();
        } else if (reader.only_words || command_follows) {
            found.words.insert(found.words.end(), line.begin() + static_cast<long>(reader.at), line.end());
            return Status::ok();
        } else {
            found.words.push_back(line[reader.at++]);
        }
    }
}

Status check_word_count(const std::string &usage, const std::vector<std::string> &words) {
    if (usage.empty() && !words.empty())
        return fail(Code::invalid, "it takes no arguments, but got `" + words[0] + "`");
    std::size_t least = 0, most = 0;
    bool optional = false;  // within brackets
    std::istringstream forms(usage);
    for (std::string form; forms >> form;) {
        optional = optional || form.front() == '[';
        if (!optional && words.size() == least++)
            return fail(Code::invalid, form.substr(0, std::min(form.find("..."), form.find('['))) + " is missing");
        const std::string_view end = std::string_view(form).substr(form.size() - std::min<std::size_t>(form.size(), 4));
        const bool many = end.substr(1) == "..." || (optional && end == "...]");
        most = many ? words.size() : most + 1;
        optional = optional && form.back() != ']';
    }
    return words.size() <= most ? Status::ok() : fail(Code::invalid, "`" + words[most] + "` is one argument too many");
}

}  // namespace dcs::commands
