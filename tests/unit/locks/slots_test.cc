#include "locks/slots.h"

#include <atomic>
#include <sys/mman.h>
#include <vector>

#include "scratch.h"
#include "support/catch.h"

using dcs::Code;
using dcs::Result;
using dcs::locks::KernelLock;
using dcs::locks::take_slot;
using scratch::Directory;

TEST_CASE("slots are taken from the lowest and listed with their notes") {
    Directory dir;
    std::string slots = dir / "slots";
    CHECK(dcs::locks::list_slots(slots).empty());
    int n0 = -1, n1 = -1, n = -1;
    Result<KernelLock> a = take_slot(slots, 2, "1 ann/3:17\n", &n0);
    Result<KernelLock> b = take_slot(slots, 2, "2 ann/3:18\n", &n1);
    REQUIRE(a);
    REQUIRE(b);
    CHECK(n0 == 0);
    CHECK(n1 == 1);
    Result<KernelLock> c = take_slot(slots, 2, "3\n", &n);
    REQUIRE_FALSE(c);
    CHECK(c.status().code == Code::limit);
    CHECK(n == -1);
    auto listed = dcs::locks::list_slots(slots);
    REQUIRE(listed.size() == 2);
    CHECK(listed[0].held);
    CHECK(listed[0].note == "1 ann/3:17\n");
    CHECK(listed[1].number == 1);
    CHECK(listed[1].note == "2 ann/3:18\n");
    *a = KernelLock();
    listed = dcs::locks::list_slots(slots);
    CHECK_FALSE(listed[0].held);
    CHECK(listed[1].held);
    Result<KernelLock> again = take_slot(slots, 2, "4\n", &n);
    REQUIRE(again);
    CHECK(n == 0);
}

TEST_CASE("a limit that is lowered counts the slots above it") {
    Directory dir;
    int n[4];
    Result<KernelLock> lock[4] = {
        take_slot(dir.path(), 4, "a\n", &n[0]), take_slot(dir.path(), 4, "b\n", &n[1]),
        take_slot(dir.path(), 4, "c\n", &n[2]), take_slot(dir.path(), 4, "d\n", &n[3])};
    for (auto &taken : lock) REQUIRE(taken);
    *lock[0] = KernelLock();
    *lock[1] = KernelLock();
    int number = -1;
    CHECK_FALSE(take_slot(dir.path(), 2, "e\n", &number));  // 2 and 3 are in use
    *lock[3] = KernelLock();
    Result<KernelLock> e = take_slot(dir.path(), 2, "e\n", &number);
    REQUIRE(e);
    CHECK(number == 0);
    int other = -1;
    CHECK_FALSE(take_slot(dir.path(), 2, "f\n", &other));  // 0 and 2
    Result<KernelLock> f = take_slot(dir.path(), 3, "f\n", &other);  // raised again
    REQUIRE(f);
    CHECK(other == 1);
    for (int none : {0, -5}) {
        Result<KernelLock> nothing = take_slot(dir.path(), none, "g\n", &other);
        REQUIRE_FALSE(nothing);
        CHECK(nothing.status().code == Code::limit);
    }
}

