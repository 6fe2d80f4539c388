// TLS doors: who comes in, who does not and what both sides learn about it.
#include <functional>
#include <thread>

#include <poll.h>

#include "base/bytes.h"
#include "net/look_up.h"
#include "net/tls.h"
#include "support/about.h"
#include "tls_peers.h"

using namespace tls_peers;

TEST_CASE("TLS: both sides know each other, frames go both ways") {
    Two two;
    two.open_door();
    const TlsSelf self = two.issuer.host("h7");
    const ConnId conn = two.call(self);
    const std::string small = "early", big = patterned(3u << 20);
    two.here->send(conn, frame_of(1, small));  // waits for the handshake
    const Arrival opened = two.wait_door(What::opened);
    CHECK(opened.certified.role == pki::Role::grain_server);
    CHECK(opened.certified.name == "h7");
    CHECK(opened.certified.key == pki::sha256(*pki::public_key_of(self.key)));
    CHECK(opened.address == "127.0.0.1");
    CHECK(two.wait_caller(What::opened).certified.name == "scheduler");
    CHECK(two.wait_door(What::frame).payload == small);
    two.at_door.clear();
    two.here->send(conn, frame_of(2, big));
    two.there->send(opened.conn, frame_of(3, big));
    CHECK(two.wait_door(What::frame).payload == big);
    CHECK(two.wait_caller(What::frame).payload == big);
    two.there->send(opened.conn, frame_of(4, "last"));
    two.there->close(opened.conn);
    two.at_caller.clear();
    CHECK(two.wait_caller(What::closed).why.find("the peer closed the connection") == 0);
    CHECK(two.at_caller.front().payload == "last");
}

TEST_CASE("TLS: each refusal of a caller says which check failed, on both sides") {
    struct Case {
        const char *what;
        std::function<TlsSelf(const Two &)> self;
        const char *at_door, *at_caller, *claims = "h1";
    };
    static const Issuer stranger;
    const Case cases[] = {
        {"expired", [](const Two &t) { return t.issuer.expired(pki::Role::grain_server); }, "expired on",
         "has expired"},
        {"foreign", [](const Two &) { return stranger.host(); }, "another authority", "another authority"},
        {"role", [](const Two &t) { return t.issuer.self(pki::Role::client, "h1"); },
         "is for a host of control programs, not for a grain server", "for another role"},
        {"scheduler's", [](const Two &t) { return t.issuer.scheduler(); }, "is for a scheduler", "for another role",
         "scheduler"},
        {"early", [](const Two &t) { return t.issuer.self(pki::Role::grain_server, "h1", 3 * pki::day_s); },
         "is not valid before", "not valid yet"},
        {"none", [](const Two &) { return TlsSelf(); }, "sent no certificate", "requires a certificate", ""},
    };
    for (const Case &c : cases) {
        INFO(c.what);
        Two two;
        two.open_door();
        const ConnId conn = two.call(c.self(two));
        two.here->send(conn, frame_of(1, "let me in"));
        const Arrival refused = two.wait_door(What::refused);
        INFO(refused.why);
        CHECK(refused.why.find(c.at_door) != std::string::npos);
        CHECK(refused.address == "127.0.0.1");
        CHECK(refused.conn == no_connection);
        CHECK(refused.certified.name == c.claims);
        CHECK(refused.about_time == (c.what == std::string("expired") || c.what == std::string("early")));
        const Arrival closed = two.wait_caller(What::closed);
        INFO(closed.why);
        CHECK(closed.why.find(c.at_caller) != std::string::npos);
        CHECK(Two::first(two.at_door, What::opened) == nullptr);
        CHECK(Two::first(two.at_door, What::frame) == nullptr);
    }
}

TEST_CASE("TLS: a door that is not the pool's scheduler gets nothing") {
    static const Issuer stranger;
    struct Case {
        const char *what;
        std::function<TlsSelf(const Two &)> self;
        const char *at_caller, *at_door;
    };
    const Case cases[] = {
        {"expired", [](const Two &t) { return t.issuer.expired(pki::Role::scheduler); }, "expired on", "has expired"},
        {"foreign", [](const Two &) { return stranger.scheduler(); }, "another authority", "another authority"},
        {"role", [](const Two &t) { return t.issuer.host(); }, "for a grain server, not for a scheduler",
         "another role"},
    };
    for (const Case &c : cases) {
        INFO(c.what);
        Two two;
        two.open_door(c.self(two), two.issuer.trust(pki::Role::grain_server));
        const ConnId conn = two.call(two.issuer.host());
        two.here->send(conn, frame_of(1, "secret"));
        const Arrival closed = two.wait_caller(What::closed);
        INFO(closed.why);
        CHECK(closed.why.find(c.at_caller) != std::string::npos);
        CHECK(Two::first(two.at_caller, What::opened) == nullptr);
        const Arrival refused = two.wait_door(What::refused);
        INFO(refused.why);
        CHECK(refused.why.find(c.at_door) != std::string::npos);
        CHECK(Two::first(two.at_door, What::frame) == nullptr);
    }
}

