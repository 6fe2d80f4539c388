// Directories of grains that have ended and go to other grains, and the records in them.
#include <utility>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "launcher_bench.h"
#include "grainserver/shell/grain_files.h"

using namespace bench;
using namespace dcs::server;

namespace {
struct Rooms {
    ScratchDir dir;
    GrainFiles grains;

    Rooms() { REQUIRE(grains.open(dir.path, "local1", "boot")); }
    static GrainId id(int n) { return {{{"ann", 3}, n}, 1}; }
    std::string path(int n) { return dir.path + "/grains/" + grains.name_of(id(n)); }
    std::string room(int n) { return path(n) + "/room"; }
    void prepare(int n, const std::string &input = "") {
        wire::Launch launch;
        launch.key = wire::wire_of(id(n).key);
        launch.argv = {"/bin/true", std::to_string(n)};
        launch.input = input;
        REQUIRE(grains.prepare(id(n), launch, 1));
    }
    // As launcher and grain leave it.
    void run(int n) {
        ::mkdir((room(n) + "/work").c_str(), 0700);
        for (const char *name : {"/out.1", "/err.1"}) put_file(room(n) + name, "text", 0600);
        put_file(path(n) + "/pid", "99999999 1 boot\n", 0600);
        files::ExitRecord exit;
        exit.known = true;
        exit.status = n << 8;
        put_file(path(n) + "/exit", files::pack(exit), 0600);
        grains.note_alone(id(n));
    }
    void clear() {
        while (grains.removes()) REQUIRE(grains.remove_some());
    }
    std::vector<std::string> names() {
        const Result<Fd> fd = open_directory(AT_FDCWD, dir.path + "/grains");
        return *list_directory(fd->get());
    }
    ino_t inode(const std::string &path) {
        struct stat st {};
        REQUIRE(::stat(path.c_str(), &st) == 0);
        return st.st_ino;
    }
};
}  // namespace

TEST_CASE("the directory of a small grain goes to the next, without its records") {
    Rooms r;
    r.prepare(1);
    r.run(1);
    const ino_t room = r.inode(r.room(1));
    REQUIRE(r.grains.exit_of(Rooms::id(1))->code == 1);
    REQUIRE(r.grains.remove(Rooms::id(1)));
    REQUIRE(r.names() == std::vector<std::string>{"spare-1"});
    REQUIRE_FALSE(r.grains.removes());
    r.prepare(2);
    REQUIRE(r.names() == std::vector<std::string>{r.grains.name_of(Rooms::id(2))});
    REQUIRE(r.inode(r.room(2)) == room);
    REQUIRE_FALSE(r.grains.exit_of(Rooms::id(2)));
    const std::vector<Adopted> found = r.grains.adopt();
    REQUIRE(found.size() == 1);
    REQUIRE(found[0].id == Rooms::id(2));
    REQUIRE_FALSE(found[0].started);
    const Result<files::LaunchRecord> launch = files::unpack_launch(get_file(r.path(2) + "/launch"));
    REQUIRE(launch);
    REQUIRE(launch->argv == std::vector<std::string>{"true", "2"});
    r.prepare(3);  // there is no other
    REQUIRE(r.inode(r.room(3)) != room);
}

