#include "net/write_queue.h"

#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>

#include "base/require.h"

namespace dcs::net {

void WriteQueue::push(std::string frame) {
    if (frame.empty()) return;
    bytes_ += frame.size();
    frames_.push_back(std::move(frame));
}

WriteQueue::Sent WriteQueue::flush(int fd, std::size_t *moved) {
    constexpr std::size_t gather = 128;
    while (!frames_.empty()) {
        iovec parts[gather];
        std::size_t count = 0, skip = gone_;
        for (auto frame = frames_.begin(); frame != frames_.end() && count < gather; ++frame) {
            parts[count].iov_base = frame->data() + skip;
            parts[count].iov_len = frame->size() - skip;
            skip = 0;
            ++count;
        }
        msghdr message = {};
        message.msg_iov = parts;
        message.msg_iovlen = count;
        ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            if (errno == EINTR) continue;
            return errno == EAGAIN || errno == EWOULDBLOCK ? Sent::blocked : Sent::broken;
        }
        std::size_t left = static_cast<std::size_t>(n);
        DCS_REQUIRE(left <= bytes_, "no more is sent than was queued");
        *moved += left;
        bytes_ -= left;
        for (left += gone_; !frames_.empty() && left >= frames_.front().size();) {
            left -= frames_.front().size();
            frames_.pop_front();
        }
        gone_ = left;
    }
    DCS_REQUIRE(bytes_ == 0 && gone_ == 0, "an empty queue holds no bytes");
    return Sent::all;
}

void WriteQueue::clear() {
    frames_.clear();
    gone_ = bytes_ = 0;
}

}  // namespace dcs::net
