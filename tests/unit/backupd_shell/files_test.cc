// What lies beside the backup's store (whose certificates count, to which epoch its copy was promoted), and the
// promotion of the copy: what is reported when a file is damaged, or the host refuses something on the way.
#include "support/about.h"
#include "support/refuse.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include <sys/stat.h>

#include "backupd/shell/members_file.h"
#include "backupd/shell/mirror_link.h"
#include "backupd/shell/promote.h"
#include "unit/mirror/bench.h"

namespace dcs::backup {
namespace {

namespace fs = std::filesystem;

struct Directory {
    std::string path;
    Directory() {
        std::string name = (fs::temp_directory_path() / "dcs-backup-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Directory() { fs::remove_all(path); }
    void put(const std::string &name, const std::string &bytes) const {
        fs::create_directories(fs::path(path + "/" + name).parent_path());
        std::ofstream(path + "/" + name, std::ios::binary) << bytes;
    }
};

// With a whole copy of a scheduler's store in it, as the mirror leaves it.
struct Copied : Directory {
    mirror_test::Bench bench{turn::MirrorMode::sync};
    Copied() {
        bench.add_content(std::string(limits::digest_bytes, 'd'), "bytes");
        REQUIRE(bench.connect().empty());
        bench.append("t/1", "kept");
        bench.deliver_all();
        write();
    }
    void write() const {
        for (const auto &[name, bytes] : bench.copy_disk.files(""))
            if (name.back() == '/') fs::create_directories(path + "/mirror/" + name);
            else put("mirror/" + name, bytes);
    }
    std::string state() const { return path + "/scheduler/state"; }
    std::string promotion(const std::string &to) const {
        const auto done = promote(path, to);
        return done ? "" : done.status().text;
    }
};

#if DCS_CAN_REFUSE
std::string words(const char *orders, const std::function<Status()> &work) {
    const test::Refusing refusing(orders);
    REQUIRE(refusing.understood);
    const Status s = work();
    CHECK(refusing.happened());
    return s ? "" : s.text;
}
#endif

}  // namespace

TEST_CASE("whose certificates count is read as it was written, or it is said what is wrong") {
    const Directory d;
    CHECK(read_members(d.path)->empty());
    const Members members{{"h1", TokenHash{1}}, {"h2", TokenHash{2}}};
    REQUIRE(write_members(d.path, members));
    CHECK(*read_members(d.path) == members);
    for (const char *bad : {"h1\n", "h1 xyz\n", "h1 00\n"}) {
        d.put("members", bad);
        CHECK(read_members(d.path).status().text == about(d.path + "/members damaged remove scheduler send"));
    }
    fs::remove(d.path + "/members");
    const std::string file = d.path + "/members";
    d.put("file", "");
    CHECK(read_members(d.path + "/file").status().text ==
          about("cannot read " + d.path + "/file/members Not directory"));
    CHECK(write_members(d.path + "/gone", members).text ==
          about("cannot write " + d.path + "/gone/members.tmp No file directory"));
#if DCS_CAN_REFUSE
    const auto write = [&] { return write_members(d.path, members); };
    CHECK(words("write:members.tmp:ENOSPC", write) == about("cannot write " + file + ".tmp No space left device"));
    CHECK(words("fsync:members.tmp:EIO", write) == about("cannot write " + file + ".tmp Input/output error"));
    CHECK(words("renameat:members:EPERM", write) == "cannot write " + file + ": Operation not permitted");
    CHECK(words("fsync:dcs-backup:EIO:1", write) == "cannot write " + file + ": Input/output error");
#endif
}

TEST_CASE("to which epoch the copy was promoted is read as it was written, or it is said what is wrong") {
    const Directory d;
    CHECK(read_seen(d.path)->name == 0);
    REQUIRE(write_seen(d.path, {0xfeed, 7}));
    CHECK(read_seen(d.path)->epoch == 7);
    for (const char *bad : {"", "store x epoch 1\n", "store 0 epoch 1\n", "store feed\n"}) {
        d.put("epoch", bad);
        CHECK(read_seen(d.path).status().text ==
              about(d.path + "/epoch damaged records epoch copy here promoted remove no former scheduler return"));
    }
    CHECK(open_mirror_places(d.path + "/none").status().text ==
          about("cannot make directory " + d.path + "/none/mirror No file directory"));
}

TEST_CASE("a copy that is not there or not whole is not promoted") {
    Copied c;
    const Directory empty;
    CHECK(promote(empty.path, empty.path + "/state").status().text == about("no complete copy here"));
    c.write();
    const std::string slot = c.bench.copy_disk.read("current", 0, 1)->substr(0, 1);
    for (const auto &[name, bytes] : c.bench.copy_disk.files(""))
        if (name.rfind(slot + "/t/1/log", 0) == 0) c.put("mirror/" + name, "");
    for (const auto &entry : fs::recursive_directory_iterator(c.path + "/mirror/" + slot + "/turns"))
        if (entry.is_regular_file()) c.put(entry.path().string().substr(c.path.size() + 1), "nonsense");
    const std::string why = c.promotion(c.state());
    INFO(why);
    CHECK((why.find("the copy is damaged: ") == 0 || why.find("there is no complete copy here: ") == 0));
    CHECK_FALSE(fs::exists(c.state()));
}

TEST_CASE("a promotion names the last turn that the copy had, not its own") {
    Copied c;
    const std::uint64_t had = c.bench.copy->turn();
    const auto done = promote(c.path, c.state());
    REQUIRE(done);
    CHECK(done->turn == had);
    const auto again = promote(c.path, c.state());
    REQUIRE(again);
    CHECK(again->epoch == done->epoch);
    CHECK(again->turn == 0);
    CHECK(fs::exists(c.state() + "/format"));
    fs::remove_all(c.state());  // a lost one is not reported as promoted
    CHECK(c.promotion(c.state()) == about("no complete copy here"));
}

#if DCS_CAN_REFUSE
std::string text_of(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a promotion that is refused has changed nothing") {
    const char *table[] = {
        "open:promote.probe:EROFS",
        "rename:promote.probe:EACCES",
        "rename:before-epoch:EBUSY",
        "fsync,fdatasync:epoch.tmp:EIO",
        "openat,openat2,open:/turns/:ENOSPC",
        "rename:promote.probe:EXDEV mkdir:state.promoting:ENOSPC",
        "rename:promote.probe:EXDEV open,openat,openat2:library/64:EMFILE",
    };
    for (const char *orders : table) {
        INFO(orders);
        const Copied c;
        c.put("scheduler/state/format", "the old one");
        REQUIRE(write_seen(c.path, {c.bench.copy->identity().name, c.bench.copy->identity().epoch}));
        const std::string before = text_of(c.path + "/epoch");
        const auto attempt = [&] {
            const Status s = promote(c.path, c.state()).status();
            CHECK(s.code == Code::refused);
            return s;
        };
        INFO(words(orders, attempt));
        CHECK(text_of(c.state() + "/format") == "the old one");
        CHECK(text_of(c.path + "/epoch") == before);
        for (const auto &entry : fs::directory_iterator(c.path + "/scheduler"))
            CHECK(entry.path().filename() == "state");
        auto places = open_mirror_places(c.path);
        REQUIRE(places);
        CHECK((*Copy::open(*places->disk, {}))->identity().epoch == c.bench.copy->identity().epoch);
        places->disk.reset();
        CHECK(c.promotion(c.state()).empty());
    }
}

TEST_CASE("a copy on another file system than the state directory is copied") {
    const Copied c, moved;
    REQUIRE(moved.promotion(moved.state()).empty());
    c.put("scheduler/state/format", "the old one");
    CHECK(words("rename:promote.probe:EXDEV", [&] { return promote(c.path, c.state()).status(); }).empty());
    CHECK_FALSE(fs::exists(c.path + "/mirror/current"));
    CHECK_FALSE(fs::exists(c.state() + ".promoting"));
    CHECK(text_of(c.state() + ".before-epoch-4/format") == "the old one");
    for (const auto &entry : fs::recursive_directory_iterator(moved.state())) {
        const std::string name = entry.path().string().substr(moved.state().size());
        INFO(name);
        if (entry.is_regular_file() && name.rfind("/library", 0) == 0)
            CHECK(text_of(entry.path().string()) == text_of(c.state() + name));
        else CHECK(fs::exists(c.state() + name));
    }
}

TEST_CASE("a promotion that the host stops says where, and goes on when it is asked for again") {
    const struct {
        const char *orders;
        std::string words;
    } table[] = {
        {"rename:mirror/a:EXDEV rename:mirror/b:EXDEV", "unmount"},
        {"rename:mirror/library:EPERM", "/library: Operation not permitted"},
        {"mkdir:/scheduler:EROFS", "/scheduler: Read-only file system"},
        {"unlink:/attached:EIO", "/scheduler/attached: Input/output error"},
        {"open:/mirror/a:EMFILE", "/mirror/a: Too many open files"},
        {"unlink:/mirror/current:EIO", "/mirror/current: Input/output error"},
    };
    for (const auto &row : table) {
        INFO(row.orders);
        const Copied c;
        const std::string why = words(row.orders, [&] { return promote(c.path, c.state()).status(); });
        CHECK(why.find(row.words) != std::string::npos);
        CHECK(c.promotion(c.state()).empty());
        CHECK(fs::exists(c.state() + "/format"));
    }
}
#endif

}  // namespace dcs::backup
