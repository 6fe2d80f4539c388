#include "locks/dcs_atoms.h"

#include <fcntl.h>
#include <set>
#include <sys/stat.h>

#include "locks/files/lock_search.h"
#include "scratch.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::locks;

TEST_CASE("Every atom of DCS has one row, a name of its own, and says how it is kept") {
    std::set<std::string> names;
    std::set<DcsAtom> atoms;
    for (const DcsAtomRow &row : dcs_atoms()) {
        INFO(row.name);
        CHECK(names.insert(row.name).second);
        CHECK(atoms.insert(row.atom).second);
        CHECK(&dcs_atom(row.atom) == &row);
        for (const char *text : {row.alone, row.operand, row.limits, row.why}) CHECK(text[0] != 0);
        CHECK((row.file[0] == 0) == (row.kept_by == KeptBy::process));
        CHECK((row.within == row.atom) == (row.kept_by != KeptBy::process));
        if (row.kept_by == KeptBy::process) CHECK(dcs_atom(row.within).kept_by == KeptBy::lock);
    }
}

TEST_CASE("An atom of DCS cannot be taken twice, and its record names the holder") {
    const scratch::Directory dir;
    for (const DcsAtomRow &row : dcs_atoms()) {
        if (row.kept_by != KeptBy::lock) continue;
        INFO(row.name);
        const std::string path = dir / row.name;
        CHECK(holder_of(path) == 0);
        CHECK(::access(path.c_str(), F_OK) != 0);  // looking makes nothing
        const pid_t holder = scratch::sleeper([&] {
            static Result<AdaptiveLock> held = take_dcs_atom(row.atom, path);
            return static_cast<bool>(held);
        });
        REQUIRE(holder > 0);
        CHECK(holder_of(path) == holder);
        for (const std::int64_t patience : {0, 20'000'000}) {
            const auto second = take_dcs_atom(row.atom, path, patience);
            REQUIRE_FALSE(second);
            CHECK(second.status().code == Code::refused);
            CHECK(second.status().text.find("locked by process " + std::to_string(holder)) != std::string::npos);
        }
        scratch::end(holder);
        CHECK(holder_of(path) == 0);
        const auto after = take_dcs_atom(row.atom, path);
        REQUIRE(after);
        CHECK(still_alone(*after));
        CHECK(holder_of(path) == ::getpid());
    }
}

TEST_CASE("A lock file that was removed or replaced does not guard its name any more") {
    const scratch::Directory dir;
    const auto held = take_dcs_atom(DcsAtom::store, dir / "lock");
    REQUIRE(held);
    LockFile kept;  // of one that asks often
    const auto again = [&] {
        CHECK(still_alone(*held, kept) == still_alone(*held));
        return still_alone(*held, kept);
    };
    CHECK(again());
    CHECK(kept.is_open());
    ::rename((dir / "lock").c_str(), (dir / "away").c_str());
    CHECK_FALSE(again());
    const auto other = take_dcs_atom(DcsAtom::store, dir / "lock");
    REQUIRE(other);
    CHECK_FALSE(again());
    CHECK(still_alone(*other));
    CHECK(still_alone(*other, kept));  // which was another file
    ::rename((dir / "away").c_str(), (dir / "lock").c_str());
    CHECK(again());
    CHECK_FALSE(still_alone(AdaptiveLock()));
}

TEST_CASE("A lock is removed when its directory is, or when another has its name") {
    const scratch::Directory dir;
    const std::string below = dir / "daemon", path = below + "/lock";
    ::mkdir(below.c_str(), 0700);
    const auto held = take_dcs_atom(DcsAtom::store, path);
    REQUIRE(held);
    CHECK_FALSE(was_removed(*held));
    ::rename(below.c_str(), (dir / "away").c_str());  // not deleted
    CHECK_FALSE(was_removed(*held));
    ::rename((dir / "away").c_str(), below.c_str());
    ::unlink(path.c_str());  // by a cleaner of old files, say
    CHECK_FALSE(was_removed(*held));
    ::rmdir(below.c_str());
    CHECK(was_removed(*held));
    ::mkdir(below.c_str(), 0700);
    CHECK_FALSE(was_removed(*held));
    REQUIRE(take_dcs_atom(DcsAtom::store, path));
    CHECK(was_removed(*held));
    CHECK_FALSE(was_removed(AdaptiveLock()));
}

TEST_CASE("A lock file of an earlier release is a lock, and names no process") {
    const scratch::Directory dir;
    const std::string path = dir / "lock";
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    REQUIRE(::write(fd, "1 scheduler scheduler\n", 22) == 22);
    ::close(fd);
    const auto held = take_dcs_atom(DcsAtom::scheduler, path);
    REQUIRE(held);
    CHECK(is_held(path));
    CHECK(still_alone(*held));
    CHECK(holder_of(path) == 0);
    const auto second = take_dcs_atom(DcsAtom::scheduler, path);
    REQUIRE_FALSE(second);
    CHECK(second.status().code == Code::refused);
}
