#include "asio_loop.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/load_limits.h"
#include "base/planted.h"
#include "base/require.h"

// The queue of arrivals: what wait() does while it waits, and when it stops waiting.

// What is held in memory for connections, and who answers for it.

namespace dcs::net {
namespace {

bool control(int epoll, int operation, int fd, std::uint32_t events) {
    epoll_event event = {};
    event.events = events;
    event.data.fd = fd;
    return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

void drain(int fd) {
    std::uint64_t count;
    while (::read(fd, &count, sizeof count) < 0 && errno == EINTR) {}
}

constexpr Duration long_pause = seconds(1);
// Handlers run for so long before the caller gets what has arrived, or looks at its deadline.
constexpr Duration served_at_once = milliseconds(2), served_without_arrival = milliseconds(10);

constexpr std::size_t handshake_piece = 16 * 1024;  // is read at once from who is not known yet
constexpr std::size_t least_piece = 1024;

bool has_payer(const Wire &wire) { return wire.door >= 0 && !(wire.tls && wire.charged_to.empty()); }

}  // namespace

WatchSet::WatchSet()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      alarm_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!good()) return;
    DCS_REQUIRE(control(epoll_, EPOLL_CTL_ADD, wake_, EPOLLIN) && control(epoll_, EPOLL_CTL_ADD, alarm_, EPOLLIN),
                "an eventfd and a timerfd can be waited for");
}

WatchSet::~WatchSet() {
    for (int fd : {epoll_, wake_, alarm_})
        if (fd >= 0) ::close(fd);
}

void WatchSet::add(int fd) {
    bool added = control(epoll_, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT) ||
                 (errno == EEXIST && control(epoll_, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT));
    DCS_REQUIRE(added, "a watched descriptor is a pipe, socket or the like, and open");
    watched_.insert(fd);
}

void WatchSet::remove(int fd) {
    watched_.erase(fd);
    control(epoll_, EPOLL_CTL_DEL, fd, 0);  // fails when the caller closed it first, which is as good
}

std::vector<int> WatchSet::take(bool *woken) {
    epoll_event events[64];
    std::vector<int> ready;
    int n = ::epoll_wait(epoll_, events, 64, 0);
    for (int i = 0; i < n; ++i) {
        int fd = events[i].data.fd;
        if (fd == wake_) {
            drain(wake_);
            *woken = true;
        } else if (fd == alarm_) {
            drain(alarm_);
            armed_ = Instant::never();
        } else if (watched_.count(fd) != 0) {
            ready.push_back(fd);
        }
    }
    return ready;
}

void WatchSet::rearm(int fd) {
    if (watched_.count(fd) != 0) control(epoll_, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT);
}

void WatchSet::wake() {
    std::uint64_t one = 1;
    while (::write(wake_, &one, sizeof one) < 0 && errno == EINTR) {}
}

void WatchSet::alarm_at(Instant when) {
    // An alarm that is too early only costs one look at the clock; setting it costs more.
    if (when >= armed_) return;
    itimerspec spec = {};
    std::int64_t ns = std::max<std::int64_t>(when.ns, 1);  // 0 would disarm it
    spec.it_value.tv_sec = ns / 1'000'000'000;
    spec.it_value.tv_nsec = ns % 1'000'000'000;
    DCS_REQUIRE(::timerfd_settime(alarm_, TFD_TIMER_ABSTIME, &spec, nullptr) == 0, "a valid time");
    armed_ = when;
}

bool AsioLoop::start() {
    left_ = boot_clock();
    boost::system::error_code error;
    if (!watches_.good() || watch_fd_.assign(watches_.fd(), error)) return false;
    asio::co_spawn(context_, watch_descriptors(), asio::detached);
    return true;
}

AsioLoop::~AsioLoop() {
    boost::system::error_code ignored;
    for (auto &[id, wire] : wires_) {
        wire->alive = false;
        wire->socket.close(ignored);
    }
    for (ListenerPtr &listener : listeners_) listener->socket.close(ignored);
    if (watch_fd_.is_open()) watch_fd_.release();  // the descriptor is the WatchSet's
    context_.poll();                               // lets the coroutines end while all this is there
}

Task AsioLoop::watch_descriptors() {
    for (;;) {
        auto [error] = co_await watch_fd_.async_wait(Descriptor::wait_read, awaiting);
        if (error) co_return;
        bool woken = false;
        for (int fd : watches_.take(&woken)) { arrive({.what = What::ready, .watch = fd}); }
        if (woken && !woken_) {
            woken_ = true;
            arrive(Arrival());
        }
    }
}

void AsioLoop::unwatch(int fd) {
    watches_.remove(fd);
    const auto others = inbox_.find(no_connection);
    if (others == inbox_.end()) return;
    Lane &lane = others->second;
    std::erase_if(lane.waiting, [fd](const Arrival &a) { return a.what == What::ready && a.watch == fd; });
    count_less(lane);
    if (!lane.waiting.empty()) return;
    inbox_.erase(others);
    std::erase(next_, no_connection);
}

