#pragma once
// The server's side of the launcher's socket. The launcher is started when none serves the directory;
// it is a process of its own session and stays when this server ends.
#include <deque>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/instant.h"
#include "base/status.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/files/small_file.h"

namespace dcs::server {

class LauncherClient {
public:
    struct Options {
        std::string name;
        std::string slots;   // directory of slots; empty: the launcher's own
        bool cgroups = true;
    };
    // `program`: path of dcs_launcher. `directory` is absolute.
    void open(const std::string &directory, const std::string &program, Options options);
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

private:
    bool connect();
    Status spawn();
    void reap();
    void flush();

    std::string directory_, program_;
    Options options_;
    files::Fd base_, socket_;
    std::deque<std::string> waiting_;
    pid_t child_ = 0;
    int tries_ = 0;
    bool broken_ = false;
    Instant retry_at_{};
};

}  // namespace dcs::server
