#include "base/config_record.h"

#include "base/option_table.h"

namespace dcs {
namespace {

std::string lines_of(const char *key, const std::vector<Setting> &settings) {
    std::string text;
    for (const Setting &s : settings) text += line_for_programs(key, s.name + "\t" + s.value + "\t" + s.origin);
    return text;
}

std::string unescaped(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '\\' && i + 1 < text.size();
        plain += !escape ? text[i] : text[++i] == 'n' ? '\n' : text[i];
    }
    return plain;
}

// A value may have tabs in it, a name and an origin have none.
std::optional<Setting> setting_of(const std::string &text) {
    const std::size_t first = text.find('\t'), last = text.rfind('\t');
    if (first == text.npos || first == last) return std::nullopt;
    return Setting{text.substr(0, first), text.substr(first + 1, last - first - 1), text.substr(last + 1)};
}

}  // namespace

std::string to_text(const ConfigRecord &record) {
    std::string text = lines_of("option", record.settings) + lines_of("restart", record.after_restart);
    if (!record.refused.empty()) text += line_for_programs("refused", record.refused);
    for (const std::string &warning : record.warnings) text += line_for_programs("warning", warning);
    return text + line_for_programs("end", "");
}

std::optional<ConfigRecord> config_record_of(std::string_view text) {
    ConfigRecord record;
    while (!text.empty()) {
        const std::size_t end = text.find('\n'), tab = text.find('\t');
        if (end == text.npos || tab > end) return std::nullopt;
        const std::string_view key = text.substr(0, tab);
        const std::string value = unescaped(text.substr(tab + 1, end - tab - 1));
        text.remove_prefix(end + 1);
        if (key == "end") return text.empty() ? std::optional(record) : std::nullopt;
        const auto setting = setting_of(value);
        if (key == "refused") record.refused = value;
        else if (key == "warning") record.warnings.push_back(value);
        else if (setting && key == "option") record.settings.push_back(*setting);
        else if (setting && key == "restart") record.after_restart.push_back(*setting);
        else return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace dcs
