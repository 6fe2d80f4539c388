#pragma once
// Signals as a descriptor to watch: no handlers run in a daemon.
#include "base/status.h"

namespace dcs {

class Signals {
public:
    // Blocks SIGTERM, SIGINT and SIGHUP and ignores SIGPIPE, for the whole process: call it before any
    // thread starts. Programs started by spawn() get all of them back.
    static Result<Signals> open();
    Signals(Signals &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    Signals &operator=(Signals &&other) = delete;
    ~Signals();

    int fd() const { return fd_; }  // readable when next() has something
    int next();                     // the number of a signal that came; 0: none

private:
    explicit Signals(int fd) : fd_(fd) {}
    int fd_;
};

}  // namespace dcs
