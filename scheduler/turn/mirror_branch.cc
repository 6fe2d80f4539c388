// Whether the backup's copy continues this store, or one that this store was before it was restored from an earlier
// state. Such a copy has acknowledged work that is nowhere else, and stays as it is until an operator moves it away.
//
// Turns have numbers only, so the copy of another branch looks like one that is behind as soon as the store has as many
// turns. But this store's own copy has no turn that was not sent to it: none after the last one of the store when it
// was opened, or that was sent since. As long as the copy has not been seen, the record keeps that number for the next
// start.
#include <algorithm>

#include "base/known_words.h"
#include "scheduler/turn/mirror.h"

namespace dcs::turn {

void Mirror::begin_watch() {
    recorded_ = setup_.own_up_to;
    own_up_to_ = recorded_ == 0 ? last_turn_ : std::min(recorded_, last_turn_);
    if (recorded_ == own_up_to_) return;
    if (const Status s = record(own_up_to_); !s)
        outside_.log(Level::error, "which turns the backup's copy may have cannot be recorded: " + s.text);
}

// In the other modes what was recorded in mode `sync` remains.
Status Mirror::record(std::uint64_t own_up_to) {
    const Attachment kept = setup_.mode == MirrorMode::sync ? attachment_ : setup_.attachment;
    if (Status s = outside_.remember(kept, own_up_to); !s) return s;
    recorded_ = own_up_to;
    return Status::ok();
}

void Mirror::sent_up_to(std::uint64_t turn) { own_up_to_ = std::max(own_up_to_, turn); }

// Why the copy there is not this store's; empty: it is, or there is none.
std::string Mirror::ahead(const wire::MirrorCall &call) const {
    const store::Identity &ours = setup_.identity;
    if (call.name != ours.name || call.epoch != ours.epoch || call.turn <= own_up_to_) return "";
    return std::string(ahead_words) + " (turn " + std::to_string(call.turn) + ", here only up to " +
           std::to_string(own_up_to_) + "): this state directory is out of date";
}

// The copy there continues with this store, so from now on an earlier state of the store is known by its turn.
void Mirror::found_own() {
    if (recorded_ == 0) return;
    if (const Status s = record(0); !s)
        outside_.log(Level::error, "that the backup's copy is this store's cannot be recorded: " + s.text);
}

void Mirror::refuse(ConnId conn, const std::string &why) {
    const std::string advised = is_ahead(why) ? why + "; " + copy_advice(why) : why;
    if (why != trouble_) outside_.log(Level::error, "no copy of the store at the backup: " + advised);
    trouble_ = why;
    outside_.send(conn, wire::Refused{advised}, 0);
    outside_.close(conn);
}

}  // namespace dcs::turn
