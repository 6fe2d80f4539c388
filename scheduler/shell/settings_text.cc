#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
Status each_line(std::string_view text, const std::string &file,
                 const std::function<std::string(const Words &)> &take) {
    constexpr int most_named = 5;
    std::size_t number = 0;
    std::string errors;
    int count = 0;
    while (!text.empty()) {
        ++number;
        const std::string_view line = take_line(text);
        const Words words = words_of(line.substr(0, line.find('#')));
        if (words.empty()) continue;
        const std::string wrong = take(words);
        if (wrong.empty() || ++count > most_named) continue;
        errors += (count == 1 ? file + ":" : "; line ") + std::to_string(number) + ": " + wrong;
    }
    if (count > most_named) errors += "; and " + std::to_string(count - most_named) + " more lines";
    return count == 0 ? Status::ok() : fail(Code::invalid, errors);
}

}  // namespace dcs::shell
