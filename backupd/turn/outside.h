#pragma once
// Everything that the backup's turn may ask of the world. One real twin (backupd/shell/serve), one in the simulator.
#include <string>
#include <vector>

#include "backupd/core/state.h"
#include "base/ids.h"
#include "base/instant.h"
#include "store/store.h"
#include "wire/message.h"

namespace dcs::backup {

enum class Level : std::uint8_t { debug, info, warning, error };

class Outside {
public:
    virtual ~Outside() = default;
    virtual Instant now() = 0;
    virtual double jitter() = 0;  // a fresh random number in [0, 1)
    // Queues one frame; an unknown or closed connection is ignored.
    virtual void send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) = 0;
    virtual void close(ConnId conn) = 0;
    // To the scheduler; Turn::take() gets opened or closed for it, never from in here.
    virtual Result<ConnId> connect() = 0;
    // Keeps whose certificates count; a start begins with what was kept last.
    virtual void save(const Members &members) = 0;
    // The scheduler's answer to the wish for a new certificate.
    virtual void renewed(const wire::Renewed &answer) = 0;
    virtual void log(Level level, const std::string &line) = 0;
    // Starts Store::commit(updates, room) elsewhere; Turn::committed() is called with the answer later.
    virtual void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) = 0;
    // The disk is in doubt: says so and ends the process. A test's twin may return; the Turn is dead from then on.
    virtual void fatal(const std::string &why) = 0;
};

}  // namespace dcs::backup
