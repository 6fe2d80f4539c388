#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

#include "peers.h"

using namespace peers;

namespace {
// A loop with one door "s" in a directory of its own, as most tests want it.
struct Server {
    explicit Server(Limits limits) : loop(Loop::create()), inbox(*loop) {
        REQUIRE(loop->listen_unix(dir.path(), "s", 0600, limits));
    }
    std::string path() const { return dir.path() + "/s"; }
    Directory dir;
    std::unique_ptr<Loop> loop;
    Inbox inbox;
};

std::string patterned(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
    return text;
}
}  // namespace

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
    CHECK(opened.conn != 0);
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
    CHECK(raw_drain(fd, &ended) == "first second");
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
    Server server(limits_of(1000, 5000, 5000));
    std::unique_ptr<Loop> client = Loop::create();
    ConnId conn = client->connect_unix(server.path(), limits_of(1000, 5000, 5000));
    const std::uint64_t count = 200'000, window = 5'000;
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
            if (a.what == What::frame)
                server.loop->send(a.conn, frame_of(a.header.request, a.payload));
    }
    double took = (boot_clock() - start).seconds();
    CHECK(back == count);
    CHECK(wrong == 0);
    WARN("echoed " << static_cast<long>(static_cast<double>(count) / took) << " frames/s, both sides in one thread");
}

