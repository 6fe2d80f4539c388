#include "backupd/shell/mirror_link.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/require.h"
#include "daemon/privileges.h"
#include "daemon/log.h"
#include "store/disk_posix.h"

namespace dcs::backup {
namespace {

constexpr Duration first_pause = milliseconds(200), longest_pause = seconds(5);
constexpr Duration idle_before_tidy = milliseconds(200);
constexpr Duration between_looks = seconds(10);  // for a former scheduler that returns after the promotion of a copy
constexpr Duration between_room = seconds(30);
constexpr std::size_t mirror_arrivals = 64;
constexpr const char *seen_file = "/epoch";
constexpr std::size_t seen_bytes = 80;

net::Limits link_limits() {
    net::Limits limits;
    limits.max_payload = limits::server_frame_bytes;
    limits.hello = Duration{0};  // a scheduler that needs no copy sends nothing
    return limits;
}

}  // namespace

Result<store::Identity> read_seen(const std::string &directory) {
    const std::string path = directory + seen_file;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd && errno == ENOENT) return store::Identity{0, 0};  // any other error is not proof that nothing was promoted
    const auto line = fd ? read_open(fd.get(), path, seen_bytes, false) : file_error(path, errno);
    store::Identity seen;
    if (!line || std::sscanf(line->c_str(), "store %" SCNx64 " epoch %" SCNu64, &seen.name, &seen.epoch) != 2 ||
        seen.name == 0)
        return fail(Code::io_error, path +
                                        " is damaged: it records the epoch to which the copy here was "
                                        "promoted; remove it only if no former scheduler can return");
    return seen;
}

Status write_seen(const std::string &directory, const store::Identity &seen) {
    DCS_REQUIRE(seen.name != 0, "a promoted store has a name");
    char line[seen_bytes];
    std::snprintf(line, sizeof line, "store %016" PRIx64 " epoch %" PRIu64 "\n", seen.name, seen.epoch);
    return replace_durably(AT_FDCWD, directory + seen_file, line);
}

Result<MirrorPlaces> open_mirror_places(const std::string &directory) {
    const std::string path = directory + "/mirror";
    if (Status s = make_directory(path); !s) return s;
    auto disk = store::open_posix_disk(path, keeps_openat2());
    if (!disk) return disk.status();
    auto seen = read_seen(directory);
    if (!seen) return seen.status();
    return MirrorPlaces{std::move(*disk), *seen};
}

MirrorLink::MirrorLink(MirrorPlaces places, net::PoolLink &link, std::unique_ptr<net::Loop> loop,
                       std::function<bool()> still_alone)
    : places_(std::move(places)),
      link_(link),
      loop_(std::move(loop)),
      still_alone_(std::move(still_alone)),
      thread_([this] { work(); }) {}

MirrorLink::~MirrorLink() {
    stopping_ = true;
    loop_->wake();
    thread_.join();
}

wire::MirrorStatus MirrorLink::status() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return status_;
}

void MirrorLink::tell(const char *state, const std::string &why) {
    const std::lock_guard<std::mutex> guard(mutex_);
    status_.state = state;
    status_.text = why;
    const bool whole = copy_ && copy_->whole();
    status_.name = whole ? copy_->identity().name : 0;
    status_.epoch = whole ? copy_->identity().epoch : 0;
    status_.turn = status_.copied = whole ? copy_->turn() : 0;
}

void MirrorLink::complain(const std::string &why) {
    if (why != complaint_) log_warn("the copy of the scheduler's store: " + why);
    complaint_ = why;
    tell("away", why);
}

// For a reason of this host; the next connection carries it to the scheduler.
void MirrorLink::fail_copy(const Status &why) {
    DCS_REQUIRE(!why, "a failure has a reason");
    failed_ = why.code == Code::no_space ? "its disk is full: " + why.text : why.text;
    answered_ = false;  // the next attempt waits longer
    complain(failed_);
}

void MirrorLink::succeed() {
    if (!std::exchange(failed_, {}).empty()) complaint_.clear();
    tell("current", "");
}

void MirrorLink::work() {
    Duration pause = first_pause;
    while (!stopping_) {
        answered_ = false;
        if (Status s = open_copy(); !s) fail_copy(s);
        one_connection();
        pause = answered_ ? first_pause : std::min(pause * 2, longest_pause);
        const Instant until = boot_clock() + pause;
        while (!stopping_ && boot_clock() < until) (void)loop_->wait(until, mirror_arrivals);
    }
    if (copy_) (void)copy_->tidy();
}

Status MirrorLink::open_copy() {
    if (copy_) return Status::ok();
    store::StoreOptions options{.still_alone = still_alone_};
    auto copy = Copy::open(*places_.disk, options);
    if (!copy) return copy.status();
    copy_ = std::move(*copy);
    if (!copy_->mended().empty()) log_warn("the copy of the scheduler's store: " + copy_->mended());
    return Status::ok();
}

