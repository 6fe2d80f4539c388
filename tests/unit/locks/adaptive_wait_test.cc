// Waiting for a busy atom, and many requests at one moment. The detectors look for who is granted while another
// still runs: a process that was killed lets its locks go before it is a zombie.
#include <atomic>
#include <ctime>
#include <sched.h>
#include <sys/stat.h>

#include "atoms.h"
#include "process/identity.h"
#include "support/catch.h"

using namespace dcs::locks;
using scratch::atom_in;
using scratch::Directory;
using scratch::events;
using scratch::hour;
using scratch::minute;
using scratch::request_for;
using scratch::second;
using scratch::SteppedWorld;

namespace {

Deadline within(std::int64_t nanoseconds) {
    timespec t = {};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return Deadline{std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec + nanoseconds};
}

// Until another process waits for a lock of this file: the kernel's list of locks shows it with an arrow.
bool somebody_waits(const std::string &path) {
    struct stat st = {};
    if (::stat(path.c_str(), &st) != 0) return false;
    const std::string inode = ":" + std::to_string(st.st_ino) + " ";
    for (int i = 0; i < 2000; ++i) {
        FILE *list = std::fopen("/proc/locks", "re");
        char line[256];
        bool found = false;
        while (list != nullptr && std::fgets(line, sizeof line, list) != nullptr) {
            const std::string text = line;
            found = found || (text.find("->") != std::string::npos && text.find(inode) != std::string::npos);
        }
        if (list != nullptr) std::fclose(list);
        if (found) return true;
        ::usleep(5000);
    }
    return false;
}

int status_of(pid_t pid) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    return scratch::exit_code(status);
}

template <class Body> pid_t forked(Body body) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    scratch::end_with_test();
    ::_exit(body());
}

}  // namespace

TEST_CASE("who waits gets the lock when it is released") {
    Directory dir;
    AdaptiveLock lock;
    REQUIRE(AdaptiveLock::get(this_world(), request_for(dir), lock).denied == Denied::no);
    const pid_t waiter = forked([&] {
        lock.abandon();
        AdaptiveLock mine;
        LockRequest request = request_for(dir);
        request.wait = within(60 * second);
        return AdaptiveLock::get(this_world(), request, mine).denied == Denied::no ? 0 : 1;
    });
    REQUIRE(somebody_waits(dir / "lock.lock"));
    lock.release({});
    CHECK(status_of(waiter) == 0);
    const auto lines = events(dir, "done");
    REQUIRE(lines.size() == 2);
    CHECK(lines[1].waited > 0);
}

TEST_CASE("who waits is refused at its deadline, and who cannot run anyway at once") {
    Directory dir;
    const pid_t pid = scratch::holder(this_world(), request_for(dir));
    REQUIRE(pid > 0);
    LockRequest request = request_for(dir);
    request.wait = within(second / 20);
    AdaptiveLock lock;
    const Answer answer = AdaptiveLock::get(this_world(), request, lock);
    CHECK(answer.denied == Denied::busy);
    CHECK(answer.holder.process.pid == pid);
    scratch::end(pid);
    SteppedWorld world;
    world.pass(minute);
    REQUIRE(AdaptiveLock::get(world, request_for(dir), lock).denied == Denied::no);
    lock.release({});
    request.if_elapsed = hour;
    request.wait = Deadline::never();
    CHECK(AdaptiveLock::get(world, request, lock).denied == Denied::too_soon);
}

TEST_CASE("a wait ends when the holder expires") {
    Directory dir;
    const pid_t pid = scratch::holder(this_world(), request_for(dir));
    REQUIRE(pid > 0);
    LockRequest request = request_for(dir, 0, second / 20);
    request.wait = Deadline::never();
    AdaptiveLock lock;
    const Answer answer = AdaptiveLock::get(this_world(), request, lock);
    CHECK(answer.denied == Denied::no);
    CHECK(answer.took_over);
    CHECK_FALSE(scratch::alive(pid));
}

