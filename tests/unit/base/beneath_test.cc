// Names below a directory that others change: the same answers from the kernel's call and from steps.
#include <catch2/catch.hpp>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/un.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/beneath.h"

using namespace dcs;

namespace {
struct Tree {
    std::string path;
    int fd = -1;
    Tree() {
        char name[] = "/tmp/dcs-beneath-XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        path = name;
        fd = ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        std::filesystem::create_directories(path + "/a/b");
        put("a/b/file");
        put("file");
        std::filesystem::create_symlink("a", path + "/folder_link");
        std::filesystem::create_symlink("file", path + "/file_link");
        std::filesystem::create_symlink("/", path + "/a/root");
        std::filesystem::create_symlink("/proc/self/fd", path + "/a/magic");
        std::filesystem::create_hard_link(path + "/file", path + "/a/second");
        REQUIRE(::mkfifo((path + "/fifo").c_str(), 0600) == 0);
    }
    ~Tree() {
        ::close(fd);
        std::filesystem::remove_all(path);
    }
    void put(const std::string &name) const {
        const int file = ::open((path + "/" + name).c_str(), O_WRONLY | O_CREAT, 0600);
        REQUIRE(file >= 0);
        ::close(file);
    }
};
using Open = int (*)(int, const char *, int, mode_t);
int error_of(Open open, const Tree &t, const std::string &name, int flags = O_RDONLY) {
    const int fd = open(t.fd, name.c_str(), flags, 0);
    if (fd < 0) return errno;
    ::close(fd);
    return 0;
}
}  // namespace

TEST_CASE("what lies below is opened, and nothing else") {
    const Tree t;
    for (const Open open : {Open(open_beneath), Open(open_beneath_by_steps)}) {
        INFO((open == Open(open_beneath) ? "openat2" : "steps"));
        for (const char *good : {"file", "a/b/file", "a/b", "a/second"}) CHECK(error_of(open, t, good) == 0);
        CHECK(error_of(open, t, "fifo") == 0);  // without waiting for a party that writes
        CHECK(error_of(open, t, "fifo", O_WRONLY) == ENXIO);
        CHECK(error_of(open, t, "none") == ENOENT);
        CHECK(error_of(open, t, "a/none/file") == ENOENT);
        for (const char *link : {"file_link", "folder_link/b/file", "a/root/etc/passwd", "a/root", "a/magic/0"})
            CHECK(error_of(open, t, link) == ELOOP);
        for (const char *out : {"..", "../", "/etc/passwd", "a/../../x", ""}) {
            INFO(out);
            CHECK(error_of(open, t, out) != 0);
        }
        CHECK(error_of(open, t, "a", O_WRONLY) == EISDIR);
        const int made = open(t.fd, "a/new", O_WRONLY | O_CREAT | O_EXCL, 0640);
        REQUIRE(made >= 0);
        struct stat st {};
        REQUIRE(::fstat(made, &st) == 0);
        CHECK((st.st_mode & 07777) == 0640);
        CHECK((::fcntl(made, F_GETFD) & FD_CLOEXEC) != 0);
        ::close(made);
        ::unlinkat(t.fd, "a/new", 0);
    }
}

TEST_CASE("another file system is not entered") {
    const int root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const Open open : {Open(open_beneath), Open(open_beneath_by_steps)}) {
        const int fd = open(root, "proc/self/status", O_RDONLY, 0);
        CHECK(fd < 0);
        CHECK(errno == EXDEV);
    }
    ::close(root);
}

TEST_CASE("what counts is said by the open file") {
    const Tree t;
    struct stat st {};
    const auto strange = [&](const std::string &name, uid_t owner) {
        REQUIRE(::lstat((t.path + "/" + name).c_str(), &st) == 0);
        return strange_file(st, owner);
    };
    CHECK(strange("a/b/file", ::geteuid()).empty());
    CHECK(strange("a/b/file", ::geteuid() + 1) == "a file of another user");
    CHECK(strange("file", ::geteuid()) == "a file with 2 names");
    CHECK(strange("fifo", ::geteuid()) == "not a regular file");
    CHECK(strange("file_link", ::geteuid()) == "a symbolic link");
    CHECK(strange("a", ::geteuid()) == "not a regular file");
}

TEST_CASE("a path that a stranger chose opens regular files only") {
    const Tree t;
    const auto error = [&](const std::string &path) {
        const int fd = open_regular(path.c_str());
        if (fd < 0) return errno;
        ::close(fd);
        return 0;
    };
    CHECK(error(t.path + "/file_link") == 0);
    CHECK(error(t.path + "/fifo") == EACCES);
    CHECK(error(t.path) == EACCES);
    CHECK(error("/dev/null") == EACCES);
    CHECK(error(t.path + "/none") == ENOENT);
    if (::geteuid() != 0) {
        WARN("SKIPPED: acting as another needs root");
        return;
    }
    REQUIRE(::chmod((t.path + "/file").c_str(), 0600) == 0);
    {
        const ActAs somebody(2'000'100'001, 2'000'100'001);
        CHECK(error(t.path + "/a/b/file") == EACCES);
        CHECK(error("/etc/shadow") == EACCES);
        CHECK(error("/etc/passwd") == 0);
    }
    CHECK(error(t.path + "/a/b/file") == 0);
}
