#include "store/disk_posix.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "support/about.h"
#include "support/catch.h"
#include "support/sim_disk.h"

namespace dcs::store {
namespace {

struct Directory {
    std::string path;
    Directory() {
        char name[] = "/tmp/dcs-disk-XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        path = name;
    }
    ~Directory() { (void)!::system(("rm -rf " + path).c_str()); }
    std::unique_ptr<Disk> open(bool one_call = true) const {
        auto disk = open_posix_disk(path, one_call);
        INFO((disk ? "" : disk.status().text));
        REQUIRE(disk);
        return std::move(*disk);
    }
};

int open_descriptors() {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
    return count;
}

// Runs in a child of its own, because it changes the whole process; the exit code is the result.
template <class Body> int in_child(Body body) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(body());
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

}  // namespace

TEST_CASE("the disk does what its header says") {
    const bool one_call = GENERATE(true, false);
    Directory directory;
    auto disk = directory.open(one_call);
    CHECK(*disk->make_dir("a"));
    CHECK_FALSE(*disk->make_dir("a"));
    CHECK(disk->make_dir("no/parent").status().code == Code::not_found);
    REQUIRE(disk->create("a/f", "hello"));
    CHECK(disk->create("a/f", "again").code == Code::io_error);
    CHECK(*disk->size("a/f") == 5);
    CHECK(*disk->read("a/f", 1, 3) == "ell");
    CHECK(*disk->read("a/f", 4, 100) == "o");
    CHECK(disk->read("a/f", 9, 9)->empty());
    CHECK(disk->read("a/none", 0, 1).status().code == Code::not_found);
    CHECK(disk->size("a/none").status().code == Code::not_found);
    REQUIRE(disk->truncate_append("a/f", 2, "y"));
    CHECK(*disk->read("a/f", 0, 100) == "hey");
    CHECK(disk->truncate_append("a/f", 9, "gap").code == Code::io_error);
    CHECK(disk->truncate_append("a/none", 1, "gap").code == Code::not_found);
    REQUIRE(disk->truncate_append("a/new", 0, "made"));
    REQUIRE(disk->link("a/f", "a/g"));
    CHECK(disk->link("a/f", "a/g").code == Code::io_error);
    REQUIRE(disk->rename("a/f", "a/g"));  // two names of one file: nothing happens
    CHECK(*disk->list("a") == std::vector<std::string>{"f", "g", "new"});
    REQUIRE(disk->make_dir("a/sub"));
    CHECK(*disk->list("a") == std::vector<std::string>{"f", "g", "new", "sub/"});
    CHECK(disk->list("b").status().code == Code::not_found);
    CHECK(disk->remove_dir("a").code == Code::refused);
    CHECK(disk->remove_dir("a/sub"));
    CHECK(disk->remove_dir("a/sub"));
    CHECK(disk->remove("a/f"));
    CHECK(disk->remove("a/f"));
    CHECK(disk->remove("no/parent"));
    CHECK(disk->rename("a/none", "a/x").code == Code::not_found);
    CHECK(disk->sync_file("a/g"));
    CHECK(disk->sync_dir("a"));
    CHECK(disk->sync_dir(""));
    CHECK(disk->sync_all());
    CHECK(disk->sync_file("a/none").code == Code::not_found);
    CHECK(*disk->free_bytes() > 0);
    struct stat about;
    REQUIRE(::stat((directory.path + "/a/g").c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("nothing outside the directory can be named") {
    const bool one_call = GENERATE(true, false);
    Directory directory, outside;
    REQUIRE(outside.open()->create("secret", "s"));
    auto disk = directory.open(one_call);
    REQUIRE(disk->make_dir("d"));
    REQUIRE(::symlink(outside.path.c_str(), (directory.path + "/d/link").c_str()) == 0);
    REQUIRE(::symlink((outside.path + "/secret").c_str(), (directory.path + "/d/file").c_str()) == 0);
    REQUIRE(::mkfifo((directory.path + "/d/fifo").c_str(), 0600) == 0);
    for (const std::string &bad : std::vector<std::string>{"../x", "/etc/passwd", "d/../../x", "d//x", "./x", ""}) {
        INFO(bad);
        CHECK(disk->create(bad, "x").code == Code::invalid);
        CHECK(disk->read(bad, 0, 1).status().code == Code::invalid);
        CHECK(disk->remove(bad).code == Code::invalid);
        CHECK(disk->rename("d/file", bad).code == Code::invalid);
    }
    CHECK_FALSE(disk->read("d/link/secret", 0, 1));
    CHECK_FALSE(disk->create("d/link/new", "x"));
    CHECK_FALSE(disk->remove_dir("d/link"));
    CHECK_FALSE(disk->make_dir("d/link"));
    CHECK_FALSE(disk->list("d/link"));
    CHECK_FALSE(disk->read("d/file", 0, 1));
    CHECK_FALSE(disk->truncate_append("d/file", 0, "x"));
    CHECK_FALSE(disk->size("d/file"));
    CHECK_FALSE(disk->read("d/fifo", 0, 1));  // and it does not wait for a writer
    CHECK_FALSE(disk->truncate_append("d/fifo", 0, "x"));
    CHECK(*outside.open()->read("secret", 0, 9) == "s");
}

TEST_CASE("the simulated disk behaves like the real one") {
    const bool one_call = GENERATE(true, false);
    Directory directory;
    auto real = directory.open(one_call);
    test::SimDisk sim;
    test::Random random(3);
    const std::vector<std::string> names{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "x/y"};
    const auto same = [](const Status &a, const Status &b) {
        INFO("real: " << a.text << ", simulated: " << b.text);
        CHECK(a.code == b.code);
    };
    for (int i = 0; i < 4000; ++i) {
        const std::string &p = names[random.below(names.size())], &q = names[random.below(names.size())];
        const std::string bytes(random.below(9), static_cast<char>('a' + i % 26));
        const std::uint64_t n = random.below(8);
        const std::uint64_t what = random.below(11);
        INFO(i << ": " << what << " " << p << " " << q);
        // A file in the place of a directory: the real disk is more precise about it.
        const auto hidden = [&](const std::string &path) {
            return (sim.size("d") && path.substr(0, 2) == "d/") || (sim.size("d/e") && path == "d/e/a");
        };
        if (hidden(p) || hidden(q)) continue;
        const auto is_dir = [&](const std::string &path) { return bool(sim.list(path)); };
        if (what == 0) same(real->create(p, bytes), sim.create(p, bytes));
        if (what == 1) same(real->truncate_append(p, n, bytes), sim.truncate_append(p, n, bytes));
        if (what == 2 && !is_dir(p) && !is_dir(q)) same(real->rename(p, q), sim.rename(p, q));
        if (what == 3 && !is_dir(p)) same(real->link(p, q), sim.link(p, q));
        if (what == 4) same(real->remove(p), sim.remove(p));
        if (what == 5) {
            const auto a = real->make_dir(p), b = sim.make_dir(p);
            same(a ? Status::ok() : a.status(), b ? Status::ok() : b.status());
            if (a && b) CHECK(*a == *b);
        }
        if (what == 6) same(real->remove_dir(p), sim.remove_dir(p));
        if (what == 7) {
            const auto a = real->read(p, n, 5), b = sim.read(p, n, 5);
            same(a ? Status::ok() : a.status(), b ? Status::ok() : b.status());
            if (a && b) CHECK(*a == *b);
        }
        if (what == 8) {
            const auto a = real->list(p), b = sim.list(p);
            same(a ? Status::ok() : a.status(), b ? Status::ok() : b.status());
            if (a && b) CHECK(*a == *b);
        }
        if (what == 10) same(real->rewrite(p, bytes), sim.rewrite(p, bytes));
        if (what == 9) {
            const auto a = real->size(p), b = sim.size(p);
            same(a ? Status::ok() : a.status(), b ? Status::ok() : b.status());
            if (a && b) CHECK(*a == *b);
        }
    }
}

TEST_CASE("no call leaves a descriptor open") {
    const bool one_call = GENERATE(true, false);
    Directory directory;
    auto disk = directory.open(one_call);
    (void)disk->create("warm", "up");
    const int before = open_descriptors();
    (void)disk->create("f", "x");
    (void)disk->create("f", "x");
    (void)disk->truncate_append("f", 1, "y");
    (void)disk->truncate_append("f", 9, "y");
    (void)disk->read("f", 0, 9);
    (void)disk->make_dir("d");
    (void)disk->rename("f", "d/f");
    (void)disk->link("d/f", "g");
    (void)disk->list("d");
    (void)disk->sync_file("d/f");
    (void)disk->sync_dir("d");
    (void)disk->remove("no/where");
    CHECK(open_descriptors() == before);
}

TEST_CASE("out of descriptors: the spare ones carry a call through, then it is Code::limit") {
    Directory directory;
    const int result = in_child([&] {
        auto disk = open_posix_disk(directory.path);
        if (!disk) return 1;
        if (!(*disk)->make_dir("d") || !(*disk)->create("d/f", "x")) return 2;
        // Every descriptor up to the limit is taken, the spare ones are not.
        struct rlimit few {
            64, 64
        };
        if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 3;
        int last = -1;
        for (int fd; (fd = ::open("/dev/null", O_RDONLY)) >= 0;) last = fd;
        if (!(*disk)->create("d/g", "x") || !(*disk)->sync_file("d/g") || !(*disk)->sync_dir("d")) return 4;
        while (::open("/dev/null", O_RDONLY) >= 0) {}
        auto second = open_posix_disk(directory.path);
        if (second || second.status().code != Code::limit) return 5;
        // The last spare one; a caller that opens next gets its place, and now even that is gone.
        if (!(*disk)->create("d/h", "x")) return 8;
        while (::open("/dev/null", O_RDONLY) >= 0) {}
        if ((*disk)->create("d/j", "x").code != Code::limit) return 6;
        ::close(last);
        ::close(last - 1);
        ::close(last - 2);
        return (*disk)->create("d/i", "x") ? 0 : 7;
    });
    CHECK(result == 0);
}

TEST_CASE("a really full file system") {
    const int result = in_child([] {
        if (::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return 77;
        char name[] = "/tmp/dcs-full-XXXXXX";
        if (!::mkdtemp(name)) return 1;
        (void)::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        if (::mount("dcs", name, "tmpfs", 0, "size=1m") != 0) return ::rmdir(name), 77;
        int code = 0;
        {
            auto disk = open_posix_disk(name);
            if (!disk) return 2;
            const Forest forest{
                {"t", {{{"out", Shape::pair, Action::append, ""}}}, {"status", Shape::pair, Action::replace, ""}}};
            StoreOptions options;
            options.reserve_bytes = 200'000;
            auto store = Store::open(**disk, forest, options, nullptr);
            if (!store) return 3;
            std::uint64_t length = 0;
            int refused = 0;
            for (int i = 0; i < 200; ++i) {
                const CommitResult r = (*store)->commit(
                    {TreeUpdate{"a", "t", {{"out", std::string(20'000, 'o'), length}, {"status", "s", 0}}, false}});
                if (r.answer == Answer::done) length += 20'000;
                else if (r.answer == Answer::nothing && r.status.code == Code::no_space) ++refused;
                else code = 4;
            }
            if (refused == 0 || length == 0) code = 5;
            if ((*disk)->create("fill", std::string(2 << 20, 'x')).code != Code::no_space) code = 6;
            // No room at all any more: opening recovers, and what was acknowledged is there.
            auto again = Store::open(**disk, forest, options, nullptr);
            if (!again) return 7;
            if (*(*disk)->size("a/out") != length) code = 8;
            // What is a way out of it goes on, out of the reserve, repeatedly.
            const std::vector<TreeUpdate> small{{"a", "t", {{"status", "killed", 0}}, false}};
            if ((*again)->commit(small).status.code != Code::no_space) code = 11;
            for (int i = 0; i < 100; ++i)
                if ((*again)->commit(small, Room::reserve).answer != Answer::done) code = 12;
            // Room again: it goes on by itself.
            if (!(*disk)->remove("fill")) code = 9;
            if ((*again)->commit({TreeUpdate{"a", "t", {{"status", "s", 0}}, false}}).answer != Answer::done) code = 10;
        }
        (void)::umount2(name, MNT_DETACH);
        (void)::rmdir(name);
        return code;
    });
    if (result == 77) WARN("SKIPPED: no private mounts here, the real full disk was not tried");
    else CHECK(result == 0);
}

TEST_CASE("a file system that can hold no more files refuses, and goes on when there is room") {
    const int result = in_child([] {
        if (::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return 77;
        char name[] = "/tmp/dcs-inodes-XXXXXX";
        if (!::mkdtemp(name)) return 1;
        (void)::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
        if (::mount("dcs", name, "tmpfs", 0, "size=64m,nr_inodes=400") != 0) return ::rmdir(name), 77;
        int code = 0;
        {
            auto disk = open_posix_disk(name);
            if (!disk) return 2;
            const Forest forest{{"t", {}, {"status", Shape::pair, Action::replace, ""}}};
            auto store = Store::open(**disk, forest, StoreOptions{}, nullptr);
            if (!store) return 3;
            const auto put = [&](int tree, Room room = Room::ordinary) {
                return (*store)->commit({TreeUpdate{"a" + std::to_string(tree), "t", {{"status", "s", 0}}, false}},
                                        room);
            };
            int made = 0;
            while (made < 400 && put(made).answer == Answer::done) ++made;
            if (made < 50 || made == 400 || put(made).status.code != Code::no_space) code = 4;
            if (put(made).status.text.find("inodes") == std::string::npos) code = 5;
            // Other programs take all.
            int others = 0;
            while ((*disk)->create("other" + std::to_string(others), "")) ++others;
            for (const Room room : {Room::ordinary, Room::reserve})
                if (put(0, room).status.code != Code::no_space) code = 6;
            if (*(*disk)->free_files() != 0 || (*store)->space()->free_files != 0) code = 7;
            for (int i = 0; i < others; ++i) (void)(*disk)->remove("other" + std::to_string(i));
            if (put(made).status.code != Code::no_space || put(0, Room::reserve).answer != Answer::done) code = 8;
            for (int i = 0; i < made; ++i)
                if (*(*disk)->size("a" + std::to_string(i) + "/status") == 0) code = 9;
        }
        (void)::umount2(name, MNT_DETACH);
        (void)::rmdir(name);
        return code;
    });
    if (result == 77) WARN("SKIPPED: no private mounts here, a file system without inodes was not tried");
    else CHECK(result == 0);
}

TEST_CASE("network file systems are refused, and missing directories") {
    CHECK(check_file_system(0xEF53, "/x"));
    CHECK(check_file_system(0x58465342, "/x"));
    for (const long magic : {0x6969l, 0xFE534D42l, static_cast<long>(static_cast<int>(0xFF534D42))}) {
        const Status refused = check_file_system(magic, "/x");
        CHECK(refused.code == Code::refused);
        CHECK(refused.text == about("/x network system"));
    }
    CHECK(open_posix_disk("/nonexistent/dcs").status().code == Code::not_found);
}

}  // namespace dcs::store
