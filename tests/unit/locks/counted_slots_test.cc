#include "locks/counted_slots.h"

#include <fstream>

#include "slot_bench.h"

using namespace lock_bench;
using scratch::Directory;

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

TEST_CASE("E1 E3 E9 damaged hints are made again from the locks, and nothing is granted before") {
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

TEST_CASE("E5 C1 C2 a slot lives with a process that inherited it, and the living one is listed") {
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

TEST_CASE("E10 who lists makes nothing and waits for no process, also not for a stopped taker") {
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

TEST_CASE("slots can be counted by a file of another user, which stays as it is") {
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
