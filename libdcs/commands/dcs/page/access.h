#pragma once
// A page that other hosts may read: its certificate, and the token that its readers show.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace dcs::commands::page {

struct Access {
    std::string certificate, key;  // PEM; behind the first certificate there may be those of its issuers
    std::string token;
    double not_after_s = 0;  // of the certificate, since 1970
    std::string names;       // in the certificate, for people

    // Whether a Host field is one of the certificate's names. Other names are of sites that point their name here.
    bool is_named(std::string_view host) const;
    // Whether an Authorization field shows the token: as a bearer's, or as the password of any name.
    bool admits(std::string_view authorization) const;
};

// `certificate.pem`, `key.pem` and `token` of a directory. What is missing is made: a certificate for this host's
// names and `address`, and a token. Code::invalid or refused: a file is not fit, or others can read it.
Result<Access> access_in(const std::string &directory, const std::string &address);

// Which user of this host is at the other end of a connection, by the kernel's word.

// Of a Unix socket, or of TCP over 127.0.0.1. not_found: its end is not a socket of this host that is open now.
Result<std::uint32_t> uid_of_peer(int socket);

}  // namespace dcs::commands::page
