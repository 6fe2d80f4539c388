#include "grainserver/files/confine.h"

#include <cerrno>
#include <climits>
#include <cstdio>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/landlock.h"
#include "base/planted.h"
#include "base/require.h"

namespace dcs::files {
namespace {
constexpr std::uint64_t right_write = landlock::write_file | landlock::truncate;
constexpr std::uint64_t all_writes = right_write | landlock::remove_directory | landlock::remove_file |
                                     landlock::make_device | landlock::make_directory | landlock::make_file |
                                     landlock::make_socket | landlock::make_fifo | landlock::make_link | landlock::move;
constexpr const char *scratch[] = {"/tmp", "/var/tmp", "/dev/shm"};
constexpr const char *scratch_name = "tmp";           // in the room
constexpr const char *devices[] = {"/dev", "/proc"};  // writable, no new files: their permissions apply

Status allow(int ruleset, int directory, std::uint64_t rights, const std::string &name) {
    const int error = landlock::allow(ruleset, directory, rights);
    return error == 0 ? Status::ok() : file_error("the confinement to " + name, error);
}

Status allow_path(int ruleset, const std::string &path, std::uint64_t rights) {
    const Fd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return fd ? allow(ruleset, fd.get(), rights, path) : Status::ok();
}

Status open_what_it_may_write(int ruleset, const ConfinementWish &wish) {
    if (Status s = allow(ruleset, wish.room, all_writes, "the room"); !s) return s;
    for (const char *path : scratch)
        if (Status s = allow_path(ruleset, path, all_writes); !s) return s;
    for (const char *path : devices)
        if (Status s = allow_path(ruleset, path, right_write); !s) return s;
    for (const std::string &path : wish.writable)
        if (Status s = allow_path(ruleset, path, all_writes); !s) return s;
    return Status::ok();
}

// In the working directory. Made with the rights of the room's owner, so nothing that others put there is affected.
int open_scratch(uid_t uid, gid_t gid) noexcept {
    ::syscall(SYS_setfsgid, gid);
    ::syscall(SYS_setfsuid, uid);
    ::mkdir(scratch_name, 0700);
    const int fd = ::open(scratch_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int error = errno;
    ::syscall(SYS_setfsuid, ::geteuid());
    ::syscall(SYS_setfsgid, ::getegid());
    struct stat st {};
    errno = error;
    if (fd < 0) return -1;
    if (::fstat(fd, &st) == 0 && st.st_uid == uid) return fd;
    ::close(fd);
    errno = EPERM;
    return -1;
}

// So that nothing that is mounted here shows on the host.
int leave_the_host() noexcept { return ::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 ? 0 : errno; }

int own_mounts(int scratch_fd) noexcept {
    // Hides processes of other users. Older kernels accept the number only.
    const unsigned long plain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (::mount("proc", "/proc", "proc", plain, "hidepid=invisible") != 0 &&
        ::mount("proc", "/proc", "proc", plain, "hidepid=2") != 0)
        return errno;
    char from[64];
    std::snprintf(from, sizeof from, "/proc/self/fd/%d", scratch_fd);
    for (const char *to : scratch)
        if (::mount(from, to, nullptr, MS_BIND, nullptr) != 0 && errno != ENOENT) return errno;
    return 0;
}

// From linux/mount.h, which is not for use beside sys/mount.h.
struct MountAttributes {
    std::uint64_t set = 0, clear = 0, propagation = 0, user_space = 0;
};
constexpr std::uint64_t read_only = 1;
constexpr int nr_mount_setattr = 442;

int change_mount(int at, const char *path, unsigned flags, MountAttributes attributes) noexcept {
    return ::syscall(nr_mount_setattr, at, path, flags, &attributes, sizeof attributes) == 0 ? 0 : errno;
}

// Mounts of their own for what the grain may write. The working directory, the room, is in its own one then.
int part_writable(const Confinement &confinement) noexcept {
    char room[PATH_MAX];
    const ssize_t length = ::readlink("/proc/self/cwd", room, sizeof room - 1);
    if (length <= 0) return errno;
    room[length] = '\0';
    const auto bind = [](const char *path) { return ::mount(path, path, nullptr, MS_BIND | MS_REC, nullptr) == 0; };
    for (const std::string &path : confinement.writable)
        if (!bind(path.c_str())) return errno;
    return bind(room) && ::chdir(room) == 0 ? 0 : errno;
}

// Makes all other mounts read-only, because Landlock leaves modes, owners and times to the owner of a file. Without
// effect before Linux 5.12.
int only_read(const Confinement &confinement, int room) noexcept {
    const int error = change_mount(AT_FDCWD, "/", 0x8000 /* AT_RECURSIVE */, {read_only});
    if (error != 0) return error == ENOSYS ? 0 : error;
    const MountAttributes writable{0, read_only};
    if (const int refused = change_mount(room, "", AT_EMPTY_PATH, writable); refused != 0) return refused;
    if (const int refused = change_mount(AT_FDCWD, "/proc", 0, writable); refused != 0) return refused;
    for (const std::string &path : confinement.writable) (void)change_mount(AT_FDCWD, path.c_str(), 0, writable);
    for (const char *path : scratch) (void)change_mount(AT_FDCWD, path, 0, writable);  // what is missing is no mount
    return 0;
}

// Runs `attempt` in a child process; whether it succeeded.
template <class Try> bool tried(Try attempt) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(attempt() == 0 ? 0 : 1);
    int status = 1;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool confinement_works(Rungs rungs, const Fd &room) {
    ConfinementWish wish{.rungs = rungs, .room = room.get()};
    const Result<Confinement> confinement = make_confinement(wish);
    return confinement && tried([&] {
               return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? errno : put_confinement_on(*confinement);
           });
}
}  // namespace

std::vector<sock_filter> inherited_filter(Rungs rungs) { return syscall_filter(filter_wish(rungs, true)); }

Result<Confinement> make_confinement(const ConfinementWish &wish) {
    Confinement confinement{.rungs = wish.rungs};
    if (wish.rungs & ~all_rungs) return fail(Code::invalid, "the launch asks for an unknown kind of confinement");
    if (wish.rungs & (rung_filter | rung_no_network)) {
        confinement.filter = syscall_filter(filter_wish(wish.rungs));
        if (confinement.filter.empty())
            return fail(Code::invalid, "this kind of machine has no filter of system calls");
    }
    if (!(wish.rungs & (rung_scope | rung_files))) return confinement;
    confinement.ruleset = Fd(landlock::new_ruleset((wish.rungs & rung_files) ? all_writes : 0,
                                                   landlock::abstract_sockets | landlock::signals));
    if (!confinement.ruleset) return file_error("the confinement of a grain", errno);
    DCS_REQUIRE(!(wish.rungs & rung_files) || wish.room >= 0, "a grain may always write in its room");
    if (wish.rungs & rung_files)
        if (Status s = open_what_it_may_write(confinement.ruleset.get(), wish); !s) return s;
    struct statvfs disk {};
    for (const std::string &path : wish.writable)
        if (::statvfs(path.c_str(), &disk) == 0 && (disk.f_flag & ST_RDONLY) == 0) confinement.writable.push_back(path);
    return confinement;
}

int enter_namespaces(const Confinement &confinement, int room, uid_t uid, gid_t gid) noexcept {
    if (!(confinement.rungs & rung_namespaces)) return 0;
    const int network = (confinement.rungs & rung_no_network) ? CLONE_NEWNET : 0;
    // A descriptor stays in the mounts in which it was opened, and would be a way back to them; the working
    // directory moves to the new ones.
    if (::fchdir(room) != 0 || ::unshare(CLONE_NEWNS | CLONE_NEWIPC | network) != 0) return errno;
    if (const int error = leave_the_host(); error != 0) return error;
    const bool fenced = (confinement.rungs & rung_files) != 0;
    if (const int error = fenced ? part_writable(confinement) : 0; error != 0) return error;
    const int here = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int fd = here < 0 || ::dup3(here, room, O_CLOEXEC) < 0 ? -1 : open_scratch(uid, gid);
    if (fd < 0) return errno;
    int error = own_mounts(fd);
    if (error == 0 && fenced) error = only_read(confinement, room);
    // Opened through /tmp, it is not a part of the room any more.
    if (error == 0 && fenced) error = landlock::allow(confinement.ruleset.get(), fd, all_writes);
    ::close(here);
    ::close(fd);
    return error;
}

int put_confinement_on(const Confinement &confinement, bool inherits) noexcept {
    const int error = confinement.ruleset ? landlock::restrict_self(confinement.ruleset.get()) : 0;
    if (error != 0) return error;
    if (confinement.filter.empty()) return 0;
    if (inherits) return planted("files.leaves_clone3") ? 0 : deny_clone3();
    return put_filter_on(confinement.filter);
}

bool is_below_scratch(const std::string &path) {
    for (const char *top : scratch)
        if (path == top || path.rfind(std::string(top) + "/", 0) == 0) return true;
    return false;
}

Available rungs_available(bool users, const std::string &directory) {
    Available host;
    const Fd room(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto note = [&host](Rungs rungs, bool there, const std::string &why) {
        if (there) host.rungs |= rungs;
        else host.lacks.push_back({rungs, why});
    };
    note(rung_accounts, users, "all grains run under this server's account (--run-as self)");
    note(rung_filter | rung_no_network, filter_available() && confinement_works(rung_filter | rung_no_network, room),
         "its kernel does not filter system calls (seccomp)");
    const bool scopes = landlock::version() >= landlock::scoping_since;
    note(rung_scope | rung_files, scopes && confinement_works(rung_scope | rung_files, room),
         "its kernel has no Landlock of version " + std::to_string(landlock::scoping_since) + " (Linux 6.12)");
    if (::geteuid() != 0) note(rung_namespaces, false, "only a server that is root can make namespaces");
    else if (is_below_scratch(directory))
        note(rung_namespaces, false, directory + " lies in a directory that each grain gets privately");
    else
        note(rung_namespaces, tried([] {
                 if (::unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET) != 0) return errno;
                 const int root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                 const int error = root < 0 ? errno : leave_the_host();
                 return error != 0 ? error : own_mounts(root);
             }),
             "its kernel refuses namespaces to this server");
    return host;
}

}  // namespace dcs::files
