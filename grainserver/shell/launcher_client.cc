#include "grainserver/shell/launcher_client.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/require.h"
#include "grainserver/files/program_mark.h"
#include "locks/files/lock_search.h"

namespace dcs::server {
namespace {
constexpr Duration soon = milliseconds(20);  // a new launcher needs some time to listen
constexpr Duration later = seconds(1);
constexpr int quick_tries = 100;
constexpr std::size_t waiting_max = 100'000;
}  // namespace

void LauncherClient::open(const std::string &directory, std::function<Status()> start) {
    directory_ = directory;
    start_ = std::move(start);
    if (Result<Fd> base = open_directory(AT_FDCWD, directory)) base_ = std::move(*base);
}

bool LauncherClient::connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", base_.get(),
                  files::launcher_socket);
    Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) return false;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    if (peer.uid != ::geteuid() && peer.uid != 0) return false;
    socket_ = std::move(fd);
    peer_ = peer.pid;
    return true;
}

bool LauncherClient::outdated(const std::string &program) const {
    DCS_REQUIRE(socket_, "a launcher is there");
    const std::string now = files::program_mark(peer_, program);
    const Result<std::string> then = read_file(base_.get(), files::program_mark_name, files::program_mark_max);
    if (!then) return then.status().code == Code::not_found && !now.empty();
    return !now.empty() && *then != now;
}

void LauncherClient::close() {
    socket_ = Fd();
    waiting_.clear();
    queues_ = false;
    broken_ = false;
    tries_ = 0;
    retry_at_ = Instant{};
}

bool LauncherClient::maintain(Instant now, std::string &why) {
    if (socket_ || now < retry_at_) return false;
    if (connect()) {
        retry_at_ = Instant::never();
        return true;
    }
    DCS_REQUIRE(!socket_ && waiting_.empty(), "calls of the previous connection are dropped");
    ++tries_;
    retry_at_ = now + (tries_ < quick_tries ? soon : later);
    if (tries_ == quick_tries) why = "the launcher does not answer; see " + directory_ + "/launcher.log";
    if (locks::is_held(directory_ + "/" + files::launcher_lock)) return false;
    if (const Status s = start_(); !s) {
        if (tries_ == 1) why = s.text;
        tries_ = quick_tries + 1;
        retry_at_ = now + later;
    }
    return false;
}

void LauncherClient::flush() {
    DCS_REQUIRE(socket_ || waiting_.empty(), "calls are sent over a connection");
    while (!broken_ && !waiting_.empty()) {
        const std::string &packet = waiting_.front();
        if (::send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) {
                retry_at_ = boot_clock() + soon;
                return;
            }
            broken_ = true;
            return;
        }
        waiting_.pop_front();
    }
    retry_at_ = Instant::never();
}

void LauncherClient::send(const files::LauncherCall &call) {
    if (!socket_ || broken_ || waiting_.size() >= waiting_max) return;
    std::string text = files::format(call);
    if (!queues_ || waiting_.empty() || !files::add_call(waiting_.back(), text)) waiting_.push_back(std::move(text));
}

std::vector<files::LauncherCall> LauncherClient::read() {
    std::vector<files::LauncherCall> calls;
    if (socket_) flush();
    std::string packet;
    while (socket_ && !broken_) {
        packet.resize(files::launcher_packet_max);
        const ssize_t n = ::recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            broken_ = true;
            break;
        }
        packet.resize(static_cast<std::size_t>(n));
        for (files::LauncherCall &call : files::parse_calls(packet)) {
            if (call.verb == files::Verb::queues) {
                queues_ = true;
                counts_ = call.number != 0;
            }
            calls.push_back(std::move(call));
        }
    }
    return calls;
}

}  // namespace dcs::server
