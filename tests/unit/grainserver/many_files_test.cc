// Directories with more files than the starter should have in memory.
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "grainserver/starter/disk_use.h"
#include "grainserver/starter/leftovers.h"
#include "scratch_dir.h"
#include "support/catch.h"

using namespace dcs;
using namespace bench;

namespace {

constexpr int many = 20'000;                 // whose names take more than a megabyte
constexpr std::size_t a_part = 400 * 1024u;  // of them

void fill(const std::string &path, int first, int files) {
    const Result<Fd> directory = open_directory(AT_FDCWD, path);
    REQUIRE(directory);
    for (int i = first; i < first + files; ++i)
        REQUIRE(
            Fd(::openat(directory->get(), std::to_string(i).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)));
}

// Of which an allocator under a sanitizer says nothing.
std::size_t allocated() {
    const struct mallinfo2 now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
}

std::size_t files_in(const std::string &path) { return list_directory(open_directory(AT_FDCWD, path)->get())->size(); }

}  // namespace

TEST_CASE("the files of a large directory are counted a part at a time, each once") {
    ScratchDir d;
    REQUIRE(make_directories(d.path + "/in"));
    fill(d.path + "/in", 0, many);
    const Result<Fd> room = open_directory(AT_FDCWD, d.path);
    struct stat in {};
    REQUIRE(::stat((d.path + "/in").c_str(), &in) == 0);
    starter::DiskUse use;
    const std::size_t before = allocated();
    std::int64_t sum = 0;
    do {
        sum = use.look(room->get(), 100);
        REQUIRE(allocated() < before + a_part);
    } while (!use.resting());
    CHECK(sum == (many + 1) * 1024 + in.st_blocks * 512);
    // Those without names, too.
    rlimit files{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
    const rlimit all{files.rlim_max, files.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &all) == 0);
    const auto nameless = [&] { return starter::DiskUse::nameless(room->get(), {::getpid()}, 100'000).bytes; };
    const std::int64_t others = nameless();
    std::vector<Fd> open;
    struct stat st {};
    std::int64_t bytes = 0;
    for (int i = 0; i < 900; ++i) {
        open.emplace_back(::open((d.path + "/f").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        REQUIRE(::unlink((d.path + "/f").c_str()) == 0);
        REQUIRE(::fallocate(open.back().get(), 0, 0, 4096) == 0);
        REQUIRE(::fstat(open.back().get(), &st) == 0);
        bytes += st.st_blocks * 512;
    }
    CHECK(nameless() == others + bytes);
    open.clear();
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
}

TEST_CASE("what made-up uids left goes a part at a time, and others' files among it stay") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: other accounts need root");
        return;
    }
    constexpr uid_t gone = 2'000'400'041, runs = 2'000'400'042;
    constexpr int few = 3000;
    ScratchDir all;
    REQUIRE(::chmod(all.path.c_str(), 01777) == 0);
    const auto leave = [&](const std::string &path, int first, int files, uid_t uid) {
        fill(path, first, files);
        for (int i = first; i < first + files; ++i)
            REQUIRE(::lchown((path + "/" + std::to_string(i)).c_str(), uid, uid) == 0);
    };
    leave(all.path, 0, few, gone);
    leave(all.path, few, few, runs);
    REQUIRE(make_directories(all.path + "/wide"));
    leave(all.path + "/wide", 0, many, gone);
    REQUIRE(::chown((all.path + "/wide").c_str(), gone, gone) == 0);
    starter::Leftovers leftovers({all.path});
    const std::size_t before = allocated();
    int parts = 0;
    for (auto left = starter::Leftovers::Left::more; left != starter::Leftovers::Left::nothing; ++parts) {
        REQUIRE(parts < 1000);
        left = leftovers.go_on(gone);
        REQUIRE(allocated() < before + a_part);
    }
    CHECK(parts > 10);
    CHECK(files_in(all.path) == few);
}
