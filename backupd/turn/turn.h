#pragma once
// One turn of the backup, in the structure of the scheduler's (scheduler/turn/turn.h): take the arrivals, decide on
// each with the State left by the one before, apply, commit, and only then perform the effects. The commit's answer:
//   done      the effects are performed
//   nothing   everything is reverted; new reports are refused (`later`), reports may be forgotten with the reserve
//   unknown   no reply is sent, and the process ends
#include <deque>
#include <string>
#include <vector>

#include "backupd/core/state.h"
#include "backupd/record/record.h"
#include "base/ids.h"
#include "base/instant.h"
#include "base/severity.h"
#include "store/store.h"
#include "wire/message.h"

namespace dcs::backup {

using Level = Severity;

// The environment of the backup's turn. Implemented by backupd/shell/serve and by the simulator.
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

struct Arrival {
    enum class Kind : std::uint8_t { opened, frame, closed };
    Kind kind = Kind::frame;
    ConnId conn{};
    wire::FrameHeader header;
    std::string payload;
    std::string why;  // closed
    Guest guest;      // for a peer on another host: the data of its certificate, with each frame
};

class Turn {
public:
    // `store` and `outside` outlive it. The store is read in run() and committed() only.
    Turn(State state, store::Store &store, Outside &outside);
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

    // From a peer that is permitted, or from the connection that Outside::connect() made.
    void take(Arrival arrival);
    // If true, the caller should not read from sockets until the commit in flight is answered.
    bool full() const { return waiting_bytes_ >= limits::bytes_per_turn; }
    // Runs turns until nothing is left to decide or a commit is in flight.
    void run();
    bool committing() const { return phase_ == Phase::committing; }
    void committed(const store::CommitResult &result);
    // run() must be called at that time even if nothing arrives before.
    Instant next_wakeup() const { return phase_ == Phase::open ? next_deadline(state_) : Instant::never(); }

    const State &state() const { return state_; }
    // From the next turn on; what is held already stays.
    void hold_at_most(std::uint64_t bytes) { state_.most_bytes = bytes; }
    // The connection to a scheduler that knows this backup; 0: there is none.
    ConnId scheduler() const { return state_.link == Link::ready ? link_ : no_connection; }

private:
    enum class Phase : std::uint8_t { open, committing, dead };
    struct Performer;
    friend struct Performer;

    bool gather();
    void take_one(Arrival arrival);
    void of_scheduler(const Arrival &arrival);
    void of_peer(const Arrival &arrival);
    void server_calls(const Arrival &arrival, const wire::FirstCall &call);
    void hang_up(ConnId conn, const std::string &why);
    void decide_all(const Input &input, bool may_hold);
    void start_commit(store::Room room);
    void decide_again(const Status &why);
    void finish();
    void hand_over(const HandOver &order);

    State state_;
    store::Store &store_;
    Outside &outside_;
    Phase phase_ = Phase::open;
    ConnId link_{};  // to the scheduler
    std::deque<Arrival> waiting_;
    std::uint64_t waiting_bytes_ = 0;
    std::deque<Input> again_;  // internal inputs

    store::Room room_ = store::Room::ordinary;

    // of the turn at hand
    std::vector<Input> taken_;
    Undo undo_;
    record::TurnChanges changes_;
    std::vector<Effect> effects_;
    std::vector<std::string> events_;
};

}  // namespace dcs::backup
