#include "scheduler/shell/limits_file.h"

#include <set>

#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
namespace {

// Too little of any of them and the largest call of a user could never be made.
struct Name {
    std::string_view name;
    std::size_t turn::UserLimits::*field;
    std::size_t least, most;
};
constexpr Name names[] = {
    {"connections", &turn::UserLimits::connections, 1, limits::connections_per_user},
    {"queued_requests", &turn::UserLimits::queued_requests, 1, limits::queued_requests},
    {"queued_bytes", &turn::UserLimits::queued_bytes, limits::user_frame_bytes, limits::bytes_per_turn},
    {"requests_per_turn", &turn::UserLimits::requests_per_turn, 1, limits::inputs_per_turn},
    {"bytes_per_turn", &turn::UserLimits::bytes_per_turn, 1, limits::bytes_per_turn},
};

std::string read_limit(const Words &words, turn::UserLimits &limits) {
    for (const Name &n : names) {
        if (words[0] != n.name) continue;
        std::size_t value = 0;
        if (words.size() != 2 || !read_number(words[1], value) || value < n.least || value > n.most)
            return std::string(n.name) + " must be a number from " + std::to_string(n.least) + " to " +
                   std::to_string(n.most);
        limits.*n.field = value;
        return "";
    }
    return "unknown limit `" + std::string(words[0]) + "`";
}

}  // namespace

Result<turn::UserLimits> parse_limits(std::string_view text, const std::string &file) {
    turn::UserLimits limits;
    std::set<std::string> seen;
    const Status read = each_line(text, file, [&](const Words &words) -> std::string {
        std::string wrong = read_limit(words, limits);
        if (!wrong.empty()) return wrong;
        return seen.insert(std::string(words[0])).second ? "" : "`" + std::string(words[0]) + "` occurs twice";
    });
    if (!read) return read;
    return limits;
}

}  // namespace dcs::shell
