#pragma once
// One arrived frame -> the typed input that the core decides, or an answer on the spot: greetings,
// and everything that is refused before it could matter.
#include <optional>
#include <string>
#include <utility>

#include "scheduler/state/input.h"
#include "scheduler/turn/connections.h"
#include "scheduler/turn/contents.h"
#include "scheduler/turn/imports.h"
#include "scheduler/turn/line_budget.h"
#include "scheduler/turn/live.h"
#include "scheduler/turn/outside.h"
#include "scheduler/turn/uploads.h"
#include "store/store.h"

namespace dcs::turn {

// The outcome of decoding a frame.
struct Decoded {
    std::optional<core::Input> input;
    std::optional<wire::AnyMessage> reply;  // goes out at once, with the frame's request id
    bool close = false;
    std::string note;                                            // for the log; empty: nothing to say
    std::optional<std::pair<GrainKey, Incarnation>> unrecorded;  // a lease of a grain that ended, without room for that
    std::size_t weight = 0;  // what it costs its sender without an input, in small requests
};
// Closes, and says nothing to the peer.
inline Decoded hang_up(std::string note) { return {.close = true, .note = std::move(note)}; }

struct DecodeContext {
    Connections &connections;
    const core::State &state;
    store::Store &store;
    Outside &outside;
    Uploads &uploads;
    Imports &imports;
    Contents &contents;
    Live &live;
    LineBudget &renewals;  // of certificates
};

// `arrival` is a frame of a connection in `context.connections`.
Decoded decode(DecodeContext &context, const Arrival &arrival);

// What is wrong with a submission, whatever the state of its session.
Status check_spec(const wire::GrainSpec &spec);

// ---- hosts that join, and their certificates (decode_join.cc) ----------------------------------

core::CreateCode create_code(Outside &outside, wire::CreateToken call);
core::ListCodes list_codes(Outside &outside);

// Of a host without a certificate: it may ask for one, and nothing else.
Decoded join_frame(Outside &outside, const Arrival &arrival, const Connection &who, wire::AnyMessage message);

// Of another host itself, by dcs_begin: the wish to begin a control program; or for a new certificate of its key.
Decoded begin_frame(const core::State &state, Outside &outside, const Arrival &arrival, const Connection &who,
                    wire::AnyMessage message);

// A certificate costs a signature of the keeper, for which all wait, and a line of the audit log, but its sender at
// most one commit a day. Hosts are counted by their keys: one that was removed takes nothing from its successor.
std::optional<Decoded> refuse_renewal(DecodeContext &context, const Connection &who, const wire::AnyMessage &message);

// Of a control program of another host, for its own key.
Result<core::RenewProgram> program_renewal(Outside &outside, const wire::RenewCertificate &call);

// Of a grain server over its link, for the key that it has shown.
Decoded renewal(Outside &outside, const Connection &who, const wire::RenewCertificate &call);

// ---- the passive backup (decode_backup.cc) -----------------------------------------------------

// Said by the backup, or by a grain server about what the backup has of it.
bool about_backup(const wire::AnyMessage &message);

// A frame of who came with the certificate of a backup.
Decoded certified_backup_frame(DecodeContext &context, const Arrival &arrival, Connection &who,
                               wire::AnyMessage message);
// A frame of the backup's link, or one that is about_backup(). `who` came through the grain servers' door.
Decoded backup_frame(DecodeContext &context, const Arrival &arrival, Connection &who, wire::AnyMessage message);

}  // namespace dcs::turn
