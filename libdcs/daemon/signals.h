#pragma once
// Signals as a descriptor to watch: no handlers run in a daemon.
#include <utility>

#include "base/fd.h"
#include "base/status.h"

namespace dcs {

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

}  // namespace dcs
