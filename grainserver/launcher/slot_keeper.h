#pragma once
// The slot keeper: a process beside each launcher that holds copies of the grains' slots. The kernel frees a slot with
// its last copy, and no grain has one; so a slot stays taken though launcher and server are killed, until
// the keeper has seen that the grain's last process is gone.
#include <string>

#include <sys/types.h>

#include "base/files.h"
#include "grainserver/launcher/cgroups.h"

namespace dcs::launcher {

class SlotKeeper {
public:
    // A new process. `grains`: path of the directory that holds the grains' directories.
    Status start(const std::string &grains, const Cgroups &cgroups);
    pid_t pid() const { return pid_; }
    int fd() const { return socket_.get(); }  // -1 or readable: the keeper is gone
    // From now on it has a copy, whatever becomes of us. False: it is gone, start another and tell it everything.
    bool hold(const std::string &dir, int slot);
    // When it returns the keeper has none any more. False: as above.
    bool drop(const std::string &dir);
    // An orderly end of ours: waits until it has gone too. Only if it holds nothing any more.
    void finish();

private:
    bool known(bool good);
    Fd socket_;
    pid_t pid_ = 0;
};

}  // namespace dcs::launcher
