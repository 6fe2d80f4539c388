#include "locks/adaptive_lock.h"

#include <fstream>
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

TEST_CASE("an atom is taken, recorded, released and logged") {
    Directory dir;
    SteppedWorld world;
    AdaptiveLock lock;
    const Answer answer = get(world, request_for(dir, minute, hour), lock);
    REQUIRE(answer.denied == Denied::no);
    CHECK(answer.text.empty());
    CHECK(answer.ruling.elapsed == -1);
    CHECK(lock.held());
    CHECK(lock.soft() == hour);
    const Record r = record_of(dir);
    CHECK(r.outcome == Outcome::running);
    CHECK(r.generation == lock.generation());
    CHECK(r.owner.process.pid == ::getpid());
    CHECK(r.owner.command == "unit_locks");
    CHECK(r.owner.host == world.host);
    CHECK(r.owner.cookie == lock.cookie());
    CHECK(r.expire_after == hour);
    CHECK(r.if_elapsed == minute);
    world.pass(5 * second);
    lock.release({Outcome::failed, {}, 7 * second, 4096, false});
    CHECK_FALSE(lock.held());
    const auto state = look_at(world, atom_in(dir));
    REQUIRE(state);
    CHECK(state->exists);
    CHECK_FALSE(state->held);
    CHECK(state->record.outcome == Outcome::failed);
    const auto lines = events(dir, "failed");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].name == "dax,test,lock");
    CHECK(lines[0].pid == ::getpid());
    CHECK(lines[0].runtime >= 5 * second);
    CHECK(lines[0].cpu == 7 * second);
    CHECK(lines[0].io == 4096);
    CHECK(lines[0].limit == hour);
    const auto file = LockFile::look(atom_in(dir));
    REQUIRE(file);
    const auto samples = read_samples(*file);
    REQUIRE(samples.size() == 1);
    CHECK(samples[0].outcome == Outcome::failed);
    CHECK(samples[0].runtime >= 5 * second);
    CHECK(samples[0].limit == hour);
}

TEST_CASE("too soon names the run before, and when to come again") {
    Directory dir;
    SteppedWorld world;
    {
        AdaptiveLock lock;
        REQUIRE(get(world, request_for(dir, minute), lock).denied == Denied::no);
    }  // the destructor releases
    world.pass(20 * second);
    AdaptiveLock lock;
    const Answer answer = get(world, request_for(dir, minute), lock);
    CHECK(answer.denied == Denied::too_soon);
    CHECK_FALSE(lock.held());
    CHECK(answer.ruling.elapsed >= 20 * second);
    CHECK(answer.holder.process.pid == ::getpid());
    CHECK(answer.text.find(std::to_string(::getpid())) != std::string::npos);
    CHECK(answer.text.find('\n') == std::string::npos);
    const auto file = LockFile::look(atom_in(dir));
    REQUIRE(file);
    const auto denials = read_denials(*file);
    REQUIRE(denials.size() == 1);
    CHECK(denials[0].too_soon);
    CHECK(denials[0].pid == ::getpid());
    CHECK(events(dir, "too-soon").size() == 1);
    world.pass(minute);
    CHECK(get(world, request_for(dir, minute), lock).denied == Denied::no);
}

TEST_CASE("busy is told before too soon, and names the holder") {
    Directory dir;
    AdaptiveLock mine, other;
    REQUIRE(get(this_world(), request_for(dir, hour), mine).denied == Denied::no);
    const Answer answer = get(this_world(), request_for(dir, hour), other);
    CHECK(answer.denied == Denied::busy);
    CHECK(answer.holder.process.pid == ::getpid());
    CHECK(answer.text.find("process " + std::to_string(::getpid()) + " (unit_locks)") != std::string::npos);
    const auto state = look_at(this_world(), atom_in(dir));
    REQUIRE(state);
    CHECK(state->held);
    CHECK_FALSE(state->shared);
    CHECK(events(dir, "busy").size() == 1);
}

TEST_CASE("tokens grow with every grant") {
    Directory dir;
    std::uint64_t last = 0;
    for (int i = 0; i < 5; ++i) {
        AdaptiveLock lock;
        REQUIRE(get(this_world(), request_for(dir), lock).denied == Denied::no);
        CHECK(lock.generation() > last);
        last = lock.generation();
    }
}

TEST_CASE("a crashed holder is noticed by the next, and stamped with its start") {
    Directory dir;
    SteppedWorld world;
    const pid_t pid = scratch::holder(world, request_for(dir, minute));
    REQUIRE(pid > 0);
    scratch::end(pid);
    world.pass(30 * second);
    AdaptiveLock lock;
    const Answer denied = get(world, request_for(dir, minute), lock);
    CHECK(denied.denied == Denied::too_soon);  // what crashes at once is not repeated for ever
    CHECK(denied.after_crash);
    CHECK(record_of(dir).outcome == Outcome::crashed);
    world.pass(30 * second);
    const Answer answer = get(world, request_for(dir, minute), lock);
    CHECK(answer.denied == Denied::no);
    const auto lines = events(dir, "crashed");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].pid == pid);
    CHECK(record_of(dir).crashes == 1);
}

