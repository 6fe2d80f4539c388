#pragma once
// What the files that people write for the scheduler have in common: lines of words, `#` begins a comment.
#include <charconv>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/status.h"

namespace dcs::shell {

using Words = std::vector<std::string_view>;
// Calls `take` with the words of each line that has any; it says what is wrong, or "". The first that is wrong
// ends it as "file:line: what" (invalid).
Status each_line(std::string_view text, const std::string &file, const std::function<std::string(const Words &)> &take);
Words split_at_commas(std::string_view text);

// Letters, digits, '.', '_', '-' and not a leading '.' or '-': host and login names alike.
bool is_name(std::string_view name, std::size_t most = limits::name_bytes);

template <class T> bool read_whole(std::string_view text, T &value, int base = 10) {
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    return !text.empty() && error == std::errc() && stop == end;
}

}  // namespace dcs::shell
