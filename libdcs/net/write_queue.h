#pragma once
// Frames on their way to one peer, sent many at a time.
#include <cstddef>
#include <deque>
#include <string>

namespace dcs::net {

class WriteQueue {
public:
    enum class Sent { all, blocked, broken };  // broken: errno says why

    void push(std::string frame);
    // Sends what the socket takes now; adds to *moved the bytes that went.
    Sent flush(int fd, std::size_t *moved);
    std::size_t bytes() const { return bytes_; }
    bool empty() const { return frames_.empty(); }
    void clear();

private:
    std::deque<std::string> frames_;
    std::size_t gone_ = 0;   // of the first frame
    std::size_t bytes_ = 0;  // still to send
};

}  // namespace dcs::net
