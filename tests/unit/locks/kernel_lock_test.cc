#include "locks/kernel_lock.h"

#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "scratch.h"
#include "support/catch.h"

using dcs::Code;
using dcs::Result;
using dcs::locks::KernelLock;
using scratch::Directory;

namespace {
void (*before_flock)(const std::string &) = nullptr;
std::string before_flock_path;
}  // namespace

// Stands in front of libc's: the moment between opening and locking is otherwise too short to hit.
extern "C" int flock(int fd, int operation) noexcept {
    if (auto step = std::exchange(before_flock, nullptr)) step(before_flock_path);
    return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

TEST_CASE("a lock is made, held, described and let go") {
    Directory dir;
    std::string path = dir / "lock";
    CHECK_FALSE(dcs::locks::is_held(path));
    CHECK(::access(path.c_str(), F_OK) != 0);  // looking creates nothing
    {
        Result<KernelLock> lock = KernelLock::take(path, "4711 scheduler scheduler\n");
        REQUIRE(lock);
        CHECK(lock->held());
        CHECK(dcs::locks::is_held(path));
        CHECK(dcs::locks::note_of(path) == "4711 scheduler scheduler\n");
        struct stat st = {};
        REQUIRE(::stat(path.c_str(), &st) == 0);
        CHECK((st.st_mode & 07777) == 0600);
        CHECK((::fcntl(lock->fd(), F_GETFD) & FD_CLOEXEC) != 0);
        Result<KernelLock> second = KernelLock::take(path, "5 x y\n");
        REQUIRE_FALSE(second);
        CHECK(second.status().code == Code::refused);
        CHECK(second.status().text.find("4711 scheduler scheduler") != std::string::npos);
        CHECK(dcs::locks::note_of(path) == "4711 scheduler scheduler\n");
    }
    CHECK_FALSE(dcs::locks::is_held(path));
    CHECK(::access(path.c_str(), F_OK) == 0);  // never unlinked
    Result<KernelLock> again = KernelLock::take(path, "5 x\n");
    REQUIRE(again);
    CHECK(dcs::locks::note_of(path) == "5 x\n");  // the longer note before is gone
}

TEST_CASE("moving a lock keeps it, and assigning over one lets that one go") {
    Directory dir;
    Result<KernelLock> a = KernelLock::take(dir / "a", "a\n");
    Result<KernelLock> b = KernelLock::take(dir / "b", "b\n");
    REQUIRE(a);
    REQUIRE(b);
    KernelLock kept = std::move(*a);
    CHECK(dcs::locks::is_held(dir / "a"));
    kept = std::move(*b);
    CHECK_FALSE(dcs::locks::is_held(dir / "a"));
    CHECK(dcs::locks::is_held(dir / "b"));
    int fd = kept.release_fd();
    CHECK_FALSE(kept.held());
    CHECK(dcs::locks::is_held(dir / "b"));
    ::close(fd);
    CHECK_FALSE(dcs::locks::is_held(dir / "b"));
}

TEST_CASE("kill -9 of the holder frees the lock") {
    Directory dir;
    std::string path = dir / "lock";
    pid_t holder = scratch::sleeper([&] {
        Result<KernelLock> lock = KernelLock::take(path, "1 holder\n");
        if (lock) lock->release_fd();
        return static_cast<bool>(lock);
    });
    REQUIRE(holder > 0);
    CHECK(dcs::locks::is_held(path));
    CHECK_FALSE(KernelLock::take(path, "me\n"));
    scratch::end(holder);
    CHECK(KernelLock::take(path, "me\n"));
}

TEST_CASE("a child that inherited the descriptor keeps the lock") {
    Directory dir;
    std::string path = dir / "lock";
    Result<KernelLock> lock = KernelLock::take(path, "parent\n");
    REQUIRE(lock);
    pid_t child = scratch::sleeper([] { return true; });
    REQUIRE(child > 0);
    *lock = KernelLock();
    CHECK(dcs::locks::is_held(path));
    Result<KernelLock> refused = KernelLock::take(path, "me\n");
    REQUIRE_FALSE(refused);
    CHECK(refused.status().code == Code::refused);
    scratch::end(child);
    CHECK_FALSE(dcs::locks::is_held(path));
    CHECK(KernelLock::take(path, "me\n"));
}

TEST_CASE("flock(1) and we exclude each other") {
    Directory dir;
    std::string path = dir / "lock";
    std::string ask = "flock -n -E 75 " + path + " true";
    {
        Result<KernelLock> lock = KernelLock::take(path, "we\n");
        REQUIRE(lock);
        CHECK(scratch::exit_code(std::system(ask.c_str())) == 75);
    }
    CHECK(scratch::exit_code(std::system(ask.c_str())) == 0);
    // The shell says when it holds the lock, and holds it until its standard input ends.
    int in[2], out[2];
    REQUIRE(::pipe2(in, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
    pid_t holder = ::fork();
    if (holder == 0) {
        ::dup2(in[0], 0);
        ::dup2(out[1], 1);
        ::execlp("flock", "flock", path.c_str(), "sh", "-c", "echo held; read x", nullptr);
        ::_exit(9);
    }
    ::close(out[1]);
    char word[8];
    REQUIRE(::read(out[0], word, sizeof word) > 0);
    CHECK(dcs::locks::is_held(path));
    Result<KernelLock> refused = KernelLock::take(path, "we\n");
    REQUIRE_FALSE(refused);
    CHECK(refused.status().code == Code::refused);
    ::close(in[0]);
    ::close(in[1]);
    ::waitpid(holder, nullptr, 0);
    ::close(out[0]);
    CHECK(KernelLock::take(path, "we\n"));
}

TEST_CASE("what is not a regular file is refused, and nothing hangs on it") {
    Directory dir;
    std::ofstream(dir / "victim") << "precious";
    REQUIRE(::symlink((dir / "victim").c_str(), (dir / "link").c_str()) == 0);
    REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
    REQUIRE(::symlink((dir / "nowhere").c_str(), (dir / "dangling").c_str()) == 0);
    for (const char *name : {"link", "fifo", "dangling"}) {
        INFO(name);
        Result<KernelLock> lock = KernelLock::take(dir / name, "we\n");
        REQUIRE_FALSE(lock);
        CHECK(lock.status().code == Code::invalid);
        CHECK_FALSE(dcs::locks::is_held(dir / name));
    }
    CHECK(dcs::locks::note_of(dir / "victim") == "precious");
    CHECK(::access((dir / "nowhere").c_str(), F_OK) != 0);
    Result<KernelLock> lost = KernelLock::take(dir / "no/such/lock", "we\n");
    REQUIRE_FALSE(lost);
    CHECK(lost.status().code == Code::not_found);
}

TEST_CASE("a lock on a replaced file does not count as the lock of that name") {
    Directory dir;
    std::string path = dir / "lock";
    Result<KernelLock> old = KernelLock::take(path, "old\n");
    REQUIRE(old);
    REQUIRE(::rename(path.c_str(), (dir / "aside").c_str()) == 0);
    Result<KernelLock> now = KernelLock::take(path, "now\n");
    REQUIRE(now);
    CHECK(dcs::locks::note_of(path) == "now\n");
    CHECK_FALSE(KernelLock::take(path, "third\n"));
}

TEST_CASE("a file replaced between opening and locking is not the lock") {
    Directory dir;
    std::string path = dir / "lock";
    REQUIRE(KernelLock::take(path, "first\n"));
    before_flock_path = path;
    before_flock = [](const std::string &name) { ::rename(name.c_str(), (name + ".aside").c_str()); };
    Result<KernelLock> lock = KernelLock::take(path, "we\n");
    REQUIRE(lock);
    CHECK(before_flock == nullptr);
    CHECK(dcs::locks::is_held(path));
    CHECK_FALSE(dcs::locks::is_held(path + ".aside"));
    CHECK(dcs::locks::note_of(path + ".aside") == "first\n");
    CHECK_FALSE(KernelLock::take(path, "other\n"));
}

TEST_CASE("of many takers at one moment exactly one wins") {
    Directory dir;
    std::string path = dir / "lock";
    for (int round = 0; round < 20; ++round) {
        int start[2], result[2];
        REQUIRE(::pipe(start) == 0);
        REQUIRE(::pipe(result) == 0);
        pid_t pids[6];
        for (pid_t &pid : pids) {
            pid = ::fork();
            if (pid != 0) continue;
            char byte;
            ::close(start[1]);
            if (::read(start[0], &byte, 1) != 0) ::_exit(9);
            Result<KernelLock> lock = KernelLock::take(path, "x\n");
            byte = lock ? 'y' : 'n';
            if (::write(result[1], &byte, 1) != 1) ::_exit(9);
            for (;;) ::pause();
        }
        ::close(start[0]);
        ::close(start[1]);
        int winners = 0;
        for (int i = 0; i < 6; ++i) {
            char byte = 0;
            REQUIRE(::read(result[0], &byte, 1) == 1);
            winners += byte == 'y';
        }
        CHECK(winners == 1);
        for (pid_t pid : pids) scratch::end(pid);
        ::close(result[0]);
        ::close(result[1]);
    }
}
