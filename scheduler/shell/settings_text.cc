#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
namespace {

Words split(std::string_view text, bool (*at)(char)) {
    Words words;
    std::size_t start = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && !at(text[i])) continue;
        if (i > start) words.push_back(text.substr(start, i - start));
        start = i + 1;
    }
    return words;
}

}  // namespace

Words split_at_commas(std::string_view text) {
    return split(text, [](char c) { return c == ','; });
}

Status each_line(std::string_view text, const std::string &file,
                 const std::function<std::string(const Words &)> &take) {
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        line = line.substr(0, line.find('#'));
        const Words words = split(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
        if (words.empty()) continue;
        if (const std::string wrong = take(words); !wrong.empty())
            return fail(Code::invalid, file + ":" + std::to_string(number) + ": " + wrong);
    }
    return Status::ok();
}

bool is_name(std::string_view name, std::size_t most) {
    if (name.empty() || name.size() > most || name[0] == '.' || name[0] == '-') return false;
    for (const char c : name) {
        const bool ok = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
                        c == '_' || c == '-';
        if (!ok) return false;
    }
    return true;
}

}  // namespace dcs::shell