// ---- time ----

// Deadlines run while peers are served. Neither a long commit of the caller nor a suspended machine,
// which may have stopped the peer just as well, must cost a connection.
Instant AsioLoop::served_now() const { return Instant{boot_clock().ns - away_.ns}; }

// A wire has at most one place in checks_; it is examined there, not moved with each byte.
void AsioLoop::look_after(Wire &wire) {
    Instant due = wire.first_deadline();
    if (!wire.alive || due >= wire.check_at) return;
    if (wire.check_at != Instant::never()) checks_.erase({wire.check_at, wire.id});
    wire.check_at = due;
    checks_.insert({due, wire.id});
}

void AsioLoop::cut_off_overdue(Instant now) {
    while (!checks_.empty() && checks_.begin()->first <= now) {
        WirePtr wire = find(checks_.begin()->second);
        checks_.erase(checks_.begin());
        DCS_REQUIRE(wire != nullptr, "every deadline belongs to a connection");
        wire->check_at = Instant::never();
        if (wire->overdue(now)) give_last_chance(wire);
        if (const char *why = wire->overdue(now); why != nullptr) lose(*wire, why);
        look_after(*wire);
    }
}

// If we were late ourselves (a long commit, a stopped process), what the peer did in time is in the
// socket, and must count before it is judged.
void AsioLoop::give_last_chance(const WirePtr &wire) {
    if (wire->alive && wire->connected && !wire->muted) receive(*wire);
    if (wire->alive && !wire->out.empty()) flush(wire);
}

Instant AsioLoop::next_check() const { return checks_.empty() ? Instant::never() : checks_.begin()->first; }

// ---- arrivals ----

void AsioLoop::arrive(Arrival arrival) {
    inbox_bytes_ += arrival.payload.size();
    Lane &lane = inbox_[arrival.conn];
    if (lane.waiting.empty()) next_.push_back(arrival.conn);
    const bool counts = lane.counted < share_of(arrival.conn);
    lane.counted += counts;
    inbox_count_ += counts;
    lane.waiting.push_back(std::move(arrival));
}

void AsioLoop::count_less(Lane &lane) {
    const std::size_t now = std::min(lane.counted, lane.waiting.size());
    inbox_count_ -= std::exchange(lane.counted, now) - now;
}

// All connections of a user have as much as a single one, so that others wait no longer for their number.
std::size_t AsioLoop::share_of(ConnId conn) {
    const WirePtr wire = find(conn);
    const bool whole = !wire || !wire->alive || !has_payer(*wire) || planted("net.share_for_each");
    if (whole) return limits::frames_of_connection;
    const std::size_t connections = std::max<std::size_t>(1, payer_for(*wire).connections);
    return std::max<std::size_t>(1, limits::frames_of_connection / connections);
}

bool AsioLoop::is_crowded(const Wire &wire) {
    const auto lane = inbox_.find(wire.id);
    return lane != inbox_.end() && lane->second.waiting.size() >= share_of(wire.id);
}

// Takes what is there, up to what the caller can use: the rest waits in the sockets, which is how a
// fast sender is slowed down. It ends by time as well: handshakes of strangers, which bring no arrival, may come faster
// than they are served.
void AsioLoop::run_ready(std::size_t max) {
    const std::size_t enough = std::max(max, limits::inputs_per_turn);
    const Instant began = boot_clock();
    while (inbox_count_ < enough && inbox_bytes_ < limits::bytes_per_turn && context_.poll_one() != 0) {
        const Duration taken = boot_clock() - began;
        const bool over = taken > (inbox_count_ > 0 ? served_at_once : served_without_arrival);
        if (over && !planted("net.until_nothing_is_ready")) break;
    }
}

// Of each connection in turn some, so that what one sends delays no other by more than that; and of each no more than
// its share, as the caller gets all that is handed out done before it asks again.
std::vector<Arrival> AsioLoop::hand_out(std::size_t max) {
    std::vector<Arrival> out;
    std::vector<ConnId> had_share;
    const bool no_turns = planted("net.first_come_first_served");
    while (!next_.empty() && out.size() < max) {
        const ConnId conn = next_.front();
        next_.pop_front();
        const auto lane = inbox_.find(conn);
        DCS_REQUIRE(lane != inbox_.end(), "a connection has its turn while it has something");
        std::deque<Arrival> &waiting = lane->second.waiting;
        const std::size_t share = no_turns ? max : share_of(conn);
        const std::size_t most = std::min(max, out.size() + share);  // what is dropped does not count
        while (!waiting.empty() && out.size() < most) take_out(lane->second, out);
        if (!waiting.empty()) {
            had_share.push_back(conn);
            continue;
        }
        inbox_.erase(lane);
        if (const WirePtr wire = find(conn)) read_on(wire);
    }
    next_.insert(no_turns ? next_.begin() : next_.end(), had_share.begin(), had_share.end());
    return out;
}

