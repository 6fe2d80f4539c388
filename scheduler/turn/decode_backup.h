#pragma once
// The part of decode.h that is about the passive backup.
#include <functional>

#include "scheduler/turn/decoded.h"

namespace dcs::turn {

// Said by the backup, or by a grain server about what the backup has of it.
bool about_backup(const wire::AnyMessage &message);

// Of a report that would end a grain with what it made, from whomever it comes: the first that is not `here`; or null.
const wire::GrainFile *missing_output(const wire::GrainReport &report,
                                      const std::function<bool(const wire::GrainFile &)> &here);

// A frame of who came with the certificate of a backup.
Decoded certified_backup_frame(DecodeContext &context, const Arrival &arrival, Connection &who,
                               wire::AnyMessage message);
// A frame of the backup's link, or one that is about_backup(). `who` came through the grain servers' door.
Decoded backup_frame(DecodeContext &context, const Arrival &arrival, Connection &who, wire::AnyMessage message);

}  // namespace dcs::turn
