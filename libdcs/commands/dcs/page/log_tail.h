#pragma once
// The event log of a session, followed from its end: a page shows what happens now, and must not read a log of a
// million grains for that.
#include <cstdint>
#include <string>

#include "base/status.h"
#include "wire/event_log.h"

namespace dcs::commands::page {

class LogTail {
public:
    LogTail(std::string user, std::int32_t session) : user_(std::move(user)), session_(session) {}

    // The events since the last call. Of a log that has more than one piece of those, the last piece only; `skipped()`
    // then says so. One or two requests, whatever the log has.
    Status read(const wire::EventSink &each);
    bool skipped() const { return skipped_; }

private:
    Status read_piece(std::uint64_t &total);

    std::string user_;
    std::int32_t session_;
    std::uint64_t offset_ = 0;
    std::string rest_;  // the beginning of a frame
    bool skipped_ = false;
};

// The first whole frame in a piece that begins anywhere in a log; npos: there is none.
std::size_t first_frame(std::string_view piece);

}  // namespace dcs::commands::page
