#include "client/grains_of_run.h"

#include <algorithm>
#include <cstdint>

#include "wire/user_calls.h"

namespace dcs::client {

std::optional<int> NumberSet::end_of_row(int number) const {
    const auto after = last_.upper_bound(number);
    if (after == last_.begin() || std::prev(after)->second < number) return std::nullopt;
    return std::prev(after)->second;
}

std::optional<int> NumberSet::first_without(const NumberSet &other) const {
    for (const auto &[first, last] : last_)
        for (std::int64_t number = first; number <= last;) {
            const auto end = other.end_of_row(static_cast<int>(number));
            if (!end) return static_cast<int>(number);
            number = std::int64_t{*end} + 1;
        }
    return std::nullopt;
}

bool NumberSet::add(int number) {
    if (has(number)) return false;
    int last = number;
    const auto after = last_.upper_bound(number);
    const auto before = after == last_.begin() ? last_.end() : std::prev(after);
    if (after != last_.end() && after->first - 1 == number) {
        last = after->second;
        last_.erase(after);
    }
    if (before != last_.end() && before->second + 1 == number) before->second = last;
    else last_[number] = last;
    return true;
}

// In a call that repeats grains of this run as well it is not known which of them were killed.
void GrainsOfRun::submitted(const std::vector<int> &grains, const wire::Done &done) {
    if (!again_) return;
    repeats_ = repeats_ || done.repeated > 0;
    bool all_new = true;
    for (const int grain : grains) {
        const bool is_new = submitted_.add(grain);
        all_new = all_new && is_new;
        if (is_new && !taken_.has(grain)) ++left_;
    }
    if (all_new) left_ -= std::min(left_, static_cast<std::size_t>(std::max(done.killed, 0)));
}

void GrainsOfRun::taken(int grain) {
    if (again_ && taken_.add(grain) && submitted_.has(grain) && left_ > 0) --left_;
}

std::optional<std::size_t> GrainsOfRun::without_result() const {
    return repeats_ ? std::optional(left_) : std::nullopt;
}

std::optional<int> GrainsOfRun::only_taken() const {
    return repeats_ ? taken_.first_without(submitted_) : std::nullopt;
}

}  // namespace dcs::client