void MirrorLink::one_connection() {
    const auto conn = link_.connect(*loop_, link_limits());
    if (!conn) return complain(copy_ ? conn.status().text : failed_);
    room_at_ = Instant::never();
    while (!stopping_) {
        tell_the_old_one();
        const bool waiting = copy_ && (copy_->untidy() || (copy_->whole() && !failed_.empty()));
        const Instant tidy_at = waiting ? boot_clock() + idle_before_tidy : Instant::never();
        if (boot_clock() >= room_at_) tell_room(*conn);
        const auto arrivals = loop_->wait(std::min({tidy_at, old_one_at_, room_at_}), mirror_arrivals);
        for (const net::Arrival &arrival : arrivals) {
            if (arrival.conn == *conn && !heard(*conn, arrival)) return loop_->close(*conn);
            if (arrival.conn == old_one_ && arrival.what == net::What::opened) (void)loop_->send(old_one_, greeting());
            if (arrival.conn == old_one_ && arrival.what == net::What::closed) old_one_ = no_connection;
        }
        if (!arrivals.empty() || boot_clock() < tidy_at) continue;
        if (const Status s = copy_ ? copy_->tidy() : Status::ok(); !s) {
            fail_copy(s);
            copy_.reset();
            return loop_->close(*conn);
        }
        if (failed_.empty() || !copy_ || !copy_->whole()) continue;
        succeed();  // the scheduler has nothing to add, unless it is slow
        (void)loop_->send(*conn, wire::MirrorHas{0, true, copy_->turn(), free_bytes()});
    }
    loop_->close(*conn);
}

std::uint64_t MirrorLink::free_bytes() const {
    const Result<std::uint64_t> free = places_.disk->free_bytes();
    return free ? std::max<std::uint64_t>(*free, 1) : 0;
}

// Before the disk is full, and also while nothing is copied.
void MirrorLink::tell_room(ConnId conn) {
    room_at_ = boot_clock() + between_room;
    const std::uint64_t free = free_bytes();
    const bool was_low = std::exchange(low_, free != 0 && free < limits::library_leaves_bytes);
    if (low_ && !was_low)
        log_warn("the disk with the copy of the scheduler's store has only " + std::to_string(free >> 20) +
                 " MiB free: make room; when it is full, nothing more is copied");
    (void)loop_->send(conn, wire::MirrorHas{0, false, 0, free});
}

// After a copy was promoted, here or on the host of an earlier backup, the former scheduler, which does not know that,
// may return at its address. It ends when it receives the new epoch.
void MirrorLink::tell_the_old_one() {
    const Instant now = boot_clock();
    if (now < old_one_at_) return;
    old_one_at_ = now + between_looks;
    const bool of_promoted = copy_ && copy_->whole() && copy_->identity().epoch > store::Identity{}.epoch;
    if (places_.seen.name == 0 && !of_promoted) return;
    if (old_one_ != no_connection) loop_->close(std::exchange(old_one_, no_connection));
    if (const auto conn = link_.connect_elsewhere(*loop_, link_limits()); !conn) old_one_at_ = Instant::never();
    else if (*conn) old_one_ = **conn;
}

wire::MirrorCall MirrorLink::greeting() const {
    wire::MirrorCall call;
    if (copy_ && copy_->whole()) {
        call.name = copy_->identity().name, call.epoch = copy_->identity().epoch;
        call.turn = copy_->turn();
    }
    call.seen_name = places_.seen.name, call.seen = places_.seen.epoch;
    return call;
}

Status MirrorLink::say_what_there_is(ConnId conn) {
    (void)loop_->send(conn, greeting());
    if (!failed_.empty()) (void)loop_->send(conn, wire::Refused{failed_});
    if (!copy_) return Status::ok();  // and no contents: the scheduler sends nothing
    const auto contents = copy_->contents();
    if (!contents) return contents.status();
    wire::MirrorContents told;
    for (const std::string &digest : *contents) {
        told.bytes += digest;
        if (told.bytes.size() + limits::digest_bytes <= limits::fetch_chunk_bytes) continue;
        (void)loop_->send(conn, told);
        told.bytes.clear();
    }
    told.last = true;
    (void)loop_->send(conn, told);
    return Status::ok();
}

bool MirrorLink::heard(ConnId conn, const net::Arrival &arrival) {
    if (arrival.what == net::What::closed) {
        complain(copy_ ? arrival.why : failed_);
        return false;
    }
    if (arrival.what == net::What::opened) {
        if (const Status s = say_what_there_is(conn); !s) {
            fail_copy(s);
            return false;
        }
        if (!copy_) return false;
        if (failed_.empty()) complaint_.clear();
        room_at_ = boot_clock() + first_pause;
        tell(copy_->whole() ? "current" : "none", failed_);
        return true;
    }
    if (arrival.what != net::What::frame) return true;
    const auto message = wire::decode_payload(arrival.header, arrival.payload);
    const auto *page_came = message ? std::get_if<wire::MirrorPage>(&*message) : nullptr;
    if (page_came) return page(conn, *page_came);
    const auto *no = message ? wire::refusal(*message) : nullptr;
    complain(no        ? "the scheduler refuses it: " + *no
             : message ? "the scheduler sent a message that is not for a copy"
                       : message.status().text);
    return false;
}

bool MirrorLink::page(ConnId conn, const wire::MirrorPage &page) {
    answered_ = true;
    failpoint("mirror.page.before");
    const Status s = copy_->take(page);
    failpoint("mirror.page.after");
    if (!s) {
        if (!copy_->spoilt().empty()) {
            complain(s.text + "; a new copy is made");
            return false;
        }
        fail_copy(s);
        copy_.reset();  // opened again, to find out its state
        return false;
    }
    if (copy_->whole() && !copy_->copying()) succeed();
    tell(copy_->copying() ? "copying" : "current", failed_);
    (void)loop_->send(conn, wire::MirrorHas{page.number, copy_->whole(), copy_->turn(), free_bytes()});
    failpoint("mirror.page.answered");
    return true;
}

}  // namespace dcs::backup
