// What a peer may cost before it is known who it is.
#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>

#include "net/stranger_table.h"
#include "net/tls.h"
#include "support/about.h"
#include "tls_peers.h"

using namespace tls_peers;

TEST_CASE("TLS: a handshake that is not over in time ends") {
    Two two;
    two.open_door(false, limits_of(1000, 150, 5000));
    const int silent = raw_tcp(two.there->port_of(two.door));
    CHECK(two.wait_door(What::refused).why == about("TLS handshake not complete"));
    bool ended = false;
    raw_drain(silent, &ended);
    CHECK(ended);
    ::close(silent);
    two.at_door.clear();
    const int slow = raw_tcp(two.there->port_of(two.door));  // a byte now and then does not buy time
    const std::string hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
    for (char byte : hello) {
        if (Two::first(two.at_door, What::refused) != nullptr) break;
        ::send(slow, &byte, 1, MSG_NOSIGNAL);
        for (int i = 0; i < 10; ++i) two.turn();
    }
    CHECK(two.wait_door(What::refused).why == about("TLS handshake not complete"));
    ::close(slow);
}

TEST_CASE("TLS: after the handshake the first frame has its own time") {
    Two two;
    two.open_door(false, limits_of(1000, 400, 5000));
    two.call(two.issuer.host());
    CHECK(two.wait_door(What::opened).certified.name == "h1");
    CHECK(two.wait_door(What::closed).why == "no first message in time");
}

TEST_CASE("TLS: a handshake has its bound in bytes") {
    Two two;
    two.open_door();
    const int fd = raw_tcp(two.there->port_of(two.door));
    // A client's hello that says it has 100,000 bytes, in records of 16 KiB.
    const std::string record("\x16\x03\x01\x40\x00", 5);
    std::string bytes = record + std::string("\x01\x01\x86\xa0", 4) + std::string(16380, 'x');
    std::size_t sent = 0;
    while (Two::first(two.at_door, What::refused) == nullptr && sent < 100'000) {
        const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) sent += static_cast<std::size_t>(n);
        bytes = record + std::string(16384, 'x');
        two.turn();
    }
    CHECK(two.wait_door(What::refused).why == about("TLS handshake exceeds"));
    ::close(fd);
}

TEST_CASE("TLS: noise instead of a handshake") {
    Two two;
    two.open_door();
    for (int round = 0; round < 200; ++round) {
        const int fd = raw_tcp(two.there->port_of(two.door));
        std::string noise = "\x16\x03\x01" + patterned(200 + static_cast<std::size_t>(round));
        for (std::size_t i = 3; i < noise.size(); ++i) noise[i] = static_cast<char>(noise[i] + round * 31);
        raw_send(fd, noise);
        ::shutdown(fd, SHUT_WR);
        two.at_door.clear();
        two.wait_door(What::refused);
        CHECK(Two::first(two.at_door, What::opened) == nullptr);
        ::close(fd);
    }
    two.call(two.issuer.host());
    CHECK(two.wait_door(What::opened).certified.name == "h1");
}

TEST_CASE("TLS: strangers of one network are few, and make room for newcomers, certificates are counted by key") {
    Two two;
    two.open_door(true, limits_of(1000, 0, 5000));
    std::vector<int> strangers;
    for (std::size_t i = 0; i < limits::strangers_of_network; ++i)
        strangers.push_back(raw_tcp(two.there->port_of(two.door)));
    for (int i = 0; i < 20; ++i) two.turn();
    // All places are taken: a peer that shows a certificate comes in nevertheless, and a silent one goes.
    two.at_door.clear();
    two.call(two.issuer.host("h1"));
    CHECK(two.wait_door(What::opened).certified.name == "h1");
    REQUIRE(Two::first(two.at_door, What::refused) != nullptr);
    CHECK(Two::first(two.at_door, What::refused)->why.find("closed to make room") == 0);
    const auto one_key = two.issuer.host("h1");
    for (std::size_t i = 0; i < limits::connections_of_certificate; ++i) {
        two.at_door.clear();
        two.call(one_key);
        CHECK(two.wait_door(What::opened).certified.name == "h1");
    }
    two.at_door.clear();
    two.at_caller.clear();
    two.call(one_key);
    CHECK(two.wait_door(What::refused).why.find("4 connections with the certificate of h1 already") !=
          std::string::npos);
    for (const char *name : {"h1", "h2"}) {  // another key of the same name does not suffer from it
        two.at_door.clear();
        two.call(two.issuer.host(name));
        CHECK(two.wait_door(What::opened).certified.name == name);
    }
    for (const int fd : strangers) ::close(fd);
}