TEST_CASE("TLS: a host that has not joined believes an authority by its hash") {
    Two two;
    two.open_door(true);
    TlsTrust pinned;
    pinned.role = pki::Role::scheduler;
    pinned.authority_hash = two.issuer.authority.certificate.fingerprint;
    const ConnId conn = two.call(TlsSelf(), pinned);
    const Arrival opened = two.wait_door(What::opened);
    CHECK(opened.certified.role == pki::Role::none);
    CHECK(opened.certified.name.empty());
    two.here->send(conn, frame_of(1, std::string(limits::hello_frame_bytes, 'x')));
    CHECK(two.wait_door(What::frame).payload.size() == limits::hello_frame_bytes);
    two.here->send(conn, frame_of(2, std::string(limits::hello_frame_bytes + 1, 'x')));
    CHECK(two.wait_door(What::closed).why.find("the limit is 4096") != std::string::npos);
    SECTION("another hash") {
        pinned.authority_hash = TokenHash{};
        two.at_caller.clear();
        two.call(TlsSelf(), pinned);
        CHECK(two.wait_caller(What::closed).why == about("authority given hash"));
    }
    SECTION("the right authority, but shown beside a certificate of another one") {
        const Issuer other;
        TlsSelf mixed = other.scheduler();
        mixed.authority = two.issuer.authority.certificate.der;
        Two second;
        second.open_door(mixed, two.issuer.trust(pki::Role::grain_server), true);
        second.call(TlsSelf(), pinned);
        CHECK(second.wait_caller(What::closed).why.find("another authority") != std::string::npos);
    }
}

TEST_CASE("TLS: what is older than 1.3, and what is no TLS") {
    Two two;
    two.open_door();
    const int fd = raw_tcp(two.there->port_of(two.door));
    SECTION("a caller with TLS 1.2") {
        int reason = 0;
        const TlsSelf self = two.issuer.host();
        std::thread caller([&] {
            OpenSsl old(self, fd, TLS1_2_VERSION);
            if (SSL_connect(old.ssl.get()) != 1) reason = OpenSsl::reason();
        });
        const std::string why = two.wait_door(What::refused).why;
        caller.join();
        CHECK(why.find("TLS 1.2 or older") != std::string::npos);
        CHECK(reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
    }
    SECTION("a caller in the clear learns why, in the clear") {
        REQUIRE(raw_send(fd, frame_of(1, "hello")));
        CHECK(two.wait_door(What::refused).why == about("not TLS sends"));
        bool ended = false;
        CHECK(raw_drain(fd, &ended).find("this is not TLS") != std::string::npos);
    }
    ::close(fd);
}

TEST_CASE("TLS: no tickets, so nothing is ever resumed") {
    Two two;
    two.open_door();
    const int fd = raw_tcp(two.there->port_of(two.door));
    bool connected = false, resumable = true;
    const TlsSelf self = two.issuer.host();
    std::thread caller([&] {
        OpenSsl modern(self, fd, TLS1_3_VERSION);
        connected = SSL_connect(modern.ssl.get()) == 1;
        char byte;
        connected = connected && SSL_read(modern.ssl.get(), &byte, 1) == 1;  // a ticket would come before it
        resumable = SSL_SESSION_is_resumable(SSL_get_session(modern.ssl.get())) == 1;
    });
    two.there->send(two.wait_door(What::opened).conn, frame_of(1, "x"));
    for (int i = 0; i < 10; ++i) two.turn();
    caller.join();
    CHECK(connected);
    CHECK_FALSE(resumable);
    ::close(fd);
}

TEST_CASE("TLS: our caller and doors that are none, or old") {
    const Issuer issuer;
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr *>(&at), size) == 0);
    REQUIRE(::listen(listener, 5) == 0);
    REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr *>(&at), &size) == 0);
    const TlsSelf server = issuer.scheduler();
    bool old = false;
    SECTION("TLS 1.2") { old = true; }
    SECTION("in the clear") {}
    std::thread other([&] {
        const int fd = ::accept(listener, nullptr, nullptr);
        if (old) {
            OpenSsl side(server, fd, TLS1_2_VERSION);
            SSL_accept(side.ssl.get());
        } else {
            raw_send(fd, "220 mail.example ready\r\n");
            char bytes[4096];
            while (::recv(fd, bytes, sizeof bytes, 0) > 0) {}
        }
        ::close(fd);
    });
    std::unique_ptr<Loop> loop = Loop::create();
    Inbox inbox(*loop);
    loop->connect_tls("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), tls_limits(),
                      context_of(issuer.host(), issuer.trust(pki::Role::scheduler)));
    const Arrival closed = inbox.next();
    other.join();
    CHECK(closed.what == What::closed);
    INFO(closed.why);
    CHECK(closed.why == about(old ? "no TLS version common" : "not TLS"));
    ::close(listener);
    loop->connect_tls("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), tls_limits(),
                      context_of(issuer.host(), issuer.trust(pki::Role::scheduler)));
    CHECK(inbox.next().why.find("refused") != std::string::npos);
    loop->connect_tls("nowhere", tls_limits(), context_of(issuer.host(), issuer.trust(pki::Role::scheduler)));
    CHECK(inbox.next().why.find("is not an address") != std::string::npos);
}

