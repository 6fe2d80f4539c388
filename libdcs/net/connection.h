#pragma once
// One connection without its event loop: what is half read, half written, and when it is overdue.
#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/instant.h"
#include "base/status.h"
#include "net/loop.h"
#include "wire/message.h"

namespace dcs::net {

struct Frame {
    wire::FrameHeader header;
    std::string payload;
};

// Cuts a stream of bytes into frames. No payload byte is taken before its header is approved, and a
// payload's memory grows with the received bytes, not with the announced ones.
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

// Frames on their way to one peer, sent many at a time.
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

// A deadline that bytes push forward: each `bytes_per_step` of them, or a fresh start, give it the
// whole time again. So a peer that sends or takes one byte now and then does not count as moving.
class Progress {
public:
    void start(Instant now, Duration time) {
        due_ = time.ns > 0 ? now + time : Instant::never();
        moved_ = 0;
    }
    void move(std::size_t bytes, Instant now, Duration time) {
        moved_ += bytes;
        if (moved_ >= bytes_per_step) start(now, time);
    }
    void stop() { due_ = Instant::never(); }
    bool running() const { return due_ != Instant::never(); }
    Instant due() const { return due_; }

private:
    static constexpr std::size_t bytes_per_step = 4096;
    Instant due_ = Instant::never();
    std::size_t moved_ = 0;
};

struct Connection {
    ConnId id{};
    Door door = -1;
    Peer peer;
    Limits limits;
    FrameReader reader;
    WriteQueue out;
    wire::PeerForm form;  // in which the peer is written to
    Instant hello_by = Instant::never();
    Progress in_progress, out_progress;
    Instant check_at = Instant::never();  // when the loop looks at overdue() again
    bool alive = true;                    // has, or is getting, a socket
    bool connected = false;
    bool handshaking = false;  // TLS: not over yet
    bool muted = false;        // closed by our side: no Arrival any more
    bool writing = false;      // a coroutine waits until the socket takes more
    bool dirty = false;        // output was queued since the last flush
    bool stalled = false;      // not read until its peer has read what is queued for it
    bool crowded = false;      // not read until what came of it was handed out
    std::size_t counted = 0;   // bytes held for it, as its user was charged with them

    Instant first_deadline() const;
    // Why it is to be cut off at `now`; nullptr: it is in time.
    const char *overdue(Instant now) const;

    // Bytes came: appends whole frames, moves the deadlines.
    Status receive(std::string_view bytes, Instant now, std::vector<Frame> *frames);
    // Sends what goes, moves the deadline. Broken: errno says why.
    WriteQueue::Sent flush(int fd, Instant now);
};

}  // namespace dcs::net
