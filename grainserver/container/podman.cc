#include "grainserver/container/podman.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "grainserver/container/words.h"

namespace dcs::container {
namespace {

std::string put(const std::string &path, const std::string &text, int flags) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0600));
    if (fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return "";
    return path + ": " + std::strerror(errno);
}

}  // namespace

// Locks in files: those in shared memory would be lost for the account when a grain is killed. No limits of its own:
// the launcher has set those of the grain.
std::string write_configs(const std::string &directory) {
    ::mkdir(directory.c_str(), 0700);
    const std::string quoted = "\"" + directory;
    std::string wrong = put(directory + "/containers.conf",
                            "[containers]\ncgroups = \"disabled\"\nnetns = \"host\"\nutsns = \"host\"\n"
                            "ipcns = \"private\"\npidns = \"private\"\nuserns = \"host\"\nlog_driver = \"none\"\n"
                            "pids_limit = 0\ndefault_ulimits = []\n"
                            "[engine]\nlock_type = \"file\"\ncgroup_manager = \"cgroupfs\"\n"
                            "events_logger = \"none\"\ntmp_dir = " +
                                quoted + "/tmp\"\n",
                            O_CREAT | O_TRUNC);
    if (wrong.empty())
        wrong = put(directory + "/storage.conf",
                    "[storage]\ndriver = \"vfs\"\ngraphroot = " + quoted +
                        "/graph\"\nrootless_storage_path = " + quoted + "/graph\"\nrunroot = " + quoted +
                        "/run\"\n[storage.options]\nignore_chown_errors = \"true\"\n"
                        "[storage.options.vfs]\nignore_chown_errors = \"true\"\n",
                    O_CREAT | O_TRUNC);
    return wrong.empty() ? put(directory + "/registries.conf", "", O_CREAT | O_TRUNC) : wrong;
}

// The room and its parents are in a tmpfs: the image's own file system stays as it is.
std::vector<std::string> podman_command(const Mounts &mounts, bool network) {
    std::vector<std::string> words = {podman,
                                      "--log-level=error",
                                      "run",
                                      "--rm",
                                      "--pull=never",
                                      "--preserve-fds=" + std::to_string(passed_fds),
                                      "--ulimit=host",
                                      "--read-only",
                                      "--security-opt=seccomp=unconfined",  // the one inside has a stricter filter
                                      "--security-opt=no-new-privileges",
                                      "--cap-drop=all",
                                      "--http-proxy=false",
                                      "--tmpfs=" + mounts.grains + ":rw,mode=0755",
                                      "--volume=" + mounts.room + ":" + mounts.room,
                                      "--volume=" + mounts.runner + ":" + mounts.runner_inside() + ":ro"};
    if (!mounts.program.empty()) words.push_back("--volume=" + mounts.program + ":" + mounts.program_inside() + ":ro");
    for (const std::string &file : mounts.devices) words.push_back("--volume=" + file + ":" + file + ":dev");
    if (!network) words.emplace_back("--network=none");
    words.insert(words.end(), {"--rootfs", mounts.rootfs, mounts.runner_inside(), "inside"});
    return words;
}

std::vector<std::string> gpu_devices(const std::string &gpus, const std::string &directory) {
    constexpr std::string_view common[] = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"};
    std::vector<std::string> found;
    std::error_code error;
    if (gpus.empty()) return found;
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename(), start = "nvidia";
        const std::string index = name.starts_with(start) ? name.substr(start.size()) : "";
        const bool is_gpu = !index.empty() && index.find_first_not_of("0123456789") == std::string::npos;
        const bool its = is_gpu && (gpus == "all" || ("," + gpus + ",").find("," + index + ",") != std::string::npos);
        if (!its && std::find(std::begin(common), std::end(common), name) == std::end(common)) continue;
        if (std::filesystem::is_character_file(it->path(), error)) found.push_back(it->path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

void unmount_below(const std::string &directory) {
    std::vector<std::string> places;
    std::ifstream mounts("/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream words(line);
        std::string word;
        for (int i = 0; i < 5; ++i) words >> word;  // the fifth is where it is mounted
        if (word.starts_with(directory + "/")) places.push_back(word);
    }
    for (auto place = places.rbegin(); place != places.rend(); ++place) (void)::umount2(place->c_str(), MNT_DETACH);
}

std::string enter_namespaces() {
    const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return std::string("this host refuses a user namespace: ") + std::strerror(errno);
    std::string wrong = put("/proc/self/setgroups", "deny", 0);
    if (wrong.empty()) wrong = put("/proc/self/uid_map", "0 " + uid + " 1\n", 0);
    if (wrong.empty()) wrong = put("/proc/self/gid_map", "0 " + gid + " 1\n", 0);
    if (!wrong.empty()) return wrong;
    if (::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
        return std::string("mounts of its own: ") + std::strerror(errno);
    // crun refuses to start where both versions of control groups have controllers. It needs none.
    struct stat st {};
    if (::stat("/sys/fs/cgroup/unified", &st) == 0) (void)::mount("none", "/sys/fs/cgroup", "tmpfs", 0, nullptr);
    return "";
}

}  // namespace dcs::container
