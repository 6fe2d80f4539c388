#pragma once
// How a daemon reaches the scheduler: through a socket on this host, or at HOST:PORT with TLS and the certificate that
// `dcs host join` brought; and how other hosts of the pool are reached with that certificate. Where a backup may be
// made the scheduler both addresses are named, with a comma between: after each connection the other one is tried.
#include <optional>
#include <string>
#include <vector>

#include "net/loop.h"
#include "pki/authority.h"
#include "wire/message.h"

namespace dcs::net {

class PoolLink {
public:
    // `scheduler` with a slash in it is a socket. Fails when the certificate in `pki_directory` is missing, expired, or
    // for another name (empty: any) or role: the text says what to do.
    Status open(const std::string &scheduler, const std::string &pki_directory, pki::Role role,
                const std::string &name);
    bool tls() const { return tls_; }
    // Begins to connect to the scheduler, at the next of its addresses. With TLS key and certificate are reread: a
    // host may join again while its daemon runs.
    Result<ConnId> connect(Loop &loop, const Limits &limits);
    // Begins to connect to another of its addresses than the last connect() did; nothing: there is none.
    std::optional<Result<ConnId>> connect_elsewhere(Loop &loop, const Limits &limits);
    // Begins to connect to who has a certificate for that role, at HOST:PORT.
    Result<ConnId> connect_to(Loop &loop, const Limits &limits, const std::string &address, pki::Role role) const;
    // For a door to those with a certificate for that role.
    Result<TlsContextPtr> context_for(pki::Role peers) const;
    // Looks now and then whether the certificate wants renewal: then a message for the scheduler.
    std::optional<wire::AnyMessage> wish(Instant now);
    // The answer to it. What became of it, for the log.
    Status renewed(const wire::Renewed &answer);

private:
    Result<pki::Identity> identity() const;

    std::string scheduler_, directory_, name_;
    std::vector<std::string> addresses_;               // with TLS
    std::size_t next_ = 0, last_ = 0, elsewhere_ = 0;  // of them
    pki::Role role_ = pki::Role::none;
    bool tls_ = false;
    Instant look_at_{};
};

}  // namespace dcs::net
