#include "scheduler/turn/intake.h"

namespace dcs::turn {

void Intake::put(Door door, const std::string &user, Arrival arrival) {
    ++count_;
    bytes_ += arrival.payload.size();
    Group &group = door == Door::server ? servers_ : users_;
    const Lane lane = door == Door::server ? Lane{"", arrival.conn} : Lane{user, 0};
    group.lanes[lane].push_back(std::move(arrival));
}

Arrival Intake::Group::take() {
    auto lane = lanes.upper_bound(last);
    if (lane == lanes.end()) lane = lanes.begin();
    last = lane->first;
    Arrival arrival = std::move(lane->second.front());
    lane->second.pop_front();
    if (lane->second.empty()) lanes.erase(lane);
    return arrival;
}

std::optional<Arrival> Intake::take() {
    if (empty()) return std::nullopt;
    const bool server =
        !servers_.empty() && (users_.empty() || servers_in_a_row_ < server_share);
    servers_in_a_row_ = server && !users_.empty() ? servers_in_a_row_ + 1 : 0;
    Arrival arrival = (server ? servers_ : users_).take();
    --count_;
    bytes_ -= arrival.payload.size();
    return arrival;
}

}  // namespace dcs::turn
