#include "selector.h"

#include <algorithm>

#include "base/option_table.h"
#include "base/limits.h"
#include "base/text.h"

namespace dcs::commands {
namespace {

bool only_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// 4-6,9 as a shell makes words of it; empty: it is no such thing.
std::string range_as_words(std::string_view text) {
    std::string words;
    if (text.find_first_of(",-") == text.npos) return "";
    for (const std::string_view item : words_of(text, ",")) {
        const std::size_t dash = std::min(item.find('-'), item.size());
        const std::string first(item.substr(0, dash)), last(item.substr(std::min(dash + 1, item.size())));
        if (!only_digits(first) || (dash < item.size() && !only_digits(last))) return "";
        words += dash < item.size() ? " $(seq " + first + " " + last + ")" : " " + first;
    }
    return words;
}

Status bad_session(std::string_view text) {
    if (const std::string words = range_as_words(text); !words.empty())
        return fail(Code::invalid, "`" + std::string(text) +
                                       "` does not name a session: sessions take no ranges and "
                                       "lists; write each number as a word of its own, here" +
                                       words);
    const bool login = !text.empty() && text.find_first_of("/:") == text.npos;
    return fail(Code::invalid,
                "`" + std::string(text) +
                    "` does not name a session: write NUM, last, done or all, or USER/ before one of these" +
                    (login ? ", such as " + std::string(text) + "/all" : ""));
}

// A session's number alone is what `dcs run --detach` prints.
Status bad_grain(std::string_view text) {
    const std::string given(text), ses = only_digits(text) || text == "last" ? given : "SES";
    return fail(Code::invalid, "`" + given + "` does not name a grain: write " + ses + ":G, " + ses + ":1-20, " + ses +
                                   ":1,5-7 or " + ses + ":all");
}

}  // namespace

bool GrainSelector::has(std::int32_t grain) const {
    return ranges.empty() || std::any_of(ranges.begin(), ranges.end(),
                                         [&](const GrainRange &r) { return r.first <= grain && grain <= r.last; });
}

Result<SessionSelector> session_selector(std::string_view text) {
    SessionSelector selector;
    std::string_view rest = text;
    const std::size_t slash = text.rfind('/');
    if (slash != std::string_view::npos) {
        selector.user = text.substr(0, slash);
        rest = text.substr(slash + 1);
        if (selector.user.empty() || selector.user.size() > limits::name_bytes) return bad_session(text);
    }
    if (rest == "last") {
        selector.which = SessionSelector::Which::last;
    } else if (rest == "all" || rest == "done") {
        selector.which = SessionSelector::Which::all;
        selector.done = rest == "done";
        selector.of_all_users = slash == std::string_view::npos && !selector.done;
    } else {
        const auto number = only_digits(rest) ? number_of(rest, 0, INT32_MAX) : std::nullopt;
        if (!number) return bad_session(text);
        selector.number = static_cast<std::int32_t>(*number);
    }
    return selector;
}

Result<GrainSelector> grain_selector(std::string_view text, bool bare_session) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos && !bare_session) return bad_grain(text);
    GrainSelector selector;
    const auto session = session_selector(text.substr(0, colon));
    if (!session) return colon == std::string_view::npos ? session.status() : bad_grain(text);
    selector.session = *session;
    const bool every = selector.session.which == SessionSelector::Which::all;
    if (every && (!bare_session || colon != std::string_view::npos)) return bad_grain(text);
    if (colon == std::string_view::npos || text.substr(colon + 1) == "all") return selector;
    for (const std::string &part : split(text.substr(colon + 1), ',')) {
        const std::string_view item = part;
        const std::size_t dash = item.find('-');
        const std::string_view first = item.substr(0, dash);
        const std::string_view last = dash == std::string_view::npos ? first : item.substr(dash + 1);
        if (!only_digits(first) || !only_digits(last)) return bad_grain(text);
        const auto a = number_of(first, 0, INT32_MAX), b = number_of(last, 0, INT32_MAX);
        if (!a || !b || *a > *b) return bad_grain(text);
        selector.ranges.push_back({static_cast<std::int32_t>(*a), static_cast<std::int32_t>(*b)});
    }
    return selector;
}

}  // namespace dcs::commands
