#pragma once
// What has arrived and waits for its turn. Choice is fair: grain servers' frames go before users'
// in the ratio 4:1 while both wait (SPEC S1); among servers each link, and among control programs
// each login name, gets one frame after the other (A7). Frames of one connection keep their order.
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "scheduler/core/input.h"
#include "wire/message.h"

namespace dcs::turn {

enum class Door : std::uint8_t { user, server, join };  // join: other hosts that have no certificate yet

struct Arrival {
    enum class Kind : std::uint8_t { opened, frame, closed };
    Kind kind = Kind::frame;
    ConnId conn = 0;
    // opened only: through which door, and who the kernel says it is
    Door door = Door::user;
    std::string user;
    bool privileged = false;
    core::Certified certified;  // server: who it is by its certificate
    std::string address;        // server, join: of another host
    // frame only
    wire::FrameHeader header;
    std::string payload;
    // closed only
    std::string why;
};

class Intake {
public:
    static constexpr int server_share = 4;

    // `user`: the login name behind a user's connection.
    void put(Door door, const std::string &user, Arrival arrival);
    std::optional<Arrival> take();
    std::size_t count() const { return count_; }
    std::size_t bytes() const { return bytes_; }
    bool empty() const { return count_ == 0; }

private:
    struct Lane {
        std::string user;
        ConnId conn = 0;
        auto operator<=>(const Lane &) const = default;
    };
    struct Group {
        std::map<Lane, std::deque<Arrival>> lanes;
        Lane last;
        bool empty() const { return lanes.empty(); }
        Arrival take();
    };
    Group servers_, users_;
    int servers_in_a_row_ = 0;
    std::size_t count_ = 0, bytes_ = 0;
};

}  // namespace dcs::turn