TEST_CASE("TLS: an address that does not answer leaves the others of its name their time") {
    Two two;
    two.open_door();
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(two.there->port_of(two.door));
    ByteWriter places;
    places.u8(1);
    for (const in_addr_t address : {INADDR_LOOPBACK + 1, INADDR_LOOPBACK}) {
        at.sin_addr.s_addr = htonl(address);
        places.text({reinterpret_cast<const char *>(&at), sizeof at});
    }
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    const auto *hole = reinterpret_cast<const sockaddr *>(&at);
    std::vector<Fd> full;  // a queue with room for one connection
    for (int i = 0; i < 5; ++i) {
        full.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (i == 0) REQUIRE((::bind(full[0].get(), hole, sizeof at) == 0 && ::listen(full[0].get(), 0) == 0));
        else (void)::connect(full[i].get(), hole, sizeof at);
    }
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    const Fd asks(pair[0]), asked(pair[1]);
    look_up_by(asks.get());
    two.here->connect_tls("twice:" + std::to_string(ntohs(at.sin_port)), limits_of(8u << 20, 5000, 8000),
                          context_of(two.issuer.host(), two.issuer.trust(pki::Role::scheduler)));
    pollfd question{asked.get(), POLLIN, 0};
    REQUIRE(two.until([&] { return ::poll(&question, 1, 0) == 1; }));
    look_up_by(-1);
    Fd end;
    REQUIRE((receive_packet(asked.get(), look_up_packet_max, end) && end));
    REQUIRE(::write(end.get(), places.bytes().data(), places.bytes().size()) > 0);
    CHECK(two.wait_caller(What::opened).certified.name == "scheduler");
}

// What a caller makes of the handshake of the two: whether it failed for the time of a certificate.
static bool about_time(const Issuer &issuer, const TlsSelf &door, const TlsSelf &caller) {
    TlsSession there(context_of(door, issuer.trust(pki::Role::grain_server)), TlsSession::Side::door);
    TlsSession here(context_of(caller, issuer.trust(pki::Role::scheduler)), TlsSession::Side::caller);
    std::string plain;
    Status said = here.feed("", &plain);
    for (int i = 0; i < 4 && said; ++i) {
        (void)there.feed(here.take_output(), &plain);
        said = here.feed(there.take_output(), &plain);
    }
    CHECK(said.code == Code::refused);
    return here.about_time();
}

TEST_CASE("TLS: a caller knows a refusal that a clock set right would end") {
    static const Issuer stranger;
    const Issuer issuer;
    const TlsSelf early = issuer.self(pki::Role::grain_server, "h1", 3 * pki::day_s);
    CHECK(about_time(issuer, issuer.expired(pki::Role::scheduler), issuer.host()));
    CHECK(about_time(issuer, issuer.self(pki::Role::scheduler, "s", 3 * pki::day_s), issuer.host()));
    CHECK(about_time(issuer, issuer.scheduler(), issuer.expired(pki::Role::grain_server)));
    CHECK(about_time(issuer, issuer.scheduler(), early));
    CHECK_FALSE(about_time(issuer, issuer.scheduler(), stranger.host()));
    CHECK_FALSE(about_time(issuer, stranger.scheduler(), issuer.host()));
    CHECK_FALSE(about_time(issuer, issuer.scheduler(), issuer.self(pki::Role::client, "h1")));
    CHECK_FALSE(about_time(issuer, issuer.host(), issuer.host()));
}