TEST_CASE("a pass that waits grows older") {
    Directory dir;
    SteppedWorld world;
    LockRequest request = request_for(dir, 0, second / 20);
    request.pass = world.now();
    const pid_t pid = scratch::holder(world, request_for(dir));
    REQUIRE(pid > 0);
    request.wait = within(60 * second);
    AdaptiveLock lock;
    CHECK(AdaptiveLock::get(world, request, lock).took_over);
    ::waitpid(pid, nullptr, 0);
}

TEST_CASE("C6 a file that was replaced while a process waited for it guards nothing") {
    for (const bool renamed : {false, true}) {
        Directory dir;
        const std::string path = dir / "lock.lock";
        AdaptiveLock lock;
        REQUIRE(AdaptiveLock::get(this_world(), request_for(dir), lock).denied == Denied::no);
        const pid_t waiter = forked([&] {
            lock.abandon();
            AdaptiveLock mine;
            LockRequest request = request_for(dir);
            request.wait = within(60 * second);
            if (AdaptiveLock::get(this_world(), request, mine).denied != Denied::no) return 1;
            struct stat ours = {}, named = {};
            if (::fstat(mine.fd(), &ours) != 0 || ::stat(path.c_str(), &named) != 0) return 2;
            return ours.st_ino == named.st_ino ? 0 : 3;
        });
        REQUIRE(somebody_waits(path));
        REQUIRE((renamed ? ::rename(path.c_str(), (dir / "aside").c_str()) : ::unlink(path.c_str())) == 0);
        AdaptiveLock fresh;
        REQUIRE(AdaptiveLock::get(this_world(), request_for(dir), fresh).denied == Denied::no);
        lock.release({});
        REQUIRE(somebody_waits(path));  // it noticed, and waits for the file that has the name now
        fresh.release({});
        CHECK(status_of(waiter) == 0);
    }
}

TEST_CASE("P1 of many requests at one moment exactly one is granted") {
    struct Shared {
        std::atomic<int> granted, refused, wrong, inside;
    };
    for (int round = 0; round < 25; ++round) {
        Directory dir;
        const scratch::SharedMemory<Shared> shared;
        const auto ask = [&](int number) {
            LockRequest request = request_for(dir, hour, 2 * hour);
            if (number % 2 != 0) request.wait = Deadline::never();  // these see the end of the run
            AdaptiveLock lock;
            const Answer answer = AdaptiveLock::get(this_world(), request, lock);
            if (answer.denied == Denied::no) {
                if (++shared->inside != 1) ++shared->wrong;
                ++shared->granted;
                ::usleep(200);
                --shared->inside;
            } else if (answer.denied == Denied::too_soon || answer.denied == Denied::busy) {
                ++shared->refused;
            } else {
                ++shared->wrong;
            }
        };
        REQUIRE(scratch::at_once(8, ask));
        CHECK(shared->granted == 1);
        CHECK(shared->refused == 7);
        CHECK(shared->wrong == 0);
    }
}

TEST_CASE("P2 of many requests for an expired atom one ends its holder and takes over") {
    struct Shared {
        std::atomic<int> granted, refused, wrong, over, alive;
    };
    for (int round = 0; round < 12; ++round) {
        Directory dir;
        SteppedWorld world;
        const scratch::SharedMemory<Shared> shared;
        const pid_t pid = scratch::holder(world, request_for(dir));
        REQUIRE(pid > 0);
        const auto victim = dcs::ProcessHandle::open(*dcs::identify(pid));
        REQUIRE(victim);
        world.pass(2 * hour);
        const auto ask = [&](int number) {
            LockRequest request = request_for(dir, minute, hour);
            if (number % 2 != 0) request.wait = Deadline::never();
            AdaptiveLock lock;
            const Answer answer = AdaptiveLock::get(world, request, lock);
            if (answer.denied == Denied::no) {
                if (!victim->ended(0)) ++shared->alive;
                ++shared->granted;
                if (answer.took_over) ++shared->over;
            } else if (answer.denied == Denied::too_soon || answer.denied == Denied::busy) {
                ++shared->refused;
            } else {
                ++shared->wrong;
            }
        };
        REQUIRE(scratch::at_once(8, ask));
        CHECK(shared->granted == 1);  // who waited finds it too soon after that
        CHECK(shared->refused == 7);
        CHECK(shared->wrong == 0);
        CHECK(shared->alive == 0);
        CHECK(events(dir, "kill").size() == 1);
        CHECK(events(dir, "expired").size() + events(dir, "crashed").size() == 1);
        ::waitpid(pid, nullptr, 0);
    }
}

