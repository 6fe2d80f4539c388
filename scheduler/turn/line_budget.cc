#include "scheduler/turn/line_budget.h"

#include <algorithm>

#include "base/load_limits.h"

namespace dcs::turn {
namespace {

constexpr Duration tell_each = seconds(60);
constexpr Duration interval = seconds(1);
constexpr Duration repeated_each = seconds(3600);
constexpr std::size_t repeated_at_once = 10;
constexpr std::size_t most_repeated = 1000;  // different lines; others are written each time, as the budget permits

}  // namespace

bool LineBudget::allow(const std::string &sender, Instant now) {
    if (sender.empty()) return true;
    Of &of = senders_[sender];
    const Instant paid = std::max(of.paid_until, now);
    if (paid - now > interval * static_cast<int>(limits::log_lines_at_once - 1)) {
        ++of.left_out;
        return false;
    }
    of.paid_until = paid + interval;
    return true;
}

std::vector<std::pair<std::string, std::size_t>> LineBudget::left_out(Instant now) {
    std::vector<std::pair<std::string, std::size_t>> told;
    if (now - told_ < tell_each) return told;
    told_ = now;
    for (auto it = senders_.begin(); it != senders_.end();) {
        if (it->second.left_out > 0) told.emplace_back(it->first, std::exchange(it->second.left_out, 0));
        it = it->second.paid_until <= now ? senders_.erase(it) : std::next(it);
    }
    return told;
}

std::optional<std::string> RepeatedLines::to_write(const std::string &line, Instant now) {
    std::erase_if(
        lines_, [&](const auto &entry) { return entry.first != line && now - entry.second.hour > repeated_each * 2; });
    if (lines_.size() >= most_repeated && lines_.count(line) == 0) return line;
    Of &of = lines_.try_emplace(line, Of{now}).first->second;
    const std::size_t left_out = of.left_out;
    if (now - of.hour >= repeated_each) of = Of{now, left_out > 0 ? repeated_at_once - 1 : 0};
    if (of.written == repeated_at_once) {
        ++of.left_out;
        return {};
    }
    ++of.written;
    return left_out == 0 ? line : line + " (and " + std::to_string(left_out) + " times since the last such line)";
}

}  // namespace dcs::turn
