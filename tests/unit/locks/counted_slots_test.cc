#include "locks/counted_slots.h"

#include <csignal>
#include <fstream>
#include <sys/resource.h>

#include "locks/lock_search.h"
#include "locks/queue.h"
#include "locks/world.h"
#include "lock_bench.h"

using namespace dcs;
using namespace dcs::locks;
using namespace lock_bench;
using scratch::Directory;

namespace {

Result<Slots> ask(const Place &place, int limit, const Deadline &until = Deadline::none(), const std::string &note = "") {
    return Slots::take(this_world(), {{place, limit}}, until, note);
}

Slots take(const Place &place, int limit, const std::string &note = "") {
    Result<Slots> got = ask(place, limit, Deadline::none(), note);
    INFO(got.status().text);
    REQUIRE(got);
    return std::move(*got);
}

bool full(const Place &place, int limit) {
    const Result<Slots> got = ask(place, limit);
    if (!got) CHECK(got.status().code == Code::limit);
    return !got;
}

std::vector<int> held_numbers(const Place &place) {
    const Result<std::vector<SlotHolder>> holders = slot_holders(place);
    REQUIRE(holders);
    std::vector<int> numbers;
    for (const SlotHolder &h : *holders)
        if (h.held) numbers.push_back(h.number);
    return numbers;
}

// A process that has a slot and sleeps; `before` runs with the slot.
template <class Before> pid_t holder(const Place &place, int limit, Before before) {
    return scratch::sleeper([&] {
        static Slots kept;
        Result<Slots> got = ask(place, limit, Deadline::none(), "holder");
        if (!got) return false;
        kept = std::move(*got);
        return before(kept);
    });
}
pid_t holder(const Place &place, int limit) {
    return holder(place, limit, [](Slots &) { return true; });
}

bool waits_for_it(const Place &place, int limit) {
    const Result<Slots> got = ask(place, limit, Deadline::never());
    return bool(got);
}

}  // namespace

TEST_CASE("slots are the lowest free ones, listed with pid and note, and freed by release and by death") {
    Directory dir;
    const Place place = place_in(dir, "s");
    CHECK(slot_holders(place).status().code == Code::not_found);
    Slots a = take(place, 2, "first"), b = take(place, 2, "second");
    CHECK(a.numbers() == std::vector<int>{0});
    CHECK(b.numbers() == std::vector<int>{1});
    const Result<Slots> none = ask(place, 2);
    REQUIRE_FALSE(none);
    CHECK(none.status().code == Code::limit);
    CHECK(none.status().text.find(std::to_string(::getpid())) != std::string::npos);
    a.release();
    CHECK_FALSE(a.held());
    const Result<std::vector<SlotHolder>> listed = slot_holders(place);
    REQUIRE(listed);
    REQUIRE(listed->size() == 2);
    CHECK_FALSE((*listed)[0].held);
    CHECK((*listed)[0].note == "first");
    CHECK((*listed)[1].held);
    CHECK((*listed)[1].note == "second");
    CHECK((*listed)[1].owner.process == own_identity());
    CHECK((*listed)[1].owner.host == this_world().host);
    const pid_t other = holder(place, 2);
    REQUIRE(other > 0);
    CHECK(full(place, 2));
    scratch::end(other);
    CHECK(take(place, 2).numbers() == std::vector<int>{0});
}

TEST_CASE("E2 E13 a limit that is lowered counts all who live, also above it") {
    Directory dir;
    const Place place = place_in(dir, "s");
    std::vector<Slots> s;
    for (int i = 0; i < 4; ++i) s.push_back(take(place, 4));
    s[0].release();
    s[1].release();
    CHECK(full(place, 2));
    REQUIRE(::truncate(place.path.c_str(), 0) == 0);
    CHECK(full(place, 2));
    s[3].release();
    const Slots e = take(place, 2);
    CHECK(e.numbers() == std::vector<int>{0});
    CHECK(full(place, 2));
    CHECK(take(place, 3).numbers() == std::vector<int>{1});  // raised again
    CHECK(full(place, 0));
}

