#include "base/option_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/resources.h"
#include "base/text.h"

namespace dcs {

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    for (std::size_t to = 0; to != std::string_view::npos; from = to + 1) {
        to = text.find(separator, from);
        parts.emplace_back(text.substr(from, to == std::string_view::npos ? to : to - from));
    }
    return parts;
}

namespace {

constexpr std::size_t widest_left = 18, widest_line = 110;  // longer names have their help below them

// "a, b or c"
std::string listed(const std::vector<std::string> &words) {
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i)
        list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    return list;
}

std::string plain(double number) { return formatted("%.10g", number); }

Status unknown_option(const std::string &word, const OptionTable &known) {
    std::vector<std::string> names;
    for (const OptionRow &row : known) names.push_back(row.name);
    const std::string meant = word[1] == '-' ? nearest(word.substr(2), names) : "";
    return fail(Code::invalid, "unknown option " + word + (meant.empty() ? "" : "; did you mean --" + meant + "?"));
}

// Edit distance with transpositions of neighbours, the usual typing errors.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

std::string complaint_of_resources(const std::string &value) {
    const std::string example = "gpu=1,scratch_gb=20 (`dcs host ls` lists what hosts offer)";
    if (value.empty()) return "resources with amounts, such as " + example;
    const auto amounts = amounts_of(value);
    if (amounts) return "";
    std::string_view why = amounts.status().text;
    const std::string itself = "`" + value + "`: ";  // the error names it before
    if (why.starts_with(itself)) why.remove_prefix(itself.size());
    return std::string(why) + "; for example " + example;
}

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

std::string complaint(const Takes &takes, const std::string &value) {
    const bool open = takes.most >= (takes.kind == Takes::Kind::seconds ? most_seconds : INT32_MAX);
    const std::string range =
        open ? ", at least " + plain(takes.least) : " from " + plain(takes.least) + " to " + plain(takes.most);
    switch (takes.kind) {
    case Takes::Kind::text: return static_cast<double>(value.size()) < takes.least ? "it is empty" : "";
    case Takes::Kind::whole:
        if (number_of(value, static_cast<std::int64_t>(takes.least), static_cast<std::int64_t>(takes.most))) return "";
        return "a whole number" + range;
    case Takes::Kind::seconds:
        if (const auto s = seconds_of_text(value); s && *s >= takes.least && *s <= takes.most) return "";
        return "a number of seconds" + range + ", or such as 90s, 5m, 2h, 7d, 1:30:00";
    case Takes::Kind::megabytes:
        if (const auto mb = megabytes_of_text(value)) {
            const auto number = static_cast<double>(*mb);
            if (number >= takes.least && number <= takes.most) return "";
        }
        return "a number of megabytes" + range + ", or such as 512 MiB, 4 GiB";
    case Takes::Kind::classes: {
        const auto parts = split(value, ',');
        const bool good = std::all_of(parts.begin(), parts.end(),
                                      [](const auto &part) { return class_of(part) || is_class_name(part); });
        return good ? "" : "names of host classes, or a mask such as 0x3";
    }
    case Takes::Kind::resources: return complaint_of_resources(value);
    case Takes::Kind::word: {
        const auto words = split(takes.words, '|');
        return std::find(words.begin(), words.end(), value) != words.end() ? "" : listed(words);
    }
    }
    return "";
}

std::string shown(const OptionRow &row) { return std::string("--") + row.name; }

Status check_value(const OptionRow &row, const std::string &value) {
    const std::string wrong = complaint(row.takes, value);
    if (wrong.empty()) return Status::ok();
    return fail(Code::invalid, shown(row) + " " + (value.empty() ? "''" : value) + ": " + wrong);
}

const OptionRow *OptionReader::by_name(std::string_view name) const {
    const auto row = std::find_if(known.begin(), known.end(), [&](const OptionRow &r) { return name == r.name; });
    return row == known.end() ? nullptr : &*row;
}

Result<const OptionRow *> OptionReader::with_value(const OptionRow &row, std::optional<std::string> joined,
                                                   std::string &value) {
    ++at;
    letter = 0;
    if (!joined && (at == line.size() || line[at] == "--"))
        return fail(Code::invalid, shown(row) + " needs a value: " + row.value);
    value = joined ? *joined : line[at++];
    if (Status s = check_value(row, value); !s) return s;
    return &row;
}

