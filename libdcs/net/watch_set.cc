#include "net/watch_set.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/require.h"

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

}  // namespace dcs::net
