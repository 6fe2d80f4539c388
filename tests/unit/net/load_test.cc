// Many connections, and a system that has no more to give.
#include <algorithm>
#include <set>

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/limits.h"
#include "peers.h"

using namespace peers;

namespace {
double thread_cpu() {
    timespec t = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}
}  // namespace

TEST_CASE("500 connections talk at the same time, and user number 513 is turned away") {
    Descriptors enough(4096);
    Directory dir;
    std::unique_ptr<Loop> server = Loop::create(), client = Loop::create();
    const Limits limits = limits_of(10'000, 0, 60'000);
    REQUIRE(server->listen_unix(dir.path(), "s", 0600, limits));
    std::set<ConnId> conns, greeted;
    for (int i = 0; i < 500; ++i) conns.insert(client->connect_unix(dir.path() + "/s", limits));
    std::size_t echoes = 0, opened = 0;
    Instant start = boot_clock();
    for (ConnId conn : conns)
        for (int i = 0; i < 10; ++i)
            client->send(conn,
                         frame_of(static_cast<std::uint64_t>(conn), std::string(1000, static_cast<char>('a' + i))));
    while (echoes < 5000 && boot_clock() - start < seconds(60)) {
        for (Arrival &a : client->wait(soon(1), 4096)) {
            if (a.what == What::closed) FAIL(a.why);
            opened += a.what == What::opened;
            if (a.what != What::frame) continue;
            CHECK(ConnId{a.header.request} == a.conn);
            ++echoes;
        }
        for (Arrival &a : server->wait(soon(1), 4096))
            if (a.what == What::frame) server->send(a.conn, frame_of(a.header.request, a.payload));
    }
    CHECK(echoes == 5000);
    CHECK(opened == 500);

    std::vector<int> more;
    for (std::size_t i = 500; i < limits::connections_per_user + 1; ++i) {
        more.push_back(raw_connect(dir.path() + "/s"));
        REQUIRE(more.back() >= 0);
    }
    std::size_t in = 0;
    for (int i = 0; i < 10; ++i)
        for (Arrival &a : server->wait(soon(20), 4096)) in += a.what == What::opened;
    CHECK(in == limits::connections_per_user - 500);
    bool ended = false;
    raw_drain(more.back(), &ended);
    CHECK(ended);  // the last one
    ::close(more.front());
    bool gone = false;
    for (int i = 0; i < 100 && !gone; ++i)
        for (Arrival &a : server->wait(soon(20), 4096)) gone = a.what == What::closed;
    CHECK(gone);
    int again = raw_connect(dir.path() + "/s");
    std::vector<Arrival> got = server->wait(soon(5000), 1);
    REQUIRE(got.size() == 1);
    CHECK(got[0].what == What::opened);  // a place became free
    ::close(again);
    for (std::size_t i = 1; i < more.size(); ++i) ::close(more[i]);
}

TEST_CASE("without descriptors accepting pauses, does not spin, and goes on") {
    Directory dir;
    std::unique_ptr<Loop> server = Loop::create();
    REQUIRE(server->listen_unix(dir.path(), "s", 0600, limits_of(1000, 20'000, 20'000)));
    int talking = raw_connect(dir.path() + "/s");
    std::vector<Arrival> got = server->wait(soon(5000), 1);
    REQUIRE(got.size() == 1);
    int waiting = raw_connect(dir.path() + "/s");
    {
        Descriptors few(static_cast<rlim_t>(waiting) + 1);
        std::vector<int> fill;
        for (int fd; (fd = ::dup(0)) >= 0;) fill.push_back(fd);
        double before = thread_cpu();
        REQUIRE(server->wait(soon(5000), 1).size() == 1);  // says so, once
        CHECK(server->wait(soon(350), 10).empty());
        CHECK(thread_cpu() - before < 0.05);
        REQUIRE(raw_send(talking, frame_of(1, "still served")));
        got = server->wait(soon(5000), 10);
        REQUIRE(got.size() == 1);
        CHECK(got[0].payload == "still served");
        for (int fd : fill) ::close(fd);
    }
    got = server->wait(soon(5000), 1);
    REQUIRE(got.size() == 1);
    CHECK(got[0].what == What::opened);
    ::close(talking);
    ::close(waiting);
}

TEST_CASE("a flood from one peer leaves the others their turn and the memory bounded") {
    Directory dir;
    std::unique_ptr<Loop> server = Loop::create(), flooder = Loop::create();
    const Limits limits = limits_of(100'000, 0, 60'000);
    REQUIRE(server->listen_unix(dir.path(), "s", 0600, limits));
    ConnId flood = flooder->connect_unix(dir.path() + "/s", limits);
    int modest = raw_connect(dir.path() + "/s");
    std::size_t flooded = 0, largest = 0;
    int modest_at = -1;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < 2000; ++i) flooder->send(flood, frame_of(1, "flood"));
        flooder->wait(Instant{0}, 100);
        if (round == 50) REQUIRE(raw_send(modest, frame_of(2, "modest")));
        std::vector<Arrival> batch = server->wait(soon(100), 500);
        largest = std::max(largest, batch.size());
        for (Arrival &a : batch) {
            if (a.what == What::closed) FAIL(a.why);
            if (a.what != What::frame) continue;
            if (a.payload == "modest") modest_at = round;
            else ++flooded;
        }
    }
    CHECK(largest <= 500);
    CHECK(flooded > 10'000);
    CHECK(modest_at >= 50);
    CHECK(modest_at <= 50 + 2);  // however much the loop had read of the flood already
    ::close(modest);
}

TEST_CASE("a user with many connections makes another wait no longer than one with a single one") {
    constexpr std::size_t flooding = 64;
    Descriptors enough(4096);
    Directory dir;
    std::unique_ptr<Loop> server = Loop::create();
    REQUIRE(server->listen_unix(dir.path(), "s", 0600, limits_of(60'000, 0, 60'000)));
    std::vector<int> fds;
    for (std::size_t i = 0; i < flooding + 1; ++i) {
        fds.push_back(raw_connect(dir.path() + "/s"));
        REQUIRE(fds.back() >= 0);
    }
    std::size_t opened = 0;
    while (opened < fds.size())
        for (const Arrival &a : server->wait(soon(10'000), 1)) opened += a.what == What::opened;
    std::string many;
    while (many.size() < 128 * 1024) many += frame_of(7, "");
    for (std::size_t i = 0; i < flooding; ++i) REQUIRE(raw_send(fds[i], many));
    const auto unread = [](int fd) {
        int bytes = 0;
        REQUIRE(::ioctl(fd, SIOCOUTQ, &bytes) == 0);
        return bytes;
    };
    const int sent = unread(fds[0]);
    REQUIRE(raw_send(fds.back(), frame_of(8, "")));
    std::size_t before = 0;
    for (bool found = false; !found;) {
        const std::vector<Arrival> handed_out = server->wait(soon(10'000), 4096);
        CHECK(handed_out.size() <= 256 + 1);  // as many as of a single one
        for (const Arrival &a : handed_out) {
            REQUIRE(a.what == What::frame);
            found = found || a.header.request == 8;
            before += !found;
        }
    }
    // Of all that waits there are 260,000. What is read at once, from all of them together, is a few thousand.
    CHECK(before < 2 * 256 * 1024 / frame_of(7, "").size() + 4096);
    for (std::size_t i = 0; i < flooding; ++i) CHECK(unread(fds[i]) > sent / 2);
    for (const int fd : fds) ::close(fd);
}
