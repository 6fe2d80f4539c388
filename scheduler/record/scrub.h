#pragma once
// Reads everything that grains keep and compares it with the recorded checksums, a little at a time:
// damage shall be known while there is still a backup, not when the bytes are needed.
#include <map>
#include <optional>
#include <string>

#include "scheduler/state/state.h"
#include "scheduler/record/read_blob.h"
#include "store/store.h"

namespace dcs::record {

class Scrub {
public:
    // Continues for about `bytes` bytes. False: it is complete; the next call starts again.
    bool step(store::Store &store, const core::State &state, std::uint64_t bytes);

    // Drops what is not damaged any longer: overwritten or restored, or of a grain that is gone. Reads little.
    void look_again(store::Store &store, const core::State &state);

    struct Damage {
        Place place;
        std::string why;
    };
    using Damages = std::map<int, Damage>;  // by Part; -1: the session's event log
    // May name what look_again() would drop.
    const std::map<GrainKey, Damages> &found() const { return found_; }

private:
    struct Reading {  // of a long part, over several steps
        Place place;
        std::uint64_t at = 0;
        std::uint32_t sum = 0;
    };
    struct Log {  // of a session, over several steps
        std::uint64_t at = 0;
        std::string rest;    // the beginning of a frame
        bool again = false;  // it seemed damaged, and is checked again: it may have been replaced in the meantime
    };
    void next_grain(const core::State &state);
    std::uint64_t look_at_log(store::Store &store, const core::SessionInfo &info, std::uint64_t bytes);
    std::uint64_t look_at_part(store::Store &store, const core::Grain &grain, std::uint64_t bytes);

    std::optional<GrainKey> at_;
    int part_ = 0;
    std::optional<Reading> reading_;
    std::optional<Log> log_;  // nothing: it is checked, or not begun
    bool log_done_ = false;
    ReadAhead ahead_;
    void done(int part, const Place &place, const std::string &wrong);
    std::map<GrainKey, Damages> found_;
};

}  // namespace dcs::record
