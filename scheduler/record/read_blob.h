#pragma once
// The bytes that the State only knows by length and checksum: where a grain keeps them depends on
// whether it has a tree of its own. All of these read what the last commit left, fail with the
// file's name in the text, and treat fewer or other bytes than recorded as damage (io_error).
#include <compare>
#include <set>
#include <string>

#include "base/status.h"
#include "scheduler/state/state.h"
#include "store/store.h"

namespace dcs::record {

// wire::pack(spec) as it was submitted.
Result<std::string> read_params(store::Store &store, const GrainKey &key, const core::Grain &grain);
Result<std::string> read_checkpoint(store::Store &store, const GrainKey &key, const core::Grain &grain);
Result<std::string> read_message(store::Store &store, const GrainKey &key, const core::Grain &grain);

// A part of what a grain holds, for those who look at all of it.
enum class Part : std::uint8_t { params, out, err, checkpoint, message };
struct Place {
    std::string path;
    std::uint64_t offset = 0, length = 0;
    std::uint32_t sum = 0;  // CRC-32C of the whole
    auto operator<=>(const Place &) const = default;
};
Place place_of(const GrainKey &key, const core::Grain &grain, Part part);
Status check_all(store::Store &store, const Place &place);

// What was read through lately and had the right checksum: it need not be read through again for the next that asks for
// its first piece.
class Verified {
public:
    bool has(const Place &place) const { return places_.count(place) != 0; }
    void add(const Place &place);

private:
    std::set<Place> places_;
};

// At most `max` bytes from `offset` on; none at or behind the end. `stream`: not input. The
// checksum is of the whole, so it is checked when the whole is asked for, and for longer ones up
// to limits::checked_at_once when the first piece is, if `verified` does not have it. Scrub looks at everything in
// time.
Result<std::string> read_piece(store::Store &store, const GrainKey &key, const core::Grain &grain, wire::Stream stream,
                               std::uint64_t offset, std::uint64_t max, Verified *verified = nullptr);
// Bytes that read_piece() reads through before it gives out the first `max` ones. `stream`: not input.
std::uint64_t checked_bytes(const GrainKey &key, const core::Grain &grain, wire::Stream stream, std::uint64_t max,
                            const Verified &verified);

// At most `max` bytes of a session's event log from `offset` on; its frames carry their own checksums.
Result<std::string> read_events(store::Store &store, const SessionKey &key, const core::SessionInfo &info,
                                std::uint64_t offset, std::uint64_t max);

// The recorded length of a stream.
std::uint64_t length_of(const core::Grain &grain, wire::Stream stream);

// For those who read a session's contents in order: small grains lie side by side in its files, so one
// read serves many of them. What was read ahead is out of date after the next commit.
class ReadAhead {
public:
    // Part of what lies at `place`; shorter or missing bytes are damage (io_error), named by file.
    Result<std::string> read(store::Store &store, const Place &place, std::uint64_t offset, std::uint64_t length);
    // All of it, its checksum verified.
    Result<std::string> read_whole(store::Store &store, const Place &place);
    void forget() { path_.clear(); }

private:
    std::string path_, bytes_;
    std::uint64_t start_ = 0;
};

}  // namespace dcs::record
