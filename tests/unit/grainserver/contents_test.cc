// The library of a grain server on a real disk, and what it places and keeps.
#include <optional>

#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "base/limits.h"
#include "process/table.h"
#include "contents_bench.h"

using namespace bench;
using namespace dcs;
using namespace dcs::server;
using wire::FileRole;

namespace {
constexpr std::int64_t day = 24 * 3600;

struct Cache {
    ContentCache cache;
    ContentCache::Names needed;
    explicit Cache(const std::string &dir, std::uint64_t max = 1u << 30) {
        REQUIRE(cache.open(dir, max, [this] { return needed; }));
    }
    std::string keep(const std::string &bytes, std::int64_t now = 1000) {
        const std::string digest = pki::sha256_text(bytes);
        const auto next = cache.keep(digest, bytes.size(), 0, bytes, now);
        REQUIRE(next);
        REQUIRE(*next == bytes.size());
        return digest;
    }
};

std::string folder_of(const std::string &dir, const std::string &digest) {
    const std::string hex = hex_of(digest);
    return dir + "/library/" + hex.substr(0, 2) + "/" + hex;
}
}  // namespace

TEST_CASE("a content comes in pieces, and counts when it is whole and right") {
    ScratchDir dir;
    Cache c(dir.path);
    const std::string bytes = "0123456789", digest = pki::sha256_text(bytes);
    REQUIRE(*c.cache.keep(digest, 10, 0, "0123", 1) == 4);
    REQUIRE_FALSE(c.cache.has(digest));
    REQUIRE_FALSE(c.cache.keep(digest, 10, 5, "56789", 1));  // out of order: all of it goes
    REQUIRE_FALSE(c.cache.keep(digest, 10, 4, "456789", 1));
    REQUIRE(*c.cache.keep(digest, 10, 0, "01234", 1) == 5);
    REQUIRE(*c.cache.keep(digest, 10, 5, "56789", 1) == 10);
    REQUIRE(c.cache.has(digest));
    REQUIRE(c.cache.verified(digest));
    REQUIRE(get_file(folder_of(dir.path, digest) + "/content") == bytes);
    const std::string other = pki::sha256_text("something else");
    REQUIRE_FALSE(c.cache.keep(other, 10, 0, bytes, 1));
    REQUIRE_FALSE(c.cache.has(other));
    REQUIRE(list_directory(open_directory(AT_FDCWD, dir.path + "/library/incoming")->get())->empty());
    const std::string nothing = c.keep("");
    REQUIRE(c.cache.has(nothing));
}

TEST_CASE("a restarted server has what was whole, and must see it again before it believes it") {
    ScratchDir dir;
    std::string whole;
    const std::string half = pki::sha256_text("half of it");
    {
        Cache c(dir.path);
        whole = c.keep("whole");
        REQUIRE(c.cache.keep(half, 10, 0, "half", 1));
        put_file(dir.path + "/library/incoming/killed", "half");
    }
    Cache c(dir.path);
    REQUIRE(c.cache.has(whole));
    REQUIRE_FALSE(c.cache.verified(whole));
    REQUIRE_FALSE(c.cache.has(half));
    REQUIRE(list_directory(open_directory(AT_FDCWD, dir.path + "/library/incoming")->get())->empty());
}

TEST_CASE("the sweep takes unused contents: the oldest first, and what is stale") {
    ScratchDir dir;
    Cache c(dir.path, 4 * 4096);
    const std::string a = c.keep("a", 1000), b = c.keep("b", 2000), d = c.keep("d", 3000);
    REQUIRE_FALSE(c.cache.sweep(3000));
    const std::string e = c.keep("e", 4000), f = c.keep("f", 5000);
    c.needed = {a};
    REQUIRE(c.cache.sweep(5000));
    REQUIRE_FALSE(c.cache.has(b));
    REQUIRE(c.cache.has(d));
    REQUIRE(c.cache.bytes() == 4 * 4096);
    REQUIRE(c.cache.open_content(d, 4000 + 6 * day));  // used
    REQUIRE(c.cache.sweep(4000 + 8 * day));
    REQUIRE((c.cache.has(a) && c.cache.has(d)));
    REQUIRE_FALSE(c.cache.has(e));
    REQUIRE_FALSE(c.cache.has(f));
    struct stat st {};
    REQUIRE(::stat(folder_of(dir.path, e).c_str(), &st) != 0);
}

