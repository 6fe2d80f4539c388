#include "scheduler/turn/line_budget.h"

#include <algorithm>

#include "base/load_limits.h"

namespace dcs::turn {
namespace {

constexpr Duration tell_each = seconds(60);
constexpr Duration interval = seconds(1);

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

}  // namespace dcs::turn
