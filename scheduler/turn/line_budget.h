#pragma once
// Lines of the log that a user or a host can have written as often as it likes, because they cost it no commit: orders
// that are refused, nonsense, a host that shuts and opens. Each sender has so many of them; of the rest the number is
// told.
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/instant.h"

namespace dcs::turn {

// For the log. sender: who may have few of them; empty: no particular one.
struct Line {
    std::string text, sender;
};

class LineBudget {
public:
    // May one more line about this sender be written? About no particular one, always.
    bool allow(const std::string &sender, Instant now);
    // Once a minute: of whom how many lines were left out since the last time.
    std::vector<std::pair<std::string, std::size_t>> left_out(Instant now);

private:
    struct Of {
        Instant paid_until{};  // a line costs its interval; a burst is paid in advance
        std::size_t left_out = 0;
    };
    std::map<std::string, Of> senders_;
    Instant told_{};
};

// Lines that come again every few seconds until a person does something, such as about a peer that is refused and
// tries again.
class RepeatedLines {
public:
    // What to write: the line, ten times within an hour; then once an hour, with how often it came meanwhile.
    std::optional<std::string> to_write(const std::string &line, Instant now);

private:
    struct Of {
        Instant hour{};  // in which it was written `written` times
        std::size_t written = 0, left_out = 0;
    };
    std::map<std::string, Of> lines_;
};

}  // namespace dcs::turn
