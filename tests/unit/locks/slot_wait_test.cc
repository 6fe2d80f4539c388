#include "locks/counted_slots.h"

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "locks/files/queue.h"
#include "locks/slot_wait.h"
#include "slot_bench.h"

using namespace lock_bench;
using scratch::Directory;

namespace {

std::string replaced_by_link_to;  // what another account, that may write the directory, does to a new FIFO

}  // namespace

// In place of the C library's.
extern "C" int mkfifo(const char *path, mode_t mode) {
    if (::mknodat(AT_FDCWD, path, S_IFIFO | mode, 0) != 0) return -1;
    if (replaced_by_link_to.empty()) return 0;
    return ::unlink(path) == 0 ? ::symlink(replaced_by_link_to.c_str(), path) : -1;
}

TEST_CASE("a bell whose name becomes a link changes the mode of no other file") {
    Directory dir;
    const std::string mine = dir.path() + "/mine";
    REQUIRE(::close(::open(mine.c_str(), O_CREAT | O_WRONLY, 0600)) == 0);
    replaced_by_link_to = mine;
    CHECK_FALSE(Bell::open(place_in(dir, "s"), 0666));
    replaced_by_link_to.clear();
    struct stat st = {};
    REQUIRE(::stat(mine.c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
    REQUIRE(Bell::open(place_in(dir, "s"), 0666));
    REQUIRE(::stat((dir.path() + "/s.bell").c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0666);
}

TEST_CASE("C1 a taker that lets go while a child keeps the slot: who waits is woken by the child's end") {
    Directory dir;
    const Place place = place_in(dir, "s");
    const pid_t keeper_of_none = holder(place, 1, [&](Slots &slots) {
        if (::fork() == 0) {
            ::usleep(100'000);
            ::_exit(0);
        }
        slots.abandon();
        return true;
    });
    REQUIRE(keeper_of_none > 0);
    CHECK(full(place, 1));
    CHECK(waits_for_it(place, 1));
    scratch::end(keeper_of_none);
}

TEST_CASE("C5 E14 several limits are all taken or none, in whatever order they are named") {
    Directory dir;
    const Place total = place_in(dir, "total"), user = place_in(dir, "user"), host = place_in(dir, "host");
    Result<Slots> both = Slots::take(this_world(), {{total, 3}, {user, 1}}, Deadline::none(), "");
    REQUIRE(both);
    CHECK(both->numbers().size() == 2);
    CHECK(both->lock_fds().size() == 2);
    for (const std::vector<SlotWish> &wishes : {std::vector<SlotWish>{{host, 2}, {user, 1}, {total, 3}},
                                                std::vector<SlotWish>{{user, 1}, {total, 3}, {host, 2}}}) {
        CHECK(Slots::take(this_world(), wishes, Deadline::none(), "").status().code == Code::limit);
        CHECK(held_numbers(total).size() == 1);
        CHECK(held_numbers(host).empty());
    }
    CHECK(Slots::take(this_world(), {{total, 3}, {total, 2}}, Deadline::none(), "").status().code == Code::invalid);
    Child waiter([&] {
        const Result<Slots> got = Slots::take(this_world(), {{total, 3}, {user, 1}}, Deadline::never(), "");
        return got && got->numbers()[0] == 1;
    });
    REQUIRE(waiter.sleeps());
    const Slots second = take(total, 2);  // nothing of `total` is kept while it waits for `user`
    both->release();
    CHECK(waiter.answer() == false);  // slot 0 of `total` is the lowest now
}

TEST_CASE("waiting is in order of arrival, and who comes new does not overtake") {
    Directory dir;
    const Place place = place_in(dir, "s");
    Slots mine = take(place, 1);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const auto in_turn = [&](char name) {
        const Result<Slots> got = ask(place, 1, Deadline::never());
        return got && ::write(ends[1], &name, 1) == 1;
    };
    Result<LockFile> file = LockFile::open(place, FileKind::slots);
    REQUIRE(file);
    Child a([&] { return in_turn('a'); });
    REQUIRE(soon([&] { return waiters(*file).size() == 1; }));
    Child b([&] { return in_turn('b'); });
    REQUIRE(soon([&] { return waiters(*file).size() == 2; }));
    ::kill(a.pid, SIGSTOP);
    REQUIRE(soon([&] { return state_of(a.pid) == 'T'; }));
    mine.release();
    const Result<Slots> refused = ask(place, 1);
    REQUIRE_FALSE(refused);
    CHECK(refused.status().text.find("are waiting") != std::string::npos);
    CHECK_FALSE(ask(place, 1, in_ms(30)));
    ::kill(a.pid, SIGCONT);
    CHECK(a.answer());
    CHECK(b.answer());
    char order[2] = {};
    REQUIRE(::read(ends[0], order, 2) == 2);
    CHECK(std::string(order, 2) == "ab");
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_CASE("who waits sleeps, is woken by release, by a close and by a kill, and in time by its deadline") {
    Directory dir;
    const Place place = place_in(dir, "s");
    for (int how = 0; how < 3; ++how) {
        Slots mine;
        pid_t other = 0;
        if (how < 2) mine = take(place, 1);
        else REQUIRE((other = holder(place, 1)) > 0);
        Child waiter([&] {
            for (const int fd : mine.lock_fds()) ::close(fd);  // what it inherits would keep the slot
            return waits_for_it(place, 1);
        });
        REQUIRE(waiter.sleeps());
        ::usleep(20'000);
        const long before = switches_of(waiter.pid);
        CHECK_FALSE(ask(place, 1, in_ms(30)));
        CHECK(switches_of(waiter.pid) == before);
        if (how == 0) mine.release();
        if (how == 1) mine = Slots();
        if (how == 2) scratch::end(other);
        CHECK(waiter.answer());
    }
    const Slots mine = take(place, 1);
    const Result<Slots> late = ask(place, 1, in_ms(30));
    REQUIRE_FALSE(late);
    CHECK(late.status().code == Code::limit);
    CHECK(late.status().text.find("is over") != std::string::npos);
}

TEST_CASE("C11 a release when the one who waited has just gone harms no process") {
    Directory dir;
    const Place place = place_in(dir, "s");
    for (int i = 0; i < 20; ++i) {
        Slots mine = take(place, 1);
        {
            Child waiter([&] { return waits_for_it(place, 1); });
            if (i % 2 == 0) REQUIRE(waiter.sleeps());
        }
        mine.release();
    }
    CHECK(take(place, 1).held());
}

TEST_CASE("C13 a stranger's lock on the whole file refuses at once, or is waited for") {
    Directory dir;
    const Place place = place_in(dir, "s");
    take(place, 1).release();
    const pid_t stranger = scratch::sleeper([&] {
        const int fd = ::open(place.path.c_str(), O_RDWR);
        struct flock all = {};
        all.l_type = F_WRLCK;
        return ::fcntl(fd, F_SETLK, &all) == 0;
    });
    REQUIRE(stranger > 0);
    CHECK(full(place, 1));
    Child waiter([&] { return waits_for_it(place, 1); });
    REQUIRE(waiter.sleeps());
    scratch::end(stranger);
    CHECK(waiter.answer());
}

TEST_CASE("more slots than a file has go to further files, and a waiter hears of every end") {
    Directory dir;
    const Place place = place_in(dir, "s");
    constexpr int many = 400;  // more than one process watches alone
    std::vector<pid_t> pids;
    for (int i = 0; i < many; ++i) {
        pids.push_back(holder(place, many));
        REQUIRE(pids.back() > 0);
    }
    CHECK(full(place, many));
    CHECK(full(place, 7));
    CHECK(held_numbers(place).size() == many);
    CHECK(::access((place.path + ".6").c_str(), F_OK) == 0);
    CHECK(::access((place.path + ".7").c_str(), F_OK) != 0);
    REQUIRE(::truncate(place.path.c_str(), 0) == 0);
    CHECK(full(place, many));
    rlimit few = {}, normal = {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &normal) == 0);
    Child waiter([&] {
        few = {128, 128};
        return ::setrlimit(RLIMIT_NOFILE, &few) == 0 && waits_for_it(place, many);
    });
    REQUIRE(waiter.sleeps());
    ::usleep(50'000);
    CHECK_FALSE(waiter.ended());
    scratch::end(pids.back());
    pids.pop_back();
    CHECK(waiter.answer());
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
    CHECK(take(place, 1).numbers() == std::vector<int>{0});
}

TEST_CASE("E11 taking a slot with ten thousand live", "[.perf]") {
    Directory dir;
    rlimit most = {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &most) == 0);
    most.rlim_cur = most.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &most);
    const auto plain_lock = [&] {  // the yardstick: what one lock costs anyway
        const int fd = ::open((dir / "plain").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        struct flock range = {};
        range.l_type = F_WRLCK;
        range.l_len = 1;
        ::fcntl(fd, F_OFD_SETLK, &range);
        ::close(fd);
    };
    for (const int live : {10, 1000, 9000}) {  // as many as may have descriptors here: each slot takes two
        const Place place = place_in(dir, "s" + std::to_string(live));
        std::vector<Slots> held;
        for (int i = 0; i < live; ++i) held.push_back(take(place, slots_max));
        constexpr int turns = 2000;
        const std::int64_t from = boot_now();
        for (int i = 0; i < turns; ++i) take(place, slots_max).release();
        const double each = static_cast<double>(boot_now() - from) / turns / 1000;
        const std::int64_t refused_from = boot_now();
        CHECK(full(place, live));
        const double refused = static_cast<double>(boot_now() - refused_from) / 1000;
        const std::int64_t plain_from = boot_now();
        for (int i = 0; i < turns; ++i) plain_lock();
        const double plain = static_cast<double>(boot_now() - plain_from) / turns / 1000;
        std::printf("%d live: taking and releasing one %.1f us, being refused %.0f us; open, lock, close %.1f us\n",
                    live, each, refused, plain);
    }
}