Result<const OptionRow *> OptionReader::next(std::string &value) {
    value.clear();
    if (only_words || at == line.size()) return nullptr;
    const std::string &word = line[at];
    if (word == "--") {
        ++at;
        only_words = true;
        return nullptr;
    }
    if (word.size() < 2 || word[0] != '-') return nullptr;
    if (word[1] == '-') {
        const std::size_t equals = word.find('=');
        const OptionRow *row = by_name(std::string_view(word).substr(2, equals == word.npos ? equals : equals - 2));
        if (row == nullptr) return unknown_option(word.substr(0, equals), known);
        std::optional<std::string> joined;
        if (equals != word.npos) joined = word.substr(equals + 1);
        if (row->value != nullptr) return with_value(*row, joined, value);
        if (joined) return fail(Code::invalid, shown(*row) + " takes no value");
        ++at;
        return row;
    }
    if (letter == 0) letter = 1;
    const auto row = std::find_if(known.begin(), known.end(),
                                  [&](const OptionRow &r) { return r.letter != 0 && r.letter == word[letter]; });
    if (row == known.end()) return unknown_option("-" + word.substr(letter, 1), known);
    ++letter;
    const bool last = letter == word.size();
    if (row->value != nullptr) return with_value(*row, last ? std::nullopt : std::optional(word.substr(letter)), value);
    if (last) {
        letter = 0;
        ++at;
    }
    return &*row;
}

std::string option_list(const OptionTable &table) {
    std::vector<std::string> left;
    std::size_t width = 0;
    for (const OptionRow &row : table) {
        std::string text = (row.letter != 0 ? std::string("-") + row.letter + ", " : "") + shown(row);
        if (row.value != nullptr) text += std::string(" ") + row.value;
        if (text.size() <= widest_left) width = std::max(width, text.size());
        left.push_back(std::move(text));
    }
    std::string list;
    const std::string margin(width + 4, ' ');
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (*table[i].group != '\0') list += std::string(list.empty() ? "" : "\n") + table[i].group + ":\n";
        list += "  " + left[i];
        list += left[i].size() > width ? "\n" + margin : std::string(width - left[i].size() + 2, ' ');
        const auto lines = split(table[i].help, '\n');
        for (std::size_t l = 0; l < lines.size(); ++l) list += (l == 0 ? "" : margin) + lines[l] + "\n";
    }
    return list;
}

std::string usage_line(const std::string &command, const OptionTable &table, const std::string &words) {
    std::vector<std::string> parts;
    for (const OptionRow &row : table) {
        std::string part = shown(row) + (row.value != nullptr ? std::string(" ") + row.value : "");
        if (row.given != Given::always) part = "[" + part + "]";
        parts.push_back(part + (row.given == Given::many ? "..." : ""));
    }
    if (!words.empty()) parts.push_back(words);
    const std::string start = "Usage: " + command;
    std::string text = start;
    std::size_t column = start.size();
    for (const std::string &part : parts) {
        const bool wraps = column + 1 + part.size() > widest_line;
        text += wraps ? "\n" + std::string(start.size(), ' ') : "";
        column = (wraps ? start.size() : column) + 1 + part.size();
        text += " " + part;
    }
    return text + "\n";
}

std::string line_for_programs(const std::string &key, const std::string &text) {
    std::string line = key + "\t";
    for (const char c : text) line += c == '\n' ? "\\n" : c == '\\' ? "\\\\" : std::string(1, c);
    return line + "\n";
}

std::string table_for_programs(const OptionTable &table) {
    std::string text;
    for (const OptionRow &row : table)
        text += line_for_programs("option", row.name + ("\t" + std::string(row.letter != 0, row.letter)) + "\t" +
                                                (row.value != nullptr ? row.value : "") + "\t" + row.help + "\t" +
                                                row.group);
    return text;
}

std::optional<std::int64_t> number_of(std::string_view text, std::int64_t least, std::int64_t most) {
    int base = 10;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text.remove_prefix(2);
        if (text[0] == '-') return std::nullopt;
    }
    std::int64_t value = 0;
    return read_number(text, value, base) && value >= least && value <= most ? std::optional(value) : std::nullopt;
}

