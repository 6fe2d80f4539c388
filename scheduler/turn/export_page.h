#pragma once
// A page of a session for `dcs session export`: entities from the State, bytes from the store.
#include "base/status.h"
#include "scheduler/state/state.h"
#include "store/store.h"
#include "wire/session_calls.h"

namespace dcs::turn {

// Grains after `after`, up to limits::export_page_bytes, but one at least; at most
// limits::export_page_grains, and `most` if that is above 0.
Result<wire::ExportReply> export_page(const core::State &state, store::Store &store, const SessionKey &key,
                                      GrainNumber after, std::int32_t most);

}  // namespace dcs::turn
