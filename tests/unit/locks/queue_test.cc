#include "locks/files/queue.h"

#include <fstream>
#include <memory>
#include <sched.h>
#include <sys/syscall.h>

#include "lock_bench.h"

using namespace dcs;
using namespace dcs::locks;
using namespace lock_bench;
using scratch::Directory;

namespace {

// A description of its own and a place in it, as another process would have.
struct Stander {
    LockFile file;
    QueuePlace place;
    explicit Stander(const Place &where, bool shared = false) {
        Result<LockFile> opened = LockFile::open(where, FileKind::atom);
        REQUIRE(opened);
        file = std::move(*opened);
        queue(shared);
    }
    void queue(bool shared = false) {
        Result<QueuePlace> got = QueuePlace::enter(file, shared);
        INFO(got.status().text);
        REQUIRE(got);
        place = std::move(*got);
    }
    bool turn(const Deadline &until = Deadline::none()) {
        Result<bool> first = place.wait_for_turn(until);
        INFO(first.status().text);
        REQUIRE(first);
        return *first;
    }
};
using Standers = std::vector<std::unique_ptr<Stander>>;

Standers stand(const Place &where, int many) {
    Standers list;
    for (int i = 0; i < many; ++i) list.push_back(std::make_unique<Stander>(where));
    return list;
}

bool queues_and_gets_it(const Place &where, bool shared, const Deadline &until) {
    Result<LockFile> file = LockFile::open(where, FileKind::atom);
    if (!file) return false;
    Result<QueuePlace> place = QueuePlace::enter(*file, shared);
    if (!place) return false;
    Result<bool> first = place->wait_for_turn(until);
    if (!first || !*first) return false;
    Result<bool> got = file->hold(shared, until);
    return got && *got;
}

pid_t process_in_queue(const Place &where) {
    return scratch::sleeper([&] {
        static LockFile file;
        static QueuePlace place;
        Result<LockFile> opened = LockFile::open(where, FileKind::atom);
        if (!opened) return false;
        file = std::move(*opened);
        Result<QueuePlace> got = QueuePlace::enter(file, false);
        if (!got) return false;
        place = std::move(*got);
        return true;
    });
}

}  // namespace

TEST_CASE("S1 S3 S4 the turn goes by arrival, whatever stamps and clocks say") {
    Directory dir;
    const Place where = place_in(dir, "q");
    Standers s = stand(where, 5);
    timespec far[2] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
    REQUIRE(::utimensat(AT_FDCWD, where.path.c_str(), far, 0) == 0);
    const std::vector<Waiter> listed = waiters(s[0]->file);  // which does not see its own
    REQUIRE(listed.size() == 4);
    for (std::size_t i = 0; i < s.size(); ++i) {
        for (std::size_t later = i + 1; later < s.size(); ++later) {
            CHECK(s[later]->place.ticket() > s[i]->place.ticket());
            CHECK_FALSE(s[later]->turn());
        }
        CHECK(s[i]->turn());
        s[i]->place.leave();
    }
}

TEST_CASE("S5 S10 any number of dead before us hold no process up") {
    Directory dir;
    const Place where = place_in(dir, "q");
    pid_t dead[3];
    for (pid_t &pid : dead) REQUIRE((pid = process_in_queue(where)) > 0);
    Stander me(where);
    CHECK_FALSE(me.turn());
    scratch::end(dead[2]);  // the one before us first
    CHECK_FALSE(me.turn());
    scratch::end(dead[0]);
    CHECK_FALSE(me.turn(in_ms(30)));
    scratch::end(dead[1]);
    CHECK(me.turn());
    CHECK(waiters(me.file).empty());
}

TEST_CASE("S10 the kill of a holder wakes the first who waits") {
    Directory dir;
    const Place where = place_in(dir, "q");
    const pid_t holder = scratch::sleeper([&] {
        static LockFile kept;
        Result<LockFile> file = LockFile::open(where, FileKind::atom);
        kept = std::move(*file);
        Result<bool> got = kept.hold(false, Deadline::never());
        return got && *got;
    });
    REQUIRE(holder > 0);
    Child first([&] { return queues_and_gets_it(where, false, Deadline::never()); });
    REQUIRE(first.sleeps());
    Stander second(where);
    CHECK_FALSE(second.turn());
    scratch::end(holder);
    CHECK(first.answer());
    CHECK(second.turn());
}

