#include "net/connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

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
        msghdr message{.msg_iov = parts, .msg_iovlen = count};
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
    if (hello_by <= now)
        return connected ? "no first message in time" : "no connection in time: the peer does not answer";
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
