#include "grainserver/launcher/slot_keeper.h"

#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/require.h"

namespace dcs::launcher {
namespace {
constexpr std::size_t packet_max = 1024;
constexpr int answer_ms = 2000;  // a stopped keeper counts as dead
constexpr int unread_max = 64;   // packets; the socket takes more

}  // namespace

Status SlotKeeper::start(starter::StarterClient &starter) {
    const pid_t former = std::exchange(pid_, 0);  // not usable any more: the starter ends it
    Fd socket;
    const Result<pid_t> pid = starter.keeper(socket);
    if (socket) (void)receive_packet(socket.get(), packet_max, bell_);
    while (former > 0 && !starter.lost() && ::waitpid(former, nullptr, 0) < 0 && errno == EINTR) {}
    socket_ = std::move(socket);
    if (!pid) return pid.status();
    pid_ = *pid;
    return Status::ok();
}

void SlotKeeper::finish() {
    socket_ = Fd();
    if (pid_ <= 0) return;
    DCS_REQUIRE(pid_ != ::getpid(), "the keeper is another process");
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
    pid_ = 0;
}

bool SlotKeeper::hold(const std::string &dir, const std::string &leaf, int slot) {
    const std::string text = "hold " + dir + (leaf.empty() ? "" : " " + leaf);
    DCS_REQUIRE(slot >= 0 && text.size() <= packet_max, "the call has a slot and fits a packet");
    return known(socket_ && send_packet(socket_.get(), text, slot, MSG_DONTWAIT) && ring());
}

bool SlotKeeper::hold_uids(int claim) {
    return known(socket_ && send_packet(socket_.get(), "uids", claim, MSG_DONTWAIT) && ring());
}

// What it has been sent it reads then, at the latest when this process ends.
bool SlotKeeper::ring() {
    const std::uint64_t once = 1;
    unread_ = 0;
    return ::write(bell_.get(), &once, sizeof once) == sizeof once;
}

// The slot is held throughout, so nothing waits for an answer, and to wake the keeper costs as much as all else here.
bool SlotKeeper::hand_on(const std::string &from, const std::string &dir, const std::string &leaf) {
    const std::string text = "next " + from + "/" + dir + (leaf.empty() ? "" : " " + leaf);
    DCS_REQUIRE(text.size() <= packet_max, "the call fits a packet");
    return known(socket_ && send_packet(socket_.get(), text, -1, MSG_DONTWAIT) && (++unread_ < unread_max || ring()));
}

bool SlotKeeper::drop(const std::string &dir) {
    const std::string text = "drop " + dir;
    if (!socket_ || !send_packet(socket_.get(), text, -1, MSG_DONTWAIT) || !ring()) return known(false);
    pollfd answer{socket_.get(), POLLIN, 0};
    int ready;
    do ready = ::poll(&answer, 1, answer_ms);
    while (ready < 0 && errno == EINTR);
    char word[8];
    return known(ready == 1 && ::recv(socket_.get(), word, sizeof word, MSG_DONTWAIT) > 0);
}

// A keeper that does not answer counts as lost: start() ends it, and with it what it holds.
bool SlotKeeper::known(bool good) {
    if (!good) socket_ = Fd();
    return good;
}

}  // namespace dcs::launcher
