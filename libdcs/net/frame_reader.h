#pragma once
// Cuts a stream of bytes into frames. No payload byte is taken before its header is approved, and a
// payload's memory grows with the received bytes, not with the announced ones.
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "wire/message.h"

namespace dcs::net {

struct Frame {
    wire::FrameHeader header;
    std::string payload;
};

class FrameReader {
public:
    // Appends the frames that `bytes` completes. After a failure the stream has no frames any more.
    Status feed(std::string_view bytes, std::size_t max_payload, std::vector<Frame> *out);
    bool idle() const { return filled_ == 0; }  // between two frames
    std::size_t held() const { return frame_.payload.capacity(); }

private:
    std::array<char, wire::header_bytes> head_{};
    std::size_t filled_ = 0;  // bytes of head_ that are there; all of them while a payload comes
    Frame frame_;
};

}  // namespace dcs::net
