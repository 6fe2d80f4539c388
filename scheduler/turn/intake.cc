#include "scheduler/turn/intake.h"

#include <algorithm>

#include "base/limits.h"
#include "base/load_limits.h"
#include "base/planted.h"

namespace dcs::turn {
namespace {

// What a lane may take before others that wait are served, and what a frame costs of it: one for being a request, more
// for its bytes.
constexpr std::int64_t quantum = 64;
constexpr std::size_t bytes_per_credit = 4096;

std::int64_t cost_of(const Arrival &arrival) {
    return 1 + static_cast<std::int64_t>(arrival.payload.size() / bytes_per_credit);
}

Status too_much(const std::string &user, const std::string &what, const std::string &limit, std::size_t most) {
    return fail(Code::limit, user + " has " + what + " waiting for the scheduler, but the limit `" + limit +
                                 " allows " + std::to_string(most) +
                                 ": wait for answers before sending more, or combine requests into batches");
}

}  // namespace

void Intake::put(Door door, const std::string &user, Arrival arrival, bool privileged) {
    ++count_;
    bytes_ += arrival.payload.size();
    Group &group = is_link(door) ? servers_ : privileged ? operators_ : users_;
    const Name name = is_link(door) ? Name{"", arrival.conn} : Name{user, no_connection};
    const auto [place, fresh] = group.lanes.try_emplace(name);
    Lane &lane = place->second;
    if (fresh) lane.credit = quantum;
    lane.bytes += arrival.payload.size();
    ++group.count;
    lane.waiting.push_back(std::move(arrival));
}

Status Intake::room_for(Door door, const std::string &user, const Arrival &arrival) const {
    if (door != Door::user || arrival.kind != Arrival::Kind::frame) return Status::ok();
    const auto found = users_.lanes.find(Name{user, no_connection});
    if (found == users_.lanes.end()) return Status::ok();
    const Lane &lane = found->second;
    if (lane.waiting.size() >= limits_.queued_requests)
        return too_much(user, std::to_string(lane.waiting.size()) + " requests", "queued_requests",
                        limits_.queued_requests);
    if (!lane.waiting.empty() && lane.bytes + arrival.payload.size() > limits_.queued_bytes)
        return too_much(user, std::to_string(lane.bytes) + " bytes of requests", "queued_bytes", limits_.queued_bytes);
    return Status::ok();
}

bool Intake::has_share(const Lane &lane, const UserLimits *share, std::size_t of_all) {
    if (lane.waiting.empty()) return false;
    if (share == nullptr) return true;
    const bool alone = of_all == lane.waiting.size() || planted("turn.all_the_time");
    return lane.turn_weight < share->requests_per_turn && lane.turn_bytes < share->bytes_per_turn &&
           (alone || lane.turn_time < milliseconds(limits::own_turn_ms));
}

// One frame of each lane in turn that has credit left; when none has, all get some. A lane that owes more than
// that is passed over some times.
Intake::Lane *Intake::Group::next(const UserLimits *share, std::size_t of_all) {
    if (count == 0) return nullptr;
    for (;;) {
        bool any_peer = false;
        auto lane = lanes.upper_bound(last);
        for (std::size_t i = 0; i < lanes.size(); ++i, ++lane) {
            if (lane == lanes.end()) lane = lanes.begin();
            if (!has_share(lane->second, share, of_all)) continue;
            any_peer = true;
            if (lane->second.credit < 1) continue;
            last = lane->first;
            return &lane->second;
        }
        if (!any_peer) return nullptr;
        for (auto it = lanes.begin(); it != lanes.end();) {
            it->second.credit = std::min(it->second.credit + quantum, quantum);
            const bool gone = it->second.waiting.empty() && it->second.credit == quantum;
            it = gone ? lanes.erase(it) : std::next(it);
        }
    }
}

std::optional<Arrival> Intake::Group::take(const UserLimits *share, std::size_t of_all) {
    Lane *lane = next(share, of_all);
    if (!lane) return std::nullopt;
    DCS_REQUIRE(!lane->waiting.empty(), "a lane that has a share has something waiting");
    DCS_REQUIRE(lane->bytes >= lane->waiting.front().payload.size(), "a lane counts its bytes");
    Arrival arrival = std::move(lane->waiting.front());
    lane->waiting.pop_front();
    --count;
    lane->bytes -= arrival.payload.size();
    lane->credit -= cost_of(arrival);
    lane->turn_weight += 1;
    lane->turn_bytes += arrival.payload.size();
    return arrival;
}

Intake::Lane *Intake::taken_from() {
    if (!last_) return nullptr;
    const auto lane = last_->lanes.find(last_->last);
    return lane == last_->lanes.end() ? nullptr : &lane->second;
}

void Intake::charge(std::size_t weight) {
    Lane *lane = weight > 1 ? taken_from() : nullptr;
    if (!lane) return;
    lane->credit -= static_cast<std::int64_t>(weight - 1);
    lane->turn_weight += weight - 1;
}

void Intake::spent(Duration time) {
    if (Lane *lane = taken_from()) lane->turn_time = lane->turn_time + time;
}

// Lanes in which nothing waits are kept only while they owe something.
void Intake::begin_turn() {
    for (Group *group : {&servers_, &operators_, &users_})
        for (auto it = group->lanes.begin(); it != group->lanes.end();) {
            it->second.turn_weight = it->second.turn_bytes = 0;
            it->second.turn_time = {};
            const bool gone = it->second.waiting.empty() && (it->second.credit > 0 || group->count == 0);
            it = gone ? group->lanes.erase(it) : std::next(it);
        }
    last_ = nullptr;
}

std::optional<Arrival> Intake::take() {
    static const UserLimits of_host{
        .requests_per_turn = planted("turn.hosts_without_end") ? SIZE_MAX : limits::host_requests_per_turn,
        .bytes_per_turn = SIZE_MAX};
    const auto take_of = [&](Group &group) {
        last_ = &group;
        return group.take(&group == &users_ ? &limits_ : &group == &servers_ ? &of_host : nullptr, count_);
    };
    const bool server =
        servers_.count > 0 && (operators_.count + users_.count == 0 || servers_in_a_row_ < server_share);
    servers_in_a_row_ = server && operators_.count + users_.count > 0 ? servers_in_a_row_ + 1 : 0;
    Group *first = &servers_;
    if (!server) {
        const bool operators = operators_.count > 0 && (users_.count == 0 || operators_in_a_row_ < operator_share);
        operators_in_a_row_ = operators && users_.count > 0 ? operators_in_a_row_ + 1 : 0;
        first = operators ? &operators_ : &users_;
    }
    auto arrival = take_of(*first);
    // What is left of those had its share; but the others go on.
    for (Group *other : {&servers_, &operators_, &users_})
        if (!arrival && other != first) arrival = take_of(*other);
    if (!arrival) return std::nullopt;
    DCS_REQUIRE(count_ > 0 && bytes_ >= arrival->payload.size(), "what is taken was counted");
    --count_;
    bytes_ -= arrival->payload.size();
    return arrival;
}

}  // namespace dcs::turn
