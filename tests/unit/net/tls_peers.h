#pragma once
// A pool's authority and what it issues, two loops that talk TLS to each other, and a plain OpenSSL side that can be
// as old as it likes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>

#include "base/limits.h"
#include "net/socket_calls.h"
#include "peers.h"
#include "pki/authority.h"
#include "pki/openssl_types.h"

namespace tls_peers {

using namespace peers;

struct Issuer {
    pki::Authority authority = pki::make_authority(wall_clock_s());

    TlsSelf self(pki::Role role, const std::string &name, std::int64_t from_now_s = 0,
                 std::int64_t life_s = pki::certificate_life_s) const {
        TlsSelf self;
        self.key = pki::new_key();
        self.certificate =
            *pki::issue(authority, *pki::public_key_of(self.key), role, name, wall_clock_s() + from_now_s, life_s);
        self.authority = authority.certificate.der;
        return self;
    }
    TlsSelf scheduler() const { return self(pki::Role::scheduler, "scheduler"); }
    TlsSelf host(const std::string &name = "h1") const { return self(pki::Role::grain_server, name); }
    TlsSelf expired(pki::Role role) const { return self(role, "h1", -3 * pki::day_s, pki::day_s); }
    TlsTrust trust(pki::Role role) const {
        TlsTrust trust;
        trust.authority = authority.certificate.der;
        trust.role = role;
        return trust;
    }
};

inline TlsContextPtr context_of(const TlsSelf &self, const TlsTrust &trust) {
    auto context = tls_context(self, trust);
    REQUIRE(context);
    return *context;
}

inline Limits tls_limits() { return limits_of(8u << 20, 5000, 5000); }

// A door, and a peer who connects to it. Arrivals of both are kept.
struct Two {
    Issuer issuer;
    std::unique_ptr<Loop> there = Loop::create(), here = Loop::create();
    std::vector<Arrival> at_door, at_caller;
    Door door = -1;

    void open_door(const TlsSelf &self, TlsTrust trust, bool strangers = false, Limits limits = tls_limits()) {
        trust.strangers = strangers;
        auto opened = there->listen_tls("127.0.0.1:0", limits, context_of(self, trust));
        REQUIRE(opened);
        door = *opened;
    }
    void open_door(bool strangers = false, Limits limits = tls_limits()) {
        open_door(issuer.scheduler(), issuer.trust(pki::Role::grain_server), strangers, limits);
    }
    std::string address() const { return "127.0.0.1:" + std::to_string(there->port_of(door)); }
    ConnId call(const TlsSelf &self, const TlsTrust &trust) {
        return here->connect_tls(address(), tls_limits(), context_of(self, trust));
    }
    ConnId call(const TlsSelf &self) { return call(self, issuer.trust(pki::Role::scheduler)); }

    void turn() {
        for (Arrival &a : there->wait(soon(2), 100)) at_door.push_back(std::move(a));
        for (Arrival &a : here->wait(soon(2), 100)) at_caller.push_back(std::move(a));
    }
    template <class Condition> bool until(Condition condition) {
        for (const Instant end = soon(20'000); boot_clock() < end;) {
            if (condition()) return true;
            turn();
        }
        return condition();
    }
    static const Arrival *first(const std::vector<Arrival> &list, What what) {
        for (const Arrival &a : list)
            if (a.what == what) return &a;
        return nullptr;
    }
    const Arrival &wait_door(What what) {
        REQUIRE(until([&] { return first(at_door, what) != nullptr; }));
        return *first(at_door, what);
    }
    const Arrival &wait_caller(What what) {
        REQUIRE(until([&] { return first(at_caller, what) != nullptr; }));
        return *first(at_caller, what);
    }
};

inline int raw_tcp(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr *>(&at), sizeof at) == 0);
    return fd;
}

struct OpenSsl {
    std::unique_ptr<SSL_CTX, pki::Release<SSL_CTX_free>> context{SSL_CTX_new(TLS_method())};
    std::unique_ptr<SSL, pki::Release<SSL_free>> ssl;
    OpenSsl(const TlsSelf &self, int fd, int newest) {
        SSL_CTX_set_max_proto_version(context.get(), newest);
        SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
        if (!self.key.empty()) {
            pki::KeyPtr key(pki::from_der<EVP_PKEY>(self.key, d2i_AutoPrivateKey));
            pki::X509Ptr x(pki::from_der<X509>(self.certificate, d2i_X509));
            REQUIRE(SSL_CTX_use_certificate(context.get(), x.get()) == 1);
            REQUIRE(SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1);
        }
        ssl.reset(SSL_new(context.get()));
        SSL_set_fd(ssl.get(), fd);
    }
    // Reason of the failure; 0: none.
    static int reason() { return ERR_GET_REASON(ERR_peek_last_error()); }
};

}  // namespace tls_peers
