// How connections come about, and what else wakes a loop.
#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>

#include "peers.h"
#include "support/about.h"

using namespace peers;

TEST_CASE("connecting: no peer there, then a peer, then again after a loss") {
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
    Arrival dead = inbox.next();  // the socket file is there, no peer listens
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
    Server server(limits_of(1000, 60'000, 60'000));
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
    CHECK(took < seconds(30));
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

TEST_CASE("a socket for a group belongs to it from the beginning") {
    if (::geteuid() != 0) return;
    Directory dir;
    std::unique_ptr<Loop> loop = Loop::create();
    REQUIRE(loop->listen_unix(dir.path(), "s", 0660, limits_of(1000, 5000, 5000), 7));
    struct stat st = {};
    REQUIRE(::stat((dir.path() + "/s").c_str(), &st) == 0);
    CHECK(st.st_gid == 7);
    CHECK((st.st_mode & 0777) == 0660);
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

TEST_CASE("connections leave descriptors to all else, and those that wait come in when others have left") {
    const bool of_pool = GENERATE(false, true);
    Limits limits = limits_of(1000, 60'000, 60'000);
    limits.of_pool = of_pool;
    Server server(limits);
    std::vector<int> clients(100);
    const Descriptors enough(1024);
    for (int &client : clients) REQUIRE((client = raw_connect(server.path())) >= 0);
    const rlim_t most = static_cast<rlim_t>(clients.back()) + 81, kept = std::min<rlim_t>(64, most / 4) / (of_pool + 1);
    const Descriptors few(most);
    std::size_t in = 0;
    Arrival next = server.inbox.next();
    for (; next.what == What::opened; next = server.inbox.next()) ++in;
    CHECK(next.what == What::held_up);
    CHECK(next.why == about("may open only " + std::to_string(most)));
    CHECK(in == 80 - kept);
    std::vector<int> files;
    for (rlim_t n = 0; n < kept; ++n) files.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    CHECK(std::count(files.begin(), files.end(), -1) == 0);
    for (const int file : files) ::close(file);
    while (clients.size() > in) {  // the number of a client that leaves is one for another client
        ::close(clients.back());
        clients.pop_back();
    }
    while (in < 100) {
        next = server.inbox.next();
        CHECK((next.what == What::opened || next.what == What::closed));
        in += next.what == What::opened;
    }
    for (const int client : clients) ::close(client);
}
