// Hazards of the paper's GetLock, by number (docs/LOCKS.md).
#include "locks/adaptive_lock.h"

#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>

#include "atoms.h"
#include "support/catch.h"

using namespace dcs::locks;
using scratch::atom_in;
using scratch::Directory;
using scratch::events;
using scratch::get;
using scratch::hour;
using scratch::minute;
using scratch::record_of;
using scratch::request_for;
using scratch::second;
using scratch::SteppedWorld;

TEST_CASE("P27 tokens do not come again when the lock file is removed or damaged") {
    Directory dir;
    AdaptiveLock lock;
    REQUIRE(get(this_world(), request_for(dir), lock).denied == Denied::no);
    std::uint64_t last = lock.generation();
    lock.release({});
    REQUIRE(::unlink((dir / "lock.lock").c_str()) == 0);
    REQUIRE(get(this_world(), request_for(dir), lock).denied == Denied::no);
    CHECK(lock.generation() > last);
    last = lock.generation();
    lock.release({});
    {
        std::fstream file(dir / "lock.lock", std::ios::in | std::ios::out);
        file.seekp(record_a_at);
        file << std::string(2 * record_bytes, 'x');
    }
    REQUIRE(get(this_world(), request_for(dir, hour), lock).denied == Denied::no);
    CHECK(lock.generation() > last);
    CHECK(events(dir, "lost").size() == 1);
    // A file that was emptied is made whole again.
    last = lock.generation();
    lock.release({});
    REQUIRE(::truncate((dir / "lock.lock").c_str(), 0) == 0);
    REQUIRE(get(this_world(), request_for(dir, hour), lock).denied == Denied::no);
    CHECK(lock.generation() > last);
    lock.release({});
    CHECK(get(this_world(), request_for(dir, hour), lock).denied == Denied::too_soon);
}

TEST_CASE("P27 the holder of a file that was removed keeps it, and its replacement is another lock") {
    Directory dir;
    AdaptiveLock old, now, third;
    REQUIRE(get(this_world(), request_for(dir), old).denied == Denied::no);
    REQUIRE(::unlink((dir / "lock.lock").c_str()) == 0);
    REQUIRE(get(this_world(), request_for(dir), now).denied == Denied::no);
    CHECK(get(this_world(), request_for(dir), third).denied == Denied::busy);
    old.release({});
    CHECK(get(this_world(), request_for(dir), third).denied == Denied::busy);
    CHECK(now.generation() > old.generation());
}

TEST_CASE("P4 a holder whose record is empty is not ended") {
    for (const bool whole_file : {false, true}) {
        Directory dir;
        SteppedWorld world;
        const pid_t pid = scratch::holder(world, request_for(dir));
        REQUIRE(pid > 0);
        if (whole_file) {
            REQUIRE(::truncate((dir / "lock.lock").c_str(), 0) == 0);
        } else {
            std::fstream file(dir / "lock.lock", std::ios::in | std::ios::out);
            file.seekp(record_a_at);
            file << std::string(2 * record_bytes, '\0');
        }
        world.pass(hour);
        AdaptiveLock lock;
        CHECK(get(world, request_for(dir, 0, second), lock).denied == Denied::busy);
        CHECK(scratch::alive(pid));
        CHECK(::kill(::getpid(), 0) == 0);
        scratch::end(pid);
        CHECK(get(world, request_for(dir, 0, second), lock).denied == Denied::no);
    }
}

TEST_CASE("P6 P7 a holder of another boot, host or pid namespace gets no signal") {
    for (const int what : {0, 1, 2}) {
        Directory dir;
        SteppedWorld world, other;
        const pid_t pid = scratch::holder(world, request_for(dir));
        REQUIRE(pid > 0);
        if (what == 0) other.reboot(hour);
        if (what == 1) other.host = "elsewhere";
        if (what == 2) ++other.pid_namespace;
        other.pass(hour);
        AdaptiveLock lock;
        const Answer answer = get(other, request_for(dir, 0, second), lock);
        INFO(answer.text);
        CHECK(answer.denied == Denied::elsewhere);
        CHECK(scratch::alive(pid));
        scratch::end(pid);
        const Answer free = get(other, request_for(dir, 0, second), lock);
        CHECK(free.denied == Denied::no);
        CHECK(free.after_crash);
    }
}

