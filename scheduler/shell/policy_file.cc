#include "scheduler/shell/policy_file.h"

#include <set>

#include "base/option_table.h"
#include "base/resources.h"
#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
namespace {

// A program that begins and opens its session a moment later has its token still.
constexpr std::int32_t least_age_s = 60;

std::int32_t *number_of(std::string_view rule, core::Policy &policy) {
    if (rule == "sessions_per_user") return &policy.sessions_per_user;
    if (rule == "grains_per_user") return &policy.grains_per_user;
    if (rule == "running_per_user") return &policy.running_per_user;
    if (rule == "stored_mb_per_user") return &policy.stored_mb_per_user;
    if (rule == "stored_share") return &policy.stored_share;
    if (rule == "probation") return &policy.probation;
    if (rule == "token_age") return &policy.token_age_s;
    if (rule == "session_age") return &policy.session_age_s;
    return nullptr;
}

// `resource licence 5`
std::string read_resource(const Words &words, core::Policy &policy) {
    std::int32_t amount = 0;
    if (words.size() != 3 || !is_resource_name(words[1]) || !read_number(words[2], amount) || amount < 0)
        return "`resource` must have a name and an amount, such as resource licence 5";
    if (!policy.resources.emplace(words[1], amount).second)
        return "resource " + std::string(words[1]) + " occurs twice";
    return policy.resources.size() <= limits::host_resources
               ? ""
               : "more than " + std::to_string(limits::host_resources) + " resources";
}

std::string read_rule(const Words &words, core::Policy &policy) {
    const std::string rule(words[0]);
    if (rule == "resource") return read_resource(words, policy);
    std::int32_t *number = number_of(rule, policy);
    if (number == nullptr && rule != "fair_share" && rule != "user" && rule != "deny")
        return "unknown rule `" + rule + "`";
    if (words.size() != 2) return "`" + rule + "` must have exactly one value";
    if (rule == "token_age" || rule == "session_age") {
        const auto age_s = seconds_of_text(words[1]);
        *number = static_cast<std::int32_t>(age_s.value_or(0));
        return *number >= least_age_s ? "" : rule + " must be a time, at least 1m, such as 24h or 7d";
    }
    if (rule == "stored_share")
        return read_number(words[1], *number) && *number >= 0 && *number <= 100
                   ? ""
                   : rule + " must be a percentage from 0 to 100; 0 means no limit";
    if (number != nullptr)
        return read_number(words[1], *number) && *number >= 0 ? "" : rule + " must be a number; 0 means no limit";
    if (rule == "user" || rule == "deny") {
        if (!is_name(words[1])) return rule + " must have a login name";
        (rule == "user" ? policy.users : policy.denied).emplace_back(words[1]);
        return "";
    }
    policy.fair_share = words[1] == "on";
    return words[1] == "on" || words[1] == "off" ? "" : "fair_share must be on or off";
}

}  // namespace

Result<core::Policy> parse_policy(std::string_view text, const std::string &file) {
    core::Policy policy;
    std::set<std::string> seen;
    const Status read = each_line(text, file, [&](const Words &words) -> std::string {
        std::string wrong = read_rule(words, policy);
        if (!wrong.empty()) return wrong;
        if (words[0] == "resource") return "";
        const bool of_one = words[0] == "user" || words[0] == "deny";
        const std::string said = std::string(words[0]) + (of_one ? " " + std::string(words[1]) : "");
        return seen.insert(said).second ? "" : "`" + said + "` occurs twice";
    });
    if (!read) return read;
    return policy;
}

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