void AsioLoop::take_out(Lane &lane, std::vector<Arrival> &out) {
    Arrival arrival = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    DCS_REQUIRE(inbox_bytes_ >= arrival.payload.size(), "each payload was counted when it came");
    inbox_bytes_ -= arrival.payload.size();
    count_less(lane);
    if (arrival.what == What::woken) woken_ = false;
    if (arrival.what == What::ready) to_rearm_.push_back(arrival.watch);
    if (arrival.conn != no_connection) {
        if (const WirePtr wire = find(arrival.conn); !wire || wire->muted) return;  // close() came between
        if (arrival.what == What::closed) forget(arrival.conn);
    }
    out.push_back(std::move(arrival));
}

std::vector<Arrival> AsioLoop::wait(Instant deadline, std::size_t max) {
    max = std::max<std::size_t>(max, 1);
    if (Duration gone = boot_clock() - left_; gone > long_pause) away_ = away_ + gone;
    for (int fd : std::exchange(to_rearm_, {})) watches_.rearm(fd);
    flush_dirty();
    run_ready(max);
    for (;;) {
        cut_off_overdue(served_now());
        std::vector<Arrival> out = hand_out(max);
        Instant now = left_ = boot_clock();
        if (!out.empty() || now >= deadline) return out;
        const Instant alarm = std::min(deadline, next_check() + away_);
        watches_.alarm_at(alarm);
        DCS_REQUIRE(context_.run_one() > 0, "the set of watches keeps the loop waiting");
        Instant back = boot_clock();
        if (alarm + long_pause < back) away_ = away_ + (back - now);  // asleep through its own alarm
        run_ready(max);
    }
}

std::unique_ptr<Loop> Loop::create() {
    try {
        auto loop = std::make_unique<AsioLoop>();
        if (loop->start()) return loop;
    } catch (const boost::system::system_error &) {  // io_context: out of descriptors
    }
    return nullptr;
}

// Who answers for what is held for a peer: the user of a control program, whose name is USER/HOST/IDENT; dcs_begin's
// host. Servers and backups have few connections, each with its own limits.
std::string payer_of(const TlsPeer &peer) {
    if (peer.role == pki::Role::program) return "user " + peer.name.substr(0, peer.name.find('/'));
    return peer.role == pki::Role::client ? "host " + peer.name : std::string();
}
OfUser &AsioLoop::payer_for(const Wire &wire) {
    return wire.tls ? held_[wire.charged_to] : of_user_[{wire.door, wire.peer.uid}];
}

void AsioLoop::uncharge(Wire &wire) {
    if (wire.tls ? wire.charged_to.empty() : wire.counted == 0) return;
    OfUser &payer = payer_for(wire);
    DCS_REQUIRE(payer.bytes >= wire.counted, "what is held of one connection is part of what its user holds");
    payer.bytes -= std::exchange(wire.counted, 0);
    if (wire.tls && --payer.connections == 0) held_.erase(wire.charged_to);
    if (wire.tls) wire.charged_to.clear();
}

// What one recv may bring. All connections of a user bring together about as much as one, so that others wait no longer
// for their number.
std::size_t AsioLoop::piece_of(const Wire &wire) {
    if (wire.handshaking) return handshake_piece;
    if (!has_payer(wire) || planted("net.as_much_as_there_is")) return buffer_.size();
    return std::max(least_piece, buffer_.size() / std::max<std::size_t>(1, payer_for(wire).connections));
}

// What is held for a connection counts for its user, through any door. False: it was too much, and the
// connection ended.
bool AsioLoop::charge(Wire &wire) {
    if (!wire.alive || !has_payer(wire)) return wire.alive;
    const std::size_t now = wire.reader.held() + wire.out.bytes() + (wire.tls ? wire.tls->waiting() : 0);
    const bool more = now > wire.counted;
    std::size_t &sum = payer_for(wire).bytes;
    DCS_REQUIRE(sum >= wire.counted, "what is held of one connection is part of what its user holds");
    sum += now - wire.counted;
    wire.counted = now;
    if (!more || sum <= limits::held_bytes) return true;
    const bool ours = !wire.tls && wire.peer.uid == ::geteuid();
    if (ours) return true;
    const Status why =
        fail(Code::limit,
             "more than " + std::to_string(limits::held_bytes) +
                 " bytes are held for "
                 "this user, in incomplete messages and unread answers: read the answers, or send less at a time");
    answer_nonsense(wire, why);
    lose(wire, why.text);
    return false;
}

void AsioLoop::charge_to(Wire &wire, std::string who) {
    uncharge(wire);
    wire.charged_to = std::move(who);
    if (!wire.charged_to.empty()) ++held_[wire.charged_to].connections;
}

}  // namespace dcs::net