namespace {

// Digits and a point only: strtod takes more.
std::optional<double> plain_number(std::string_view text) {
    if (text.empty() || text.find_first_not_of("0123456789.") != text.npos) return std::nullopt;
    const std::string digits(text);
    char *end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (end == digits.c_str() || *end != '\0') return std::nullopt;
    return value;
}

// "5:30", "1:30:00": what follows a colon has two digits and is less than 60.
std::optional<double> clock_of_text(std::string_view text) {
    const auto parts = split(text, ':');
    if (parts.size() > 3) return std::nullopt;
    double value = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto part = number_of(parts[i], 0, i == 0 ? static_cast<std::int64_t>(most_seconds) : 59);
        if (!part || (i > 0 && parts[i].size() != 2) || parts[i][0] == '-') return std::nullopt;
        value = value * 60 + static_cast<double>(*part);
    }
    return value;
}

// As Slurm writes them: "1-12" (hours), "1-12:30", "1-12:30:00".
std::optional<double> days_of_text(std::string_view text) {
    const std::size_t dash = text.find('-');
    const auto days = number_of(text.substr(0, dash), 0, static_cast<std::int64_t>(most_seconds / 86400));
    std::string clock(text.substr(dash + 1));
    const auto hours = number_of(clock.substr(0, clock.find(':')), 0, 23);
    for (auto colons = std::count(clock.begin(), clock.end(), ':'); colons < 2; ++colons) clock += ":00";
    const auto rest = clock_of_text(clock);
    return days && hours && rest ? std::optional<double>(static_cast<double>(*days) * 86400 + *rest) : std::nullopt;
}

}  // namespace

std::optional<double> seconds_of_text(std::string_view text) {
    std::optional<double> value;
    if (text.find('-') != text.npos) {
        value = days_of_text(text);
    } else if (text.find(':') != text.npos) {
        value = clock_of_text(text);
    } else {
        const char last = text.empty() ? ' ' : text.back();
        const double unit = last == 'd' ? 86400 : last == 'h' ? 3600 : last == 'm' ? 60 : 1;
        if (unit != 1 || last == 's') text.remove_suffix(1);
        value = plain_number(text);
        if (value) *value *= unit;
    }
    return value && *value <= most_seconds ? value : std::nullopt;
}

std::optional<std::int64_t> megabytes_of_text(std::string_view text) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto number = plain_number(text.substr(0, end));
    std::string unit(text.substr(end));
    if (unit.size() > 1 && unit[0] == ' ') unit.erase(0, 1);
    for (char &c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool plain = unit.empty();
    const std::size_t power = plain ? 2 : std::string_view("_kmgt").find(unit[0], 1);
    const std::string kind = plain ? "" : unit.substr(1);
    if (!number || power == std::string_view::npos || (kind != "" && kind != "ib" && kind != "b")) return std::nullopt;
    const double value = *number * std::pow(kind == "b" ? 1000 : 1024, power) / (1 << 20);
    if (value > 1e12 || (value > 0 && value < 1) || (plain && value != std::floor(value))) return std::nullopt;
    return static_cast<std::int64_t>(value);
}

bool is_class_name(std::string_view word) {
    return is_name(word) && word[0] != '_' && (word[0] < '0' || word[0] > '9') && word != "any";
}

std::optional<std::uint32_t> class_of(std::string_view text) {
    const auto value = number_of(text, 0, 0xffffffffLL);
    if (!value) return std::nullopt;
    return static_cast<std::uint32_t>(*value);
}

std::string nearest(std::string_view word, const std::vector<std::string> &candidates) {
    std::string best;
    std::size_t least = std::max<std::size_t>(1, std::min<std::size_t>(3, word.size() / 2)) + 1;
    for (const std::string &candidate : candidates) {
        const bool begins = word.size() >= 2 && candidate.rfind(word, 0) == 0;
        if (const std::size_t d = begins ? 1 : distance(word.substr(0, 64), candidate); d < least) {
            least = d;
            best = candidate;
        }
    }
    return best;
}

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
