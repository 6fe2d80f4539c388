#pragma once
// The server's side of the launcher's socket. The launcher is started when none serves the directory;
// it is a process of its own session and stays when this server ends.
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
    // `directory` is absolute. `start` starts the launcher there, unless one that it has started lives.
    void open(const std::string &directory, std::function<Status()> start);
    // Connects, starts the launcher, tries again: call it when retry_at() has passed. True when it has
    // just connected: watch fd(). `why` says what went wrong, once per outage.
    bool maintain(Instant now, std::string &why);
    Instant retry_at() const { return retry_at_; }
    int fd() const { return socket_.get(); }  // -1 while down
    // The launcher is gone, and calls may not have reached it. Stop watching fd(), then close().
    bool broken() const { return broken_; }
    void close();
    // Kept and sent in order when the launcher takes it; dropped while it is down (the core repeats).
    void send(const files::LauncherCall &call);
    // Everything that the launcher said so far.
    std::vector<files::LauncherCall> read();
    // The launcher was started from another file than `program` is now; also one that does not say from which.
    bool outdated(const std::string &program) const;

private:
    bool connect();
    void flush();

    std::string directory_;
    std::function<Status()> start_;
    Fd base_, socket_;
    pid_t peer_ = 0;
    std::deque<std::string> waiting_;
    int tries_ = 0;
    bool broken_ = false;
    Instant retry_at_{};
};

}  // namespace dcs::server
