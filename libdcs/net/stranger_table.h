#pragma once
// Peers of a TLS door that have not shown a certificate yet: how many there may be, of one network and in all, and who
// makes room when there are more. Newcomers are let in: a host that has something to say is through its handshake in a
// moment, so room is made by those who keep silent for longer than that, and then by those who have taken longest.
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/instant.h"

namespace dcs::net {

class StrangerTable {
public:
    struct Bounds {
        std::size_t all, of_network;
    };
    explicit StrangerTable(Bounds bounds) : bounds_(bounds) {}

    // A newcomer from `network`. The stranger that has to go for it, if one has to; the newcomer's own number, if it is
    // the one. Numbers grow.
    std::optional<ConnId> add(ConnId conn, const std::string &network);
    void spoke(ConnId conn);  // its first bytes are there
    void remove(ConnId conn);
    // A certificate was shown from there: for a day it keeps its share when others crowd in.
    void trust(const std::string &network, Instant now);
    bool trusted(const std::string &network, Instant now) const;
    std::size_t size() const { return strangers_.size(); }
    // Instant of the last call that told the time; add() judges by it.
    void tell_time(Instant now) { now_ = now; }

private:
    struct Stranger {
        std::string network;
        Instant since;
        bool spoke = false;
    };
    std::optional<ConnId> victim(const std::string *network) const;
    Bounds bounds_;
    Instant now_{};
    std::map<ConnId, Stranger> strangers_;  // the oldest first
    std::map<std::string, std::size_t> of_network_;
    std::map<std::string, Instant> shown_;  // by network: until when it is trusted; bounded
};

}  // namespace dcs::net
