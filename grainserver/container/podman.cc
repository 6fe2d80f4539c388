#include "grainserver/container/podman.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "grainserver/container/words.h"

namespace dcs::container {
namespace {

// The variables by which podman finds itself to be the one that its rootless parent starts in the user namespace: that
// is what this program has made already, with one uid and without helpers that have privileges.
std::vector<std::string> variables(const Environment &environment) {
    const std::string &home = environment.configs.empty() ? environment.temporary : environment.configs;
    std::vector<std::string> all = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8",
                                    "HOME=" + home, "TMPDIR=" + environment.temporary};
    if (environment.configs.empty()) return all;
    for (const char *name : {"CONTAINERS_CONF=", "CONTAINERS_STORAGE_CONF=", "CONTAINERS_REGISTRIES_CONF="}) {
        const std::string key(name);
        const std::string file = key == "CONTAINERS_CONF="           ? "containers.conf"
                                 : key == "CONTAINERS_STORAGE_CONF=" ? "storage.conf"
                                                                     : "registries.conf";
        all.push_back(key + environment.configs + "/" + file);
    }
    all.push_back("XDG_RUNTIME_DIR=" + home);
    all.push_back("_CONTAINERS_USERNS_CONFIGURED=done");
    all.push_back("_CONTAINERS_ROOTLESS_UID=" + std::to_string(::geteuid()));
    all.push_back("_CONTAINERS_ROOTLESS_GID=" + std::to_string(::getegid()));
    return all;
}

[[noreturn]] void become(const std::vector<char *> &argv, const std::vector<char *> &env, const std::vector<int> &fds,
                         int input, int log) {
    constexpr int aside = 100;  // above all that are open here, and all places
    if (input < 0) input = ::open("/dev/null", O_RDONLY);
    bool good = input >= 0;
    for (std::size_t i = 0; i < fds.size(); ++i) good = good && ::dup2(fds[i], aside + static_cast<int>(i)) >= 0;
    good = good && ::dup2(input, 0) == 0 && ::dup2(log, 1) == 1 && ::dup2(log, 2) == 2;
    for (std::size_t i = 0; i < fds.size(); ++i)
        good = good && ::dup2(aside + static_cast<int>(i), 3 + static_cast<int>(i)) >= 0;
    ::syscall(SYS_close_range, static_cast<unsigned>(3 + fds.size()), ~0u, 0u);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (good) ::execve(argv[0], argv.data(), env.data());
    ::_exit(not_started);
}

std::vector<pid_t> children() {
    std::vector<pid_t> pids;
    std::ifstream list("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    for (pid_t pid = 0; list >> pid;) pids.push_back(pid);
    return pids;
}

std::string put(const std::string &path, const std::string &text, int flags) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0600));
    if (fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return "";
    return path + ": " + std::strerror(errno);
}

}  // namespace

void end_all() {
    int status = 0;
    for (;;) {
        for (const pid_t pid : children()) ::kill(pid, SIGKILL);
        if (::waitpid(-1, &status, 0) < 0 && errno != EINTR) return;
    }
}

pid_t start(const std::vector<std::string> &argv, const Environment &environment, const std::vector<int> &fds,
            int log) {
    const std::vector<std::string> env = variables(environment);
    const std::vector<char *> words = pointers_to(argv), entries = pointers_to(env);
    const pid_t child = ::fork();
    if (child == 0) become(words, entries, fds, environment.input, log);
    return child;
}

int run(const std::vector<std::string> &argv, const Environment &environment, int log,
        const std::function<bool()> &goes_on) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds longest(100);
    const pid_t child = start(argv, environment, {}, log);
    auto pause = goes_on ? Clock::duration(std::chrono::milliseconds(1)) : Clock::duration(longest);
    int status = -1;
    while (child > 0) {
        const pid_t ended = ::waitpid(child, &status, goes_on ? WNOHANG : 0);
        if (ended == child) return status;
        if (ended < 0 && errno != EINTR) return -1;
        if (ended != 0) continue;
        const auto before = Clock::now();
        if (!goes_on()) {
            end_all();
            return -1;
        }
        // At most half of the time is spent in looking.
        pause = std::max(std::min(pause * 2, Clock::duration(longest)), Clock::now() - before);
        std::this_thread::sleep_for(pause);
    }
    return -1;
}

std::string tail_of(int log, std::int64_t most) {
    struct stat st {};
    if (::fstat(log, &st) != 0) return "";
    const off_t from = st.st_size > most ? st.st_size - most : 0;
    std::string text(static_cast<std::size_t>(st.st_size - from), '\0');
    const ssize_t n = ::pread(log, text.data(), text.size(), from);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
}

// Locks in files: those in shared memory would be lost for the account when a grain is killed. No limits of its own:
// the launcher has set those of the grain.
std::string write_configs(const std::string &directory, const std::string &graph) {
    ::mkdir(directory.c_str(), 0700);
    const std::string quoted = "\"" + directory;
    std::string wrong = put(directory + "/containers.conf",
                            "[containers]\ncgroups = \"disabled\"\nnetns = \"host\"\nutsns = \"host\"\n"
                            "ipcns = \"private\"\npidns = \"private\"\nuserns = \"host\"\nlog_driver = \"none\"\n"
                            "pids_limit = 0\ndefault_ulimits = []\n"
                            "[engine]\nlock_type = \"file\"\ncgroup_manager = \"cgroupfs\"\n"
                            "events_logger = \"none\"\ntmp_dir = " +
                                quoted + "/tmp\"\nstatic_dir = " + quoted + "/static\"\n",
                            O_CREAT | O_TRUNC);
    if (wrong.empty())
        wrong = put(directory + "/storage.conf",
                    "[storage]\ndriver = \"vfs\"\ngraphroot = \"" + graph + "\"\nrootless_storage_path = \"" + graph +
                        "\"\nrunroot = " + quoted +
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

// Before Linux 5.11 user namespaces mount no overlays: the image itself is the root.
std::string mount_root(const std::string &rootfs, const std::string &grains) {
    const std::string place(private_place), image = place + "/image", upper = place + "/upper", work = place + "/work",
                                            root = place + "/root";
    std::error_code error;
    for (const std::string &name : {image, upper + grains, work, root})
        std::filesystem::create_directories(name, error);
    const std::string layers = "lowerdir=" + image + ",upperdir=" + upper + ",workdir=" + work;
    const bool mounted = !error && ::mount(rootfs.c_str(), image.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
                         ::mount("overlay", root.c_str(), "overlay", 0, layers.c_str()) == 0;
    return mounted ? root : rootfs;
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
    if (::mount("none", private_place, "tmpfs", 0, "mode=0700,size=64m") != 0)
        return std::string(private_place) + ": " + std::strerror(errno);
    return "";
}

}  // namespace dcs::container
