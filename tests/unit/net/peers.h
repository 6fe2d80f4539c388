#pragma once
// What the tests of the loop need: a scratch directory, frames, a plain blocking socket as the other
// side, and a way to let a loop run until something happened.
#include <algorithm>
#include <cstring>
#include <dirent.h>
#include <poll.h>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "net/loop.h"
#include "support/catch.h"
#include "wire/message.h"

namespace peers {

using namespace dcs;
using namespace dcs::net;

class Directory {
public:
    Directory() {
        char name[] = "/tmp/dcs_net_XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        path_ = name;
    }
    Directory(const Directory &) = delete;
    ~Directory() { clear(path_); }
    const std::string &path() const { return path_; }

private:
    static void clear(const std::string &path) {
        if (DIR *dir = ::opendir(path.c_str())) {
            while (const dirent *entry = ::readdir(dir)) {
                std::string name = entry->d_name;
                if (name == "." || name == "..") continue;
                std::string inner = path + "/" + name;
                if (::unlink(inner.c_str()) != 0) clear(inner);
            }
            ::closedir(dir);
        }
        ::rmdir(path.c_str());
    }
    std::string path_;
};

inline std::string head_of(std::uint32_t length, std::uint64_t request, std::uint32_t crc) {
    ByteWriter out;
    out.raw("DCS1");
    out.u16(1);
    out.u16(wire::opening_form);
    out.u32(length);
    out.u64(request);
    out.u32(crc);
    return out.bytes();
}

inline std::string frame_of(std::uint64_t request, const std::string &payload) {
    return head_of(static_cast<std::uint32_t>(payload.size()), request, crc32c(payload)) + payload;
}

inline int raw_connect(const std::string &path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return -1;
    std::strcpy(address.sun_path, path.c_str());
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0) return fd;
    ::close(fd);
    return -1;
}

inline bool raw_send(int fd, const std::string &bytes) {
    return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// What comes until the end, until `enough` bytes, or until ten seconds of silence.
inline std::string raw_drain(int fd, bool *ended, std::size_t enough = SIZE_MAX) {
    std::string all;
    *ended = false;
    while (all.size() < enough) {
        pollfd waiting = {fd, POLLIN, 0};
        if (::poll(&waiting, 1, 10'000) != 1) break;
        char bytes[65536];
        ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0) {
            *ended = true;
            break;
        }
        all.append(bytes, static_cast<std::size_t>(n));
    }
    return all;
}

inline Instant soon(int ms) { return boot_clock() + milliseconds(ms); }

// The next arrivals of a loop, one after the other.
class Inbox {
public:
    explicit Inbox(Loop &loop) : loop_(loop) {}
    // Fails the test if nothing comes in 10 s.
    Arrival next() {
        if (at_ == batch_.size()) {
            batch_ = loop_.wait(soon(10'000), 100);
            at_ = 0;
            REQUIRE_FALSE(batch_.empty());
        }
        return std::move(batch_[at_++]);
    }
    // Nothing is there and nothing comes for so long.
    bool silent(int ms) {
        if (at_ < batch_.size()) return false;
        batch_ = loop_.wait(soon(ms), 100);
        at_ = 0;
        return batch_.empty();
    }

private:
    Loop &loop_;
    std::vector<Arrival> batch_;
    std::size_t at_ = 0;
};

inline Limits limits_of(std::size_t max_payload, int hello_ms, int progress_ms) {
    Limits limits;
    limits.max_payload = max_payload;
    limits.hello = milliseconds(hello_ms);
    limits.progress = milliseconds(progress_ms);
    return limits;
}

struct Descriptors {  // sets RLIMIT_NOFILE for one test
    explicit Descriptors(rlim_t soft) {
        ::getrlimit(RLIMIT_NOFILE, &before);
        rlimit now = {std::min(soft, before.rlim_max), before.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &now);
    }
    ~Descriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }
    rlimit before = {};
};

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

inline std::string patterned(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
    return text;
}

}  // namespace peers
