#include "process/spawn.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
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

}  // namespace dcs
