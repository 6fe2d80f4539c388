#include "grainserver/container/image.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grainserver/container/child.h"
#include "grainserver/container/podman.h"

namespace dcs::container {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t images_kept = 8;  // unpacked and not in use
constexpr const char *lock_end = ".lock", *making_end = ".new", *tar = "/bin/tar";

std::string words_for(const std::string &what, int error) { return what + ": " + std::strerror(error); }

Fd locked(const std::string &path, int how) {
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    int done = -1;
    while (fd && (done = ::flock(fd.get(), how)) != 0 && errno == EINTR) {}
    return done == 0 ? std::move(fd) : Fd();
}

struct stat about(const std::string &path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) st.st_mode = 0;
    return st;
}

void remove_all(const std::string &path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
}

// Of those that no grain uses the latest ones stay. The files of locks stay too: one that is removed while another
// process waits for it would be two locks.
void remove_old(const std::string &store, const std::string &except) {
    std::vector<std::pair<std::int64_t, std::string>> found;
    std::error_code error;
    for (fs::directory_iterator it(store, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename();
        if (!name.ends_with(lock_end) || name == except + lock_end) continue;
        const std::string rootfs = it->path().string().substr(0, it->path().string().size() - std::strlen(lock_end));
        if (S_ISDIR(about(rootfs).st_mode) || S_ISDIR(about(rootfs + making_end).st_mode))
            found.emplace_back(about(it->path()).st_mtim.tv_sec, rootfs);
    }
    if (found.size() < images_kept) return;
    std::sort(found.begin(), found.end());
    for (std::size_t i = 0; i + images_kept <= found.size(); ++i) {
        const Fd lock = locked(found[i].second + lock_end, LOCK_EX | LOCK_NB);
        if (!lock) continue;
        remove_all(found[i].second);
        remove_all(found[i].second + making_end);
    }
}

bool is_in(const std::string &archive, const char *name, const Environment &environment) {
    const Fd log(::memfd_create("tar", MFD_CLOEXEC));
    return run({tar, "--list", "--file", archive, "--occurrence=1", name}, environment, log.get()) == 0;
}

// Everything belongs to the grain's account. Devices are those of the container.
std::string untar(const std::string &archive, const std::string &to, const Environment &environment) {
    const Fd log(::memfd_create("tar", MFD_CLOEXEC));
    const int status =
        run({tar, "--extract", "--file", archive, "--directory", to, "--no-same-owner", "--preserve-permissions",
             "--delay-directory-restore", "--exclude=dev/*", "--exclude=./dev/*"},
            environment, log.get());
    return status == 0 ? "" : "the image is no archive that tar can unpack: " + tail_of(log.get());
}

// podman itself puts the layers together.
std::string flatten(const std::string &archive, const std::string &aside, const std::string &to) {
    const std::string configs = aside + "/podman", flat = aside + "/flat.tar";
    if (const std::string error = write_configs(configs); !error.empty()) return error;
    const Environment environment{configs, configs};
    const Fd log(::memfd_create("podman", MFD_CLOEXEC));
    const auto step = [&](std::vector<std::string> words) {
        words.insert(words.begin(), podman);
        return run(words, environment, log.get()) == 0;
    };
    const bool loaded = step({"load", "--quiet", "--input", archive});
    if (!loaded) return "podman cannot load the image: " + tail_of(log.get());
    const Fd list(::memfd_create("images", MFD_CLOEXEC));
    if (run({podman, "images", "--quiet", "--no-trunc"}, environment, list.get()) != 0)
        return "podman cannot list the image: " + tail_of(list.get());
    const std::string text = tail_of(list.get());
    const std::size_t at = text.rfind("sha256:");
    const std::string id = at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
    if (id.empty() || !step({"create", "--pull=never", "--name=flat", id, "/none"}) ||
        !step({"export", "--output", flat, "flat"}))
        return "podman cannot unpack the image: " + tail_of(log.get());
    return untar(flat, to, environment);
}

std::string make_rootfs(const std::string &archive, const std::string &making) {
    remove_all(making);
    const std::string root = making + "/root";
    std::error_code error;
    fs::create_directories(root, error);
    if (error) return words_for("the directory of images", error.value());
    const Environment environment{making, ""};
    if (is_in(archive, "manifest.json", environment) || is_in(archive, "oci-layout", environment) ||
        is_in(archive, "./oci-layout", environment))
        return flatten(archive, making, root);
    return untar(archive, root, environment);
}

}  // namespace

Rootfs take_rootfs(const std::string &archive, const std::string &store, const std::string &hex) {
    Rootfs rootfs;
    rootfs.path = store + "/" + hex;
    if (::mkdir(store.c_str(), 0700) != 0 && errno != EEXIST) {
        rootfs.error = words_for(store, errno);
        return rootfs;
    }
    const std::string lock = rootfs.path + lock_end;
    while (true) {
        rootfs.lock = locked(lock, LOCK_SH);
        if (!rootfs.lock) rootfs.error = words_for(lock, errno);
        if (!rootfs.lock || S_ISDIR(about(rootfs.path).st_mode)) break;
        rootfs.lock = Fd();
        const Fd alone = locked(lock, LOCK_EX);
        if (S_ISDIR(about(rootfs.path).st_mode)) continue;
        remove_old(store, hex);
        const std::string making = rootfs.path + making_end;
        rootfs.error = make_rootfs(archive, making);
        unmount_below(making);
        rootfs.of_image = !rootfs.error.empty();
        if (rootfs.error.empty() && ::rename((making + "/root").c_str(), rootfs.path.c_str()) != 0)
            rootfs.error = words_for(rootfs.path, errno);
        remove_all(making);
        if (!rootfs.error.empty()) return rootfs;
    }
    ::futimens(rootfs.lock.get(), nullptr);
    return rootfs;
}

}  // namespace dcs::container
