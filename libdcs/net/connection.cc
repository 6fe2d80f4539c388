#include "net/connection.h"

#include <algorithm>
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

Instant Connection::first_deadline() const { return std::min({hello_by, in_progress.due(), out_progress.due()}); }

const char *Connection::overdue(Instant now) const {
    if (hello_by <= now && connected && handshaking) return "the TLS handshake was not complete in time";
    if (hello_by <= now) return connected ? "no first message in time" : "no connection in time: the peer is too busy";
    if (in_progress.due() <= now) return "a message was incomplete after the time limit";
    if (out_progress.due() <= now) return "the peer does not read its messages";
    return nullptr;
}

Status Connection::receive(std::string_view bytes, Instant now, std::vector<Frame> *frames) {
    const std::size_t before = frames->size();
    Status status = reader.feed(bytes, limits.max_payload, frames);
    const bool whole = frames->size() > before;
    for (std::size_t i = before; i < frames->size() && status; ++i) {
        status = form.hear((*frames)[i].header);
        if (!status) frames->resize(i);
    }
    if (whole) hello_by = Instant::never();
    if (reader.idle()) in_progress.stop();
    else if (whole || !in_progress.running()) in_progress.start(now, limits.progress);
    else in_progress.move(bytes.size(), now, limits.progress);
    return status;
}

WriteQueue::Sent Connection::flush(int fd, Instant now) {
    std::size_t moved = 0;
    DCS_REQUIRE(alive && connected && fd >= 0, "bytes go out through a socket");
    WriteQueue::Sent sent = out.flush(fd, &moved);
    if (sent == WriteQueue::Sent::all) out_progress.stop();
    else if (!out_progress.running()) out_progress.start(now, limits.progress);
    else out_progress.move(moved, now, limits.progress);
    return sent;
}

}  // namespace dcs::net
