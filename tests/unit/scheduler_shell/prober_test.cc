// Probes of hosts with real sockets: who listens or refuses is there, who is silent is not.
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "scheduler/keeper/keeper.h"
#include "scheduler/shell/prober.h"
#include "support/catch.h"

using namespace dcs;
using shell::Prober;

namespace {
int tcp_socket() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(fd >= 0);
    return fd;
}
sockaddr_in at_loopback(std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(port);
    return a;
}
// A port of all addresses of this host. `listen`: 0 does not listen, and refuses.
struct Port {
    int fd = tcp_socket();
    std::uint16_t number = 0;
    std::vector<int> callers;

    explicit Port(int backlog) {
        sockaddr_in a = at_loopback(0);
        a.sin_addr.s_addr = INADDR_ANY;
        REQUIRE(::bind(fd, reinterpret_cast<sockaddr *>(&a), sizeof a) == 0);
        socklen_t size = sizeof a;
        REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr *>(&a), &size) == 0);
        number = ntohs(a.sin_port);
        if (backlog > 0) REQUIRE(::listen(fd, backlog) == 0);
    }
    // Fills its queue: from then on the kernel answers no party there.
    void fall_silent() {
        const sockaddr_in a = at_loopback(number);
        for (int i = 0; i < 8; ++i) {
            callers.push_back(tcp_socket());
            ::connect(callers.back(), reinterpret_cast<const sockaddr *>(&a), sizeof a);
        }
        ::usleep(50'000);
    }
    ~Port() {
        for (const int caller : callers) ::close(caller);
        ::close(fd);
    }
    std::string at(const std::string &host = "127.0.0.1") const { return host + ":" + std::to_string(number); }
};
core::ProbeHost probe_of(int host, std::vector<std::string> check, std::vector<std::string> file_server = {},
                         std::vector<std::string> gateway = {}) {
    return core::ProbeHost{core::HostId{host}, static_cast<std::uint32_t>(host) + 100, std::move(check),
                           std::move(file_server), std::move(gateway)};
}
struct Bench {
    std::unique_ptr<net::Loop> loop = net::Loop::create();
    Prober prober{*loop, keeper::raw_echo_socket};
    // Waits by the loop, as the daemon does; how long it took comes back in `took`.
    std::map<int, core::ProbeResult> results(std::size_t count, Duration *took = nullptr) {
        std::map<int, core::ProbeResult> found;
        const Instant began = boot_clock(), deadline = began + seconds(100);
        while (found.size() < count && boot_clock() < deadline) {
            loop->wait(deadline, 10);
            for (core::ProbeResult &r : prober.take()) {
                REQUIRE(r.probe == static_cast<std::uint32_t>(r.host) + 100);
                REQUIRE(found.emplace(static_cast<int>(r.host), r).second);
            }
        }
        if (took != nullptr) *took = boot_clock() - began;
        REQUIRE(found.size() == count);
        return found;
    }
};
using Answer = std::optional<bool>;
const int slow_tries = 20;  // until it takes less than a second; a busy machine may need several
}  // namespace

TEST_CASE("who listens and who refuses is there, each group has its own answer") {
    Port listening(5), refusing(0);
    Duration took = seconds(9);
    std::map<int, core::ProbeResult> found;
    for (int i = 0; i < slow_tries && took >= seconds(1); ++i) {
        Bench b;
        b.prober.ask(probe_of(1, {listening.at()}, {refusing.at()}));
        b.prober.ask(probe_of(2, {}, {}, {listening.at("localhost")}));
        b.prober.ask(probe_of(3, {}));
        found = b.results(3, &took);
    }
    CHECK(found.at(1).check == Answer(true));
    CHECK(found.at(1).file_server == Answer(true));
    CHECK(found.at(1).gateway == Answer());
    CHECK(found.at(2).gateway == Answer(true));
    CHECK(found.at(2).check == Answer());
    CHECK(found.at(3).check == Answer());
    CHECK(took < seconds(1));
}

