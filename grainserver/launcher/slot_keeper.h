#pragma once
// The slot keeper: a process beside each launcher that holds copies of the grains' slots. The kernel frees a slot with
// its last copy, and no grain has one. So a slot stays taken even if launcher and server are killed, until
// the keeper has seen the end of the grain's last process.
#include <string>

#include <sys/types.h>

#include "base/files.h"
#include "grainserver/starter/starter_client.h"

namespace dcs::launcher {

class SlotKeeper {
public:
    // Starts the process, or another one. Its code is starter/keep_slots.cc.
    Status start(starter::StarterClient &starter);
    pid_t pid() const { return pid_; }
    int fd() const { return socket_.get(); }  // -1 or readable: the keeper has ended
    // On return the keeper has a copy, independent of the launcher. False: it has ended; start another and repeat all.
    // `leaf`: the grain's control group; empty: none.
    bool hold(const std::string &dir, const std::string &leaf, int slot);
    // The claim to anonymous uids, as long as it lives.
    bool hold_uids(int claim);
    // The slot that the keeper has for `from` is that of `dir` now. False: as above.
    bool hand_on(const std::string &from, const std::string &dir, const std::string &leaf);
    // On return the keeper has no copy any more. False: as above.
    bool drop(const std::string &dir);
    // For an orderly exit of the launcher: waits until the keeper has ended. Only if it holds no slot.
    void finish();

private:
    bool known(bool good);
    bool ring();
    Fd socket_, bell_;
    int unread_ = 0;
    pid_t pid_ = 0;
};

}  // namespace dcs::launcher
