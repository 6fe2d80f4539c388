#pragma once
// Descriptors that wait() looks after besides its sockets: those of watch(), the wake-up and the alarm
// clock. They sit in an epoll set of their own, so that the callers' descriptors keep their flags.
#include <set>
#include <vector>

#include "base/instant.h"

namespace dcs::net {

class WatchSet {
public:
    WatchSet();
    ~WatchSet();
    WatchSet(const WatchSet &) = delete;
    WatchSet &operator=(const WatchSet &) = delete;

    bool good() const { return epoll_ >= 0 && wake_ >= 0 && alarm_ >= 0; }
    int fd() const { return epoll_; }  // readable when take() has something

    void add(int fd);
    void remove(int fd);
    // Reports each readable descriptor once; after rearm() it may be reported again.
    std::vector<int> take(bool *woken);
    void rearm(int fd);

    void wake();                  // from any thread
    void alarm_at(Instant when);  // of boot_clock: makes fd() readable then, through suspends too

private:
    int epoll_ = -1, wake_ = -1, alarm_ = -1;
    Instant armed_ = Instant::never();
    std::set<int> watched_;
};

}  // namespace dcs::net
