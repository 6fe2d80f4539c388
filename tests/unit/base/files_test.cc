// Descriptors and whole files.
#include <catch2/catch.hpp>

#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

using namespace dcs;

namespace {
struct Scratch {
    std::string path = "/tmp/dcs-base-XXXXXX";
    Scratch() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
    ~Scratch() { CHECK(remove_tree(AT_FDCWD, path)); }
};
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
}  // namespace

TEST_CASE("a descriptor is closed once, by its last owner, and errno stays") {
    int number = -1;
    {
        Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        number = first.get();
        Fd second(std::move(first));
        CHECK_FALSE(first);
        first = std::move(second);
        CHECK(is_open(number));
        errno = EDOM;
    }
    CHECK(errno == EDOM);
    CHECK_FALSE(is_open(number));
    Fd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = other.get();
    other = Fd(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    CHECK((other.get() != number || !is_open(-1)));
    number = other.release();
    CHECK(is_open(number));
    CHECK(Fd(number).close_checked());
    CHECK_FALSE(is_open(number));
}

TEST_CASE("a file is read whole or not at all, unless its start is asked for") {
    Scratch d;
    const Result<Fd> dir = open_directory(AT_FDCWD, d.path);
    REQUIRE(dir);
    REQUIRE(replace_file(dir->get(), "f", "0123456789"));
    CHECK(*read_file(dir->get(), "f", 10) == "0123456789");
    CHECK(read_file(dir->get(), "f", 9).status().code == Code::limit);
    const Fd file(::openat(dir->get(), "f", O_RDONLY | O_CLOEXEC));
    CHECK(*read_open(file.get(), "f", 3, true) == "012");
    CHECK(read_file(dir->get(), "g", 9).status().code == Code::not_found);
    REQUIRE(::mkfifoat(dir->get(), "pipe", 0600) == 0);
    CHECK(read_file(dir->get(), "pipe", 9).status().code == Code::io_error);
    REQUIRE(::symlinkat("f", dir->get(), "link") == 0);
    CHECK_FALSE(read_file(dir->get(), "link", 99));
    const std::string large(100'000, 'x');
    REQUIRE(replace_durably(dir->get(), "f", large));
    CHECK(*read_file(dir->get(), "f", 100'000) == large);
    CHECK(*list_directory(dir->get()) == std::vector<std::string>{"f", "link", "pipe"});
    const std::string long_name(300, 'n');  // an error says in which directory
    CHECK(replace_file(dir->get(), long_name, "").text == d.path + "/" + long_name + ".tmp: File name too long");
}

TEST_CASE("what comes through a pipe is read to its end, or to one byte more than allowed") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const Fd out(ends[0]);
    Fd in(ends[1]);
    REQUIRE(write_all(in.get(), "0123456789"));
    in = Fd();
    std::string text;
    REQUIRE(read_to_end(out.get(), 4, text));
    CHECK(text == "01234");
    REQUIRE(read_to_end(out.get(), 100, text));
    CHECK(text == "56789");
    CHECK_FALSE(read_to_end(-1, 100, text));
    CHECK_FALSE(write_all(out.get(), "x"));
}

TEST_CASE("directories are made down to the last, those above with their own mode") {
    Scratch d;
    REQUIRE(make_directories(d.path + "/a/b/c", 0711));
    struct stat st {};
    for (const auto &[name, mode] : {std::pair{"/a", 0711u}, {"/a/b", 0711u}, {"/a/b/c", 0700u}}) {
        REQUIRE(::stat((d.path + name).c_str(), &st) == 0);
        CHECK((st.st_mode & 0777) == mode);
    }
    CHECK(make_directories(d.path + "/a/b/c"));
    CHECK(make_directory(d.path + "/a"));
    CHECK(make_directory(d.path + "/x/y").code == Code::not_found);
    const Result<Fd> dir = open_directory(AT_FDCWD, d.path);
    REQUIRE(dir);
    REQUIRE(replace_file(dir->get(), "f", ""));
    CHECK_FALSE(make_directories(d.path + "/f"));
    CHECK(sync_directory(d.path));
    CHECK_FALSE(sync_directory(d.path + "/f"));
}