TEST_CASE("S6 a process that got the pid of a dead waiter stands in no queue") {
    Directory dir;
    const Place where = place_in(dir, "q");
    const pid_t dead = process_in_queue(where);
    REQUIRE(dead > 0);
    scratch::end(dead);
    struct {
        std::uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size;
    } arguments = {};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<std::uint64_t>(&dead);
    arguments.set_tid_size = 1;
    const long again = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (again == 0)
        for (;;) ::pause();
    if (again < 0) {
        WARN("SKIPPED: this user may not choose pids");
        return;
    }
    CHECK(again == dead);
    Stander me(where);
    CHECK(me.turn());
    CHECK(waiters(me.file).empty());
    scratch::end(dead);
}

TEST_CASE("S7 no ticket is given twice") {
    Directory dir;
    const Place where = place_in(dir, "q");
    std::int64_t last = -1;
    for (int i = 0; i < 20; ++i) {
        Stander one(where);
        CHECK(one.place.ticket() > last);
        last = one.place.ticket();
        one.queue();  // it leaves and stands last
        CHECK(one.place.ticket() > last);
        last = one.place.ticket();
    }
}

TEST_CASE("S8 S9 who waits sleeps until it is woken, once, a process that moves elsewhere") {
    Directory dir;
    const Place where = place_in(dir, "q");
    Stander first(where);
    auto middle = std::make_unique<Stander>(where);
    Child last([&] { return queues_and_gets_it(where, false, Deadline::never()); });
    REQUIRE(last.sleeps());
    ::usleep(20'000);
    const long before = switches_of(last.pid);
    for (int i = 0; i < 200; ++i) {
        Stander passer(where);
        CHECK_FALSE(passer.turn());
    }
    CHECK(state_of(last.pid) == 'S');
    CHECK(switches_of(last.pid) == before);
    middle.reset();
    first.place.leave();
    CHECK(last.answer());
}

TEST_CASE("S12 a stopped head is shown, who waits behind it may give up and come again") {
    Directory dir;
    const Place where = place_in(dir, "q");
    const pid_t head = process_in_queue(where);
    REQUIRE(head > 0);
    ::kill(head, SIGSTOP);
    REQUIRE(soon([&] { return state_of(head) == 'T'; }));
    Stander me(where), behind(where);
    CHECK_FALSE(me.turn(in_ms(30)));
    const std::vector<Waiter> listed = waiters(me.file);
    REQUIRE(listed.size() == 2);
    CHECK(listed[0].process.pid == head);
    CHECK(listed[0].state == 'T');
    CHECK(listed[0].since_wall > 1'600'000'000'000'000'000);
    CHECK(listed[1].process.pid == ::getpid());
    CHECK(listed[1].state == 'R');
    me.place.leave();
    me.queue();
    ::kill(head, SIGCONT);
    scratch::end(head);
    CHECK(behind.turn());
    CHECK_FALSE(me.turn());
    behind.place.leave();
    CHECK(me.turn());
}

TEST_CASE("S2 who is stopped while it gets its place is not overtaken") {
    Directory dir;
    const Place where = place_in(dir, "q");
    Stander slow(where);  // only for its file
    slow.place.leave();
    Result<Guard> guard = Guard::take(slow.file);
    REQUIRE(guard);
    Child other([&] { return queues_and_gets_it(where, false, Deadline::never()); });
    REQUIRE(other.sleeps());  // at the guard: between the look at the queue and the place no process comes
    CHECK(waiters(slow.file).empty());
    { const Guard dropped = std::move(*guard); }
    CHECK(other.answer());
}

TEST_CASE("readers have their turn together, and a writer between them is not overtaken") {
    Directory dir;
    const Place where = place_in(dir, "q");
    Stander one(where, true), two(where, true), writer(where), late(where, true), later(where, true);
    CHECK(one.turn());
    CHECK(two.turn());
    CHECK_FALSE(writer.turn());
    CHECK_FALSE(late.turn());
    REQUIRE(*one.file.hold(true, Deadline::none()));
    REQUIRE(*two.file.hold(true, Deadline::none()));
    one.place.leave();
    two.place.leave();
    CHECK(writer.turn());
    CHECK_FALSE(*writer.file.hold(false, Deadline::none()));  // they are inside
    CHECK_FALSE(later.turn());
    one.file.let_go();
    two.file.let_go();
    CHECK(*writer.file.hold(false, Deadline::none()));
    writer.place.leave();
    CHECK(later.turn());
    CHECK(late.turn());
    const std::vector<Waiter> listed = waiters(writer.file);
    REQUIRE(listed.size() == 2);
    CHECK(listed[0].shared);
    CHECK(listed[0].ticket == late.place.ticket());
}

TEST_CASE("a counter that is lost, behind or nonsense changes no order") {
    Directory dir;
    const Place where = place_in(dir, "q");
    Standers s = stand(where, 3);
    s[1].reset();
    for (const std::string &bytes : {std::string(64, '\0'), std::string(64, 'x')}) {
        std::fstream file(where.path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(counter_at);
        file << bytes << std::flush;
        Stander next(where);
        CHECK(next.place.ticket() > s[2]->place.ticket());
        CHECK_FALSE(next.turn());
        s.push_back(nullptr);
    }
    REQUIRE(::truncate(where.path.c_str(), 0) == 0);
    Stander after(where);  // makes the header again, or does without
    CHECK(after.place.ticket() > s[2]->place.ticket());
    s[0].reset();
    CHECK_FALSE(after.turn());
    CHECK(s[2]->turn());
    s[2].reset();
    CHECK(after.turn());
}

TEST_CASE("a queue at a file of another user orders, and writes nothing into it") {
    Directory dir;
    Place where = place_in(dir, "data");
    where.named = where.adopt = false;
    std::ofstream(where.path) << "precious";
    Stander one(where), two(where);
    CHECK(one.turn());
    CHECK_FALSE(two.turn());
    one.place.leave();
    CHECK(two.turn());
    CHECK(file_text(where.path) == "precious");
    Stander three(where);
    const std::vector<Waiter> listed = waiters(three.file);
    REQUIRE(listed.size() == 1);
    CHECK(listed[0].ticket == two.place.ticket());
    CHECK(listed[0].process.pid == 0);
}

TEST_CASE("C13 a stranger's lock on the whole file is waited for like any other") {
    Directory dir;
    const Place where = place_in(dir, "q");
    { Stander make(where); }
    const pid_t stranger = scratch::sleeper([&] {
        const int fd = ::open(where.path.c_str(), O_RDWR);
        struct flock all = {};
        all.l_type = F_WRLCK;
        return ::fcntl(fd, F_SETLK, &all) == 0;
    });
    REQUIRE(stranger > 0);
    Stander me(where);
    CHECK(me.place.ticket() == -1);
    CHECK_FALSE(me.turn());
    CHECK_FALSE(me.turn(in_ms(20)));
    CHECK(waiters(me.file).empty());
    Child other([&] { return queues_and_gets_it(where, false, Deadline::never()); });
    REQUIRE(other.sleeps());
    scratch::end(stranger);
    CHECK(other.answer());
    CHECK(me.turn());
    CHECK(me.place.ticket() >= 0);
}

TEST_CASE("more waiters than notes are listed in order, the oldest without names") {
    Directory dir;
    const Place where = place_in(dir, "q");
    Standers s = stand(where, 300);
    Stander me(where);
    const std::vector<Waiter> listed = waiters(me.file);
    REQUIRE(listed.size() == 300);
    int named = 0;
    for (std::size_t i = 0; i < listed.size(); ++i) {
        CHECK(listed[i].ticket == s[i]->place.ticket());
        named += listed[i].process.pid == ::getpid();
    }
    CHECK(named == 255);
    CHECK(listed.back().process.pid == ::getpid());
}
