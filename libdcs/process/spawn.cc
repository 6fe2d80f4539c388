#include "process/spawn.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

namespace dcs {

Result<pid_t> spawn(const SpawnRequest &request) {
    DCS_REQUIRE(!request.arguments.empty(), "a program has an argv[0]");
    std::vector<int> passed = {request.in, request.out, request.err};
    passed.insert(passed.end(), request.inherit.begin(), request.inherit.end());
    const int places = static_cast<int>(passed.size());
    const auto failed = [&](int error) {
        const Code code = error == ENOENT ? Code::not_found : Code::io_error;
        return fail_errno(code, request.program + " cannot be started", error);
    };
    // First out of the way, then to their places: out = 0 and in = 1 must work, too.
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null) return failed(errno);
    std::vector<Fd> copies;
    for (const int fd : passed) {
        copies.emplace_back(::fcntl(fd >= 0 ? fd : null.get(), F_DUPFD_CLOEXEC, places));
        if (!copies.back()) return failed(errno);
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    for (int i = 0; i < places; ++i) ::posix_spawn_file_actions_adddup2(&actions, copies[i].get(), i);
    if (!request.keeps_others) ::posix_spawn_file_actions_addclosefrom_np(&actions, places);
    if (!request.directory.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, request.directory.c_str());
    sigset_t none, every;
    ::sigemptyset(&none);
    ::sigfillset(&every);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &every);
    if (request.new_session)
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, request.program.c_str(), &actions, &attributes,
                                     pointers_to(request.arguments).data(), pointers_to(request.environment).data());
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return failed(error);
    return child;
}

std::vector<std::string> current_environment() {
    std::vector<std::string> result;
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) result.push_back(*entry);
    return result;
}

void keep_descriptors(std::vector<int> kept) {
    kept.push_back(INT_MAX);
    std::sort(kept.begin(), kept.end());
    int from = 3;
    for (const int fd : kept) {
        const auto first = static_cast<unsigned>(from), last = static_cast<unsigned>(fd - 1);
        if (fd > from && ::syscall(SYS_close_range, first, last, 0u) != 0) {
            rlimit most{};  // a kernel before 5.9
            ::getrlimit(RLIMIT_NOFILE, &most);
            for (; from < std::min(fd, 1 << 20) && static_cast<rlim_t>(from) < most.rlim_max; ++from) ::close(from);
        }
        from = std::max(from, fd == INT_MAX ? fd : fd + 1);
    }
}

}  // namespace dcs
