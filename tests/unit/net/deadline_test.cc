// Peers that are slow or do not read, and closing.
#include <atomic>
#include <csignal>
#include <sys/wait.h>
#include <thread>

#include "peers.h"
#include "support/about.h"

using namespace peers;

TEST_CASE("a peer that says nothing, or very slowly, is cut off") {
    Server server(limits_of(100'000, 150, 150));
    SECTION("silent from the start") {
        int fd = raw_connect(server.path());
        CHECK(server.inbox.next().what == What::opened);
        Instant start = boot_clock();
        Arrival closed = server.inbox.next();
        CHECK(closed.what == What::closed);
        CHECK(closed.why == "no first message in time");
        CHECK(boot_clock() - start > milliseconds(100));
        ::close(fd);
    }
    SECTION("a first message byte by byte") {
        int fd = raw_connect(server.path());
        std::thread slow([fd] {
            std::string bytes = frame_of(1, std::string(60, 'x'));
            for (char c : bytes) {
                if (!raw_send(fd, std::string(1, c))) return;
                ::usleep(20'000);
            }
        });
        CHECK(server.inbox.next().what == What::opened);
        CHECK(server.inbox.next().what == What::closed);
        slow.join();
        ::close(fd);
    }
    SECTION("a later message byte by byte") {
        int fd = raw_connect(server.path());
        REQUIRE(raw_send(fd, frame_of(1, "hello")));
        CHECK(server.inbox.next().what == What::opened);
        CHECK(server.inbox.next().what == What::frame);
        CHECK(server.inbox.silent(300));  // between two messages a peer may be silent
        std::thread slow([fd] {
            std::string bytes = frame_of(2, std::string(60, 'x'));
            for (char c : bytes) {
                if (!raw_send(fd, std::string(1, c))) return;
                ::usleep(20'000);
            }
        });
        Arrival closed = server.inbox.next();
        CHECK(closed.what == What::closed);
        CHECK(closed.why == about("message incomplete limit"));
        slow.join();
        ::close(fd);
    }
}

TEST_CASE("a peer that is slow, but moves, may take longer than the deadline") {
    Server server(limits_of(100'000, 60'000, 3000));
    int fd = raw_connect(server.path());
    REQUIRE(raw_send(fd, frame_of(1, "hello")));
    std::thread steady([fd] {
        std::string bytes = frame_of(2, std::string(50'000, 'x'));
        for (std::size_t at = 0; at < bytes.size(); at += 5000) {
            raw_send(fd, bytes.substr(at, 5000));
            ::usleep(400'000);
        }
    });
    CHECK(server.inbox.next().what == What::opened);
    CHECK(server.inbox.next().what == What::frame);
    CHECK(server.inbox.next().payload.size() == 50'000);
    steady.join();
    ::close(fd);
}

TEST_CASE("what came in time counts although we look late") {
    Server server(limits_of(1000, 100, 100));
    int fd = raw_connect(server.path());
    CHECK(server.inbox.next().what == What::opened);
    REQUIRE(raw_send(fd, frame_of(1, "in time")));
    ::usleep(250'000);  // a long commit of ours
    CHECK(server.inbox.next().payload == "in time");
    ::close(fd);
}

TEST_CASE("a pause of ours does not count against the peers") {
    Server server(limits_of(1000, 600, 600));
    int silent = raw_connect(server.path()), half = raw_connect(server.path());
    REQUIRE(raw_send(half, frame_of(1, "") + frame_of(2, "").substr(0, 10)));
    for (int i = 0; i < 3; ++i) CHECK(server.inbox.next().what != What::closed);
    SECTION("we do not call wait") {
        ::usleep(1'300'000);
        CHECK(server.inbox.silent(200));
    }
    SECTION("the process is stopped in the middle of wait") {
        pid_t stopped = ::fork();  // the loop goes on there; here it is left alone
        if (stopped == 0) ::_exit(server.inbox.silent(300) && server.inbox.silent(200) ? 0 : 1);
        ::usleep(100'000);
        ::kill(stopped, SIGSTOP);
        ::usleep(2'500'000);
        ::kill(stopped, SIGCONT);
        int status = -1;
        ::waitpid(stopped, &status, 0);
        CHECK(status == 0);
    }
    for (int i = 0; i < 2; ++i) CHECK(server.inbox.next().what == What::closed);  // in the end
    for (int fd : {silent, half}) ::close(fd);
}

TEST_CASE("what came in time counts although others fill the queue before it") {
    Server server(limits_of(1000, 100, 100));
    int flood = raw_connect(server.path()), modest = raw_connect(server.path());
    REQUIRE(raw_send(flood, frame_of(1, "")));
    REQUIRE(raw_send(modest, frame_of(1, "").substr(0, 10)));
    for (int i = 0; i < 3; ++i) CHECK(server.inbox.next().what != What::closed);
    std::string many, one = frame_of(1, "");
    while (many.size() < 150'000) many += one;
    REQUIRE(raw_send(flood, many));
    ::usleep(1000);
    REQUIRE(raw_send(modest, one.substr(10)));
    ::usleep(250'000);
    for (std::size_t left = many.size() / one.size() + 1; left > 0; --left) {
        std::vector<Arrival> batch = server.loop->wait(soon(5000), 1);
        REQUIRE(batch.size() == 1);
        REQUIRE(batch[0].what == What::frame);
    }
    for (int fd : {flood, modest}) ::close(fd);
}

TEST_CASE("a peer that does not read is cut off by time") {
    Server server(limits_of(1000, 5000, 200));
    int fd = raw_connect(server.path());
    REQUIRE(raw_send(fd, frame_of(1, "give")));
    ConnId conn = server.inbox.next().conn;
    CHECK(server.inbox.next().payload == "give");
    server.loop->send(conn, std::string(8u << 20, 'o'));
    Arrival closed = server.inbox.next();
    CHECK(closed.what == What::closed);
    CHECK(closed.conn == conn);
    CHECK(closed.why == about("peer not messages"));
    ::close(fd);
}

TEST_CASE("a peer that does not read is cut off when its queue is full") {
    Limits limits = limits_of(1000, 5000, 60'000);
    limits.max_queued = 4u << 20;
    Server server(limits);
    int fd = raw_connect(server.path());
    ConnId conn = server.inbox.next().conn;
    int sent = 0;
    bool cut = false;
    for (; sent < 100 && !cut; ++sent) {
        server.loop->send(conn, std::string(100'000, 'o'));
        for (Arrival &a : server.loop->wait(Instant{0}, 10)) cut = a.what == What::closed;
    }
    CHECK(cut);
    CHECK(sent > 40);
    ::close(fd);
    SECTION("a peer that reads gets far more than the bound") {
        int reading = raw_connect(server.path());
        conn = server.inbox.next().conn;
        std::atomic<std::size_t> got = 0;
        std::atomic<bool> done = false;
        std::thread reader([&] {
            char bytes[65536];
            for (ssize_t n; (n = ::recv(reading, bytes, sizeof bytes, 0)) > 0;) got += static_cast<std::size_t>(n);
            done = true;
        });
        for (int round = 0; round < 30; ++round) {
            server.loop->send(conn, std::string(1u << 20, 'o'));
            while (got + (2u << 20) < static_cast<std::size_t>(round + 1) << 20 && !done)
                server.loop->wait(soon(5), 10);
        }
        server.loop->close(conn);
        while (!done) server.loop->wait(soon(20), 10);
        reader.join();
        CHECK(got == 30u << 20);
        ::close(reading);
    }
}

TEST_CASE("close sends what is queued first, and nothing arrives after it") {
    Server server(limits_of(1000, 5000, 5000));
    int fd = raw_connect(server.path());
    REQUIRE(raw_send(fd, frame_of(1, "give") + frame_of(2, "more")));
    std::vector<Arrival> first = server.loop->wait(soon(5000), 1);
    REQUIRE(first.size() == 1);
    ConnId conn = first[0].conn;
    std::string big = patterned(5u << 20);
    server.loop->send(conn, big);
    server.loop->close(conn);
    server.loop->send(conn, "too late");
    std::string got;
    std::atomic<bool> done = false;
    std::thread reader([&] {
        bool ended = false;
        got = raw_drain(fd, &ended);
        done = true;
    });
    int arrivals = 0;  // neither the two frames nor closed
    while (!done) arrivals += !server.inbox.silent(20);
    reader.join();
    CHECK(arrivals == 0);
    CHECK(got.size() == big.size());
    CHECK((got == big));
    ::close(fd);
    CHECK(server.inbox.silent(20));
}

TEST_CASE("close with a peer that never reads ends by itself") {
    Server server(limits_of(1000, 5000, 100));
    int fd = raw_connect(server.path());
    ConnId conn = server.inbox.next().conn;
    server.loop->send(conn, std::string(5u << 20, 'x'));
    server.loop->close(conn);
    CHECK(server.inbox.silent(300));
    bool ended = false;
    CHECK(raw_drain(fd, &ended).size() < (5u << 20));
    CHECK(ended);
    ::close(fd);
}
