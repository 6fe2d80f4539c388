#pragma once
// One Unix stream socket, or TLS connection, with deadlines. Used by one thread; after a fork the child's copy is
// closed and counts as not connected, so that parent and child never share a connection.
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/instant.h"
#include "base/status.h"
#include "net/tls.h"
#include "wire/message.h"

namespace dcs::client {

struct Frame {
    wire::FrameHeader header;
    wire::AnyMessage message;
};

class Transport {
public:
    Transport() = default;
    ~Transport() { close(); }
    Transport(const Transport &) = delete;
    Transport &operator=(const Transport &) = delete;

    struct Refusal {
        int error = 0;
        bool hopeless = false;
        std::string why;
        bool clocks = false;
    };
    // To the socket at `path`, of any length. error 0: connected. hopeless: there is no pool, or it may
    // not be entered; otherwise no scheduler listens now.
    Refusal connect(const std::string &path);
    // To HOST:PORT, by TLS. hopeless: what answers there is not to be believed, or does not take us; clocks: because of
    // the time at which a certificate is valid.
    Refusal connect_tls(const std::string &address, const net::TlsContextPtr &context, Instant deadline);
    // Standing, and silent: bytes or an end without a request make it unusable.
    bool usable();
    void close();
    // The deadline passed, and nothing came.
    bool silent_until(Instant deadline);
    // Why receive() said no_auth last: the scheduler holds our certificate for one of another time.
    bool clocks() const { return clocks_; }

    // Code::broken: the peer closed, an error, or the deadline passed. Signals do not interrupt.
    Status send(std::string_view bytes, Instant deadline);
    // One frame. Code::broken as above; no_auth: the peer refuses our certificate; other codes: the bytes are not
    // a frame of ours.
    Result<Frame> receive(std::size_t max_payload, Instant deadline);

private:
    Status wait(short events, Instant deadline);
    Status read_exactly(char *to, std::size_t n, Instant deadline);
    Status send_raw(std::string_view bytes, Instant deadline);
    Status flush_tls(Instant deadline);
    Status read_tls(Instant deadline);
    Status shake_hands(Instant deadline);
    int try_address(const void *address, std::size_t size, Instant deadline);
    bool mine() const;

    int fd_ = -1;
    pid_t pid_ = 0;  // of the process that connected
    std::unique_ptr<net::TlsSession> tls_;
    bool clocks_ = false;
    std::string plain_;  // came by TLS, not read yet
};

}  // namespace dcs::client