TEST_CASE("E1 E3 E9 damaged hints are made anew from the locks, and nothing is granted before") {
    Directory dir;
    const Place place = place_in(dir, "s");
    constexpr std::int64_t hints_at = slots_at + 64 * 256;
    std::vector<Slots> s;
    for (int i = 0; i < 4; ++i) s.push_back(take(place, 6));
    const std::string whole = file_text(place.path).substr(hints_at, 80);
    CHECK(whole.substr(64, 4) == "1111");
    CHECK(whole.substr(0, 8) == std::string("\1\0\0\0\4\0\0\0", 8));  // the same on every machine
    const std::string zeros(80, '\0'), noise(80, 'z'), most = std::string("\1\0\0\0\377\377\377\177", 8) + zeros;
    for (const std::string &bytes : {zeros, noise, most, std::string(64, '\0') + "0000"}) {
        std::fstream file(place.path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(hints_at);
        file << bytes << std::flush;
        CHECK(held_numbers(place) == std::vector<int>{0, 1, 2, 3});
        CHECK(file_text(place.path).substr(hints_at, 8) == bytes.substr(0, 8));  // who looks writes nothing
        CHECK(full(place, 4));
        CHECK(file_text(place.path).substr(hints_at, 68) == whole.substr(0, 68));
    }
    for (const std::int64_t size : {std::int64_t{0}, slots_at, hints_at, hints_at + 66}) {
        REQUIRE(::truncate(place.path.c_str(), size) == 0);
        CHECK(full(place, 4));
        std::vector<Slots> more;
        for (int i = 0; i < 2; ++i) more.push_back(take(place, 6));
        CHECK(full(place, 6));
    }
    s[2].release();
    CHECK(take(place, 4).numbers() == std::vector<int>{2});
}

TEST_CASE("E4 a limit that is no number of slots is refused") {
    Directory dir;
    const Place place = place_in(dir, "s");
    CHECK(ask(place, -1).status().code == Code::invalid);
    CHECK(ask(place, slots_max + 1).status().code == Code::invalid);
    CHECK(ask(place, 0, Deadline::never()).status().code == Code::limit);
    CHECK(Slots::take(this_world(), {}, Deadline::none(), "").status().code == Code::invalid);
    CHECK(::access(place.path.c_str(), F_OK) != 0);
    CHECK(take(place, slots_max).held());
}

TEST_CASE("E5 C1 C2 a slot lives with whoever inherited it, and the living one is listed") {
    Directory dir;
    const Place place = place_in(dir, "s");
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t taker = holder(place, 1, [&](Slots &) {
        const pid_t heir = ::fork();
        if (heir == 0) {
            ::setsid();
            for (;;) ::pause();
        }
        return ::write(ends[1], &heir, sizeof heir) == sizeof heir;
    });
    REQUIRE(taker > 0);
    pid_t heir = 0;
    REQUIRE(::read(ends[0], &heir, sizeof heir) == sizeof heir);
    ::close(ends[0]);
    ::close(ends[1]);
    CHECK((*slot_holders(place))[0].owner.process.pid == taker);
    Child waiter([&] { return waits_for_it(place, 1); });
    scratch::end(taker);
    CHECK(full(place, 1));
    CHECK(soon([&] { return (*slot_holders(place))[0].owner.process.pid == heir; }));
    ::usleep(20'000);
    CHECK_FALSE(waiter.ended());
    ::kill(heir, SIGKILL);
    CHECK(waiter.answer());
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

TEST_CASE("E7 C2 opening and closing the file, and forked copies that end, take nothing away") {
    Directory dir;
    const Place place = place_in(dir, "s");
    const Slots mine = take(place, 1);
    ::close(::open(place.path.c_str(), O_RDWR));
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    CHECK(full(place, 1));
}

TEST_CASE("E8 P28 a planted link or FIFO is refused and nothing is made") {
    Directory dir;
    const Place place = place_in(dir, "s");
    REQUIRE(::symlink((dir / "victim").c_str(), place.path.c_str()) == 0);
    CHECK(ask(place, 1).status().code == Code::invalid);
    CHECK(::access((dir / "victim").c_str(), F_OK) != 0);
    ::unlink(place.path.c_str());
    REQUIRE(::mkfifo(place.path.c_str(), 0600) == 0);
    CHECK(ask(place, 1).status().code == Code::invalid);
    ::unlink(place.path.c_str());
    const Slots mine = take(place, 1);
    struct stat st = {};
    REQUIRE(::stat(place.path.c_str(), &st) == 0);
    CHECK((st.st_mode & 07777) == 0600);
    std::ofstream(place.path + ".bell") << "no FIFO";  // who waits says so instead of waiting for ever
    CHECK(ask(place, 1, in_ms(2000)).status().code == Code::io_error);
    CHECK(file_text(place.path + ".bell") == "no FIFO");
}

TEST_CASE("E10 who lists makes nothing and waits for nobody, also not for a stopped taker") {
    Directory dir;
    const Place place = place_in(dir, "s");
    const Slots mine = take(place, 2);
    Result<LockFile> file = LockFile::open(place, FileKind::slots);
    REQUIRE(file);
    Result<Guard> guard = Guard::take(*file);
    REQUIRE(guard);
    CHECK(held_numbers(place) == std::vector<int>{0});
    CHECK(slot_holders(place_in(dir, "none")).status().code == Code::not_found);
    CHECK(::access((dir / "none").c_str(), F_OK) != 0);
}

TEST_CASE("E12 a holder's pid comes from its record, and who took over the work is named") {
    Directory dir;
    const Place place = place_in(dir, "s");
    Slots mine = take(place, 1, "note");
    const pid_t worker = scratch::sleeper([] { return true; });
    Owner owner;
    owner.process = *identify(worker);
    owner.supervisor = own_identity();
    owner.command = "worker";
    mine.set_owner(this_world(), owner);
    const std::vector<SlotHolder> listed = *slot_holders(place);
    REQUIRE(listed.size() == 1);
    CHECK(listed[0].owner.process.pid == worker);
    CHECK(listed[0].owner.supervisor == own_identity());
    CHECK(listed[0].owner.command == "worker");
    CHECK(listed[0].note == "note");
    CHECK(listed[0].since_wall > 1'600'000'000'000'000'000);
    scratch::end(worker);
    CHECK((*slot_holders(place))[0].owner.process.pid == ::getpid());  // who has it
}

TEST_CASE("E14 several limits are all taken or none, in whatever order they are named") {
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
    CHECK(refused.status().text.find("others wait") != std::string::npos);
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

TEST_CASE("C11 a release when the one who waited has just gone harms nobody") {
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

TEST_CASE("C6 P27 a file that was replaced guards nothing, and nothing is unlinked by us") {
    Directory dir;
    const Place place = place_in(dir, "s");
    Slots old = take(place, 1);
    REQUIRE(::unlink(place.path.c_str()) == 0);
    const Slots mine = take(place, 1);
    struct stat before = {}, after = {};
    REQUIRE(::stat(place.path.c_str(), &before) == 0);
    old.release();
    CHECK(full(place, 1));
    REQUIRE(::stat(place.path.c_str(), &after) == 0);
    CHECK(before.st_ino == after.st_ino);
}

TEST_CASE("C7 two slots of one process are two") {
    Directory dir;
    const Place place = place_in(dir, "s");
    const Slots a = take(place, 2), b = take(place, 2);
    CHECK(a.numbers() != b.numbers());
    CHECK(full(place, 2));
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

TEST_CASE("slots can be counted by somebody else's file, which stays as it is") {
    Directory dir;
    Place place = place_in(dir, "data");
    place.named = place.adopt = false;
    std::ofstream(place.path) << "precious";
    Slots a = take(place, 2), b = take(place, 2);
    CHECK(full(place, 2));
    CHECK(held_numbers(place) == std::vector<int>{0, 1});
    CHECK((*slot_holders(place))[0].owner.process.pid == ::getpid());
    Child waiter([&] { return waits_for_it(place, 2); });
    REQUIRE(waiter.sleeps());
    b.release();
    CHECK(waiter.answer());
    CHECK(file_text(place.path) == "precious");
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
        std::printf("%d live: taking and releasing one %.1f us, being refused %.0f us; open, lock, close %.1f us\n", live,
                    each, refused, plain);
    }
}