TEST_CASE("who is silent for two seconds is not there, many are asked together, and the others do not wait") {
    Port listening(5), silent(1);
    silent.fall_silent();
    Duration first = seconds(9), took = seconds(9);
    for (int i = 0; i < slow_tries && first >= seconds(1); ++i) {
        const Instant began = boot_clock();
        Bench b;
        for (int k = 1; k <= 200; ++k) b.prober.ask(probe_of(k, {silent.at("127.0.0." + std::to_string(k))}));
        b.prober.ask(probe_of(201, {listening.at()}));
        auto found = b.results(1);
        first = boot_clock() - began;
        REQUIRE(found.count(201) == 1);
        CHECK(found.at(201).check == Answer(true));
        if (found.size() == 1) found = b.results(200);
        for (const auto &[host, result] : found) CHECK(result.check == Answer(host == 201));
        took = boot_clock() - began;
    }
    CHECK(first < seconds(1));
    CHECK(took > milliseconds(1500));
    CHECK(took < seconds(60));  // one after the other they would take 400 s
}

TEST_CASE("one answer of a group is enough, and is told at once where nothing else is asked") {
    Port listening(5), silent(1);
    silent.fall_silent();
    Bench b;
    b.prober.ask(probe_of(1, {silent.at(), listening.at()}));
    b.prober.ask(probe_of(2, {silent.at()}));  // the same address is asked once, and answers both
    const auto found = b.results(2);
    CHECK(found.at(1).check == Answer(true));
    CHECK(found.at(2).check == Answer(false));
}

TEST_CASE("without a port an echo or two common ports are tried, what cannot be reached or resolved is silent") {
    Bench b;
    b.prober.ask(probe_of(1, {"127.0.0.1"}));
    b.prober.ask(probe_of(2, {"255.255.255.255:9"}));
    b.prober.ask(probe_of(3, {"255.255.255.255"}));
    b.prober.ask(probe_of(4, {"no-such-host.invalid:22"}));
    b.prober.ask(probe_of(5, {"not an address"}));
    const auto found = b.results(5);
    CHECK(found.at(1).check == Answer(true));
    for (int i = 2; i <= 5; ++i) {
        INFO(i);
        CHECK(found.at(i).check == Answer(false));
    }
}

TEST_CASE("IPv6 in brackets, with and without a port") {
    const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    a.sin6_addr = in6addr_loopback;
    if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr *>(&a), sizeof a) != 0) {
        WARN("no IPv6 on this host: not tested");
        return;
    }
    socklen_t size = sizeof a;
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr *>(&a), &size) == 0);
    Bench b;
    b.prober.ask(probe_of(1, {"[::1]:" + std::to_string(ntohs(a.sin6_port))}));  // it does not listen
    b.prober.ask(probe_of(2, {"[::1]"}));
    const auto found = b.results(2);
    CHECK(found.at(1).check == Answer(true));
    CHECK(found.at(2).check == Answer(true));
    ::close(fd);
}

TEST_CASE("an echo's reply is known by its cookie, another's and our own request are none") {
    sockaddr_storage to{};
    const sockaddr_in a = at_loopback(0);
    std::memcpy(&to, &a, sizeof a);
    const std::optional<shell::ProbeSocket> first = shell::echo_probe(to, 1, keeper::raw_echo_socket);
    if (!first) {
        WARN("this process may not send echo requests: not tested");
        return;
    }
    REQUIRE(first->seen == shell::Seen::nothing_yet);
    shell::ProbeSocket wrong = *first;
    wrong.cookie = 2;
    ::usleep(50'000);
    CHECK(shell::look_at(wrong) == shell::Seen::nothing_yet);  // and the reply is read away
    CHECK(shell::look_at(*first) == shell::Seen::nothing_yet);
    ::close(first->fd);
}

TEST_CASE("too many at once: each party could be alive, what is under way does not hold up the end") {
    Port silent(1);
    silent.fall_silent();
    Duration took = seconds(9);
    for (int k = 0; k < slow_tries && took >= seconds(1); ++k) {
        const Instant began = boot_clock();
        std::optional<Bench> bench(std::in_place);
        Bench &b = *bench;
        for (std::size_t i = 0; i < Prober::probes_max; ++i) b.prober.ask(probe_of(static_cast<int>(i), {silent.at()}));
        b.prober.ask(probe_of(5000, {silent.at()}, {}, {silent.at()}));
        const auto found = b.results(1);
        CHECK(found.at(5000).check == Answer(true));
        CHECK(found.at(5000).file_server == Answer());
        CHECK(found.at(5000).gateway == Answer(true));
        bench.reset();
        took = boot_clock() - began;
    }
    CHECK(took < seconds(1));
}
