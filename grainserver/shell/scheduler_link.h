#pragma once
// How the scheduler is reached: through its socket on this host, or at HOST:PORT with TLS and the certificate that
// `dcs host join` brought.
#include <optional>
#include <string>

#include "net/loop.h"
#include "pki/authority.h"
#include "wire/message.h"

namespace dcs::server {

class SchedulerLink {
public:
    // `scheduler` with a slash in it is a socket. Fails when the certificate in `pki_directory` is missing, expired, or
    // for another host or role: the text says what to do.
    Status open(const std::string &scheduler, const std::string &pki_directory, const std::string &host);
    // Begins to connect. With TLS key and certificate are read anew: a host may join again while its server runs.
    Result<ConnId> connect(net::Loop &loop, const net::Limits &limits);
    // Looks now and then whether the certificate wants renewal: then a message for the scheduler.
    std::optional<wire::AnyMessage> wish(Instant now);
    // The answer to it. What became of it, for the log.
    Status renewed(const wire::Renewed &answer);

private:
    Result<pki::Identity> identity() const;

    std::string scheduler_, directory_, host_;
    bool tls_ = false;
    Instant look_at_{};
};

}  // namespace dcs::server
