#pragma once
// Sockets of the benchmark of call-ins: frames over a Unix socket without blocking, a bare echo server as
// the yardstick, and what the kernel says about a process.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "wire/message.h"

namespace dcs::perf {

[[noreturn]] inline void give_up(const std::string &why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(1);
}

inline int unix_socket(const std::string &path, bool listening) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    if (fd < 0 || path.size() >= sizeof a.sun_path) give_up("no socket for " + path);
    path.copy(a.sun_path, path.size());
    const auto *address = reinterpret_cast<const sockaddr *>(&a);
    const bool ok = listening ? ::bind(fd, address, sizeof a) == 0 && ::listen(fd, 4096) == 0
                              : ::connect(fd, address, sizeof a) == 0;
    if (!ok) give_up(path + ": " + std::strerror(errno));
    return fd;
}

inline void send_all(int fd, const std::string &bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t n = ::send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) give_up(std::string("a connection broke: ") + std::strerror(errno));
        done += static_cast<std::size_t>(n);
    }
}

// Appends what is there; false at the end.
inline bool receive(int fd, std::string &to) {
    char bytes[65536];
    const ssize_t n = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) to.append(bytes, static_cast<std::size_t>(n));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

// The next whole message of `bytes`, taken off it.
inline std::optional<wire::AnyMessage> next_message(std::string &bytes) {
    if (bytes.size() < wire::header_bytes) return {};
    const auto header =
        wire::decode_header(std::string_view(bytes).substr(0, wire::header_bytes), limits::server_frame_bytes);
    if (!header) give_up("a frame: " + header.status().text);
    if (bytes.size() < wire::header_bytes + header->length) return {};
    auto message = wire::decode_payload(*header, std::string_view(bytes).substr(wire::header_bytes, header->length));
    if (!message) give_up("a frame: " + message.status().text);
    bytes.erase(0, wire::header_bytes + header->length);
    return std::move(*message);
}

// Sends back whatever comes, of any number of connections, and does nothing else.
[[noreturn]] inline void serve_echo(int listener) {
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.fd = listener;
    ::epoll_ctl(poll, EPOLL_CTL_ADD, listener, &e);
    std::vector<epoll_event> events(256);
    char bytes[65536];
    for (;;) {
        const int n = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), -1);
        for (int i = 0; i < n; ++i) {
            const int fd = events[static_cast<std::size_t>(i)].data.fd;
            if (fd == listener) {
                e.data.fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
                if (e.data.fd >= 0) ::epoll_ctl(poll, EPOLL_CTL_ADD, e.data.fd, &e);
                continue;
            }
            const ssize_t got = ::recv(fd, bytes, sizeof bytes, 0);
            if (got <= 0) ::close(fd);
            else if (::send(fd, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) ::close(fd);
        }
    }
}

struct Figures {
    double resident_kb = 0, cpu_s = 0;
    long descriptors = 0, soft_limit = 0;
};
inline Figures figures_of(pid_t pid) {
    const std::string proc = "/proc/" + std::to_string(pid);
    Figures f;
    std::string word;
    std::ifstream status(proc + "/status");
    while (status >> word)
        if (word == "VmRSS:") status >> f.resident_kb;
    std::error_code gone;
    for (const auto &task : std::filesystem::directory_iterator(proc + "/task", gone)) {
        double ns = 0;
        std::ifstream(task.path() / "schedstat") >> ns;
        f.cpu_s += ns / 1e9;
    }
    for ([[maybe_unused]] const auto &fd : std::filesystem::directory_iterator(proc + "/fd", gone)) ++f.descriptors;
    std::ifstream limits(proc + "/limits");
    for (std::string line; std::getline(limits, line);)
        if (line.rfind("Max open files", 0) == 0) f.soft_limit = std::atol(line.c_str() + 14);
    return f;
}

// Median, 99th percentile and worst of times in seconds, as "p50 0.12 ms  p99 0.34 ms  max 0.56 ms".
inline std::string spread(std::vector<double> times) {
    if (times.empty()) return "none";
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) { return times[static_cast<std::size_t>(part * (times.size() - 1))] * 1e3; };
    char text[128];
    std::snprintf(text, sizeof text, "p50 %8.3f ms  p99 %8.3f ms  max %8.3f ms  (%zu)", at(0.5), at(0.99), at(1.0),
                  times.size());
    return text;
}
inline double median(std::vector<double> times) {
    if (times.empty()) return 0;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
}

}  // namespace dcs::perf
