#include "daemon/spawn.h"

#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

namespace dcs::daemon {
namespace {

std::vector<char *> pointers(const std::vector<std::string> &words) {
    std::vector<char *> out;
    for (const std::string &word : words) out.push_back(const_cast<char *>(word.c_str()));
    out.push_back(nullptr);
    return out;
}

void prepare(const SpawnRequest &request, posix_spawn_file_actions_t &files, posix_spawnattr_t &how) {
    const int wanted[3] = {request.in, request.out, request.err};
    for (int fd = 0; fd < 3; ++fd) {
        if (wanted[fd] < 0)
            ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
        else
            ::posix_spawn_file_actions_adddup2(&files, wanted[fd], fd);
    }
    ::posix_spawn_file_actions_addclosefrom_np(&files, 3);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&how, &none);
    ::posix_spawnattr_setsigdefault(&how, &all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (request.new_session) flags |= POSIX_SPAWN_SETSID;
    ::posix_spawnattr_setflags(&how, flags);
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest &request) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    if (::posix_spawn_file_actions_init(&files) != 0 || ::posix_spawnattr_init(&how) != 0)
        return fail(Code::limit, "no memory to start " + request.path);
    prepare(request, files, how);
    const std::vector<char *> argv = pointers(request.argv), env = pointers(request.env);
    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, request.path.c_str(), &files, &how, argv.data(),
                                    request.replace_env ? env.data() : environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&how);
    if (error != 0) return fail_errno(Code::not_found, "cannot start " + request.path, error);
    return pid;
}

}  // namespace dcs::daemon