TEST_CASE("a storm of holders that are killed leaves one holder at a time, and tokens that grow") {
    struct Shared {
        std::atomic<int> inside, wrong, granted;
        std::atomic<std::uint64_t> token;
    };
    Directory dir;
    const scratch::SharedMemory<Shared> shared;
    const auto work = [&](int number) {
        for (int turn = 0; turn < 40; ++turn) {
            const pid_t child = ::fork();
            if (child == 0) {
                AdaptiveLock lock;
                LockRequest request = request_for(dir);
                request.wait = Deadline::never();
                request.log = false;
                if (AdaptiveLock::get(this_world(), request, lock).denied != Denied::no) ::_exit(1);
                if (shared->inside.exchange(1) != 0) ++shared->wrong;
                ++shared->granted;
                if (shared->token.exchange(lock.generation()) >= lock.generation()) ++shared->wrong;
                ::sched_yield();
                shared->inside = 0;
                if ((turn + number) % 3 == 0) ::kill(::getpid(), SIGKILL);  // without a word
                ::_exit((turn + number) % 3 == 1 ? (lock.release({}), 0) : 0);
            }
            ::waitpid(child, nullptr, 0);
        }
    };
    REQUIRE(scratch::at_once(4, work));
    CHECK(shared->wrong == 0);
    CHECK(shared->granted == 160);
}

TEST_CASE("only the first in the queue ends an expired holder, and turns are by arrival") {
    struct Shared {
        std::atomic<int> next, wrong, over;
    };
    for (const bool first_may : {false, true}) {
        Directory dir;
        const scratch::SharedMemory<Shared> shared;
        SteppedWorld past;
        past.pass(-2 * hour);
        const pid_t pid = scratch::holder(past, request_for(dir));
        REQUIRE(pid > 0);
        std::vector<pid_t> queue;
        for (int number = 0; number < 2; ++number) {
            queue.push_back(forked([&] {
                AdaptiveLock mine;
                LockRequest request = request_for(dir, 0, number == 1 || first_may ? hour : 3 * hour);
                request.queue = true;
                request.wait = Deadline::never();
                const Answer answer = AdaptiveLock::get(this_world(), request, mine);
                if (answer.denied != Denied::no || shared->next++ != number) ++shared->wrong;
                if (answer.took_over) ++shared->over;
                return 0;
            }));
            bool queued = first_may;
            for (int i = 0; i < 5000 && !queued; ++i) {
                const auto state = look_at(this_world(), atom_in(dir));
                queued = state && state->waiting == number + 1;
                if (!queued) ::usleep(2000);
            }
            REQUIRE(queued);
            if (first_may) CHECK(status_of(queue[static_cast<std::size_t>(number)]) == 0);
        }
        if (!first_may) {
            ::usleep(100'000);  // enough for the second to have ended the holder, if it would
            CHECK(scratch::alive(pid));
            scratch::end(pid);
            for (const pid_t one : queue) CHECK(status_of(one) == 0);
        } else {
            CHECK_FALSE(scratch::alive(pid));
        }
        CHECK(shared->next == 2);
        CHECK(shared->wrong == 0);
        CHECK(shared->over == (first_may ? 1 : 0));
    }
}
