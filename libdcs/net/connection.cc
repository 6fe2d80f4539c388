#include "net/connection.h"

#include <algorithm>

namespace dcs::net {

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
