#pragma once
// The thread of the backup that keeps the copy of the scheduler's store, with its own connection to the scheduler, its
// own loop, and synchronous commits. It does not delay the backup's work on reports.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backupd/mirror/copy.h"
#include "net/loop.h"
#include "net/pool_link.h"

namespace dcs::backup {

// The epoch to which a copy was promoted here, and its store: the file `epoch` in the backup's directory.
Result<store::Identity> read_seen(const std::string &directory);  // name 0: none was
Status write_seen(const std::string &directory, const store::Identity &seen);

struct MirrorPlaces {
    std::unique_ptr<store::Disk> disk;  // DIR/mirror
    store::Identity seen;
};
// Opens DIR/mirror, created if missing. Must be called before the rights to files are dropped.
Result<MirrorPlaces> open_mirror_places(const std::string &directory);

class MirrorLink {
public:
    // `link` outlives it. still_alone: as in store::StoreOptions, for the lock under which the backup writes.
    MirrorLink(MirrorPlaces places, net::PoolLink &link, std::unique_ptr<net::Loop> loop,
               std::function<bool()> still_alone);
    ~MirrorLink();
    MirrorLink(const MirrorLink &) = delete;
    MirrorLink &operator=(const MirrorLink &) = delete;

    wire::MirrorStatus status() const;  // any thread

private:
    void work();
    void one_connection();
    std::uint64_t free_bytes() const;
    void tell_room(ConnId conn);
    void tell_the_old_one();  // that a copy of its store was promoted
    wire::MirrorCall greeting() const;
    Status open_copy();
    Status say_what_there_is(ConnId conn);
    bool heard(ConnId conn, const net::Arrival &arrival);  // false: the connection must be closed
    bool page(ConnId conn, const wire::MirrorPage &page);
    void tell(const char *state, const std::string &why);
    void complain(const std::string &why);
    void fail_copy(const Status &why);
    void succeed();

    const MirrorPlaces places_;
    net::PoolLink &link_;
    const std::unique_ptr<net::Loop> loop_;
    const std::function<bool()> still_alone_;
    std::unique_ptr<Copy> copy_;
    bool answered_ = false;  // by the scheduler, on this connection
    std::string failed_;     // why there was no copy, or why it did not take a page; until it is whole
    ConnId old_one_{};       // a connection to another of its addresses, where the former scheduler may return
    Instant old_one_at_{};   // time of the next attempt
    Instant room_at_ = Instant::never();  // when it next reports its free space to the scheduler
    bool low_ = false;                    // little
    std::string complaint_;
    std::atomic<bool> stopping_{false};
    mutable std::mutex mutex_;
    wire::MirrorStatus status_;  // under the mutex
    std::thread thread_;         // last: starts when all other members exist
};

}  // namespace dcs::backup
