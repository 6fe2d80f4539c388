// A process beside a daemon: asked and answered, silent, killed, and what goes between the two.
#include <csignal>
#include <cstring>

#include "support/about.h"
#include "support/catch.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/side_process.h"

using namespace dcs;

namespace {
// No other party's child is left over.
struct Reap {
    ~Reap() {
        while (::waitpid(-1, nullptr, 0) > 0) {}
    }
};
using Answer = std::function<SideAnswer(std::string_view, int *)>;

auto beside(const Answer &answer, int patience_s = 30) {
    auto process = SideProcess::start({"the test's helper", "the test"}, patience_s, [&](int socket) {
        const Status s = settle_side_process(socket, "dcs_helper");
        serve_side_process(s, socket, patience_s, answer);
    });
    REQUIRE(process);
    return std::move(*process);
}
SideAnswer say(std::string_view word) { return {Status::ok(), std::string(word)}; }
}  // namespace

TEST_CASE("answers of a side process") {
    const auto good = read_side_answer(side_answer({Status::ok(), std::string("a\0b", 3)}));
    REQUIRE(good);
    CHECK(good->status);
    CHECK(good->bytes == std::string("a\0b", 3));
    const Status refused = fail(Code::refused, std::string(2 * side_packet_max, 'w'));
    const auto bad = read_side_answer(side_answer({refused, "never"}));
    REQUIRE(bad);
    CHECK(bad->status.code == Code::refused);
    CHECK(bad->status.text == std::string(side_packet_max - 4, 'w'));
    CHECK(bad->bytes.empty());
    CHECK_FALSE(read_side_answer("abc"));
    CHECK_FALSE(read_side_answer("abcd"));
    CHECK_FALSE(read_side_answer(std::string(side_packet_max + 1, '\0')));
}

TEST_CASE("a side process answers, with descriptors, and has none of the daemon's") {
    const Reap reap;
    const int low = ::open("/etc/hostname", O_RDONLY);
    const int secret = ::fcntl(low, F_DUPFD, 50);  // its own socket is among the first
    ::close(low);
    const auto helper = beside([&](std::string_view word, int *fd) {
        if (word == "file") *fd = ::open("/dev/zero", O_RDONLY);
        if (word == "secret") return say(::fcntl(secret, F_GETFD) < 0 ? "closed" : "open");
        if (word == "session") return say(::getsid(0) == ::getpid() ? "own" : "the daemon's");
        return say("heard " + std::string(word.substr(0, 9)));
    });
    int fd = -2;
    CHECK(read_side_answer(*helper->ask("a word", &fd))->bytes == "heard a word");
    CHECK(fd == -1);
    CHECK(read_side_answer(*helper->ask("secret", &fd))->bytes == "closed");
    CHECK(read_side_answer(*helper->ask("session", &fd))->bytes == "own");
    CHECK(read_side_answer(*helper->ask("file", &fd))->bytes == "heard file");
    REQUIRE(fd > 2);
    char byte = 1;
    CHECK(::read(fd, &byte, 1) == 1);
    CHECK(byte == 0);
    ::close(fd);
    CHECK(read_side_answer(*helper->ask(std::string(3 * side_packet_max, 'x'), &fd))->bytes == "heard xxxxxxxxx");
    CHECK_FALSE(helper->gone());
    CHECK_FALSE(helper->lost());
    ::close(secret);
}

TEST_CASE("a side process that is gone, silent or mad is lost permanently") {
    const Reap reap;
    int fd = -1;
    SECTION("gone") {
        const auto helper = beside([](std::string_view, int *) -> SideAnswer { ::_exit(7); });
        const Status s = helper->ask("x", &fd).status();
        CHECK(s.code == Code::unreachable);
        CHECK(s.text == about("test's helper gone restarted"));
        CHECK(helper->lost());
        CHECK(helper->gone());
        CHECK(helper->how_it_ended() == "ended with exit code 7");
        CHECK(helper->ask("x", &fd).status().code == Code::unreachable);
    }
    SECTION("killed, and noticed without a call") {
        const auto helper = beside([](std::string_view, int *) { return say(std::to_string(::getpid())); });
        ::kill(std::stoi(*helper->call("x")), SIGKILL);
        while (!helper->gone()) ::usleep(1000);
        CHECK(helper->how_it_ended() == "was killed by signal 9");
    }
    SECTION("an answer that takes too long ends it") {
        const auto helper = beside(
            [](std::string_view, int *) {
                ::sleep(600);
                return say("late");
            },
            1);
        CHECK(helper->ask("x", &fd).status().text == about("test's helper gone restarted"));
        CHECK(helper->how_it_ended() == "was killed by signal 14");
    }
    SECTION("signals to the group are for the daemon") {
        const auto helper = beside([](std::string_view, int *) { return say(std::to_string(::getpid())); });
        const pid_t pid = std::stoi(*helper->call("x"));
        for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::kill(pid, signal);
        CHECK(std::stoi(*helper->call("x")) == pid);
    }
    SECTION("distrusted") {
        const auto started = SideProcess::start({"the test's helper", "the test"}, 30, [](int socket) {
            if (!settle_side_process(socket, "dcs_helper")) ::_exit(1);
            char packet[8];
            while (::recv(socket, packet, sizeof packet, 0) > 0) (void)::send(socket, "?", 1, MSG_NOSIGNAL);
            ::_exit(0);
        });
        REQUIRE(started);
        const auto &helper = *started;
        REQUIRE_FALSE(read_side_answer(*helper->ask("x", &fd)));
        CHECK(helper->distrust().text == about("test's invalid restarted"));
        CHECK(helper->ask("x", &fd).status().code == Code::unreachable);
    }
}
