#include "target.h"

#include "base/text.h"

namespace dcs::commands::page {
namespace {

constexpr std::string_view plain = "-._";
constexpr std::size_t most_bytes = 1024;

}  // namespace

std::optional<Target> target_of(std::string_view text) {
    Target target;
    if (text.empty() || text[0] != '/' || text.size() > most_bytes) return std::nullopt;
    const std::size_t mark = text.find('?');
    for (const std::string_view part : words_of(text.substr(0, mark), "/")) {
        auto word = percent_decoded(part, plain);
        if (!word) return std::nullopt;
        target.path.push_back(std::move(*word));
    }
    if (mark == std::string_view::npos) return target;
    for (const std::string_view pair : words_of(text.substr(mark + 1), "&")) {
        const std::size_t equals = pair.find('=');
        if (equals == std::string_view::npos) return std::nullopt;
        const auto name = percent_decoded(pair.substr(0, equals), plain),
                   value = percent_decoded(pair.substr(equals + 1), plain);
        if (!name || !value) return std::nullopt;
        target.query[*name] = *value;
    }
    return target;
}

std::optional<std::int32_t> Target::number_in_path(std::size_t at) const {
    std::int32_t value = 0;
    if (at >= path.size() || !read_number(path[at], value) || value < 0) return std::nullopt;
    return value;
}

std::string Target::word(const std::string &name) const {
    const auto it = query.find(name);
    return it == query.end() ? "" : it->second;
}

std::int32_t Target::number(const std::string &name, std::int32_t otherwise) const {
    std::int32_t value = 0;
    return read_number(word(name), value) ? value : otherwise;
}

}  // namespace dcs::commands::page
