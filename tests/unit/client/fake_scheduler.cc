#include "fake_scheduler.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "support/catch.h"

namespace dcs::test {

wire::AnyMessage plausible(const wire::AnyMessage &request) {
    using namespace wire;
    if (std::holds_alternative<Hello>(request)) return Welcome{1, "ann"};
    if (const auto *m = std::get_if<GetAuth>(&request)) return AuthReply{std::string(32, m->ident[0])};
    if (std::holds_alternative<OpenSession>(request)) return OpenReply{};
    constexpr std::int32_t last = 1'000'000;  // a library that is tried out may ask for any place
    if (const auto *m = std::get_if<Gwait>(&request)) {
        const std::int32_t next = std::min(m->next, last);
        GrainResult r;
        r.grain = 100 + next, r.completed = 9, r.sent = next + 1;
        r.out = "out", r.err = "err", r.out_length = 3, r.err_length = 3;
        return r;
    }
    if (const auto *m = std::get_if<GwaitMany>(&request)) {  // two at a time
        GrainResults reply;
        const std::int32_t next = std::min(m->next, last);
        for (std::int32_t i = next; i < next + std::min(m->most, 2); ++i)
            reply.results.push_back(std::get<GrainResult>(plausible(Gwait{m->session, i, false})));
        return reply;
    }
    if (std::holds_alternative<Query>(request)) return QueryReply{};
    return Done{};
}

FakeScheduler::FakeScheduler(bool listen, const std::string &deep) {
    char name[] = "/tmp/dcs-client-XXXXXX";
    REQUIRE(::mkdtemp(name));
    dir_ = name;
    if (!deep.empty()) {
        dir_ += "/" + deep;
        REQUIRE(::mkdir(dir_.c_str(), 0700) == 0);
    }
    REQUIRE(::mkdir((dir_ + "/scheduler").c_str(), 0700) == 0);
    ::setenv("DCS_DIR", dir_.c_str(), 1);
    ::setenv("DCS_PATIENCE_S", "5", 1);
    ::unsetenv("DCS_AUTH_FD");
    if (listen) start();
}

FakeScheduler::~FakeScheduler() {
    stop();
    ::unlink((dir_ + "/scheduler/user.sock").c_str());
    ::rmdir((dir_ + "/scheduler").c_str());
    for (std::string d = dir_; d != "/tmp"; d.resize(d.rfind('/'))) ::rmdir(d.c_str());
}

void FakeScheduler::script(Script s) {
    const std::lock_guard lock(mutex_);
    script_ = std::move(s);
    requests_ = 0;
}

void FakeScheduler::greet(std::optional<std::string> bytes) {
    const std::lock_guard lock(mutex_);
    greeting_ = std::move(bytes);
}

void FakeScheduler::start() {
    // Paths of sockets are short; from inside the directory the name is enough.
    char here[4096];
    REQUIRE(::getcwd(here, sizeof here));
    REQUIRE(::chdir((dir_ + "/scheduler").c_str()) == 0);
    ::unlink("user.sock");
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, "user.sock");
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_, 64) == 0);
    REQUIRE(::chdir(here) == 0);
    REQUIRE(::pipe(wake_) == 0);
    thread_ = std::thread([this] { run(); });
}

void FakeScheduler::stop() {
    if (!thread_.joinable()) return;
    ::close(wake_[1]);
    thread_.join();
    ::close(wake_[0]);
    ::close(listener_);
}

std::vector<Seen> FakeScheduler::seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
}

std::set<wire::Form> FakeScheduler::forms() const {
    const std::lock_guard lock(mutex_);
    return forms_;
}

void FakeScheduler::drop(Conn &c) {
    if (c.fd < 0) return;
    ::close(c.fd);
    c.fd = -1;
    --open_now_;
}

void FakeScheduler::run() {
    for (;;) {
        std::vector<pollfd> fds = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
        for (const Conn &c : conns_) fds.push_back({c.fd, POLLIN, 0});
        ::poll(fds.data(), fds.size(), -1);
        if (fds[0].revents) break;
        for (std::size_t i = 0; i < conns_.size(); ++i)
            if (fds[i + 2].revents) take(conns_[i]);
        if (fds[1].revents) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd >= 0) {
                conns_.push_back({fd, ++connections_, {}, {}});
                ++open_now_;
                const std::lock_guard lock(mutex_);
                if (greeting_) {
                    (void)::send(fd, greeting_->data(), greeting_->size(), MSG_NOSIGNAL);
                    drop(conns_.back());
                }
            }
        }
        std::erase_if(conns_, [](const Conn &c) { return c.fd < 0; });
    }
    for (Conn &c : conns_) drop(c);
    conns_.clear();
}

void FakeScheduler::take(Conn &c) {
    char buffer[65536];
    const ssize_t n = ::recv(c.fd, buffer, sizeof buffer, 0);
    if (n <= 0) return drop(c);
    c.bytes.append(buffer, static_cast<std::size_t>(n));
    while (c.fd >= 0 && c.bytes.size() >= wire::header_bytes) {
        auto header =
            wire::decode_header(std::string_view(c.bytes).substr(0, wire::header_bytes), limits::user_frame_bytes);
        if (!header) return drop(c);
        if (c.bytes.size() < wire::header_bytes + header->length) return;
        auto message =
            wire::decode_payload(*header, std::string_view(c.bytes).substr(wire::header_bytes, header->length));
        c.bytes.erase(0, wire::header_bytes + header->length);
        if (!message) return drop(c);
        if (!old_) (void)c.form.hear(*header);
        {
            const std::lock_guard lock(mutex_);
            forms_.insert(header->protocol);
        }
        answer(c, header->request, *message);
    }
}

void FakeScheduler::answer(Conn &c, std::uint64_t request, const wire::AnyMessage &message) {
    Script script;
    {
        const std::lock_guard lock(mutex_);
        seen_.push_back({c.number, request, message});
        script = script_;
    }
    Act act;
    act.reply = plausible(message);
    const bool hello = std::holds_alternative<wire::Hello>(message);
    if (script) act = script(message, hello ? -1 : requests_++);
    if (act.delay_ms) std::this_thread::sleep_for(std::chrono::milliseconds(act.delay_ms));
    if (act.cut_before) return drop(c);
    if (act.park) return c.parked.push_back(request);
    if (act.parked_reply) answer_parked(*act.parked_reply);
    std::string frame = act.raw.empty() ? *wire::encode(act.reply, request, c.form.form()) : act.raw;
    frame += act.append;
    if (act.cut_inside) frame.resize(frame.size() - 1);
    if (!write(c, frame) || act.cut_inside || act.cut_after) drop(c);
}

bool FakeScheduler::write(const Conn &c, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(c.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

void FakeScheduler::answer_parked(const wire::AnyMessage &reply) {
    for (Conn &c : conns_)
        for (const std::uint64_t request : std::exchange(c.parked, {}))
            if (!write(c, *wire::encode(reply, request, c.form.form()))) break;
}

}  // namespace dcs::test
