#include "arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace dcs::commands {
namespace {

const Option *by_name(const std::vector<Option> &known, std::string_view name) {
    for (const Option &option : known)
        if (name == option.name) return &option;
    return nullptr;
}

Status unknown_option(const std::string &word, const std::vector<Option> &known) {
    std::vector<std::string> names;
    for (const Option &option : known) names.push_back(option.name);
    const std::string meant = nearest(word, names);
    return fail(Code::invalid,
                "unknown option " + word + (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

// Edit distance with transpositions of neighbours, the usual typing errors.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min(
                {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.size()][b.size()];
}

}  // namespace

bool Arguments::has(std::string_view name) const {
    return std::any_of(options.begin(), options.end(),
                       [&](const auto &o) { return o.first == name; });
}

std::optional<std::string> Arguments::value(std::string_view name) const {
    for (auto o = options.rbegin(); o != options.rend(); ++o)
        if (o->first == name) return o->second;
    return std::nullopt;
}

Status parse_arguments(const std::vector<std::string> &line, const std::vector<Option> &known,
                       bool command_follows, Arguments &found) {
    for (std::size_t i = 0; i < line.size(); ++i) {
        const std::string &word = line[i];
        if (word == "--" || (command_follows && (word.size() < 2 || word[0] != '-'))) {
            found.words.insert(found.words.end(),
                               line.begin() + static_cast<long>(i) + (word == "--"), line.end());
            return Status::ok();
        }
        if (word.size() < 2 || word[0] != '-') {
            found.words.push_back(word);
            continue;
        }
        const Option *option = nullptr;
        std::optional<std::string> value;
        if (word[1] == '-') {
            const std::size_t equals = word.find('=');
            option = by_name(known, std::string_view(word).substr(0, equals));
            if (equals != std::string::npos) value = word.substr(equals + 1);
        } else {
            for (const Option &o : known)
                if (o.letter == word[1]) option = &o;
            if (word.size() > 2) value = word.substr(2);
        }
        if (option == nullptr) return unknown_option(word, known);
        if (!option->takes_value && value)
            return fail(Code::invalid, std::string(option->name) + " takes no value");
        if (option->takes_value && !value) {
            if (i + 1 == line.size())
                return fail(Code::invalid, std::string(option->name) + " needs a value");
            value = line[++i];
        }
        found.options.emplace_back(option->name, value.value_or(""));
    }
    return Status::ok();
}

std::optional<std::int64_t> number_of(std::string_view text, std::int64_t least,
                                      std::int64_t most) {
    int base = 10;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text.remove_prefix(2);
        if (text[0] == '-') return std::nullopt;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (text.empty() || error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    if (value < least || value > most) return std::nullopt;
    return value;
}

std::optional<double> seconds_of_text(std::string_view text) {
    double unit = 1;
    if (!text.empty()) {
        const char last = text.back();
        if (last == 's' || last == 'm' || last == 'h') {
            unit = last == 'h' ? 3600 : last == 'm' ? 60 : 1;
            text.remove_suffix(1);
        }
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    if (!std::isfinite(value) || value < 0 || value * unit > 1e9) return std::nullopt;
    return value * unit;
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
        const std::size_t d = begins ? 1 : distance(word.substr(0, 64), candidate);
        if (d < least) {
            least = d;
            best = candidate;
        }
    }
    return best;
}

}  // namespace dcs::commands
