#include "client/grouped.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <mutex>
#include <utility>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/require.h"

namespace dcs::client {

namespace {

// Between two threads that come to a group.
constexpr timespec gathering_pause = {.tv_sec = 0, .tv_nsec = 100'000};

long futex(const std::atomic<std::uint32_t> &word, int operation, std::uint32_t value, const timespec *most) {
    return ::syscall(SYS_futex, &word, operation, value, most, nullptr, 0);
}

}  // namespace

void Bell::wait(std::uint32_t rung, const timespec *most) const {
    const long waited = futex(rung_, FUTEX_WAIT_PRIVATE, rung, most);
    DCS_REQUIRE(waited == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT, "a word that stands");
}

void Bell::ring() {
    ++rung_;
    (void)futex(rung_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
}

Group::Group(Submitting &pool, GroupedGrainPtr own, Duration patience) : Group(pool) {
    own->came = boot_clock();
    leads_ = own_turn(own);
    if (!leads_) return;
    let_others_come();
    std::uint64_t bytes = own->bytes;
    const std::lock_guard held(pool_.mutex);
    sent_ = boot_clock();
    waited_ = pool.waited_in_trouble(*own, sent_);
    too_late_ = waited_ > Duration{} && waited_ >= patience;
    auto &waiting = pool.waiting;
    grains_.reserve(1 + waiting.size());
    grains_.push_back(own);
    const auto joins = [&](const GroupedGrainPtr &other) {
        if (other->session != own->session || grains_.size() == limits::batch_grains) return false;
        if (bytes + other->bytes > limits::batch_bytes) return false;
        if (too_late_ && pool.waited_in_trouble(*other, sent_) < patience) return false;
        bytes += other->bytes;
        grains_.push_back(other);
        return true;
    };
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(), joins), waiting.end());
    pool.last = grains_.size();
    pool.gathers = false;
}

bool Group::own_turn(const GroupedGrainPtr &own) {
    {
        const std::lock_guard held(pool_.mutex);
        if (!std::exchange(pool_.under_way, true)) return pool_.gathers = true;
        if (pool_.waiting.size() <= 1) pool_.bell = std::make_shared<Bell>();
        own->bell = pool_.bell;
        pool_.waiting.push_back(own);
        if (pool_.gathers && pool_.as_many_as_last()) pool_.enough.ring();
    }
    for (std::uint32_t rung = own->bell->rung(); own->state == GroupedGrain::waits; rung = own->bell->rung())
        own->bell->wait(rung);
    return own->state == GroupedGrain::leads;
}

// Threads whose grains were together in the group before submit their next ones now.
void Group::let_others_come() const {
    for (std::size_t before = 0;;) {
        const std::uint32_t rung = pool_.enough.rung();
        {
            const std::lock_guard held(pool_.mutex);
            const std::size_t came = 1 + pool_.waiting.size();
            if (pool_.as_many_as_last() || came == before) return;
            before = came;
        }
        pool_.enough.wait(rung, &gathering_pause);
    }
}

void Group::let_next_lead() {
    const std::lock_guard held(pool_.mutex);
    if (status.code != Code::unreachable && status.code != Code::broken) pool_.trouble_since = Instant::never();
    else pool_.trouble_since = std::min(pool_.trouble_since, sent_);
    pool_.under_way = pool_.gathers = !pool_.waiting.empty();
    if (!pool_.under_way) return;
    pool_.waiting.front()->state = GroupedGrain::leads;
    pool_.waiting.front()->bell->ring();
    pool_.waiting.erase(pool_.waiting.begin());
}

Group::~Group() {
    if (!leads_) return;
    let_next_lead();
    BellPtr last;
    for (std::size_t i = 1; i < grains_.size(); ++i) {
        grains_[i]->status = status;
        grains_[i]->state = GroupedGrain::done;
        if (last && last != grains_[i]->bell) last->ring();
        last = grains_[i]->bell;
    }
    if (last) last->ring();
}

}  // namespace dcs::client