TEST_CASE("a full disk: unused contents are removed, else nothing is left of what came") {
    ScratchDir dir;
    const std::string disk = dir.path + "/disk";
    REQUIRE(::mkdir(disk.c_str(), 0700) == 0);
    if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
        WARN("SKIPPED: no small file system can be mounted here");
        return;
    }
    {
        Cache c(disk);
        const std::string old = c.keep(std::string(700'000, 'o'));
        const std::string fresh(700'000, 'f'), digest = pki::sha256_text(fresh);
        c.needed = {old};
        const auto refused = c.cache.keep(digest, fresh.size(), 0, fresh, 2000);
        CHECK_FALSE(refused);
        CHECK(refused.status().code == Code::no_space);
        CHECK(list_directory(open_directory(AT_FDCWD, disk + "/library/incoming")->get())->empty());
        c.needed = {};
        CHECK(c.cache.keep(digest, fresh.size(), 0, fresh, 2000));
        CHECK_FALSE(c.cache.has(old));
        CHECK(get_file(folder_of(disk, digest) + "/content") == fresh);
    }
    REQUIRE(::umount2(disk.c_str(), MNT_DETACH) == 0);
}

TEST_CASE("a full disk: unused contents make way for what a grain needs and makes, not for its other outputs") {
    Shell s;
    const char *disk = s.dir.path.c_str();
    if (::mount("tmpfs", disk, "tmpfs", 0, "size=3m") != 0) {
        WARN("SKIPPED: no small file system can be mounted here");
        return;
    }
    REQUIRE(s.files.open(disk, "local1", boot_id()));
    REQUIRE(s.contents.open(disk, "here-linux", 1u << 30, [&s] { return s.needed; }));
    const auto bytes = [](std::size_t size, char c) { return std::string(size, c); };
    const auto in_library = [&](const std::string &digest) {
        struct stat st {};
        return ::stat((folder_of(disk, digest) + "/content").c_str(), &st) == 0;
    };
    SECTION("files") {
        const std::string text = bytes(800'000, 'i'), old = s.fetched(FileRole::data, "", bytes(1'600'000, 'o')).digest;
        s.prepare({s.fetched(FileRole::input, "", text)}, "/bin/none", "checkpoint");
        s.needed = {pki::sha256_text(text)};
        s.place();
        CHECK(get_file(s.room() + "/input") == "checkpoint" + text);
        CHECK_FALSE(in_library(old));
    }
    SECTION("outputs") {
        const std::string old = s.fetched(FileRole::data, "", bytes(1'600'000, 'o')).digest;
        s.make = [&] { put_file(s.work() + "/o", bytes(900'000, 'x')); };
        const OutputsKept kept = s.outputs({"o"});
        CHECK(kept.files[0].digest == pki::sha256_text(bytes(900'000, 'x')));
        CHECK(get_file(folder_of(disk, kept.files[0].digest) + "/content") == bytes(900'000, 'x'));
        CHECK_FALSE(in_library(old));
    }
    SECTION("other outputs") {
        s.prepare({{FileRole::output, "o", "", 0, ""}, {FileRole::output, "p", "", 0, ""}});
        s.place();
        for (const char *name : {"o", "p"}) put_file(s.work() + "/" + name, bytes(800'000, *name));
        s.contents.keep_outputs(s.id);
        s.run();
        CHECK(s.take<OutputsUnkept>().code == Code::no_space);
        CHECK(in_library(pki::sha256_text(bytes(800'000, 'o'))));
    }
    REQUIRE(::umount2(disk, MNT_DETACH) == 0);
}

TEST_CASE("staged files are the grain's own copies, below its working directory") {
    Shell s;
    const auto a = s.fetched(FileRole::data, "in/deep/a.txt", "data");
    const auto b = s.fetched(FileRole::executable, "tool", "#!");
    s.prepare({a, b, {FileRole::output, "out/x", "", 0, ""}});
    s.place();
    REQUIRE(get_file(s.work() + "/in/deep/a.txt") == "data");
    struct stat st {};
    REQUIRE(::stat((s.work() + "/tool").c_str(), &st) == 0);
    REQUIRE((st.st_mode & 0111) == 0111);
    REQUIRE(st.st_nlink == 1);
    REQUIRE(::stat((s.work() + "/out").c_str(), &st) == 0);
    put_file(s.work() + "/in/deep/a.txt", "changed");
    REQUIRE(get_file(folder_of(s.dir.path, a.digest) + "/content") == "data");
    put_file(s.work() + "/left", "over");
    s.place();  // a start again
    REQUIRE(get_file(s.work() + "/in/deep/a.txt") == "data");
    REQUIRE(::stat((s.work() + "/left").c_str(), &st) != 0);
}

TEST_CASE("names that lead out of the working directory are refused") {
    Shell s;
    for (const char *name : {"../x", "/etc/x", "a/../../x", "", "a//b", "."}) {
        s.prepare({s.fetched(FileRole::data, name, "data")});
        s.contents.place(s.id);
        s.run();
        REQUIRE_FALSE(s.take<FilesUnplaced>().text.empty());
    }
}

TEST_CASE("a damaged content is fetched again") {
    Shell s;
    const auto a = s.fetched(FileRole::data, "a", "data");
    const std::string path = folder_of(s.dir.path, a.digest) + "/content";
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    put_file(path, "dato");
    s.prepare({a});
    Shell restarted;
    REQUIRE(restarted.files.open(s.dir.path, "local1", boot_id()));
    REQUIRE(restarted.contents.open(s.dir.path, "here-linux", 1u << 30, [] { return ContentCache::Names(); }));
    restarted.contents.place(s.id);
    restarted.run();
    const auto missing = restarted.take<FilesMissing>();
    REQUIRE(missing.files.size() == 1);
    REQUIRE((missing.files[0].digest == a.digest && missing.files[0].size == 4));
}

TEST_CASE("the input is the checkpoint's text and the content from where it was read to") {
    Shell s;
    const std::string bytes(300'000, 'i');
    const auto input = s.fetched(FileRole::input, "", bytes + "the end");
    s.prepare({input}, "/bin/none", "state\n", 299'990);
    s.place();
    s.place();
    REQUIRE(get_file(s.room() + "/input") == "state\niiiiiiiiiithe end");
    s.prepare({input});
    s.place();
    REQUIRE(get_file(s.room() + "/input") == bytes + "the end");
}

TEST_CASE("a program is run from its place if that is the very one, else from the library") {
    Shell s;
    const std::string path = s.dir.path + "/prog", bytes = "#!/bin/sh\necho new\n";
    const auto mine = s.fetched(FileRole::program, "", bytes, "here-linux");
    const auto any = s.fetched(FileRole::program, "", "#!/bin/sh\necho any\n");
    const auto in_library = [&](const wire::GrainFile &f) { return folder_of(s.dir.path, f.digest) + "/prog"; };
    const auto placed = [&](std::vector<wire::GrainFile> list) {
        s.prepare(std::move(list), path);
        s.place();
        return s.program();
    };
    REQUIRE(placed({any, mine}) == in_library(mine));  // there is none in its place
    REQUIRE(get_file(in_library(mine)) == bytes);
    REQUIRE(::access(in_library(mine).c_str(), X_OK) == 0);
    s.fetched(FileRole::data, "again", bytes);
    REQUIRE(get_file(in_library(mine)) == bytes);  // for the grain that has been placed
    put_file(path, bytes, 0755);
    REQUIRE(placed({any, mine}) == path);
    put_file(path, "#!/bin/sh\necho old\n", 0755);  // as long as the new one
    REQUIRE(placed({any, mine}) == in_library(mine));
    put_file(path, bytes, 0644);
    REQUIRE(placed({any, mine}) == in_library(mine));
    REQUIRE(placed({any}) == in_library(any));
    REQUIRE(placed({s.fetched(FileRole::data, "x", "x")}) == path);  // its submission names none
}

TEST_CASE("outputs that are plain files of the grain come back, nothing else") {
    Shell s;
    s.make = [&] {
        const std::string w = s.work() + "/";
        put_file(w + "plain", "made");
        put_file(w + "deep/er", "too");
        put_file(w + "empty", "");
        put_file(s.dir.path + "/secret", "secret");
        REQUIRE(::symlink((s.dir.path + "/secret").c_str(), (w + "link").c_str()) == 0);
        REQUIRE(::link((s.dir.path + "/secret").c_str(), (w + "hard").c_str()) == 0);
        REQUIRE(::rmdir((w + "way").c_str()) == 0);  // made for the output
        REQUIRE(::symlink(s.dir.path.c_str(), (w + "way").c_str()) == 0);
        REQUIRE(::mkfifo((w + "fifo").c_str(), 0600) == 0);
        REQUIRE(::mkdir((w + "dir").c_str(), 0700) == 0);
        const Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        (w + "socket").copy(a.sun_path, sizeof a.sun_path - 1);
        REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr *>(&a), sizeof a) == 0);
        const Fd large(::open((w + "large").c_str(), O_WRONLY | O_CREAT, 0600));
        REQUIRE(::ftruncate(large.get(), static_cast<off_t>(limits::content_bytes + 1)) == 0);
    };
    const std::vector<std::string> bad = {"link", "hard", "way/secret", "fifo", "dir", "socket", "large", "none"};
    std::vector<std::string> names = {"plain", "deep/er", "empty"};
    names.insert(names.end(), bad.begin(), bad.end());
    const OutputsKept kept = s.outputs(names);
    INFO(kept.words);
    REQUIRE(kept.files.size() == names.size());
    const std::vector<std::string> good = {"made", "too", ""};
    for (std::size_t i = 0; i < good.size(); ++i) {
        REQUIRE(kept.files[i].digest == pki::sha256_text(good[i]));
        REQUIRE(kept.files[i].size == good[i].size());
        REQUIRE(get_file(folder_of(s.dir.path, kept.files[i].digest) + "/content") == good[i]);
    }
    for (std::size_t i = 0; i < bad.size(); ++i) {
        REQUIRE(kept.files[good.size() + i].digest.empty());
        if (bad[i] != "none" && bad[i] != "way/secret")
            REQUIRE(kept.words.find("output " + bad[i]) != std::string::npos);
    }
    REQUIRE(kept.words.find("none") == std::string::npos);
}

TEST_CASE("kept outputs are put in pieces, also by the next server, unless they are damaged") {
    Shell s;
    std::string bytes(limits::content_piece_bytes + 10, 'b');
    bytes[7] = 'x';
    s.make = [&] { put_file(s.work() + "/o", bytes); };
    const OutputsKept kept = s.outputs({"o"});
    s.contents.send(SendPiece{kept.files[0].digest, bytes.size(), 0});
    s.contents.send(SendPiece{kept.files[0].digest, bytes.size(), limits::content_piece_bytes});
    s.run();
    REQUIRE(s.put.size() == 2);
    REQUIRE(s.put[0].bytes + s.put[1].bytes == bytes);
    REQUIRE(s.put[1].offset == limits::content_piece_bytes);
    Shell next;
    REQUIRE(next.files.open(s.dir.path, "local1", boot_id()));
    const auto adopted = next.files.adopt();
    REQUIRE((adopted.size() == 1 && adopted[0].outputs));
    REQUIRE(*adopted[0].outputs == kept.files);
    const bool damaged = GENERATE(false, true);
    const std::string path = folder_of(s.dir.path, kept.files[0].digest) + "/content";
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    if (damaged) put_file(path, std::string(bytes.size(), 'b'));
    REQUIRE(next.contents.open(s.dir.path, "here-linux", 1u << 30, [] { return ContentCache::Names(); }));
    next.contents.send(SendPiece{kept.files[0].digest, bytes.size(), 0});
    next.run();
    REQUIRE(next.put.size() == (damaged ? 0 : 1));
    if (damaged) REQUIRE(next.take<PieceUnreadable>().digest == kept.files[0].digest);
}

TEST_CASE("what is given up in the middle leaves no half content") {
    Shell s;
    s.make = [&] { put_file(s.work() + "/o", std::string(20u << 20, 'o')); };
    s.prepare({{FileRole::output, "o", "", 0, ""}});
    s.place();
    s.make();
    s.contents.keep_outputs(s.id);
    for (int slices = 0; slices < 3; ++slices) s.contents.go_on();
    REQUIRE(s.contents.busy());
    s.contents.give_up(s.id);
    REQUIRE_FALSE(s.contents.busy());
    REQUIRE(list_directory(open_directory(AT_FDCWD, s.dir.path + "/library/incoming")->get())->empty());
    REQUIRE(s.told.empty());
}

TEST_CASE("under an account of its own the grain owns what was placed, and only its own files come back") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: only root can give files away");
        return;
    }
    Shell s;
    GrainRules rules;
    rules.identity.users = true;
    REQUIRE(::chmod(s.dir.path.c_str(), 0711) == 0);
    REQUIRE(s.files.open(s.dir.path, "local1", boot_id(), rules));
    const auto a = s.fetched(FileRole::data, "in/a", "data"), input = s.fetched(FileRole::input, "", "typed");
    s.prepare({a, input, {FileRole::output, "mine", "", 0, ""}, {FileRole::output, "theirs", "", 0, ""}});
    const auto owner_of = [&](const std::string &name) {
        struct stat st {};
        REQUIRE(::stat((s.room() + name).c_str(), &st) == 0);
        return st.st_uid;
    };
    REQUIRE(owner_of("") == 0);  // as long as files are put there
    s.place();
    const uid_t uid = owner_of("");
    REQUIRE(uid != 0);
    for (const char *name : {"/input", "/work", "/work/in", "/work/in/a"}) REQUIRE(owner_of(name) == uid);
    put_file(s.work() + "/mine", "mine");
    REQUIRE(::chown((s.work() + "/mine").c_str(), uid, uid) == 0);
    put_file(s.work() + "/theirs", "theirs");
    s.contents.keep_outputs(s.id);
    s.run();
    const auto kept = s.take<OutputsKept>();
    REQUIRE(kept.files[0].digest == pki::sha256_text("mine"));
    REQUIRE(kept.files[1].digest.empty());
    REQUIRE(kept.words.find("of another user") != std::string::npos);
}
