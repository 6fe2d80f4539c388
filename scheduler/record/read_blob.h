#pragma once
// The bytes that the State only knows by length: where a grain keeps them depends on whether it
// has a tree of its own. All of these read what the last commit left, fail with the file's name in
// the text, and treat fewer bytes than recorded as damage (io_error).
#include <string>

#include "base/status.h"
#include "scheduler/core/state.h"
#include "store/store.h"

namespace dcs::record {

// wire::pack(spec) as it was submitted.
Result<std::string> read_params(store::Store &store, const GrainKey &key, const core::Grain &grain);
Result<std::string> read_checkpoint(store::Store &store, const GrainKey &key,
                                    const core::Grain &grain);
Result<std::string> read_message(store::Store &store, const GrainKey &key,
                                 const core::Grain &grain);

// At most `max` bytes from `offset` on; none at or behind the end. `stream`: not input.
Result<std::string> read_piece(store::Store &store, const GrainKey &key, const core::Grain &grain,
                               wire::Stream stream, std::uint64_t offset, std::uint64_t max);
// The recorded length of a stream.
std::uint64_t length_of(const core::Grain &grain, wire::Stream stream);

}  // namespace dcs::record
