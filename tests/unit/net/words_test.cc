// What is said of connections that end for reasons which are no peer's message, and who goes on.
#include <thread>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/load_limits.h"
#include "support/about.h"
#include "support/refuse.h"
#include "tls_peers.h"

using namespace tls_peers;

namespace {

std::string error_in(const std::string &frame) {
    const auto header = wire::decode_header(std::string_view(frame).substr(0, wire::header_bytes), 1 << 20);
    if (!header) return header.status().text;
    const auto message = wire::decode_payload(*header, std::string_view(frame).substr(wire::header_bytes));
    const auto *error = message ? std::get_if<wire::ErrorReply>(&*message) : nullptr;
    return error ? error->text : "";
}

// A connection of another user, whom the kernel names to the door.
int connect_as(uid_t user, const std::string &path) {
    REQUIRE(::seteuid(user) == 0);
    const int fd = raw_connect(path);
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(fd >= 0);
    return fd;
}

std::string of_size(std::size_t bytes) { return head_of(static_cast<std::uint32_t>(bytes), 1, 0); }

// Sends, and lets the loop read meanwhile, as long as the connection lives.
bool pour(Inbox &inbox, int fd, std::string bytes, std::vector<Arrival> &seen) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN) return false;
        if (n > 0) done += static_cast<std::size_t>(n);
        while (!inbox.silent(0)) seen.push_back(inbox.next());
        if (!seen.empty()) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("a peer that is gone when it is sent something") {
    Server server(limits_of(1000, 0, 5000));
    const int fd = raw_connect(server.path());
    const ConnId conn = server.inbox.next().conn;
    ::close(fd);
    server.loop->send(conn, frame_of(1, "too late"));
    const Arrival end = server.inbox.next();
    CHECK(end.what == What::closed);
    CHECK(end.conn == conn);
    CHECK(end.why == "connection failed: Broken pipe");
}

TEST_CASE("what is held for one user has a limit for all his connections, and others go on") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: only root can be other users");
        return;
    }
    Server server(limits_of(limits::held_bytes, 0, 600'000));
    REQUIRE(::chmod(server.dir.path().c_str(), 0755) == 0);
    REQUIRE(::chmod(server.path().c_str(), 0666) == 0);
    const int one = connect_as(54321, server.path()), two = connect_as(54321, server.path()),
              other = connect_as(54322, server.path());
    for (int i = 0; i < 3; ++i) CHECK(server.inbox.next().what == What::opened);
    // The beginnings of two messages: room is made for twice what has come.
    const std::size_t half = limits::held_bytes / 2 + 1000;
    std::vector<Arrival> seen;
    REQUIRE(pour(server.inbox, one, of_size(half) + std::string(half - 1, 'x'), seen));
    CHECK_FALSE(pour(server.inbox, two, of_size(half) + std::string(half - 1, 'x'), seen));
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].what == What::closed);
    const std::string words = "more than " + std::to_string(limits::held_bytes) +
                              " bytes are held for this user, in "
                              "incomplete messages and unread answers: read the answers, or send less at a time";
    CHECK(seen[0].why == words);
    bool ended = false;
    CHECK(error_in(raw_drain(two, &ended)) == words);
    CHECK(ended);
    REQUIRE(raw_send(one, "x"));  // the rest of the first; its checksum is wrong
    CHECK(server.inbox.next().conn != seen[0].conn);
    REQUIRE(raw_send(other, frame_of(7, "somebody else")));
    CHECK(server.inbox.next().payload == "somebody else");
    for (const int fd : {one, two, other}) ::close(fd);
}

TEST_CASE("TLS: a peer that says good-bye before it has said who it is") {
    const std::string good_bye("\x15\x03\x03\x00\x02\x01\x00", 7);
    Two two;
    two.open_door();
    const int fd = raw_tcp(two.there->port_of(two.door));
    raw_send(fd, good_bye);
    CHECK(two.wait_door(What::refused).why == "TLS failed: unexpected message");
    bool ended = false;
    raw_drain(fd, &ended);
    CHECK(ended);
    ::close(fd);
    const auto listener = listen_tcp_socket({"127.0.0.1", 0});
    REQUIRE(listener);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    REQUIRE(::getsockname(*listener, reinterpret_cast<sockaddr *>(&at), &size) == 0);
    two.here->connect_tls("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), tls_limits(),
                          context_of(two.issuer.host(), two.issuer.trust(pki::Role::scheduler)));
    pollfd waiting{*listener, POLLIN, 0};
    REQUIRE(two.until([&] { return ::poll(&waiting, 1, 0) == 1; }));  // a thread looks the name up
    const int caller = ::accept(*listener, nullptr, nullptr);
    REQUIRE(raw_send(caller, good_bye));
    CHECK(two.wait_caller(What::closed).why == about("ended TLS handshake"));
    ::close(caller);
    ::close(*listener);
}

#if DCS_CAN_REFUSE
// In a process of its own, whose memory is bounded.
TEST_CASE("a message for which there is no memory ends its connection, and the others go on") {
    Directory dir;
    const std::string path = dir.path() + "/s";
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        static char some[1 << 16];
        const auto loop = Loop::create();
        const bool listens(loop->listen_unix(dir.path(), "s", 0600, limits_of(1u << 30, 0, 600'000)));
        const int big = raw_connect(path), small = raw_connect(path);
        (void)loop->wait(soon(1000), 2);
        long pages = 0;
        if (FILE *file = std::fopen("/proc/self/statm", "r")) {
            (void)!std::fscanf(file, "%ld", &pages);
            std::fclose(file);
        }
        const rlim_t most = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (100u << 20);
        const rlimit bound{most, most};
        std::string told = listens && ::setrlimit(RLIMIT_AS, &bound) == 0 ? "" : "no bound";
        raw_send(big, of_size(1u << 30));
        for (int i = 0; i < (1 << 14) && told.empty(); ++i) {
            (void)!::send(big, some, sizeof some, MSG_NOSIGNAL | MSG_DONTWAIT);
            for (Arrival &a : loop->wait(Instant{0}, 10)) told += a.why + "|";
        }
        bool ended = false;
        told += error_in(raw_drain(big, &ended)) + "|";
        raw_send(small, frame_of(5, "still served"));
        for (Arrival &a : loop->wait(soon(60'000), 1)) told += a.payload;
        (void)!::write(ends[1], told.data(), told.size());
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string told(1000, '\0');
    const ssize_t n = ::read(ends[0], told.data(), told.size());
    told.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    CHECK(told == about("no message|no message|still"));
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
#endif
