#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
Status each_line(std::string_view text, const std::string &file,
                 const std::function<std::string(const Words &)> &take) {
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        const std::string_view line = take_line(text);
        const Words words = words_of(line.substr(0, line.find('#')));
        if (words.empty()) continue;
        if (const std::string wrong = take(words); !wrong.empty())
            return fail(Code::invalid, file + ":" + std::to_string(number) + ": " + wrong);
    }
    return Status::ok();
}

}  // namespace dcs::shell
