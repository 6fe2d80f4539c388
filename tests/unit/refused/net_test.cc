// What connections and identities say when the kernel refuses them something, files are not what their names say, or
// peers do what no DCS does.
#include <cerrno>
#include <fstream>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <thread>

#include "client/transport.h"
#include "net/pool_link.h"
#include "net/socket_calls.h"
#include "support/about.h"
#include "support/refuse.h"
#include "unit/net/tls_peers.h"

using namespace tls_peers;
using dcs::test::Refusing;

namespace {

// A listener on TCP that takes one connection, and does with it what the test says.
class Listener {
public:
    explicit Listener(std::function<void(int)> serve) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        REQUIRE(::bind(fd_, reinterpret_cast<sockaddr *>(&at), size) == 0);
        REQUIRE(::listen(fd_, 5) == 0);
        REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr *>(&at), &size) == 0);
        port_ = ntohs(at.sin_port);
        thread_ = std::thread([this, serve = std::move(serve)] {
            const int fd = ::accept(fd_, nullptr, nullptr);
            serve(fd);
            ::close(fd);
        });
    }
    Listener(const Listener &) = delete;
    ~Listener() {
        thread_.join();
        ::close(fd_);
    }
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

private:
    int fd_;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

std::string text_of_file(const std::string &path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string &path, const std::string &bytes) { std::ofstream(path) << bytes; }

}  // namespace

TEST_CASE("sockets that cannot be had") {
    Directory dir;
    const auto loop = Loop::create();
    const Limits limits = limits_of(1000, 20'000, 20'000);
    {
        const Refusing listen("listen", EADDRINUSE);
        CHECK(listen_unix_socket(dir.path(), "s", 0600).status().text ==
              about("cannot open socket " + dir.path() + "/s Address use"));
    }
    const std::string add = std::to_string(EPOLL_CTL_ADD);
    {
        const Refusing wait("epoll_ctl", ENOSPC, add);
        CHECK(loop->listen_unix(dir.path(), "s", 0600, limits).status().text ==
              about("cannot wait " + dir.path() + "/s No space left device"));
    }
    REQUIRE(loop->listen_unix(dir.path(), "s", 0600, limits));
    const auto caller = Loop::create();
    {
        Inbox inbox(*caller);
        const Refusing wait("epoll_ctl", ENOSPC, add);
        caller->connect_unix(dir.path() + "/s", limits);
        CHECK(inbox.next().why == about("no memory wait " + dir.path() + "/s"));
    }
    const Issuer issuer;
    Inbox inbox(*caller);
    const Refusing socket("socket", EMFILE, std::to_string(AF_INET));
    caller->connect_tls("127.0.0.1:7", tls_limits(), context_of(issuer.host(), issuer.trust(pki::Role::scheduler)));
    CHECK(inbox.next().why == about("127.0.0.1:7 many open files"));
}

TEST_CASE("connections that the kernel does not let anybody wait for end alone") {
    Directory dir;
    const auto loop = Loop::create();
    REQUIRE(loop->listen_unix(dir.path(), "s", 0600, limits_of(1000, 20'000, 20'000)));
    Inbox inbox(*loop);
    const int other = raw_connect(dir.path() + "/s");
    CHECK(inbox.next().what == What::opened);
    {
        const Refusing wait("epoll_ctl", EPERM, std::to_string(EPOLL_CTL_ADD));
        const int fd = raw_connect(dir.path() + "/s");
        CHECK(inbox.next().what == What::opened);
        CHECK(inbox.next().why == about("cannot Operation not"));
        ::close(fd);
    }
    REQUIRE(raw_send(other, frame_of(1, "still served")));
    CHECK(inbox.next().payload == "still served");
    ::close(other);
}

TEST_CASE("addresses that cannot be listened on") {
    const std::string nobody = std::string(70, 'x') + ".invalid";
    const std::string text = listen_tcp_socket({nobody, 0}).status().text;
    INFO(text);
    CHECK(text.find("cannot listen on " + nobody + ":0: ") == 0);
    CHECK(listen_tcp_socket({"192.0.2.1", 0}).status().text == about("cannot 192.0.2.1:0 Cannot"));
}

TEST_CASE("a peer that goes away in the middle of a message") {
    Directory dir;
    const auto loop = Loop::create();
    REQUIRE(loop->listen_unix(dir.path(), "s", 0600, limits_of(1000, 20'000, 20'000)));
    Inbox inbox(*loop);
    const int fd = raw_connect(dir.path() + "/s");
    CHECK(inbox.next().what == What::opened);
    REQUIRE(raw_send(fd, frame_of(1, "payload").substr(0, 20)));
    ::close(fd);
    CHECK(inbox.next().why == about("closed connection message"));
}

TEST_CASE("TLS: a caller that says good-bye") {
    Two two;
    two.open_door();
    const TlsSelf self = two.issuer.host();
    const int fd = raw_tcp(two.there->port_of(two.door));
    std::thread caller([&] {
        OpenSsl side(self, fd, TLS1_3_VERSION);
        if (SSL_connect(side.ssl.get()) == 1) SSL_shutdown(side.ssl.get());
        char byte = 0;
        while (::recv(fd, &byte, 1, 0) > 0) {}
    });
    CHECK(two.wait_door(What::closed).why == "the peer closed the connection");
    caller.join();
    ::close(fd);
}

