// What grains leave on the host outside of their rooms.
#include "grainserver/launcher/launcher.h"

#include <grp.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "launcher_bench.h"

using namespace bench;

TEST_CASE("what a made-up uid leaves in the places of all goes when its last process has gone") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: other accounts need root");
        return;
    }
    constexpr uid_t uid = 2'000'400'017, other = 2'000'400'018;
    ScratchDir all, closed;
    REQUIRE(::chmod(all.path.c_str(), 01777) == 0);
    REQUIRE(::chmod(closed.path.c_str(), 0777) == 0);  // without the sticky bit
    // In a child of that uid: files, a wide tree with a directory closed to its owner, and what the kernel keeps.
    int segments[2];
    REQUIRE(::pipe(segments) == 0);
    const auto as = [&](uid_t who) {
        const pid_t child = ::fork();
        if (child == 0) {
            const bool in =
                ::setgroups(0, nullptr) == 0 && ::setresgid(who, who, who) == 0 && ::setresuid(who, who, who) == 0;
            const std::string tree = all.path + "/tree" + std::to_string(who);
            put_file(all.path + "/file" + std::to_string(who), "x");
            put_file(closed.path + "/file" + std::to_string(who), "x");
            const bool made = make_directories(tree + "/locked/in") && make_directories(tree + "/wide");
            for (int i = 0; i < 3000; ++i) put_file(tree + "/wide/" + std::to_string(i), "");
            ::chmod((tree + "/locked").c_str(), 0);
            const int ids[3] = {::shmget(IPC_PRIVATE, 4096, 0600), ::semget(IPC_PRIVATE, 1, 0600),
                                ::msgget(IPC_PRIVATE, 0600)};
            ::_exit(in && made && ::write(segments[1], ids, sizeof ids) == sizeof ids ? 0 : 1);
        }
        int status = 1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(status == 0);
    };
    as(uid);
    as(other);
    int ids[2][3];
    REQUIRE(::read(segments[0], ids, sizeof ids) == sizeof ids);
    starter::Leftovers places({all.path, closed.path, all.path + "/nowhere"}, {});
    launcher::Leftovers leftovers([&](uid_t of) { return places.go_on(of); });
    const Instant now = boot_clock(), later = now + seconds(2);
    const auto there = [&](const std::string &name) { return file_exists(AT_FDCWD, all.path + "/" + name); };
    const std::string own = std::to_string(uid);
    const auto clear = [&] {
        for (int i = 0; i < 200; ++i) leftovers.clear({}, std::max(later, leftovers.next()));
    };
    leftovers.note(uid, now);
    leftovers.clear({}, now);  // a next grain may follow at once
    CHECK(there("file" + own));
    leftovers.clear({uid}, later);  // one did
    clear();
    CHECK(there("file" + own));
    leftovers.note(uid, now);
    const pid_t alive = ::fork();
    if (alive == 0) {
        if (::setresuid(uid, uid, uid) == 0) ::pause();
        ::_exit(1);
    }
    REQUIRE(soon([&] {
        struct stat st {};
        return ::stat(("/proc/" + std::to_string(alive)).c_str(), &st) == 0 && st.st_uid == uid;
    }));
    leftovers.clear({}, later);
    CHECK(there("file" + own));
    ::kill(alive, SIGKILL);
    ::waitpid(alive, nullptr, 0);
    leftovers.note(uid, now);
    leftovers.clear({}, later);
    CHECK(leftovers.next() > later);  // 3000 names are more than a part, and grains of others start between parts
    CHECK(leftovers.next() != Instant::never());
    clear();
    CHECK(leftovers.next() == Instant::never());
    CHECK_FALSE(there("file" + own));
    CHECK_FALSE(there("tree" + own));
    CHECK(file_exists(AT_FDCWD, closed.path + "/file" + own));
    CHECK(there("file" + std::to_string(other)));
    CHECK(there("tree" + std::to_string(other)));
    shmid_ds shm{};
    CHECK(::shmctl(ids[0][0], IPC_STAT, &shm) != 0);
    CHECK(::semctl(ids[0][1], 0, GETVAL) < 0);
    CHECK(::msgctl(ids[0][2], IPC_STAT, nullptr) != 0);
    CHECK(::shmctl(ids[1][0], IPC_RMID, nullptr) == 0);
    CHECK(::semctl(ids[1][1], 0, IPC_RMID) == 0);
    CHECK(::msgctl(ids[1][2], IPC_RMID, nullptr) == 0);
    for (const int fd : segments) ::close(fd);
}

