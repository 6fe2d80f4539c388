// A listener whose queue of new connections is full.
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/fd.h"
#include "net/socket_calls.h"
#include "peers.h"

using namespace peers;

TEST_CASE("who connects to a full queue waits there, and gets the place that becomes free") {
    Directory dir;
    const std::string path = dir.path() + "/s";
    const Fd listener(*listen_unix_socket(dir.path(), "s", 0600));
    std::vector<Fd> sockets;
    const auto connect = [&](Duration wait) {
        sockets.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        return connect_to_path(sockets.back().get(), path, wait);
    };
    int error = 0;
    while (error == 0 && sockets.size() < 1000) error = connect(milliseconds(1));
    REQUIRE(error == EAGAIN);
    std::atomic<pid_t> waiter{0};
    std::thread late([&] {
        waiter = ::gettid();
        error = connect(seconds(100));
    });
    const auto asleep = [&] {  // or ended
        if (waiter == 0) return false;
        std::ifstream file("/proc/self/task/" + std::to_string(waiter) + "/stat");
        const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        return text.empty() || text.find(") S ") != std::string::npos;
    };
    while (!asleep()) std::this_thread::yield();
    const Fd accepted(accept_socket(listener.get()));
    late.join();
    CHECK(error == 0);
    CHECK((::fcntl(sockets.back().get(), F_GETFL) & O_NONBLOCK) != 0);
}
