#pragma once
// The server's side of the launcher's socket. Starts the launcher if none serves the directory;
// it is a process of its own session and survives this server.
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/instant.h"
#include "base/status.h"
#include "grainserver/files/launcher_calls.h"
#include "base/files.h"

namespace dcs::server {

class LauncherClient {
public:
    // `directory` is absolute. `start` starts the launcher there, unless one that it started is alive.
    void open(const std::string &directory, std::function<Status()> start);
    // Connects, starts the launcher, retries: call it when retry_at() has passed. True if it has
    // just connected: watch fd(). `why` receives the error, once per outage.
    bool maintain(Instant now, std::string &why);
    Instant retry_at() const { return retry_at_; }
    int fd() const { return socket_.get(); }  // -1 while down
    // The launcher has ended, and calls may be lost. Stop watching fd(), then call close().
    bool broken() const { return broken_; }
    void close();
    // For flush(), in order; dropped while the launcher is down (the core repeats it).
    void send(const files::LauncherCall &call);
    bool has_calls() const { return !waiting_.empty(); }
    void flush();                            // as far as the launcher accepts them
    bool queues() const { return queues_; }  // it knows QUEUE, FIRST, RECALL, and several calls in a packet
    bool counts() const { return counts_; }  // no control groups limit grains, although it may use them
    // All messages that the launcher has sent since the last call.
    std::vector<files::LauncherCall> read();
    // Whether the launcher was started from another file than the present `program`; true if its file is not known.
    bool outdated(const std::string &program) const;

private:
    bool connect();

    std::string directory_;
    std::function<Status()> start_;
    Fd base_, socket_;
    pid_t peer_ = 0;
    std::deque<std::string> waiting_;
    int tries_ = 0;
    bool broken_ = false, queues_ = false, counts_ = false;
    Instant retry_at_{};
};

}  // namespace dcs::server