namespace {

// In a child of that account.
template <class Act> void under(uid_t who, Act act) {
    const pid_t child = ::fork();
    if (child == 0) {
        const bool in =
            ::setgroups(0, nullptr) == 0 && ::setresgid(who, who, who) == 0 && ::setresuid(who, who, who) == 0;
        ::_exit(in && act() ? 0 : 1);
    }
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
}

bool directory(const std::string &path, mode_t mode) {
    return ::mkdir(path.c_str(), 0700) == 0 && ::chmod(path.c_str(), mode) == 0;
}

bool file(const std::string &path) {
    put_file(path, "x");
    return file_exists(AT_FDCWD, path);
}

void clear_all(starter::Leftovers &leftovers, uid_t uid) {
    REQUIRE(soon([&] { return leftovers.go_on(uid) == starter::Leftovers::Left::nothing; }));
}

// A process of that account, until its end.
struct Alive {
    pid_t pid;
    explicit Alive(uid_t uid) : pid(::fork()) {
        if (pid == 0) {
            if (::setresuid(uid, uid, uid) == 0) ::pause();
            ::_exit(1);
        }
        REQUIRE(soon([&] {
            struct stat st {};
            return ::stat(("/proc/" + std::to_string(pid)).c_str(), &st) == 0 && st.st_uid == uid;
        }));
    }
    ~Alive() {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
};

}  // namespace

TEST_CASE("what one made-up uid leaves within another's directory goes when both have ended, and before what it may") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: other accounts need root");
        return;
    }
    constexpr uid_t one = 2'000'400'031, two = 2'000'400'032, login = 5;
    ScratchDir all, outside;
    REQUIRE(::chmod(all.path.c_str(), 01777) == 0);
    REQUIRE(::chmod(outside.path.c_str(), 0777) == 0);
    const std::string top = all.path + "/top", kept = outside.path + "/kept";
    // top (one) / mine, in (two, closed) / deep (one, closed) / end (two, shut); shared, a login's.
    under(one, [&] { return directory(top, 0777) && file(top + "/mine"); });
    under(two, [&] { return directory(top + "/in", 0777) && file(top + "/in/f") && file(kept); });
    under(one, [&] { return directory(top + "/in/deep", 0777) && file(top + "/in/deep/g"); });
    under(two, [&] {
        return directory(top + "/in/deep/end", 0700) && file(top + "/in/deep/end/h") &&
               ::symlink(outside.path.c_str(), (top + "/in/link").c_str()) == 0 &&
               ::chmod((top + "/in/deep/end").c_str(), 0) == 0 && ::chmod((top + "/in").c_str(), 0700) == 0;
    });
    under(login, [&] { return directory(all.path + "/shared", 0777) && file(all.path + "/shared/l"); });
    under(two, [&] { return file(all.path + "/shared/f"); });
    starter::Leftovers places({all.path});
    {
        const Alive runs(two);
        clear_all(places, one);
        CHECK_FALSE(file_exists(AT_FDCWD, top + "/mine"));
        for (const char *name : {"/in/f", "/in/link", "/in/deep/end"}) CHECK(file_exists(AT_FDCWD, top + name));
    }
    SECTION("the other ends after it") {
        clear_all(places, two);
        CHECK_FALSE(file_exists(AT_FDCWD, top));
    }
    SECTION("its next grain runs when the other ends") {
        under(one, [&] { return ::chmod(top.c_str(), 0700) == 0 && file(top + "/new"); });
        const Alive runs(one);
        places.runs_again(one);
        clear_all(places, two);
        CHECK(file_exists(AT_FDCWD, top + "/new"));
        CHECK_FALSE(file_exists(AT_FDCWD, top + "/in/f"));
        CHECK_FALSE(file_exists(AT_FDCWD, top + "/in/link"));
    }
    SECTION("another server has the other uid") {
        starter::Leftovers others({all.path});
        clear_all(others, two);
        CHECK_FALSE(file_exists(AT_FDCWD, top + "/in/f"));
        clear_all(places, one);
        CHECK_FALSE(file_exists(AT_FDCWD, top + "/in/deep/g"));
        clear_all(others, two);
        clear_all(places, one);
        CHECK_FALSE(file_exists(AT_FDCWD, top));
    }
    CHECK(file_exists(AT_FDCWD, kept));
    CHECK(file_exists(AT_FDCWD, all.path + "/shared/l"));
    CHECK(file_exists(AT_FDCWD, all.path + "/shared/f"));  // a login's directory is not looked through
}