TEST_CASE("a frame of 60 MB passes, both ways, and counts as moving") {
    Server server(limits_of(64u << 20, 5000, 300));
    std::unique_ptr<Loop> client = Loop::create();
    ConnId conn = client->connect_unix(server.path(), limits_of(64u << 20, 5000, 300));
    std::string big = patterned(60u << 20);
    client->send(conn, frame_of(1, big));
    bool there = false, back = false;
    Instant start = boot_clock();
    while (!back && boot_clock() - start < seconds(30)) {
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
    std::vector<std::string> bad = {
        head_of(101, 1, 0), head_of(UINT32_MAX, 1, 0), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        std::string(24, '\0'), std::string(100'000, '\xff')};
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
        CHECK(closed.why == "a message stopped half way");
        slow.join();
        ::close(fd);
    }
    SECTION("slow, but moving") {
        int fd = raw_connect(server.path());
        REQUIRE(raw_send(fd, frame_of(1, "hello")));
        std::thread steady([fd] {
            std::string bytes = frame_of(2, std::string(50'000, 'x'));
            for (std::size_t at = 0; at < bytes.size(); at += 5000) {
                raw_send(fd, bytes.substr(at, 5000));
                ::usleep(50'000);
            }
        });
        CHECK(server.inbox.next().what == What::opened);
        CHECK(server.inbox.next().what == What::frame);
        CHECK(server.inbox.next().payload.size() == 50'000);
        steady.join();
        ::close(fd);
    }
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
    CHECK(closed.why == "the peer does not read what it is sent");
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
    SECTION("a peer that reads gets far more than the bound, even between two waits") {
        int reading = raw_connect(server.path());
        conn = server.inbox.next().conn;
        std::size_t got = 0;
        std::thread reader([&] {
            char bytes[65536];
            for (ssize_t n; (n = ::recv(reading, bytes, sizeof bytes, 0)) > 0;) got += static_cast<std::size_t>(n);
        });
        for (int round = 0; round < 30; ++round) {
            server.loop->send(conn, std::string(1u << 20, 'o'));
            server.loop->wait(soon(5), 10);
        }
        server.loop->close(conn);
        CHECK(server.inbox.silent(100));
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
    std::thread reader([&] {
        bool ended = false;
        got = raw_drain(fd, &ended);
    });
    CHECK(server.inbox.silent(300));  // neither the two frames nor closed
    reader.join();
    CHECK(got == big);
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

TEST_CASE("connecting: nobody there, then somebody, then again after a loss") {
    Directory dir;
    std::unique_ptr<Loop> client = Loop::create();
    Inbox inbox(*client);
    const Limits limits = limits_of(1000, 2000, 2000);
    ConnId conn = client->connect_unix(dir.path() + "/s", limits);
    Arrival refused = inbox.next();
    CHECK(refused.what == What::closed);
    CHECK(refused.conn == conn);
    CHECK(refused.why.find("No such file") != std::string::npos);
    ConnId last = conn;
    for (int round = 0; round < 3; ++round) {
        std::unique_ptr<Loop> server = Loop::create();
        REQUIRE(server->listen_unix(dir.path(), "s", 0600, limits));
        conn = client->connect_unix(dir.path() + "/s", limits);
        CHECK(conn > last);
        last = conn;
        client->send(conn, frame_of(5, "early"));  // queued while it connects
        Arrival opened = inbox.next();
        CHECK(opened.what == What::opened);
        CHECK(opened.door < 0);
        CHECK(opened.peer.pid == ::getpid());
        Inbox there(*server);
        CHECK(there.next().what == What::opened);
        CHECK(there.next().payload == "early");
        server.reset();
        Arrival closed = inbox.next();
        CHECK(closed.what == What::closed);
        CHECK(closed.conn == conn);
    }
    conn = client->connect_unix(dir.path() + "/s", limits);
    Arrival dead = inbox.next();  // the socket file is there, nobody listens
    CHECK(dead.what == What::closed);
    CHECK(dead.why.find("refused") != std::string::npos);
    conn = client->connect_unix(dir.path() + "/s", limits);
    client->close(conn);
    CHECK(inbox.silent(30));
}

TEST_CASE("a listener whose queue is full is tried until the deadline") {
    Directory dir;
    std::string path = dir.path() + "/s";
    int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener, 0) == 0);
    int first = raw_connect(path);  // fills the queue
    std::unique_ptr<Loop> client = Loop::create();
    Inbox inbox(*client);
    client->connect_unix(path, limits_of(1000, 200, 200));
    Arrival closed = inbox.next();
    CHECK(closed.what == What::closed);
    CHECK(closed.why.find("no connection in time") == 0);
    client->connect_unix(path, limits_of(1000, 5000, 200));
    CHECK(inbox.silent(50));
    ::close(::accept(listener, nullptr, nullptr));
    CHECK(inbox.next().what == What::opened);
    ::close(first);
    ::close(listener);
}

TEST_CASE("wake from another thread ends a wait without deadline") {
    std::unique_ptr<Loop> loop = Loop::create();
    for (int round = 0; round < 50; ++round) {
        std::thread other([&] {
            loop->wake();
            loop->wake();
        });
        std::vector<Arrival> got = loop->wait(Instant::never(), 10);
        other.join();
        REQUIRE(got.size() == 1);
        CHECK(got[0].what == What::woken);
        while (!loop->wait(Instant{0}, 10).empty()) {}
    }
    CHECK(loop->wait(Instant{0}, 10).empty());
}

TEST_CASE("a watched descriptor is reported as long as it is readable") {
    std::unique_ptr<Loop> loop = Loop::create();
    Inbox inbox(*loop);
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    loop->watch(fds[0]);
    CHECK(inbox.silent(20));
    REQUIRE(::write(fds[1], "ab", 2) == 2);
    char byte;
    for (char expected : {'a', 'b'}) {
        Arrival ready = inbox.next();
        CHECK(ready.what == What::ready);
        CHECK(ready.watch == fds[0]);
        REQUIRE(::read(fds[0], &byte, 1) == 1);
        CHECK(byte == expected);
    }
    CHECK(inbox.silent(20));
    CHECK((::fcntl(fds[0], F_GETFL) & O_NONBLOCK) == 0);  // the caller's flags are left alone
    REQUIRE(::write(fds[1], "c", 1) == 1);
    loop->unwatch(fds[0]);
    CHECK(inbox.silent(20));
    loop->watch(fds[0]);
    CHECK(inbox.next().watch == fds[0]);
    REQUIRE(::read(fds[0], &byte, 1) == 1);
    ::close(fds[1]);
    CHECK(inbox.next().what == What::ready);  // the end is readable, too
    CHECK(::read(fds[0], &byte, 1) == 0);
    loop->unwatch(fds[0]);
    ::close(fds[0]);
}

TEST_CASE("a report of readiness waits in the queue only once") {
    Server server(limits_of(1000, 5000, 5000));
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    REQUIRE(::write(fds[1], "x", 1) == 1);
    server.loop->watch(fds[0]);
    int fd = raw_connect(server.path());
    REQUIRE(raw_send(fd, frame_of(1, "") + frame_of(2, "") + frame_of(3, "")));
    int ready = 0, others = 0;
    while (others < 4) {  // one by one: the report must not double behind the others
        for (Arrival &a : server.loop->wait(soon(5000), 1)) {
            others += a.what != What::ready;
            if (a.what != What::ready) continue;
            ++ready;
            char byte;
            REQUIRE(::read(fds[0], &byte, 1) == 1);
        }
    }
    server.loop->wait(soon(20), 1);
    CHECK(ready == 1);
    server.loop->unwatch(fds[0]);
    for (int each : {fd, fds[0], fds[1]}) ::close(each);
}

TEST_CASE("waiting costs no CPU and ends in time") {
    Server server(limits_of(1000, 5000, 5000));
    int fd = raw_connect(server.path());
    REQUIRE(raw_send(fd, frame_of(1, "hello") + head_of(50, 2, 0)));  // a deadline is running
    CHECK(server.inbox.next().what == What::opened);
    CHECK(server.inbox.next().what == What::frame);
    auto cpu = [] {
        timespec t = {};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
    };
    double before = cpu();
    Instant start = boot_clock();
    CHECK(server.loop->wait(soon(300), 10).empty());
    Duration took = boot_clock() - start;
    CHECK(took >= milliseconds(299));
    CHECK(took < milliseconds(3000));
    CHECK(cpu() - before < 0.05);
    ::close(fd);
}

TEST_CASE("directories longer than a socket address") {
    Directory dir;
    std::string path = dir.path();
    while (path.size() < 300) {
        path += "/" + std::string(50, 'd');
        REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    }
    std::unique_ptr<Loop> server = Loop::create();
    const Limits limits = limits_of(1000, 5000, 5000);
    REQUIRE(server->listen_unix(path, "scheduler.sock", 0660, limits));
    struct stat st = {};
    REQUIRE(::stat((path + "/scheduler.sock").c_str(), &st) == 0);
    CHECK(S_ISSOCK(st.st_mode));
    CHECK((st.st_mode & 0777) == 0660);
    std::unique_ptr<Loop> client = Loop::create();
    ConnId conn = client->connect_unix(path + "/scheduler.sock", limits);
    client->send(conn, frame_of(1, "from afar"));
    Inbox here(*client), there(*server);
    CHECK(here.next().what == What::opened);
    CHECK(there.next().what == What::opened);
    CHECK(there.next().payload == "from afar");
    CHECK_FALSE(server->listen_unix(path, std::string(120, 'n'), 0600, limits));
    CHECK_FALSE(server->listen_unix(path + "/nowhere", "s", 0600, limits));
}

TEST_CASE("a left-over socket is replaced, anything else is not") {
    Directory dir;
    const Limits limits = limits_of(1000, 5000, 5000);
    std::unique_ptr<Loop> old = Loop::create();
    REQUIRE(old->listen_unix(dir.path(), "s", 0600, limits));
    std::atomic<bool> stop = false;
    std::atomic<int> missing = 0, tries = 0;
    std::thread looker([&] {
        while (!stop) {
            missing += ::access((dir.path() + "/s").c_str(), F_OK) != 0;
            ++tries;
        }
    });
    while (tries < 100) ::usleep(100);
    std::unique_ptr<Loop> loop;
    for (int round = 0; round < 100; ++round) {
        loop = Loop::create();
        REQUIRE(loop->listen_unix(dir.path(), "s", 0600, limits));
    }
    stop = true;
    looker.join();
    CHECK(missing == 0);
    int fd = raw_connect(dir.path() + "/s");
    CHECK(fd >= 0);
    CHECK(loop->wait(soon(5000), 10).size() == 1);
    ::close(fd);
    CHECK(::access((dir.path() + "/s.new").c_str(), F_OK) != 0);
    REQUIRE(::close(::open((dir.path() + "/file").c_str(), O_CREAT | O_WRONLY, 0600)) == 0);
    Result<Door> door = loop->listen_unix(dir.path(), "file", 0600, limits);
    REQUIRE_FALSE(door);
    CHECK(door.status().code == Code::invalid);
}
