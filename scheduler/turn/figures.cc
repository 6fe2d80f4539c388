#include "scheduler/turn/figures.h"

#include <algorithm>
#include <iterator>

namespace dcs::turn {
namespace {

constexpr Duration look_pause = seconds(5);
// A queue that grew in more looks than this forgets some of them: its grains may then seem older than they are.
constexpr std::size_t most_marks = 32;
constexpr const char *words[] = {"submit", "wait", "query", "change", "report", "commit"};

struct KindOfCall {
    Figures::Of operator()(const core::SubmitGrain &) const { return Figures::Of::submit; }
    Figures::Of operator()(const core::SubmitGrains &) const { return Figures::Of::submit; }
    Figures::Of operator()(const wire::Gwait &) const { return Figures::Of::wait; }
    Figures::Of operator()(const wire::GwaitMany &) const { return Figures::Of::wait; }
    Figures::Of operator()(const wire::Query &) const { return Figures::Of::query; }
    Figures::Of operator()(const wire::Fetch &) const { return Figures::Of::query; }
    Figures::Of operator()(const wire::ExportPage &) const { return Figures::Of::query; }
    Figures::Of operator()(const wire::Doctor &) const { return Figures::Of::query; }
    Figures::Of operator()(const wire::Explain &) const { return Figures::Of::query; }
    Figures::Of operator()(const core::ListCodes &) const { return Figures::Of::query; }
    template <class Other> Figures::Of operator()(const Other &) const { return Figures::Of::change; }
};

bool any_ready(const core::Session &session, std::int64_t from, std::int64_t end) {
    return std::any_of(session.ready.begin(), session.ready.end(),
                       [&](const auto &shape) { return shape.second.grains.any_in(from, end); });
}

}  // namespace

std::optional<Figures::Of> Figures::kind_of(const core::Input &input) {
    if (const auto *call = std::get_if<core::UserCall>(&input)) return std::visit(KindOfCall{}, call->request);
    if (std::holds_alternative<core::ServerReport>(input) || std::holds_alternative<core::ServerCallIn>(input) ||
        std::holds_alternative<core::ServerLaunchResult>(input))
        return Of::report;
    return std::nullopt;
}

void Figures::took(Of of, Duration d) {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, d.ns) / 1000);
    Spread &spread = spreads_[static_cast<std::size_t>(of)];
    const auto bound = std::lower_bound(bounds_us.begin(), bounds_us.end(), us);
    ++spread.counts[static_cast<std::size_t>(bound - bounds_us.begin())];
    spread.sum_us += us;
}

void Figures::look_at(Queue &queue, const core::Session &session, Instant now) {
    const core::SessionInfo &info = session.info;
    const bool another = info.queue_front > queue.front || info.queue_back < queue.back;  // has taken its number
    if (queue.since.empty() || another) {
        queue.since = {{info.queue_front, now}};
    } else {
        if (info.queue_front < queue.front) queue.since[info.queue_front] = now;
        if (info.queue_back > queue.back) queue.since[queue.back] = now;
    }
    queue.front = info.queue_front, queue.back = info.queue_back;
    if (queue.since.size() <= most_marks) return;
    for (auto it = queue.since.begin(); queue.since.size() > 1 && it != queue.since.end();) {
        const auto next = std::next(it);
        const std::int64_t end = next == queue.since.end() ? info.queue_back : next->first;
        it = any_ready(session, it->first, end) ? next : queue.since.erase(it);
    }
    for (auto it = queue.since.begin(); queue.since.size() > most_marks / 2 && it != queue.since.end(); ++it)
        if (const auto next = std::next(it); next != queue.since.end()) {
            it->second = std::min(it->second, next->second);
            queue.since.erase(next);
        }
}

void Figures::look(const core::State &state, Instant now) {
    next_look_ = now + look_pause;
    for (const auto &[seniority, key] : state.by_seniority) look_at(queues_[key], *state.session(key), now);
    if (queues_.size() == state.by_seniority.size()) return;
    std::erase_if(queues_, [&](const auto &queue) {
        const core::Session *session = state.session(queue.first);
        return session == nullptr || session->info.status != core::SessionStatus::active;
    });
}

Duration Figures::oldest(const core::State &state, Instant now) const {
    Instant first = now;
    for (const auto &[key, queue] : queues_) {
        const core::Session *session = state.session(key);
        if (session == nullptr) continue;
        for (auto it = queue.since.begin(); it != queue.since.end(); ++it) {
            if (it->second >= first) continue;
            const auto next = std::next(it);
            const std::int64_t end = next == queue.since.end() ? queue.back : next->first;
            if (any_ready(*session, it->first, end)) first = it->second;
        }
    }
    return now - first;
}

void Figures::tell(const core::State &state, Instant now, wire::SystemRow &row) {
    row.bounds_us.assign(bounds_us.begin(), bounds_us.end());
    row.delays.clear();
    for (std::size_t i = 0; i < kinds; ++i)
        row.delays.push_back({words[i], {spreads_[i].counts.begin(), spreads_[i].counts.end()}, spreads_[i].sum_us});
    look(state, now);
    row.oldest_ready_s = oldest(state, now).seconds();
}

}  // namespace dcs::turn