TEST_CASE("TLS: handshakes of strangers do not keep from the caller what has arrived") {
    Two two;
    two.open_door(true);
    const TlsContextPtr stranger = context_of(two.issuer.host(), two.issuer.trust(pki::Role::scheduler));
    std::vector<int> strangers;
    for (std::size_t i = 0; i < limits::strangers_of_network; ++i)
        strangers.push_back(raw_tcp(two.there->port_of(two.door)));
    for (int i = 0; i < 20; ++i) two.turn();
    two.there->wake();
    for (const int fd : strangers) {
        net::TlsSession session(stranger, net::TlsSession::Side::caller);
        REQUIRE(session.feed("", nullptr));
        raw_send(fd, session.take_output());
    }
    const auto answered = [](int fd) {
        char byte;
        return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    };
    const std::vector<Arrival> out = two.there->wait(soon(20'000), 100);
    CHECK(Two::first(out, What::woken) != nullptr);
    CHECK(std::count_if(strangers.begin(), strangers.end(), answered) < std::ssize(strangers));
    CHECK(two.until([&] { return std::all_of(strangers.begin(), strangers.end(), answered); }));
    for (const int fd : strangers) ::close(fd);
}

TEST_CASE("who makes room among strangers") {
    StrangerTable table({4, 3});
    Instant now = Instant{} + seconds(1000);
    const auto at = [&](int ms) { table.tell_time(now = now + milliseconds(ms)); };
    at(0);
    for (ConnId id : {ConnId{ConnId{1}}, ConnId{2}, ConnId{3}}) CHECK_FALSE(table.add(id, "a"));
    table.spoke(ConnId{1});
    at(1000);
    CHECK(table.add(ConnId{4}, "a") == ConnId{2});  // the oldest silent one, not the one that speaks
    table.remove(ConnId{2});
    CHECK(table.add(ConnId{5}, "a") == ConnId{3});
    table.remove(ConnId{3});
    CHECK(table.add(ConnId{6}, "a") == ConnId{1});  // the others have had no time to speak
    table.remove(ConnId{1});
    CHECK_FALSE(table.add(ConnId{7}, "b"));
    CHECK(table.size() == 4);
    table.trust("a", now);
    at(1000);
    CHECK(table.add(ConnId{8}, "c") == ConnId{7});  // who is known keeps its places
    table.remove(ConnId{7});
    table.spoke(ConnId{8});
    CHECK(table.add(ConnId{9}, "d") == ConnId{8});
    table.remove(ConnId{8});
    table.remove(ConnId{9});
    table.trust("e", now);
    CHECK_FALSE(table.add(ConnId{10}, "e"));
    CHECK(table.add(ConnId{11}, "f") == ConnId{11});  // all others are known: the newcomer goes
    CHECK(table.add(ConnId{12}, "e") == ConnId{4});
    at(24 * 3600 * 1000 + 1);
    CHECK_FALSE(table.trusted("a", now));
}

TEST_CASE("networks that strangers are counted by") {
    const auto six = [](const char *text) {
        sockaddr_in6 a{};
        a.sin6_family = AF_INET6;
        ::inet_pton(AF_INET6, text, &a.sin6_addr);
        return network_of(&a, sizeof a);
    };
    sockaddr_in four{};
    four.sin_family = AF_INET;
    ::inet_pton(AF_INET, "192.0.2.7", &four.sin_addr);
    CHECK(network_of(&four, sizeof four) == "192.0.2.7");
    CHECK(six("::ffff:192.0.2.7") == "192.0.2.7");
    CHECK(six("2001:db8:1:2:3:4:5:6") == "2001:db8:1:2::/64");
    CHECK(six("2001:db8:1:2::1") == six("2001:db8:1:2:ffff::9"));
    CHECK(six("2001:db8:1:3::1") != six("2001:db8:1:2::1"));
}

TEST_CASE("TLS: a renewed certificate serves new connections") {
    Two two;
    two.open_door();
    const TlsSelf host = two.issuer.host();
    two.call(host);
    const std::string before = two.wait_caller(What::opened).certified.serial;
    two.at_caller.clear();
    two.there->set_tls(two.door, context_of(two.issuer.scheduler(), two.issuer.trust(pki::Role::grain_server)));
    two.call(host);
    CHECK(two.wait_caller(What::opened).certified.serial != before);
    CHECK(Two::first(two.at_caller, What::closed) == nullptr);
}

TEST_CASE("addresses of TLS doors") {
    for (const char *good : {"h:1", "192.0.2.1:7001", "[::1]:65535", "a.example:0"}) CHECK(parse_tcp_address(good));
    CHECK(parse_tcp_address("[::1]:5")->host == "::1");
    CHECK(to_text(*parse_tcp_address("[::1]:5")) == "[::1]:5");
    for (const char *bad : {"", "h", ":1", "h:", "h:x", "h:65536", "::1:5", "[h]:5", "h:1 ", "a/b:1", "[]:5", "h:-1",
                            "*:1", "[::1", "[::1]", "[::1]5", "[fe80::1%]:5", "-h:1"}) {
        INFO(bad);
        CHECK_FALSE(parse_tcp_address(bad));
    }
    CHECK(parse_tcp_address("[fe80::1%eth0]:5")->host == "fe80::1%eth0");
    for (const char *good : {"h", "h:1", "192.0.2.1", "[::1]", "[::1]:2"}) CHECK(parse_address(good));
    CHECK(parse_address("[::1]")->port == 0);
    for (const char *bad : {"", ":1", "h:", "h:0", "[::1]:0", "::1", "[::1]x", "[::1", "[", "[h]"}) {
        INFO(bad);
        CHECK_FALSE(parse_address(bad));
    }
    CHECK_FALSE(parse_address(std::string_view("[::1\0]", 6)));
    CHECK(*parse_tcp_addresses("h:1") == std::vector<std::string>{"h:1"});
    CHECK(*parse_tcp_addresses("h:1,[::1]:2") == std::vector<std::string>{"h:1", "[::1]:2"});
    for (const char *bad : {"", ",", "h:1,", ",h:1", "h:1,,h:2", "h:1, h:2", "h:1,h", "a:1,b:1,c:1,d:1,e:1"}) {
        INFO(bad);
        CHECK_FALSE(parse_tcp_addresses(bad));
    }
}

TEST_CASE("TLS: what is held for a user's connections is counted together, and for no other peer") {
    Two two;
    Limits limits = limits_of(8u << 20, 60'000, 60'000);
    TlsTrust trust = two.issuer.trust(pki::Role::program);
    two.open_door(two.issuer.scheduler(), trust, false, limits);
    std::string half = frame_of(1, std::string(8'000'000, 'x'));
    half.pop_back();
    const auto say_half = [&](const std::string &name) {
        const TlsSelf self = two.issuer.self(pki::Role::program, name);
        const ConnId conn = two.here->connect_tls(two.address(), limits_of(64u << 20, 60'000, 60'000),
                                                  context_of(self, two.issuer.trust(pki::Role::scheduler)));
        two.here->send(conn, half);
        REQUIRE(two.until([&] {
            return std::any_of(two.at_door.begin(), two.at_door.end(),
                               [&](const Arrival &a) { return a.certified.name == name; });
        }));
    };
    say_half("bob/h1/p");
    const auto cut_off = [&] {
        return std::count_if(two.at_door.begin(), two.at_door.end(), [](const Arrival &a) {
            return a.what == What::closed && a.why.find("bytes are held for this user") != std::string::npos;
        });
    };
    // Sixteen halves are less than limits::held_bytes, the seventeenth is not, whichever host they come from.
    for (int i = 0; i < 17; ++i) say_half("ann/h" + std::to_string(i) + "/p");
    REQUIRE(two.until([&] { return cut_off() > 0; }));
    for (int i = 0; i < 50; ++i) two.turn();
    CHECK(cut_off() < 17);  // what is held is counted with the room that a buffer has, up to twice what arrived
    const auto bob = std::find_if(two.at_door.begin(), two.at_door.end(),
                                  [](const Arrival &a) { return a.certified.name == "bob/h1/p"; });
    REQUIRE(bob != two.at_door.end());
    CHECK(std::none_of(two.at_door.begin(), two.at_door.end(),
                       [&](const Arrival &a) { return a.what == What::closed && a.conn == bob->conn; }));
}