TEST_CASE("TLS: a scheduler that says good-bye, is silent, or chooses TLS 1.2") {
    const Issuer issuer;
    const TlsSelf server = issuer.scheduler();
    const auto context = context_of(issuer.host(), issuer.trust(pki::Role::scheduler));
    SECTION("good-bye") {
        const Listener there([&](int fd) {
            OpenSsl side(server, fd, TLS1_3_VERSION);
            if (SSL_accept(side.ssl.get()) == 1) SSL_shutdown(side.ssl.get());
            char byte = 0;
            while (::recv(fd, &byte, 1, 0) > 0) {}
        });
        client::Transport transport;
        const auto refusal = transport.connect_tls(there.address(), context, soon(60'000));
        INFO(refusal.why);
        REQUIRE(refusal.error == 0);
        CHECK(transport.receive(1000, soon(60'000)).status().text == "the scheduler closed the connection");
    }
    SECTION("silent") {
        Directory dir;
        const auto fd = listen_unix_socket(dir.path(), "s", 0600);
        REQUIRE(fd);
        client::Transport transport;
        REQUIRE(transport.connect(dir.path() + "/s").error == 0);
        CHECK(transport.receive(1000, soon(10)).status().text == about("scheduler not answer"));
        ::close(*fd);
    }
    SECTION("TLS 1.2") {
        // A ServerHello of that version, which no offer of ours allows.
        const std::string hello = std::string("\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03", 11) +
                                  std::string(32, 'r') + std::string("\x00\xc0\x2f\x00", 4);
        const Listener there([&](int fd) {
            char bytes[4096];
            if (::recv(fd, bytes, sizeof bytes, 0) > 0) raw_send(fd, hello);
            while (::recv(fd, bytes, sizeof bytes, 0) > 0) {}
        });
        const auto loop = Loop::create();
        Inbox inbox(*loop);
        loop->connect_tls(there.address(), tls_limits(), context);
        CHECK(inbox.next().why == about("TLS 1.2 1.3"));
    }
}

TEST_CASE("TLS: an authority that is no certificate") {
    TlsTrust trust;
    trust.authority = "nonsense";
    trust.role = pki::Role::scheduler;
    CHECK(tls_context({}, trust).status().text == about("authority's certificate not"));
}

TEST_CASE("the certificate that a scheduler sends again must be ours") {
    Directory dir;
    const Issuer issuer, another;
    const TlsSelf self = issuer.host();
    const auto certificate = pki::read_certificate(self.certificate);
    REQUIRE(pki::write_identity(dir.path(), {self.key, *certificate, issuer.authority.certificate}));
    PoolLink link;
    CHECK(link.open("nowhere", dir.path(), pki::Role::grain_server, "h1").text ==
          about("--scheduler \"nowhere\" not address expected HOST:PORT [IPV6]:PORT name slash socket host"));
    REQUIRE(link.open("pool.example:7001", dir.path(), pki::Role::grain_server, "h1"));
    const std::string ours = "the new certificate from the scheduler";
    CHECK(link.renewed({"nonsense"}).text == about(ours + " not certificate damaged"));
    CHECK(link.renewed({another.host().certificate}).text == about(ours + " certificate h1 issued authority pool's"));
    CHECK(link.renewed({issuer.host().certificate}).text == about(ours + " name key"));
}

TEST_CASE("keys and certificates in files that are not what their names say") {
    Directory dir;
    const Issuer issuer;
    const std::string key = dir.path() + "/key.pem", authority = dir.path() + "/authority.pem";
    const auto read = [&] { return pki::read_identity(dir.path()).status().text; };
    const TlsSelf self = issuer.host();
    const pki::Identity whole{self.key, *pki::read_certificate(self.certificate), issuer.authority.certificate};
    {
        const Refusing open("open,openat", EACCES, "key.pem");
        CHECK(pki::write_identity(dir.path(), whole).text == "cannot write " + key + ".tmp: Permission denied");
    }
    REQUIRE(pki::write_identity(dir.path(), whole));
    {
        const Refusing look("fstat", EIO);
        CHECK(read() == "cannot read " + key + ": Input/output error");
    }
    {
        const Refusing bytes("read", EIO);
        CHECK(read() == "cannot read " + key + ": Input/output error");
    }
    write_file(key, text_of_file(key) + std::string(1 << 20, '\n'));
    CHECK(read() == key + " is too long");
    ::unlink(key.c_str());
    REQUIRE(::mkdir(key.c_str(), 0700) == 0);
    CHECK(read() == key + " is not a file");
    ::rmdir(key.c_str());
    REQUIRE(pki::write_identity(dir.path(), whole));
    if (::geteuid() == 0) {  // only root can give a file away
        REQUIRE(::chown(key.c_str(), 65534, 65534) == 0);
        CHECK(read() == about(key + " belongs uid 65534 not user program"));
        ::unlink(key.c_str());
    }
    CHECK(pki::key_in(authority + "/below").status().text ==
          about("cannot make directory " + authority + "/below Not directory"));
    const std::int64_t now = wall_clock_s();
    REQUIRE(pki::authority_in(dir.path() + "/pool", now));
    write_file(dir.path() + "/pool/authority.pem", pki::certificate_to_pem(self.certificate));
    CHECK(pki::authority_in(dir.path() + "/pool", now).status().text ==
          about(dir.path() + "/pool/authority.pem not certificate authority"));
    CHECK(pki::issue(issuer.authority, "no key", pki::Role::grain_server, "h1", now).status().text ==
          about("not public key"));
}
