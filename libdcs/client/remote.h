#pragma once
// A scheduler on another host: the credentials that dcs_begin left, and the certificate that this program has by now.
#include <string>
#include <vector>

#include "base/instant.h"
#include "base/status.h"
#include "client/pool.h"
#include "net/tls.h"
#include "pki/certificate.h"

namespace dcs::client {

// What is in the descriptor of DCS_AUTH_FD when the scheduler is elsewhere.
struct RemoteCredentials {
    std::string address;                // HOST:PORT, or several with commas: where the scheduler may be
    std::string token, key, authority;  // 32 bytes; DER
    pki::Certificate certificate;       // of that key
};
// Text of other kind: Code::invalid says what is wrong with it.
Result<RemoteCredentials> read_remote_credentials(const std::string &text);

// How to get there now. All connections to a pool use the same.
struct Remote {
    std::string address, key, authority;
    std::vector<std::string> addresses;
    pki::Certificate certificate;
    net::TlsContextPtr context;
};

// From now on; the token is the caller's matter.
Status use_remote(Pool &pool, const RemoteCredentials &credentials);
// The answer to a request for a new certificate; Code::protocol if it is not for our key and name.
Status use_renewed(Pool &pool, const std::string &certificate);

// A certificate that is due for renewal: true for one thread, which then asks; the others go on meanwhile, and it is
// not asked again for a minute.
bool take_renewal(Pool &pool);
// When a connection that is waited on for ever must be left to renew; never() if there is no need.
Instant renewal_due(const Pool &pool, Instant now);

}  // namespace dcs::client