TEST_CASE("P9 an expired ancestor is not ended") {
    Directory dir;
    SteppedWorld world;
    AdaptiveLock lock;
    REQUIRE(get(world, request_for(dir), lock).denied == Denied::no);
    world.pass(hour);
    AdaptiveLock second_lock;
    CHECK(get(world, request_for(dir, 0, second), second_lock).denied == Denied::own_ancestor);
    const pid_t child = ::fork();
    if (child == 0) {
        AdaptiveLock mine;
        ::_exit(get(world, request_for(dir, 0, second), mine).denied == Denied::own_ancestor ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(scratch::exit_code(status) == 0);
}

TEST_CASE("P31 an expired holder is ended, stamped and logged, and its atom taken over") {
    Directory dir;
    SteppedWorld world;
    const pid_t pid = scratch::holder(world, request_for(dir));
    REQUIRE(pid > 0);
    const std::uint64_t token = record_of(dir).generation;
    world.pass(hour);
    AdaptiveLock lock;
    CHECK(get(world, request_for(dir, 0, 2 * hour), lock).denied == Denied::busy);
    CHECK(scratch::alive(pid));
    const Answer answer = get(world, request_for(dir, minute, hour), lock);
    INFO(answer.text);
    REQUIRE(answer.denied == Denied::no);
    CHECK(answer.took_over);
    CHECK(lock.generation() > token);
    CHECK_FALSE(scratch::alive(pid));
    CHECK(record_of(dir).expired_in_row == 1);
    REQUIRE(events(dir, "kill").size() == 1);
    const auto lines = events(dir, "expired");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].pid == pid);
    CHECK(lines[0].runtime >= hour);
    const auto file = LockFile::look(atom_in(dir));
    REQUIRE(file);
    REQUIRE(read_samples(*file).size() == 1);
    CHECK(read_samples(*file)[0].outcome == Outcome::expired);
    lock.release({});
    CHECK(record_of(dir).expired_in_row == 0);
    CHECK(record_of(dir).expiries == 1);
}

TEST_CASE("P18 a last run in the future is no obstacle, and is said") {
    Directory dir;
    SteppedWorld world;
    world.wall = 365 * 24 * hour;
    AdaptiveLock lock;
    REQUIRE(get(world, request_for(dir, hour), lock).denied == Denied::no);
    lock.release({});
    world.wall = 0;
    CHECK(get(world, request_for(dir, hour), lock).denied == Denied::too_soon);  // the same boot knows better
    world.reboot(minute);
    const Answer answer = get(world, request_for(dir, hour), lock);
    REQUIRE(answer.denied == Denied::no);
    CHECK(answer.ruling.clock_stepped);
    CHECK_FALSE(answer.text.empty());
    CHECK(events(dir, "clock").size() == 1);
    lock.release({});
    CHECK(get(world, request_for(dir, hour), lock).denied == Denied::too_soon);  // stamped again
}

TEST_CASE("P21 what was done since the pass began is not done again") {
    Directory dir;
    SteppedWorld world;
    LockRequest request = request_for(dir, second);
    request.pass = world.now();
    world.pass(minute);
    AdaptiveLock lock;
    REQUIRE(get(world, request_for(dir), lock).denied == Denied::no);
    lock.release({});
    world.pass(minute);
    const Answer answer = get(world, request, lock);
    CHECK(answer.denied == Denied::too_soon);
    CHECK(answer.ruling.done_since);
    request.pass = world.now();
    CHECK(get(world, request, lock).denied == Denied::no);
}

TEST_CASE("P30 a lock that was taken before a fork lives in the child") {
    Directory dir;
    AdaptiveLock lock, other;
    REQUIRE(get(this_world(), request_for(dir), lock).denied == Denied::no);
    const pid_t child = scratch::sleeper([&] {
        lock.adopt();
        return true;
    });
    REQUIRE(child > 0);
    lock.abandon();
    const Answer answer = get(this_world(), request_for(dir), other);
    CHECK(answer.denied == Denied::busy);
    CHECK(answer.holder.process.pid == child);
    scratch::end(child);
    CHECK(get(this_world(), request_for(dir), other).denied == Denied::no);
}

