#pragma once
// The connections of browsers: GET and HEAD, and the stream of events. One thread, bounded in everything.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "access.h"
#include "base/status.h"
#include "collector.h"

namespace dcs::commands::page {

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