TEST_CASE("a directory in which something else was or is goes to no grain") {
    const auto spare_after = [](const std::function<void(Rooms &)> &change, const std::string &input = "") {
        Rooms r;
        r.prepare(1, input);
        r.run(1);
        change(r);
        REQUIRE(r.grains.remove(Rooms::id(1)));
        r.clear();
        return !r.names().empty();
    };
    REQUIRE(spare_after([](Rooms &) {}));
    REQUIRE_FALSE(spare_after([](Rooms &) {}, "text"));
    REQUIRE_FALSE(spare_after([](Rooms &r) { put_file(r.room(1) + "/announce", ""); }));
    REQUIRE_FALSE(spare_after([](Rooms &r) { put_file(r.room(1) + "/work/left", ""); }));
    REQUIRE_FALSE(spare_after([](Rooms &r) { put_file(r.room(1) + "/input", "text"); }));
    REQUIRE(spare_after([](Rooms &r) { put_file(r.room(1) + "/out.1", std::string(50'000, 'x')); }));
    REQUIRE_FALSE(spare_after([](Rooms &r) { put_file(r.room(1) + "/out.1", std::string(70'000, 'x')); }));
    REQUIRE_FALSE(spare_after([](Rooms &r) {
        const std::string err = r.room(1) + "/err.1";
        REQUIRE((::unlink(err.c_str()) == 0 && ::mkdir(err.c_str(), 0700) == 0));
    }));
    REQUIRE_FALSE(spare_after([](Rooms &r) {  // 0 bytes, but not 0 blocks
        const Fd input(::open((r.room(1) + "/input").c_str(), O_WRONLY | O_CLOEXEC));
        if (::fallocate(input.get(), FALLOC_FL_KEEP_SIZE, 0, 1 << 20) != 0)
            put_file(r.room(1) + "/input", "no such call here");
    }));
    REQUIRE_FALSE(spare_after([](Rooms &r) { ::chmod((r.room(1) + "/work").c_str(), 0777); }));
    REQUIRE_FALSE(spare_after([](Rooms &r) { ::chmod(r.room(1).c_str(), 0500); }));
    REQUIRE_FALSE(spare_after([](Rooms &r) { REQUIRE(r.grains.write_ending({Rooms::id(1), Ending::asked, "busy"})); }));
    REQUIRE_FALSE(spare_after([](Rooms &r) { REQUIRE(r.grains.write_acked(Rooms::id(1), 1)); }));
    Rooms r;
    r.prepare(1);
    r.prepare(2);
    r.run(2);
    REQUIRE(r.grains.remove(Rooms::id(1)));  // whose processes may not all have ended
    REQUIRE(r.grains.remove(Rooms::id(2)));
    const auto tidy = [&](int calls) {
        for (int i = 0; i < calls; ++i) r.grains.tidy_spares();
        r.clear();
    };
    tidy(9);
    REQUIRE(r.names() == std::vector<std::string>{"spare-1"});
    r.prepare(3);
    r.run(3);
    REQUIRE(r.grains.remove(Rooms::id(3)));  // it had the spare one, which is needed then
    tidy(9);
    REQUIRE(r.names() == std::vector<std::string>{"spare-2"});
    tidy(1);
    REQUIRE(r.names().empty());
    r.prepare(4);
    r.run(4);
    REQUIRE(r.grains.remove(Rooms::id(4)));
    r.grains.drop_spares();
    r.clear();
    REQUIRE(r.names().empty());
}

TEST_CASE("a directory whose removal fails is out of the way, and is removed later") {
    Rooms r;
    r.prepare(1);
    struct Mount {
        std::string path;
        bool there = false;
        explicit Mount(const std::string &at) : path(at), there(::mount("none", at.c_str(), "tmpfs", 0, "") == 0) {}
        void remove() {
            if (std::exchange(there, false)) REQUIRE(::umount(path.c_str()) == 0);
        }
        ~Mount() {
            if (there) ::umount2(path.c_str(), MNT_DETACH);
        }
    };
    REQUIRE(make_directories(r.room(1) + "/busy"));
    Mount mount(r.room(1) + "/busy");  // which no rights remove
    if (!mount.there) {
        WARN("SKIPPED: a mount needs root");
        return;
    }
    REQUIRE(r.grains.remove(Rooms::id(1)));
    r.prepare(1);
    const std::string grain = r.grains.name_of(Rooms::id(1));
    mount.path = r.dir.path + "/grains/removed-1/room/busy";
    for (int i = 0; i < 3; ++i) {
        REQUIRE(r.grains.removes());
        CHECK_FALSE(r.grains.remove_some());
        CHECK_FALSE(r.grains.removes());  // each try waits for the next time that everything is looked through
        CHECK(r.names() == std::vector<std::string>{grain, "removed-1"});
        if (i == 2) mount.remove();
        r.grains.tidy_spares();
    }
    r.clear();
    CHECK(r.names() == std::vector{grain});
}

TEST_CASE("spare directories of an earlier server are removed, an older launcher finds no empty records") {
    Rooms r;
    r.prepare(1);
    r.run(1);
    REQUIRE(r.grains.remove(Rooms::id(1)));
    r.prepare(2);
    REQUIRE(file_exists(AT_FDCWD, r.path(2) + "/pid"));
    r.grains.make_plain(Rooms::id(2));
    REQUIRE_FALSE(file_exists(AT_FDCWD, r.path(2) + "/pid"));
    REQUIRE_FALSE(file_exists(AT_FDCWD, r.path(2) + "/exit"));
    r.run(2);
    REQUIRE(r.grains.remove(Rooms::id(2)));
    GrainFiles next;
    REQUIRE(next.open(r.dir.path, "local1", "boot"));
    REQUIRE(next.adopt().empty());
    while (next.removes()) REQUIRE(next.remove_some());
    REQUIRE(r.names().empty());
}

TEST_CASE("a grain in a room that another had sees nothing of it") {
    Place p;
    const std::string g = p.shell("ls -A; ls ..; echo more");
    put_file(p.path(g) + "/pid", "", 0600);
    put_file(p.path(g) + "/exit", "", 0600);
    put_file(p.room(g) + "/out.3", "of the other\n", 0600);
    REQUIRE(::link((p.path(g) + "/launch").c_str(), (p.room(g) + "/err.3").c_str()) == 0);
    const ino_t out = Rooms().inode(p.room(g) + "/out.3");
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(p.exit_of(g).status == 0);
    REQUIRE(get_file(p.room(g) + "/out.3") == "err.3\ninput\nout.3\nwork\nmore\n");
    REQUIRE(Rooms().inode(p.room(g) + "/out.3") == out);
    REQUIRE(get_file(p.room(g) + "/err.3").empty());  // another file
    REQUIRE(files::unpack_launch(get_file(p.path(g) + "/launch")));
}
