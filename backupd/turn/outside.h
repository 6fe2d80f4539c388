#pragma once
// The environment of the backup's turn. Implemented by backupd/shell/serve and by the simulator.
#include <string>
#include <vector>

#include "backupd/core/state.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/severity.h"
#include "store/store.h"
#include "wire/message.h"

namespace dcs::backup {

using Level = Severity;

class Outside {
public:
    virtual ~Outside() = default;
    virtual Instant now() = 0;
    virtual double jitter() = 0;  // a fresh random number in [0, 1)
    // Queues one frame; an unknown or closed connection is ignored.
    virtual void send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) = 0;
    virtual void close(ConnId conn) = 0;
    // Connects to the scheduler; Turn::take() is called with opened or closed for it, never during this call.
    virtual Result<ConnId> connect() = 0;
    // Saves the accepted certificates; the next start loads them.
    virtual void save(const Members &members) = 0;
    // The scheduler's answer to the request for a new certificate.
    virtual void renewed(const wire::Renewed &answer) = 0;
    virtual void log(Level level, const std::string &line) = 0;
    // Starts Store::commit(updates, room) elsewhere; Turn::committed() is called with the answer later.
    virtual void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) = 0;
    // The disk is in doubt: logs `why` and ends the process. In a test it may return; the Turn is dead from then on.
    virtual void fatal(const std::string &why) = 0;
};

}  // namespace dcs::backup
