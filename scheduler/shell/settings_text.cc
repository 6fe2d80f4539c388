#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
std::vector<NumberedLine> lines_with_words(std::string_view text) {
    std::vector<NumberedLine> lines;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = take_line(text);
        Words words = words_of(line.substr(0, line.find('#')));
        if (!words.empty()) lines.push_back({number, std::move(words)});
    }
    return lines;
}

Status each_line(std::string_view text, const std::string &file,
                 const std::function<std::string(const Words &)> &take) {
    std::string errors;
    for (const NumberedLine &line : lines_with_words(text)) {
        const std::string wrong = take(line.words);
        if (wrong.empty()) continue;
        errors += (errors.empty() ? "" : "\n") + file + ":" + std::to_string(line.number) + ": " + wrong;
    }
    return errors.empty() ? Status::ok() : fail(Code::invalid, errors);
}

std::set<std::string> rules_of(std::string_view text) {
    std::set<std::string> rules;
    for (const NumberedLine &line : lines_with_words(text)) {
        std::string rule;
        for (const std::string_view word : line.words) (rule += rule.empty() ? "" : " ") += word;
        rules.insert(std::move(rule));
    }
    return rules;
}

std::string changes_of_rules(const std::set<std::string> &before, const std::set<std::string> &now) {
    std::string text;
    const auto add = [&](const char *what, const std::set<std::string> &from, const std::set<std::string> &known) {
        std::string some;
        for (const std::string &rule : from)
            if (known.count(rule) == 0) some += (some.empty() ? " `" : ", `") + rule + "`";
        if (!some.empty()) text += (text.empty() ? "" : "; ") + (what + some);
    };
    add("added", now, before);
    add("removed", before, now);
    return text;
}

Status in_short(const Status &why) {
    std::string_view rest = why.text;
    std::string text(take_line(rest));
    std::size_t more = 0;
    for (; !rest.empty(); ++more) (void)take_line(rest);
    if (more == 0) return fail(why.code, text);
    // The files lie beside each other, in the place that `dcs config check` knows or in another one.
    const std::string file = text.substr(0, text.find(':'));
    const std::string folder = file.substr(0, file.rfind('/'));
    const bool usual = folder == file || folder == "/etc/dcs";
    return fail(why.code, text + "; dcs config check" + (usual ? "" : " --from " + folder) + " shows " +
                              std::to_string(more) + " more " + (more == 1 ? "error" : "errors"));
}

}  // namespace dcs::shell