TEST_CASE("kill -9 frees a slot unless a child of the dead has it") {
    Directory dir;
    int pid_pipe[2];
    REQUIRE(::pipe(pid_pipe) == 0);
    pid_t server = scratch::sleeper([&] {
        int number = -1;
        Result<KernelLock> kept = take_slot(dir.path(), 2, "server\n", &number);
        if (!kept) return false;
        pid_t grain = ::fork();
        if (grain == 0) for (;;) ::pause();
        Result<KernelLock> lone = take_slot(dir.path(), 2, "server\n", &number);
        if (!lone || number != 1) return false;
        kept->release_fd();
        lone->release_fd();
        return ::write(pid_pipe[1], &grain, sizeof grain) == sizeof grain;
    });
    REQUIRE(server > 0);
    pid_t grain = -1;
    REQUIRE(::read(pid_pipe[0], &grain, sizeof grain) == sizeof grain);
    int number = -1;
    CHECK_FALSE(take_slot(dir.path(), 2, "me\n", &number));
    scratch::end(server);
    {
        Result<KernelLock> lock = take_slot(dir.path(), 2, "me\n", &number);
        REQUIRE(lock);
        CHECK(number == 1);  // 0 lives in the grandchild
        CHECK_FALSE(take_slot(dir.path(), 2, "me\n", &number));
    }
    ::kill(grain, SIGKILL);
    bool freed = false;
    for (int i = 0; i < 500 && !freed; ++i) {
        freed = !dcs::locks::is_held(dir / "0");
        if (!freed) ::usleep(10'000);
    }
    CHECK(freed);
    ::close(pid_pipe[0]);
    ::close(pid_pipe[1]);
}

namespace {
struct Shared {
    std::atomic<int> inside, most, taken, failed;
};

// Takes and frees slots as fast as it can, some takers under a limit that changes all the time, and
// counts in shared memory how many hold one at the same moment.
void storm(const std::string &directory, Shared *shared, int takes, int limit, bool changing) {
    for (int done = 0; done < takes;) {
        int number = -1;
        if (changing) limit = 3 - limit;
        Result<KernelLock> lock = take_slot(directory, limit, "storm\n", &number);
        if (!lock) {
            if (lock.status().code != Code::limit) { shared->failed++; return; }
            continue;
        }
        int now = ++shared->inside;
        int most = shared->most;
        while (now > most && !shared->most.compare_exchange_weak(most, now)) {}
        ++shared->taken;
        ++done;
        if (done % 3 == 0) ::usleep(20);
        --shared->inside;
    }
}
}  // namespace

namespace {
void run_storm(const std::string &directory, int takers, int takes, bool changing, int allowed) {
    void *memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                          -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto *shared = new (memory) Shared{};
    std::vector<pid_t> pids;
    for (int i = 0; i < takers; ++i) {
        pids.push_back(::fork());
        if (pids.back() == 0) {
            storm(directory, shared, takes, 2, changing && i > 0);
            ::_exit(0);
        }
    }
    for (pid_t pid : pids) {
        int status = -1;
        ::waitpid(pid, &status, 0);
        CHECK(scratch::exit_code(status) == 0);
    }
    CHECK(shared->taken == takers * takes);
    CHECK(shared->failed == 0);
    CHECK(shared->inside == 0);
    CHECK(shared->most >= 1);
    CHECK(shared->most <= allowed);
    ::munmap(memory, sizeof(Shared));
}
}  // namespace

TEST_CASE("a storm of takers never holds more slots than there are") {
    Directory dir;
    run_storm(dir.path(), 2, 1000, false, 2);
    run_storm(dir.path(), 3, 200, true, 2);
}

TEST_CASE("a storm never forgets a slot above the limit") {
    Directory dir;
    int number = -1;
    Result<KernelLock> zero = take_slot(dir.path(), 3, "0\n", &number);
    Result<KernelLock> one = take_slot(dir.path(), 3, "1\n", &number);
    Result<KernelLock> two = take_slot(dir.path(), 3, "2\n", &number);
    REQUIRE(two);
    REQUIRE(number == 2);
    *zero = KernelLock();
    *one = KernelLock();
    run_storm(dir.path(), 3, 300, false, 1);  // of two, one is always taken
}

TEST_CASE("names that are no slots are left alone") {
    Directory dir;
    for (const char *name : {"01", "x", "-1", "999999", "guard"}) {
        Result<KernelLock> other = KernelLock::take(dir / name, "x\n");
        REQUIRE(other);
    }
    CHECK(dcs::locks::list_slots(dir.path()).empty());
    int number = -1;
    Result<KernelLock> lock = take_slot(dir.path(), 1, "x\n", &number);
    REQUIRE(lock);
    CHECK(dcs::locks::list_slots(dir.path()).size() == 1);
    CHECK_FALSE(take_slot(dir / "no/such", 1, "x\n", &number));
}
