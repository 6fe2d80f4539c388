// Frames through a loop: order, size, nonsense.
#include <sys/stat.h>

#include "peers.h"

using namespace peers;

TEST_CASE("a peer is announced with its identity, its frames come in order, then its end") {
    Server server(limits_of(1000, 5000, 5000));
    struct stat st = {};
    REQUIRE(::stat(server.path().c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
    int fd = raw_connect(server.path());
    REQUIRE(fd >= 0);
    REQUIRE(raw_send(fd, frame_of(1, "one") + frame_of(2, "") + frame_of(3, std::string(1000, 'x'))));
    Arrival opened = server.inbox.next();
    CHECK(opened.what == What::opened);
    CHECK(opened.door == 0);
    CHECK(opened.conn != no_connection);
    CHECK(opened.peer.uid == ::getuid());
    CHECK(opened.peer.gid == ::getgid());
    CHECK(opened.peer.pid == ::getpid());
    for (std::uint64_t request = 1; request <= 3; ++request) {
        Arrival frame = server.inbox.next();
        CHECK(frame.what == What::frame);
        CHECK(frame.conn == opened.conn);
        CHECK(frame.header.request == request);
        CHECK(frame.header.length == frame.payload.size());
        CHECK(frame.header.crc == crc32c(frame.payload));
    }
    server.loop->send(opened.conn, "first ");
    server.loop->send(opened.conn, "second");
    CHECK(server.inbox.silent(20));
    bool ended = false;
    CHECK(raw_drain(fd, &ended, 12) == "first second");
    CHECK_FALSE(ended);
    ::close(fd);
    Arrival closed = server.inbox.next();
    CHECK(closed.what == What::closed);
    CHECK(closed.conn == opened.conn);
    CHECK(closed.why == "the peer closed the connection");
    server.loop->send(opened.conn, "into the void");
    server.loop->close(opened.conn);
    CHECK(server.inbox.silent(50));
}

TEST_CASE("a frame may come in any pieces") {
    Server server(limits_of(1000, 5000, 5000));
    int fd = raw_connect(server.path());
    std::string bytes = frame_of(7, "payload") + frame_of(8, "") + frame_of(9, "z");
    for (char c : bytes) {
        REQUIRE(raw_send(fd, std::string(1, c)));
        server.loop->wait(Instant{0}, 0);
    }
    // wait() with max 0 hands out one at a time: opened and three frames came on the way.
    CHECK(server.inbox.silent(20));
    ::close(fd);
    Arrival closed = server.inbox.next();
    CHECK(closed.what == What::closed);

    fd = raw_connect(server.path());
    for (std::size_t at = 0; at < bytes.size(); at += 5) REQUIRE(raw_send(fd, bytes.substr(at, 5)));
    CHECK(server.inbox.next().what == What::opened);
    CHECK(server.inbox.next().payload == "payload");
    CHECK(server.inbox.next().header.request == 8);
    CHECK(server.inbox.next().payload == "z");
    ::close(fd);
}

TEST_CASE("two loops echo many frames, fast") {
    Server server(limits_of(1000, 0, 60'000));
    std::unique_ptr<Loop> client = Loop::create();
    ConnId conn = client->connect_unix(server.path(), limits_of(1000, 0, 60'000));
    const std::uint64_t count = 100'000, window = 5'000;
    std::uint64_t sent = 0, back = 0, wrong = 0;
    Instant start = boot_clock();
    bool open = false;
    while (back < count && boot_clock() - start < seconds(60)) {
        for (; open && sent < count && sent < back + window; ++sent)
            client->send(conn, frame_of(sent, "grain " + std::to_string(sent)));
        for (Arrival &a : client->wait(open && sent > back ? Instant{0} : soon(1), 4096)) {
            if (a.what == What::opened) open = true;
            if (a.what == What::closed) FAIL(a.why);
            if (a.what != What::frame) continue;
            wrong += a.header.request != back || a.payload != "grain " + std::to_string(back);
            ++back;
        }
        for (Arrival &a : server.loop->wait(Instant{0}, 4096))
            if (a.what == What::frame) server.loop->send(a.conn, frame_of(a.header.request, a.payload));
    }
    double took = (boot_clock() - start).seconds();
    CHECK(back == count);
    CHECK(wrong == 0);
    WARN("echoed " << static_cast<long>(static_cast<double>(count) / took) << " frames/s, both sides in one thread");
}

TEST_CASE("a frame of 60 MB passes, both ways") {
    Server server(limits_of(64u << 20, 0, 200'000));
    std::unique_ptr<Loop> client = Loop::create();
    ConnId conn = client->connect_unix(server.path(), limits_of(64u << 20, 0, 200'000));
    std::string big = patterned(60u << 20);
    client->send(conn, frame_of(1, big));
    bool there = false, back = false;
    Instant start = boot_clock();
    while (!back && boot_clock() - start < seconds(200)) {
        for (Arrival &a : client->wait(Instant{0}, 100)) {
            if (a.what == What::closed) FAIL(a.why);
            if (a.what == What::frame) back = a.payload == big;
        }
        for (Arrival &a : server.loop->wait(Instant{0}, 100)) {
            if (a.what == What::closed) FAIL(a.why);
            if (a.what != What::frame) continue;
            there = a.payload == big;
            server.loop->send(a.conn, frame_of(2, a.payload));
        }
    }
    CHECK(there);
    CHECK(back);
}

TEST_CASE("oversize and garbage are refused before a byte of payload") {
    Server server(limits_of(100, 5000, 5000));
    std::vector<std::string> bad = {head_of(101, 1, 0), head_of(UINT32_MAX, 1, 0),
                                    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", std::string(24, '\0'),
                                    std::string(100'000, '\xff')};
    for (const std::string &bytes : bad) {
        int fd = raw_connect(server.path());
        REQUIRE(raw_send(fd, bytes));
        Arrival opened = server.inbox.next();
        REQUIRE(opened.what == What::opened);
        Arrival closed = server.inbox.next();
        CHECK(closed.what == What::closed);
        CHECK(closed.conn == opened.conn);
        CHECK_FALSE(closed.why.empty());
        bool ended = false;
        std::string answer = raw_drain(fd, &ended);
        CHECK(ended);
        REQUIRE(answer.size() > wire::header_bytes);
        Result<wire::FrameHeader> header = wire::decode_header(answer.substr(0, wire::header_bytes), 4096);
        REQUIRE(header);
        Result<wire::AnyMessage> reply = wire::decode_payload(*header, answer.substr(wire::header_bytes));
        REQUIRE(reply);
        REQUIRE(std::holds_alternative<wire::ErrorReply>(*reply));
        CHECK(std::get<wire::ErrorReply>(*reply).text == closed.why);
        ::close(fd);
    }
}

TEST_CASE("frames before the nonsense still arrive") {
    Server server(limits_of(100, 5000, 5000));
    int fd = raw_connect(server.path());
    REQUIRE(raw_send(fd, frame_of(1, "good") + "bad bytes, quite a lot of them: more than a header"));
    CHECK(server.inbox.next().what == What::opened);
    CHECK(server.inbox.next().payload == "good");
    CHECK(server.inbox.next().what == What::closed);
    ::close(fd);
}

TEST_CASE("the frame limit of one connection can be raised and lowered") {
    Server server(limits_of(10, 5000, 5000));
    int fd = raw_connect(server.path());
    REQUIRE(raw_send(fd, frame_of(1, "hello")));
    ConnId conn = server.inbox.next().conn;
    CHECK(server.inbox.next().payload == "hello");
    server.loop->set_max_payload(conn, 1000);
    REQUIRE(raw_send(fd, frame_of(2, std::string(1000, 'y'))));
    CHECK(server.inbox.next().payload.size() == 1000);
    server.loop->set_max_payload(conn, 20);
    REQUIRE(raw_send(fd, frame_of(3, std::string(21, 'y'))));
    CHECK(server.inbox.next().what == What::closed);
    ::close(fd);
}
