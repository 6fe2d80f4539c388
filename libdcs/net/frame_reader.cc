#include "net/frame_reader.h"

#include <algorithm>
#include <utility>

namespace dcs::net {

Status FrameReader::feed(std::string_view bytes, std::size_t max_payload, std::vector<Frame> *out) {
    while (!bytes.empty()) {
        if (filled_ < head_.size()) {
            std::size_t n = std::min(head_.size() - filled_, bytes.size());
            std::copy_n(bytes.data(), n, head_.data() + filled_);
            bytes.remove_prefix(n);
            filled_ += n;
            if (filled_ < head_.size()) break;
            Result<wire::FrameHeader> header =
                wire::decode_header(std::string_view(head_.data(), head_.size()), max_payload);
            if (!header) return header.status();
            DCS_REQUIRE(header->length <= max_payload, "decode_header keeps to its limit");
            frame_.header = *header;
            frame_.payload.clear();
        }
        std::string &payload = frame_.payload;
        std::size_t n = std::min<std::size_t>(frame_.header.length - payload.size(), bytes.size());
        std::size_t size = payload.size() + n;
        if (size > payload.capacity()) payload.reserve(std::min<std::size_t>(frame_.header.length, size * 2));
        payload.append(bytes.substr(0, n));
        bytes.remove_prefix(n);
        if (size < frame_.header.length) break;
        DCS_REQUIRE(payload.size() == frame_.header.length, "a frame is handed out whole");
        out->push_back(std::move(frame_));
        frame_ = Frame();
        filled_ = 0;
    }
    return Status::ok();
}

}  // namespace dcs::net
