#pragma once
// The connections of browsers: GET and HEAD, and the stream of events. One thread, bounded in everything.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "access.h"
#include "base/status.h"
#include "collector.h"

namespace dcs::commands::page {

// How many connections there may be: those of the page's readers, and apart from them those of others.
struct Places {
    static constexpr std::size_t most_own = 256, most_of_others = 64, most_of_other = 4;
    std::size_t own = 0, of_others = 0;
    std::map<std::string, std::size_t> of_other;  // by user, or by address

    // One user, or address, takes no places of another, such as Prometheus.
    bool has(const std::string &peer, bool is_own, std::size_t most_of_it = most_of_other) const {
        if (is_own) return own < most_own;
        const auto it = of_other.find(peer);
        return of_others < most_of_others && (it == of_other.end() || it->second < most_of_it);
    }
};

// The place of a connection, as long as it lives.
class Seat {
public:
    Seat(Places &places, std::string peer, bool is_own) : places_(places), peer_(std::move(peer)), own_(is_own) {
        if (own_) ++places_.own;
        else ++places_.of_others, ++places_.of_other[peer_];
    }
    ~Seat() { leave(); }
    Seat(const Seat &) = delete;
    Seat &operator=(const Seat &) = delete;
    // Its peer has shown to be a reader. False: there are as many as may be.
    bool becomes_own() {
        if (own_) return true;
        if (!places_.has(peer_, true)) return false;
        leave();
        own_ = true;
        ++places_.own;
        return true;
    }

private:
    void leave() {
        if (own_) --places_.own;
        else if (--places_.of_others, --places_.of_other[peer_] == 0) places_.of_other.erase(peer_);
    }
    Places &places_;
    const std::string peer_;
    bool own_;
};

struct Place {            // where it listens
    std::string path;     // a Unix socket; empty: TCP
    std::string address;  // of TCP; empty: 127.0.0.1
    std::uint16_t port = 0;
    bool any_port = false;         // if that one is taken
    std::optional<Access> access;  // with an address: TLS, and a token
};

class Server {
public:
    // `metrics_for_all`: every login of this host may read /metrics; everything else is for the own user and root.
    Server(Place place, bool metrics_for_all);
    ~Server();
    Status listen();
    std::string url() const;
    // Called from any thread.
    void publish(std::shared_ptr<const Published> published);
    // Until `signals`, a signalfd, is readable.
    void serve(Collector &collector, int signals);

private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

}  // namespace dcs::commands::page