TEST_CASE("an atom whose holders expire again and again is given up") {
    Directory dir;
    SteppedWorld world;
    LockRequest request = request_for(dir, 0, minute);
    request.max_kills = 2;
    for (int i = 0; i < 2; ++i) {
        const pid_t pid = scratch::holder(world, request);
        REQUIRE(pid > 0);
        world.pass(2 * minute);
        AdaptiveLock lock;
        REQUIRE(get(world, request, lock).took_over);
        ::waitpid(pid, nullptr, 0);
        lock.abandon();  // and dies without a word
    }
    const pid_t pid = scratch::holder(world, request);
    REQUIRE(pid > 0);
    world.pass(2 * minute);
    AdaptiveLock lock;
    CHECK(get(world, request, lock).denied == Denied::giving_up);
    CHECK(scratch::alive(pid));
    world.pass(hour);
    CHECK(get(world, request, lock).took_over);  // once an hour it is tried again
    ::waitpid(pid, nullptr, 0);
}

TEST_CASE("holders that share a lock exclude only those who do not, and are no runs of the atom") {
    Directory dir;
    LockRequest shared = request_for(dir);
    shared.shared = true;
    AdaptiveLock a, b, c;
    REQUIRE(get(this_world(), shared, a).denied == Denied::no);
    REQUIRE(get(this_world(), shared, b).denied == Denied::no);
    const auto state = look_at(this_world(), atom_in(dir));
    REQUIRE(state);
    CHECK(state->held);
    CHECK(state->shared);
    const Answer answer = get(this_world(), request_for(dir, 0, 1), c);
    CHECK(answer.denied == Denied::busy);
    CHECK(answer.text.find("share") != std::string::npos);
    a.release({});
    b.release({});
    CHECK(record_of(dir).outcome == Outcome::none);
    REQUIRE(get(this_world(), request_for(dir, hour), c).denied == Denied::no);
    CHECK(get(this_world(), shared, a).denied == Denied::busy);
}

TEST_CASE("a file of another user is locked and left as it is") {
    Directory dir;
    std::ofstream(dir / "theirs") << "precious\n";
    LockRequest request = request_for(dir);
    request.place.path = dir / "theirs";
    request.place.named = request.place.adopt = false;
    AdaptiveLock lock, other;
    REQUIRE(get(this_world(), request, lock).denied == Denied::no);
    CHECK(get(this_world(), request, other).denied == Denied::busy);
    lock.release({});
    std::string text;
    std::getline(std::ifstream(dir / "theirs"), text, '\0');
    CHECK(text == "precious\n");
    request.if_elapsed = minute;
    CHECK(get(this_world(), request, lock).denied == Denied::failed);
}

TEST_CASE("looking makes nothing") {
    Directory dir;
    const auto state = look_at(this_world(), atom_in(dir));
    REQUIRE(state);
    CHECK_FALSE(state->exists);
    CHECK(::access((dir / "lock.lock").c_str(), F_OK) != 0);
}

TEST_CASE("two days of an hourly job with the recommended 15 and 90 minutes") {
    Directory dir;
    SteppedWorld world;
    const LockRequest request = request_for(dir, 15 * minute, 90 * minute);
    AdaptiveLock lock;
    int done = 0, too_soon = 0, by_hand = 0, busy = 0, taken_over = 0;
    pid_t hung = -1;
    for (int hour_of_test = 0; hour_of_test < 48; ++hour_of_test) {
        const std::int64_t jitter = (hour_of_test % 3 - 1) * 20 * second;  // cron is not exact
        world.pass(jitter);
        if (hour_of_test == 20) {  // this one hangs
            hung = scratch::holder(world, request);
            REQUIRE(hung > 0);
            world.pass(hour - jitter);
            continue;
        }
        const Answer answer = AdaptiveLock::get(world, request, lock);
        if (answer.denied == Denied::busy) {
            ++busy;
            world.pass(hour - jitter);
            continue;
        }
        REQUIRE(answer.denied == Denied::no);
        if (answer.took_over) ++taken_over;
        world.pass(10 * minute);
        lock.release({});
        ++done;
        world.pass(14 * minute);  // a process tries it by hand, too early and again in time
        if (AdaptiveLock::get(world, request, lock).denied == Denied::too_soon) ++too_soon;
        world.pass(2 * minute);
        if (hour_of_test % 5 == 0 && AdaptiveLock::get(world, request, lock).denied == Denied::no) {
            ++by_hand;
            lock.release({});
        }
        world.pass(34 * minute - jitter);
    }
    CHECK(busy == 1);        // the hour after it hung: 60 minutes are less than 90
    CHECK(taken_over == 1);  // the hour after that
    CHECK(done == 46);
    CHECK(too_soon == 46);
    CHECK(by_hand == 9);
    CHECK_FALSE(scratch::alive(hung));
    CHECK(events(dir, "expired").size() == 1);
    CHECK(events(dir, "done").size() == 55);
}
