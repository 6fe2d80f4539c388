// flock(1) of util-linux, for scripts that call it: dcs_lock invoked as `flock`, with the options and exit codes of
// flock. `dcs_lock list PATH` shows its locks too.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <getopt.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "call.h"
#include "locks/files/lock_file.h"
#include "quantity.h"
#include "request.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

constexpr char flock_help[] =
    "Usage: flock [options] FILE|DIRECTORY COMMAND [ARGUMENTS]\n"
    "       flock [options] FILE|DIRECTORY -c COMMAND\n"
    "       flock [options] DESCRIPTOR\n"
    "Options: -s shared, -x exclusive, -u unlock, -n or -w SECONDS, -o the command does not inherit the lock,\n"
    "-E CODE instead of 1 when busy, -F exec without fork, -c by the shell, --verbose, -h, -V.\n"
    "This is dcs_lock under the name of flock; `dcs_lock --help` shows its other functions.\n";

struct FlockOptions {
    Options common;
    bool unlock = false, close = false, no_fork = false;
    int busy = 1;
    std::string error;  // wrong usage
    bool done = false;  // --help, --version
};

int complain_as_flock(int exit, const std::string &text) {
    write_all(2, "flock: " + text + "\n");
    return exit;
}

void take_option(int letter, FlockOptions &found) {
    switch (letter) {
    case 's': found.common.shared = true; break;
    case 'x':
    case 'e': found.common.shared = false; break;
    case 'u': found.unlock = true; break;
    case 'n': found.common.wait = 0; break;
    case 'o': found.close = true; break;
    case 'F': found.no_fork = true; break;
    case 'v': found.common.verbose = true; break;
    case 'w': {
        if (const auto time = duration_of("-w", ::optarg, second_ns)) found.common.wait = *time;
        else found.error = time.status().text;
        break;
    }
    case 'E': {
        if (const auto code = whole_number_of("-E", ::optarg, 0, 255)) found.busy = *code;
        else found.error = code.status().text;
        break;
    }
    case 'h':
        print(flock_help);
        found.done = true;
        break;
    case 'V':
        print("flock from dcs_lock (DCS) " DCS_VERSION "\n");
        found.done = true;
        break;
    default: found.error = "wrong use; `flock --help` shows the options";
    }
}

FlockOptions flock_options(std::vector<char *> &argv) {
    static const option longs[] = {{"shared", 0, nullptr, 's'},  {"exclusive", 0, nullptr, 'x'},
                                   {"unlock", 0, nullptr, 'u'},  {"nonblock", 0, nullptr, 'n'},
                                   {"nb", 0, nullptr, 'n'},      {"timeout", 1, nullptr, 'w'},
                                   {"wait", 1, nullptr, 'w'},    {"conflict-exit-code", 1, nullptr, 'E'},
                                   {"close", 0, nullptr, 'o'},   {"no-fork", 0, nullptr, 'F'},
                                   {"verbose", 0, nullptr, 'v'}, {"help", 0, nullptr, 'h'},
                                   {"version", 0, nullptr, 'V'}, {nullptr, 0, nullptr, 0}};
    FlockOptions found;
    ::opterr = 0;
    int letter = 0;
    while (found.error.empty() && !found.done &&
           (letter = ::getopt_long(static_cast<int>(argv.size()) - 1, argv.data(), "+sexnuow:hVE:F", longs, nullptr)) !=
               -1)
        take_option(letter, found);
    return found;
}

// Opens as flock does: for reading, created with mode 0666 if missing; a directory is opened as it is.
int open_as_flock(const std::string &path) {
    int fd = ::open(path.c_str(), O_RDONLY | O_NOCTTY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EISDIR) fd = ::open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
    const bool writable_too = fd >= 0 && ::access(path.c_str(), W_OK) == 0;
    if (!writable_too) return fd;
    const int both = ::open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);  // writable, to exclude users of fcntl(2) too
    if (both < 0) return fd;
    ::close(fd);
    return both;
}

int run_locked(const locks::World &world, const FlockOptions &found, int fd) {
    locks::Supervision what;
    what.argv = found.common.words;
    what.keep = found.no_fork ? locks::Keep::fd : found.close ? locks::Keep::leader : locks::Keep::both;
    what.lock_fds = {fd};
    const locks::RunEnd end = locks::supervise(world, what);
    if (!end.started) return complain_as_flock(EX_UNAVAILABLE, "failed to execute " + found.common.words[0]);
    return end.status;
}

}  // namespace

int run_flock(const locks::World &world, const std::vector<std::string> &line) {
    std::vector<std::string> words = {"flock"};
    words.insert(words.end(), line.begin(), line.end());
    std::vector<char *> argv = pointers_to(words);
    FlockOptions found = flock_options(argv);
    if (found.done) return EX_OK;
    if (!found.error.empty()) return complain_as_flock(EX_USAGE, found.error);
    const std::vector<std::string> rest(words.begin() + ::optind, words.end());
    if (rest.empty()) return complain_as_flock(EX_USAGE, "requires file descriptor, file or directory");
    int fd = -1;
    if (rest.size() == 1) {
        const auto number = whole_number_of("descriptor", rest[0], 0, 1 << 20);
        if (!number) return complain_as_flock(EX_USAGE, "bad file descriptor " + rest[0]);
        fd = *number;
        if (::fcntl(fd, F_GETFD) < 0) return complain_as_flock(EX_DATAERR, rest[0] + ": Bad file descriptor");
    } else {
        found.common.words.assign(rest.begin() + 1, rest.end());
        if (rest[1] == "-c" || rest[1] == "--command") {
            if (rest.size() != 3)
                return complain_as_flock(EX_USAGE, rest[1] + " requires exactly one command argument");
            const char *shell = std::getenv("SHELL");
            found.common.words = {shell != nullptr && *shell != '\0' ? shell : "/bin/sh", "-c", rest[2]};
        }
        fd = open_as_flock(rest[0]);
        if (fd < 0)
            return complain_as_flock(EX_NOINPUT, "cannot open lock file " + rest[0] + ": " + std::strerror(errno));
    }
    locks::LockFile file = locks::LockFile::around(fd);
    if (found.unlock) {
        file.let_go();
        return EX_OK;
    }
    const auto got = file.hold(found.common.shared, deadline_of(found.common));
    if (!got) return complain_as_flock(EX_OSERR, rest[0] + ": " + got.status().text);
    if (!*got) return found.common.verbose ? complain_as_flock(found.busy, "failed to get lock") : found.busy;
    if (found.common.verbose) complain_as_flock(0, "lock taken");
    return found.common.words.empty() ? EX_OK : run_locked(world, found, fd);
}

}  // namespace dcs::lock_command
