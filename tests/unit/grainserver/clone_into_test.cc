// Children that begin in a control group of version 2.
#include <array>
#include <cerrno>
#include <csignal>
#include <string>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grainserver/starter/cgroups.h"
#include "grainserver/starter/clone_into.h"

using namespace dcs;

namespace {

struct Seen {
    std::array<char, 4096> groups;
    volatile pid_t parent = 0;
};

// In the child, which must not return.
void look(const void *of) {
    auto *seen = static_cast<Seen *>(const_cast<void *>(of));
    seen->parent = ::getppid();
    const int fd = ::open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    const ssize_t n = ::read(fd, seen->groups.data(), seen->groups.size() - 1);
    seen->groups[n > 0 ? static_cast<std::size_t>(n) : 0] = '\0';
    ::_exit(17);
}

void leave(const void *of) { ::_exit(*static_cast<const int *>(of)); }

int status_of(pid_t pid) {
    int status = -1;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a child is made in its control group, or not at all") {
    alignas(16) static char stack[64 << 10];
    static Seen seen;
    const int nowhere = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(nowhere >= 0);
    CHECK(starter::clone_into(nowhere, CLONE_VM | CLONE_VFORK, stack, look, &seen) == -1);
    CHECK(errno != 0);
    CHECK(seen.parent == 0);
    ::close(nowhere);

    starter::Cgroups groups;
    const std::string found = groups.open("dcs-test-" + std::to_string(::getpid()));
    const starter::Leaf leaf = groups.make("leaf", {});
    if (!leaf.directory) {
        groups.remove("leaf");
        groups.remove_group();
        WARN("SKIPPED: no control groups of version 2 here (" << found << ")");
        return;
    }
    const int group = leaf.directory.get();
    const pid_t child = starter::clone_into(group, CLONE_VM | CLONE_VFORK, stack, look, &seen);
    REQUIRE(child > 1);
    CHECK(status_of(child) == 17);
    CHECK(seen.parent == ::getpid());
    const std::string text(seen.groups.data());
    const std::size_t line = text.find("0::");
    REQUIRE(line != std::string::npos);
    CHECK(text.substr(line, text.find('\n', line) - line).find("/leaf") != std::string::npos);

    const int status = 42;  // with a copy of the memory, of which it sees this
    const pid_t other = starter::clone_into(group, 0, stack, leave, &status);
    REQUIRE(other > 1);
    CHECK(status_of(other) == 42);
    CHECK(groups.members("leaf").empty());
    CHECK(groups.remove("leaf"));
    groups.remove_group();
}
