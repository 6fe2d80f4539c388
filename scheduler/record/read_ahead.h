#pragma once
// For those who read a session's contents in order: small grains lie side by side in its files, so one
// read serves many of them. What was read ahead is out of date after the next commit.
#include <string>

#include "base/status.h"
#include "scheduler/record/read_blob.h"
#include "store/store.h"

namespace dcs::record {

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
