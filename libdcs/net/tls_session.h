#pragma once
// One side of a TLS 1.3 connection without its socket: bytes from the wire in, bytes for the wire out. Session
// tickets, resumption and early data are off: each connection authenticates itself.
#include <memory>
#include <string>
#include <string_view>

#include "net/tls.h"

namespace dcs::net {

class TlsSession {
public:
    enum class Side { door, caller };
    TlsSession(TlsContextPtr context, Side side);
    ~TlsSession();
    TlsSession(const TlsSession &) = delete;
    TlsSession &operator=(const TlsSession &) = delete;

    // Appends the plain text to `plain`. A failure (refused: by a check of either side; broken: of the connection) says
    // which check failed; take_output() then still has what the peer
    // learns of it. A caller begins with feed("").
    Status feed(std::string_view from_wire, std::string *plain);
    // To be sent as soon as the handshake is over.
    void send(std::string plain);
    std::string take_output();  // for the wire

    bool open() const;            // the handshake is over, the peer has been checked
    bool ended() const;           // the peer said that it sends no more
    std::size_t waiting() const;  // bytes given to send() before that
    const TlsPeer &peer() const;
    const TlsPeer &claimed() const;  // role and name of a certificate that may have been refused
    // What failed is the time at which a certificate is valid, or may be that: it passes when a clock is set right.
    bool about_time() const;

private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

}  // namespace dcs::net