TEST_CASE("P30 a forked child that ends does not release its parent's lock") {
    Directory dir;
    AdaptiveLock lock, other;
    REQUIRE(get(this_world(), request_for(dir), lock).denied == Denied::no);
    const pid_t child = ::fork();
    if (child == 0) {
        { const AdaptiveLock copy = std::move(lock); }
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    CHECK(get(this_world(), request_for(dir), other).denied == Denied::busy);
    CHECK(record_of(dir).outcome == Outcome::running);
    // But a release by word holds for all copies.
    const pid_t sleeper = scratch::sleeper([] { return true; });
    lock.release({});
    CHECK(get(this_world(), request_for(dir), other).denied == Denied::no);
    scratch::end(sleeper);
}

TEST_CASE("P32 limits that mean nothing are refused") {
    Directory dir;
    AdaptiveLock lock;
    for (const auto &[if_elapsed, expire_after] :
         {std::pair{std::int64_t{0}, std::int64_t{0}}, {std::int64_t{-2}, no_limit}, {std::int64_t{0}, INT64_MIN}}) {
        const Answer answer = get(this_world(), request_for(dir, if_elapsed, expire_after), lock);
        CHECK(answer.denied == Denied::failed);
        CHECK(answer.status.code == dcs::Code::invalid);
        CHECK(::access((dir / "lock.lock").c_str(), F_OK) != 0);
    }
    LockRequest literal = request_for(dir, 0, 0);
    literal.literal = true;
    CHECK(get(this_world(), literal, lock).denied == Denied::no);
}

TEST_CASE("P37 an expired holder of another user is not ended") {
    if (::geteuid() != 0) return;
    Directory dir;
    SteppedWorld world;
    REQUIRE(::chmod(dir.path().c_str(), 0755) == 0);
    LockRequest request = request_for(dir, 0, second);
    request.place.named = false;
    request.mode = 0666;
    const pid_t pid = scratch::holder(world, request);
    REQUIRE(pid > 0);
    world.pass(hour);
    const pid_t user = ::fork();
    if (user == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
        AdaptiveLock lock;
        ::_exit(get(world, request, lock).denied == Denied::not_permitted ? 0 : 1);
    }
    int status = -1;
    ::waitpid(user, &status, 0);
    CHECK(scratch::exit_code(status) == 0);
    CHECK(scratch::alive(pid));
    scratch::end(pid);
}

TEST_CASE("P38 a lock that cannot be written is not taken") {
    Directory dir;
    const auto denied_with = [&](int resource, rlim_t value, const LockRequest &request) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::signal(SIGXFSZ, SIG_IGN);
            const rlimit limit = {value, value};
            ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
            AdaptiveLock lock;
            const Answer answer = AdaptiveLock::get(this_world(), request, lock);
            ::_exit(answer.denied == Denied::failed && !answer.text.empty() && !lock.held() ? 0 : 1);
        }
        int status = -1;
        ::waitpid(child, &status, 0);
        return scratch::exit_code(status) == 0;
    };
    CHECK(denied_with(RLIMIT_NOFILE, 3, request_for(dir)));   // EMFILE
    CHECK(denied_with(RLIMIT_FSIZE, 100, request_for(dir)));  // no header
    CHECK(denied_with(RLIMIT_FSIZE, 600, request_for(dir)));  // no record
    AdaptiveLock lock;
    REQUIRE(get(this_world(), request_for(dir), lock).denied == Denied::no);  // and it was left free
    lock.release({});
    LockRequest nowhere = request_for(dir);
    nowhere.place.path = "/proc/no/such/lock";
    CHECK(get(this_world(), nowhere, lock).denied == Denied::failed);
    REQUIRE(::symlink((dir / "lock.lock").c_str(), (dir / "link").c_str()) == 0);
    LockRequest link = request_for(dir);
    link.place.path = dir / "link";
    CHECK(get(this_world(), link, lock).denied == Denied::failed);
}

TEST_CASE("P13 the limit of an atom that is ended again and again grows until it completes") {
    Directory dir;
    SteppedWorld world;
    LockRequest request = request_for(dir, 0, automatic);
    request.bounds.expire_min = second;
    request.interval_hint = 8 * second;
    request.max_kills = 100;
    std::int64_t needs = 0, limit = 0;
    int ended = 0;
    AdaptiveLock lock;
    REQUIRE(get(world, request, lock).denied == Denied::no);
    needs = 5 * lock.soft();  // the atom always needs five times its first limit
    for (; lock.soft() < needs; ++ended) {
        REQUIRE(ended < 6);
        CHECK(lock.soft() > limit);
        limit = lock.soft();
        world.pass(limit);
        lock.release({Outcome::expired, {}, -1, -1, false});
        REQUIRE(get(world, request, lock).denied == Denied::no);
    }
    CHECK(ended == 3);
    const auto lines = events(dir, "expired");
    REQUIRE(lines.size() == 3);
    CHECK(lines[2].text.find("starving") != std::string::npos);
    world.pass(needs);
    lock.release({});
    REQUIRE(get(world, request, lock).denied == Denied::no);
    CHECK(lock.soft() > needs);
}

TEST_CASE("P5 a lock that a stranger has inherited is not taken, and he gets no signal") {
    Directory dir;
    SteppedWorld world;
    LockRequest request = request_for(dir, 0, second);
    request.grace.after_kill = second / 10;
    AdaptiveLock lock;
    REQUIRE(get(world, request_for(dir), lock).denied == Denied::no);
    // The child is an innocent with a copy of the descriptor; the record names a process that is gone.
    const pid_t stranger = scratch::sleeper([] {
        ::setsid();
        return true;
    });
    REQUIRE(stranger > 0);
    const pid_t gone = ::fork();
    if (gone == 0) {
        lock.adopt();
        ::_exit(0);
    }
    ::waitpid(gone, nullptr, 0);
    lock.abandon();
    world.pass(hour);
    const Answer answer = get(world, request, lock);
    INFO(answer.text);
    CHECK(answer.denied == Denied::unkillable);
    CHECK(answer.text.find("inherited") != std::string::npos);
    CHECK(scratch::alive(stranger));
    scratch::end(stranger);
    CHECK(get(world, request, lock).denied == Denied::no);
}

TEST_CASE("P8 the first process of a pipeline does not stand for its group, a leader of a session does") {
    for (const bool session : {false, true}) {
        Directory dir;
        const pid_t pid = scratch::sleeper([&] {
            if (session) ::setsid();
            else ::setpgid(0, 0);  // as a shell does with each job
            static AdaptiveLock lock;
            return get(this_world(), request_for(dir), lock).denied == Denied::no;
        });
        REQUIRE(pid > 0);
        CHECK(record_of(dir).owner.group == (session ? pid : 0));
        CHECK(record_of(dir).owner.session == (session ? pid : 0));
        scratch::end(pid);
    }
}
