// Names of hosts, by a thread of this process or by a process that is asked in packets.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include "net/look_up.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::net;

namespace {
Found find(const std::string &name, std::uint16_t port = 7, int family = AF_UNSPEC) {
    const auto asked = look_up(name, port, family);
    REQUIRE(asked);
    pollfd answer{asked->get(), POLLIN, 0};
    REQUIRE(::poll(&answer, 1, 60'000) == 1);
    return read_found(asked->get());
}
const sockaddr_in &four(const Place &place) { return reinterpret_cast<const sockaddr_in &>(place.address); }

// Asks by packets what it is given back for as long as it lives.
struct Asked {
    int pair[2];
    Asked() {
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        look_up_by(pair[0]);
    }
    ~Asked() {
        look_up_by(-1);
        ::close(pair[0]);
        if (pair[1] >= 0) ::close(pair[1]);
    }
};
}  // namespace

TEST_CASE("an address needs no look-up, and a name of this host has one") {
    const Found number = find("127.0.0.3", 8080);
    REQUIRE(number.places.size() == 1);
    CHECK(number.places[0].size == sizeof(sockaddr_in));
    CHECK(four(number.places[0]).sin_addr.s_addr == htonl(0x7f000003));
    CHECK(four(number.places[0]).sin_port == htons(8080));
    const Found six = find("::1", 9, AF_INET6);
    REQUIRE(six.places.size() == 1);
    CHECK(six.places[0].size == sizeof(sockaddr_in6));
    CHECK_FALSE(find("localhost").places.empty());
    const Found none = find("there.is.none.invalid");
    CHECK(none.places.empty());
    CHECK_FALSE(none.why.empty());
    CHECK_FALSE(look_up(std::string(256, 'n'), 1));
}

TEST_CASE("a process is asked in packets, and none is waited for") {
    Asked by;
    const auto asked = look_up("localhost", 7);
    REQUIRE(asked);
    Fd end;
    const auto packet = receive_packet(by.pair[1], look_up_packet_max, end);
    REQUIRE((packet && end));
    pollfd answer{asked->get(), POLLIN, 0};
    CHECK(::poll(&answer, 1, 0) == 0);
    answer_look_up(*packet, end.get());
    CHECK_FALSE(read_found(asked->get()).places.empty());

    std::vector<Fd> many;  // nothing reads them
    Result<Fd> next = look_up("localhost", 7);
    for (; next && many.size() < 10'000; next = look_up("localhost", 7)) many.push_back(std::move(*next));
    CHECK(next.status().code == Code::limit);
    CHECK(find("127.0.0.1").places.size() == 1);  // without it

    ::close(std::exchange(by.pair[1], -1));
    CHECK(find("127.0.0.1").places.size() == 1);
    CHECK(look_up("localhost", 7).status().code == Code::unreachable);
    for (const Fd &given_up : many) CHECK(read_found(given_up.get()).places.empty());
}

TEST_CASE("packets and answers of another form do no harm") {
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    const Fd ours(pipe[0]);
    Fd theirs(pipe[1]);
    for (const std::string packet :
         {std::string(), std::string("\2\0\0\0\7\0\377\377\377\377x", 11), std::string(300, 'x')}) {
        answer_look_up(packet, theirs.get());
        const Found found = read_found(ours.get());
        CHECK(found.places.empty());
        CHECK(found.why == "invalid request");
    }
    for (const std::string bytes :
         {std::string("\1", 1), std::string("\1\20\0\0\0short", 10), std::string("\1\1\0\0\0x", 6)}) {
        REQUIRE(::write(theirs.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
        const Found found = read_found(ours.get());
        CHECK(found.places.empty());
        CHECK_FALSE(found.why.empty());
    }
    theirs = Fd();
    CHECK(read_found(ours.get()).why == "the look-up ended without an answer");
}
