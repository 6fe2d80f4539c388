#pragma once
// What has arrived and waits for its turn. Choice is fair: grain servers' frames go before users' in the ratio 4:1
// while both wait, operators and other users take turns; among servers each link, and among users each login
// name, gets one frame after the other, and who brought much work waits until the others had as much. No host, and no
// user but operators, gets more than a part of one turn, nor more than some milliseconds of it while others wait; and
// these users may have no more waiting than UserLimits says. Frames of one connection keep their order.
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "scheduler/state/input.h"
#include "scheduler/turn/user_limits.h"
#include "wire/message.h"

namespace dcs::turn {

// join: other hosts that have no certificate yet; begin: dcs_begin of another host; backup: the passive backup of one.
enum class Door : std::uint8_t { user, server, join, begin, backup };
// Links that are kept, and go before users.
constexpr bool is_link(Door door) { return door == Door::server || door == Door::backup; }

struct Arrival {
    enum class Kind : std::uint8_t { opened, frame, closed };
    Kind kind = Kind::frame;
    ConnId conn{};
    // opened only: through which door, and who the kernel says it is
    Door door = Door::user;
    std::string user;
    bool privileged = false;
    core::Certified certified;  // of another host: who it is by its certificate
    std::string address;        // where it comes from
    // frame only
    Instant at{};  // when it came; the Turn notes it
    wire::FrameHeader header;
    std::string payload;
    // closed only
    std::string why;
};

class Intake {
public:
    static constexpr int server_share = 4;    // frames of grain servers to one of users
    static constexpr int operator_share = 1;  // frames of operators to one of other users

    // `user`: the login name behind a user's connection.
    void put(Door door, const std::string &user, Arrival arrival, bool privileged = false);
    // A named error (limit) if what this user has waiting is at its limit; ends of connections are always
    // taken. Nothing for other doors: their connections are counted.
    Status room_for(Door door, const std::string &user, const Arrival &arrival) const;
    // The next; none: nothing waits but of users who had their share of this turn.
    std::optional<Arrival> take();
    // What was taken last turned out to be so much work, in small requests; a batch counts its grains.
    void charge(std::size_t weight);
    // And took so long.
    void spent(Duration time);
    void begin_turn();
    void set_limits(const UserLimits &limits) { limits_ = limits; }
    std::size_t count() const { return count_; }
    std::size_t bytes() const { return bytes_; }
    bool empty() const { return count_ == 0; }

private:
    struct Name {
        std::string user;
        ConnId conn{};
        auto operator<=>(const Name &) const = default;
    };
    struct Lane {
        std::deque<Arrival> waiting;
        std::size_t bytes = 0;
        std::int64_t credit = 0;                      // below 1: others first
        std::size_t turn_weight = 0, turn_bytes = 0;  // of this turn
        Duration turn_time{};
    };
    struct Group {
        std::map<Name, Lane> lanes;
        Name last;
        std::size_t count = 0;
        std::optional<Arrival> take(const UserLimits *share, std::size_t of_all);
        Lane *next(const UserLimits *share, std::size_t of_all);
    };
    // of_all: what waits, this lane's included.
    static bool has_share(const Lane &lane, const UserLimits *share, std::size_t of_all);
    Lane *taken_from();

    UserLimits limits_;
    Group servers_, operators_, users_;
    Group *last_ = nullptr;
    int servers_in_a_row_ = 0, operators_in_a_row_ = 0;
    std::size_t count_ = 0, bytes_ = 0;
};

}  // namespace dcs::turn
