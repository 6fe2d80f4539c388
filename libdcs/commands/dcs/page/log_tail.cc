#include "log_tail.h"

#include <algorithm>

#include "base/limits.h"
#include "commands/dcs/query/session_events.h"

namespace dcs::commands::page {

std::size_t first_frame(std::string_view piece) {
    // Bytes that happen to look like a frame have a wrong checksum.
    for (std::size_t at = 0; at < piece.size(); ++at) {
        std::string_view left = piece.substr(at);
        (void)wire::take_events(left, [](const wire::Event &) {});
        if (left.size() < piece.size() - at) return at;
    }
    return std::string_view::npos;
}

Status LogTail::read_piece(std::uint64_t &total) {
    const auto piece = piece_of_log(user_, session_, offset_);
    if (!piece) return piece.status();
    total = piece->total;
    offset_ += piece->bytes.size();
    rest_ += piece->bytes;
    return Status::ok();
}

Status LogTail::read(const wire::EventSink &each) {
    std::uint64_t total = 0;
    if (Status s = read_piece(total); !s) return s;
    if (total > offset_) {  // more than one piece: its end
        skipped_ = true;
        rest_.clear();
        offset_ = total - std::min<std::uint64_t>(total, limits::fetch_chunk_bytes);
        if (Status s = read_piece(total); !s) return s;
        const std::size_t frame = first_frame(rest_);
        rest_.erase(0, std::min(frame, rest_.size()));
    }
    std::string_view left = rest_;
    const Status s = wire::take_events(left, each);
    rest_.erase(0, rest_.size() - left.size());
    return s;
}

}  // namespace dcs::commands::page
