#include "locks/files/lock_search.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "process/table.h"

namespace dcs::locks {
namespace {

constexpr std::size_t fdinfo_max = 1u << 20;

// A line "lock:", number, "OFDLCK ADVISORY WRITE -1 fe:01:1234 FIRST LAST" of /proc/PID/fdinfo/FD
bool names_lock(const std::string &info, std::int64_t byte) {
    const std::string first = " " + std::to_string(byte) + " ";
    for (std::size_t at = info.find("lock:"); at != std::string::npos; at = info.find("lock:", at + 1)) {
        const std::string line = info.substr(at, info.find('\n', at) - at);
        if (line.find("OFDLCK") != std::string::npos && line.find(first) != std::string::npos) return true;
        if (byte == holder_byte && line.find(" FLOCK ") != std::string::npos) return true;
    }
    return false;
}

// flock(2) cannot be tested without taking it; the kernel's list of locks shows it.
bool flock_listed(int fd) {
    struct stat st = {};
    if (::fstat(fd, &st) != 0) return false;
    char wanted[64];
    std::snprintf(wanted, sizeof wanted, " %02x:%02x:%lu ", major(st.st_dev), minor(st.st_dev),
                  static_cast<unsigned long>(st.st_ino));
    FILE *list = std::fopen("/proc/locks", "re");
    if (list == nullptr) return false;
    char line[256];
    bool found = false;
    while (!found && std::fgets(line, sizeof line, list) != nullptr)
        found = std::strstr(line, " FLOCK ") != nullptr && std::strstr(line, wanted) != nullptr &&
                std::strstr(line, "->") == nullptr;  // "->" marks a waiter
    std::fclose(list);
    return found;
}

}  // namespace

Has has_lock(pid_t pid, const LockFile &file, std::int64_t byte) {
    struct stat wanted = {};
    if (::fstat(file.fd(), &wanted) != 0) return Has::unseen;
    const std::string base = "/proc/" + std::to_string(pid);
    if (::access((base + "/fd").c_str(), R_OK | X_OK) != 0) return Has::unseen;  // ENOENT: its first thread has ended
    bool refused = false;
    Has answer = Has::unseen;  // also for an exiting process: its descriptors are closed first
    for (const int fd : numbers_in(base + "/fd")) {
        if (answer == Has::unseen) answer = Has::no;
        struct stat st = {};
        const std::string number = std::to_string(fd);
        if (::stat((base + "/fd/" + number).c_str(), &st) != 0) {
            refused = refused || errno == EACCES || errno == EPERM;
            continue;
        }
        if (st.st_dev != wanted.st_dev || st.st_ino != wanted.st_ino) continue;
        if (names_lock(kernel_text(base + "/fdinfo/" + number, fdinfo_max), byte)) return Has::yes;
    }
    return answer == Has::no && refused ? Has::unseen : answer;
}

std::vector<pid_t> processes_with_lock(const LockFile &file, std::int64_t byte) {
    std::vector<pid_t> found;
    for (const int pid : numbers_in("/proc"))
        if (has_lock(pid, file, byte) == Has::yes) found.push_back(pid);
    return found;
}

Owner owner_by_kernel(const World &world, const ProcessIdentity &process) {
    struct stat st = {};
    const bool there = ::stat(("/proc/" + std::to_string(process.pid)).c_str(), &st) == 0;
    return {.process = process,
            .uid = there ? st.st_uid : ::geteuid(),
            .boot = world.boot,
            .pid_namespace = world.pid_namespace,
            .host = world.host,
            .command = command_of(process.pid)};
}

std::vector<Owner> owners_of_lock(const World &world, const LockFile &file, std::int64_t byte) {
    std::vector<Owner> owners;
    for (const pid_t pid : processes_with_lock(file, byte))
        if (const auto process = identify(pid)) owners.push_back(owner_by_kernel(world, *process));
    return owners;
}

bool is_held(const std::string &path) {
    Place place{.path = path};
    const Result<LockFile> file = LockFile::look(place);
    return file && (file->first_locked(holder_byte, 1) >= 0 || flock_listed(file->fd()));
}

}  // namespace dcs::locks
