#include "daemon/privileges.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "process/landlock.h"

namespace dcs {
namespace {

// Those that are not there are left out. /proc/locks: who has our locks.
constexpr const char *files_of_the_system[] = {"/usr/lib",
                                               "/usr/lib32",
                                               "/usr/lib64",
                                               "/usr/share/zoneinfo",
                                               "/lib",
                                               "/lib64",
                                               "/etc/ld.so.cache",
                                               "/etc/resolv.conf",
                                               "/etc/hosts",
                                               "/etc/host.conf",
                                               "/etc/nsswitch.conf",
                                               "/etc/gai.conf",
                                               "/etc/services",
                                               "/etc/protocols",
                                               "/etc/localtime",
                                               "/run/systemd/resolve",
                                               "/run/resolvconf",
                                               "/run/NetworkManager/resolv.conf",
                                               "/run/NetworkManager/no-stub-resolv.conf",
                                               "/dev/null",
                                               "/dev/urandom",
                                               "/proc/self",
                                               "/proc/locks",
                                               "/proc/sys/vm/overcommit_memory",
                                               "/sys/devices/system/cpu"};
constexpr int moves_since = 2;             // before it, nothing could be moved from one directory to another
constexpr unsigned capabilities_max = 64;  // of the form that the kernel takes
constexpr std::uint64_t reading = landlock::read_file | landlock::read_directory;
constexpr std::uint64_t writing = reading | landlock::write_file | landlock::truncate | landlock::remove_directory |
                                  landlock::remove_file | landlock::make_directory | landlock::make_file |
                                  landlock::move;

Status failed(const std::string &what, int error = errno) {
    return fail_errno(Code::io_error, "dropping privileges: " + what, error);
}

Status allow(int ruleset, const std::string &path, std::uint64_t rights) {
    const Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!fd) return Status::ok();
    struct stat st {};
    if (::fstat(fd.get(), &st) == 0 && !S_ISDIR(st.st_mode)) rights &= landlock::of_files;
    const int error = landlock::allow(ruleset, fd.get(), rights);
    return error == 0 ? Status::ok() : fail_errno(Code::io_error, "cannot restrict file access to " + path, error);
}

}  // namespace

Status give_up_capabilities(std::uint64_t keep) {
    // With 0 the kernel still hands the image to a program, if there is one in core_pattern; with 1 it does neither.
    rlimit core{};
    if (::getrlimit(RLIMIT_CORE, &core) != 0) return failed("core files");
    core.rlim_max = std::min<rlim_t>(core.rlim_max, 1);
    core.rlim_cur = core.rlim_max;
    if (::setrlimit(RLIMIT_CORE, &core) != 0) return failed("core files");
    // Only root has capabilities, and only root may drop them from the bounding set; where that was done before, the
    // right to it may be gone, and nothing can be gained any more.
    const bool final = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    for (unsigned i = 0; ::geteuid() == 0 && i < capabilities_max; ++i)
        if (((keep >> i) & 1) == 0 && ::prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0 && errno == EPERM && !final)
            if (::prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1) return failed("a capability of the bounding set");
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
        return failed("ambient capabilities");
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    if (::syscall(SYS_capget, &header, sets) != 0) return failed("capabilities");
    for (unsigned half = 0; half < _LINUX_CAPABILITY_U32S_3; ++half) {
        sets[half].permitted &= static_cast<std::uint32_t>(keep >> (32 * half));
        sets[half].effective = sets[half].permitted;
        sets[half].inheritable = 0;
    }
    if (::syscall(SYS_capset, &header, sets) != 0) return failed("capabilities");
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? Status::ok() : failed("new privileges");
}

Result<bool> give_up_files(const std::vector<std::string> &directories, const std::vector<std::string> &readable) {
    const int version = landlock::version();
    if (version < moves_since) return false;
    const std::uint64_t known = landlock::rights_known(version);
    const Fd ruleset(landlock::new_ruleset(known, landlock::scopes_known(version)));
    if (!ruleset) return failed("files");
    Status s;
    for (const std::string &directory : directories)
        if (s) s = allow(ruleset.get(), directory, writing & known);
    for (const std::string &directory : readable)
        if (s) s = allow(ruleset.get(), directory, reading & known);
    for (const char *path : files_of_the_system)
        if (s) s = allow(ruleset.get(), path, reading & known);
    if (!s) return s;
    const int error = landlock::restrict_self(ruleset.get());
    return error == 0 ? Result<bool>(true) : failed("files", error);
}

}  // namespace dcs
