// What locks say when the kernel refuses them something, or a process plays tricks with their files.
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dcs_lock.h"
#include "locks/adaptive_lock.h"
#include "locks/counted_slots.h"
#include "locks/kill_carefully.h"
#include "process/identity.h"
#include "locks/files/queue.h"
#include "locks/run_end.h"
#include "locks/files/record.h"
#include "locks/supervision.h"
#include "locks/files/world.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/refuse.h"
#include "unit/locks/lock_bench.h"
#include "unit/locks/victims.h"

using namespace dcs;
using namespace dcs::locks;
using dcs::test::Refusing;
using lock_bench::in_ms;
using lock_bench::place_in;
using scratch::Directory;

namespace {

Place slots_in(const Directory &dir, const std::string &name) { return place_in(dir, name + ".slots"); }

LockFile opened(const Place &place) {
    Result<LockFile> file = LockFile::open(place, FileKind::atom);
    REQUIRE(file);
    return std::move(*file);
}

std::string why_not_open(const Place &place, FileKind kind = FileKind::atom) {
    return LockFile::open(place, kind).status().text;
}

// What body() says in a process of its own: it may change who it is.
std::string told_by_a_child(const std::function<std::string()> &body) {
    int said[2];
    REQUIRE(::pipe(said) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        const std::string text = body();
        ::_exit(::write(said[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    ::close(said[1]);
    std::string text;
    char part[4096];
    for (ssize_t n; (n = ::read(said[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
    ::close(said[0]);
    ::waitpid(pid, nullptr, 0);
    return text;
}

// The end of a run of /bin/true, with this call refused to its supervisor.
std::string run_without(const char *call, int error, const char *of, Supervision what) {
    return told_by_a_child([&] {
        what.argv = {"/bin/true"};
        dcs_refuse(dcs::test::order(call, error, of).c_str());
        const RunEnd end = supervise(this_world(), what);
        return std::to_string(end.status) + " " + end.text;
    });
}

}  // namespace

TEST_CASE("lock files that cannot be opened or made") {
    const Directory dir;
    const Place place = place_in(dir, "a");
    {
        const Refusing open("open,openat", EACCES, place.path);
        CHECK(why_not_open(place) == about("cannot open lock file " + place.path + " Permission denied"));
    }
    {
        const Refusing room("open,openat", ENOSPC, "", 1);  // of the file that is to become it
        CHECK(why_not_open(place) == about("cannot create lock file " + place.path + " No space left device"));
    }
    const LockFile file = opened(place);
    CHECK(why_not_open(place, FileKind::slots) == about(place.path + " exclusive adaptive lock"));
    {
        const Refusing gone("open,openat", ENOENT, place.path);  // whenever it is made, another process was faster
        CHECK(why_not_open(place) == about("lock file " + place.path + " being replaced continually"));
    }
    {
        const Refusing look("fstat", EIO);
        CHECK(why_not_open(place) == about("cannot examine lock file " + place.path + " Input/output error"));
    }
    const Place slots = slots_in(dir, "s");
    REQUIRE(LockFile::open(slots, FileKind::slots));
    CHECK(why_not_open(slots).find(slots.path + " is a set of counted slots") == 0);
    REQUIRE(::chmod(place.path.c_str(), 0444) == 0);
    const std::string said = told_by_a_child([&] {
        if (::geteuid() == 0 && (::chmod(dir.path().c_str(), 0755) != 0 || ::setuid(65534) != 0)) return std::string();
        return why_not_open(place);
    });
    CHECK(said == about("no permission write lock file " + place.path));
}

TEST_CASE("an empty lock file that cannot be completed") {
    const Directory dir;
    Place place = place_in(dir, "empty");
    place.adopt = true;
    ::close(::open(place.path.c_str(), O_CREAT | O_RDWR, 0600));
    LockFile file = opened(place);
    REQUIRE(file.kind() == FileKind::broken);
    const Refusing write("pwrite", ENOSPC);
    CHECK(file.make_whole().text == about("cannot write lock file " + place.path + " No space left device"));
}

TEST_CASE("kernel locks that are refused, and waits without a timer") {
    const Directory dir;
    const Place place = place_in(dir, "a");
    LockFile file = opened(place), other = opened(place);
    {
        const Refusing flock("flock", EIO);
        CHECK(file.hold(false, Deadline::none()).status().text == "flock: Input/output error");
    }
    REQUIRE(*other.hold(false, Deadline::none()));
    {
        const Refusing timer("timer_create", EAGAIN);
        CHECK(file.hold(false, in_ms(60'000)).status().text == about("kernel provides no timer wait"));
    }
    other.let_go();
    const int alone = ::open(place.path.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(::flock(alone, LOCK_EX) == 0);  // as a process who knows flock(2) only
    {
        const Refusing timer("timer_create", EAGAIN);
        CHECK(file.hold(false, in_ms(60'000)).status().text == about("kernel provides no timer wait"));
    }
    {
        const Refusing flock("flock", EIO, "", 1);
        CHECK(file.hold(false, in_ms(60'000)).status().text == "flock: Input/output error");
    }
    ::close(alone);
}

TEST_CASE("a guard that a stopped process holds") {
    const Directory dir;
    const Place place = place_in(dir, "a");
    const LockFile file = opened(place), other = opened(place);
    REQUIRE(*other.lock(guard_byte, 1, false, Deadline::none()));
    CHECK(Guard::take(file).status().text == about("guard lock " + place.path + " held stopped process continue end"));
}

TEST_CASE("queues whose places a process has locked") {
    const Directory dir;
    const Place place = place_in(dir, "a");
    const LockFile file = opened(place), other = opened(place);
    REQUIRE(*other.lock(ticket_byte, 0, false, Deadline::none()));
    CHECK(QueuePlace::enter(file, false).status().text == about("all places queue " + place.path + " locked"));
    other.unlock(ticket_byte, 0);
    // A lock that the look for a free place did not show: it came between the two.
    REQUIRE(*other.lock(ticket_byte, 1, true, Deadline::none()));
    const Refusing look("fcntl", EINVAL, std::to_string(F_OFD_GETLK));
    CHECK(QueuePlace::enter(file, false).status().text ==
          about("process holds places queue " + place.path + " out order"));
}

TEST_CASE("the directory of locks") {
    const Directory dir;
    const auto lock = [] {
        d_lock_request wish;
        d_lock_init(&wish);
        wish.operator_ = "words";
        d_lock *got = nullptr;
        if (d_lock_get(&wish, nullptr, &got) == D_LOCK_GRANTED) return d_lock_release(got, 1), std::string("granted");
        return std::string(d_lock_errortext());
    };
    const auto nobody_at = [&](const std::string &path) {
        return told_by_a_child([&] {
            for (const char *name : {"HOME", "XDG_STATE_HOME", "DCS_LOCK_DIR"}) ::unsetenv(name);
            if (!path.empty()) ::setenv("DCS_LOCK_DIR", path.c_str(), 1);
            if (::geteuid() == 0 && ::setuid(65534) != 0) return std::string("setuid");
            return lock();
        });
    };
    CHECK(nobody_at("") == about("no DCS_LOCK_DIR HOME"));
    const std::string fresh = dir / "fresh";
    const std::string unseen = told_by_a_child([&] {
        ::setenv("DCS_LOCK_DIR", fresh.c_str(), 1);
        dcs_refuse(dcs::test::order("stat", EIO, fresh, 1).c_str());
        return lock();
    });
    CHECK(unseen == about("cannot examine lock directory " + fresh + " Input/output error"));
    if (::geteuid() != 0) return;  // no other process can make a directory of another process's
    const std::string foreign = dir / "foreign";
    REQUIRE(::mkdir(foreign.c_str(), 0755) == 0);
    REQUIRE(::chown(foreign.c_str(), 65533, 65533) == 0);
    REQUIRE(::chmod(dir.path().c_str(), 0755) == 0);
    CHECK(nobody_at(foreign) == about("lock directory " + foreign +
                                      " belongs uid 65533 could replace lock set DCS_LOCK_DIR your own directory"));
}

TEST_CASE("a lock whose file is replaced all the time") {
    const Directory dir;
    const Place place = place_in(dir, "a"), slots = slots_in(dir, "s");
    const World &world = this_world();
    const auto ask = [&] { return Slots::take(world, {{slots, 1}}, Deadline::none(), "").status().text; };
    LockRequest request;
    request.place = place;
    const auto get = [&] {
        AdaptiveLock lock;
        return AdaptiveLock::get(world, request, lock).status.text;
    };
    REQUIRE(ask() == "");
    REQUIRE(get() == "");
    {
        const Refusing named("fstat", EIO, "", -2);  // each time it has been opened and looked at
        CHECK(get() == "lock " + place.path + " is being replaced continually");
    }
    {
        const Refusing examined("fstat", EIO, "", 1);
        CHECK(ask() == about("cannot examine lock file " + slots.path + " Input/output error"));
    }
    const Refusing named("fstat", EIO, "", -3);
    CHECK(ask() == about("counted replaced continually"));
}

TEST_CASE("counted slots that cannot be written, or waited for") {
    const Directory dir;
    Place place = slots_in(dir, "s");
    const World &world = this_world();
    const auto ask = [&](const Deadline &until) { return Slots::take(world, {{place, 1}}, until, "").status().text; };
    {
        const Result<Slots> first = Slots::take(world, {{place, 1}}, Deadline::none(), "");
        REQUIRE(first);
        const Refusing poll("ppoll", ENOMEM);
        CHECK(ask(in_ms(60'000)) == "poll: Cannot allocate memory");
    }
    {
        Result<LockFile> stranger = LockFile::open(place, FileKind::slots);  // has the slot and left no record
        REQUIRE(stranger);
        REQUIRE(*stranger->lock(slot_byte, 1, false, Deadline::none()));
        const Refusing watcher("syscall", EAGAIN, std::to_string(SYS_clone));
        CHECK(ask(in_ms(60'000)) == about("cannot start process waits slot " + place.path));
    }
    place = slots_in(dir, "fresh");
    REQUIRE(LockFile::open(place, FileKind::slots));
    const Refusing write("pwrite", ENOSPC);
    CHECK(ask(Deadline::none()) == about("cannot write slots " + place.path + " No space left device"));
}

TEST_CASE("more slots than a file that is not ours has room for") {
    const Directory dir;
    Place place = slots_in(dir, "s");
    place.named = false;
    const int fd = ::open(place.path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    REQUIRE(::write(fd, "a list of somebody", 18) == 18);
    ::close(fd);
    std::vector<Slots> taken;
    std::string text;
    while (text.empty() && taken.size() < 1000) {
        Result<Slots> got = Slots::take(this_world(), {{place, 1000}}, Deadline::none(), "");
        text = got.status().text;
        if (got) taken.push_back(std::move(*got));
    }
    CHECK(taken.size() == 64);
    CHECK(text == about(place.path + " no room slots not file counted slots"));
}

TEST_CASE("a run whose supervisor is refused what it needs") {
    const Directory dir;
    const LockFile lock = opened(place_in(dir, "a"));
    Supervision what;
    what.lock_fds = {lock.fd()};
    what.keep = Keep::both;
    CHECK(run_without("setpgid", EPERM, "", what) == about("125 cannot run /bin/true setpgid Operation not permitted"));
    CHECK(run_without("fcntl", EMFILE, std::to_string(F_DUPFD).c_str(), what) ==
          about("125 /bin/true many open files"));
    what.keep = Keep::leader;
    CHECK(run_without("prctl", EPERM, "1", what) == about("125 cannot run /bin/true prctl Operation not permitted"));
    what.keep = Keep::exec;
    CHECK(run_without("fork", EAGAIN, "", what) == about("125 cannot temporarily unavailable"));
    what.keep = Keep::fd;
    CHECK(run_without("fcntl", EMFILE, std::to_string(F_DUPFD).c_str(), what) ==
          about("125 cannot keep lock open many open files"));
    CHECK(supervise(this_world(), Supervision{}).text == "no command was given");
}

TEST_CASE("processes that cannot be signalled") {
    const Result<ProcessHandle> handle = ProcessHandle::open(own_identity());
    REQUIRE(handle);
    const Refusing signal("syscall", EIO, std::to_string(SYS_pidfd_send_signal));
    CHECK(handle->signal(0).text == about("cannot signal process Input/output"));
}

TEST_CASE("a run that cannot be written down") {
    const Directory dir;
    const LockFile lock = opened(place_in(dir, "a"));
    const Refusing write("pwrite", ENOSPC);
    CHECK(write_sample(lock, 1, Sample{}).text == about("cannot write lock " + lock.path() + " No space left device"));
}

TEST_CASE("a holder of whom nothing is known, and times without an end") {
    CHECK(described(Owner{}, this_world()) == "another process");
    CHECK(in_words(no_limit) == "for ever");
}

TEST_CASE("a holder whose tree cannot be looked at is not gone") {
    constexpr std::int64_t grace = 50'000'000;
    const victims::Counter holder(SIGINT);
    const Owner owner = victims::owner(holder.pid());
    const Refusing look("opendir", EMFILE, "/proc");
    const KillReport report = kill_carefully(this_world(), owner, {grace, grace, grace});
    CHECK(report.result == Killed::unkillable);
    CHECK(report.text == about("cannot processes many open files"));
    CHECK(report.signalled == 1);  // the holder itself is known by its pid
    CHECK(look.happened());
}
