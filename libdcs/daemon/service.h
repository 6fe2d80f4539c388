#pragma once
// A daemon as a service: the signals that it gets, and what it tells who started it.
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace dcs {

// As a descriptor to watch: no handlers run in a daemon.
class Signals {
public:
    // Blocks SIGTERM, SIGINT and SIGHUP and ignores SIGPIPE and SIGXFSZ (a file at its limit is a full disk), for the
    // whole process: call it before any thread starts. Programs started by spawn() get all of them back.
    static Result<Signals> open();

    int fd() const { return fd_.get(); }  // readable when next() has something
    int next();                           // the number of a signal that came; 0: none

private:
    explicit Signals(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

// The service manager (sd_notify(3)). Its socket is connected once, before a daemon gives up what it takes to reach one
// by name.
class ServiceManager {
public:
    ServiceManager() = default;  // none: tell() does nothing
    // That of $NOTIFY_SOCKET, a path or "@abstract"; none if that is not set. The variable is taken out of the
    // environment: what this process starts does not speak for it.
    static Result<ServiceManager> from_environment();

    // The same, for a daemon that serves without one as well: what is wrong is a line of the log.
    static ServiceManager find();

    // One datagram, as "READY=1\nSTATUS=serving". Never waits; a manager that has gone or does not read is a line of
    // the log, and no reason to end.
    void tell(const std::string &state) const;

private:
    explicit ServiceManager(Fd socket) : socket_(std::move(socket)) {}
    Fd socket_;
};

// --ready-fd, before this daemon opens anything, which could get the number of a closed descriptor.
Status check_ready_fd(int fd);
// For the process that started this daemon with --ready-fd. Writes "ready\n" to fd and closes it; fd < 0: nothing to
// do. A reader that has gone is no failure.
Status tell_ready(int fd);

}  // namespace dcs
