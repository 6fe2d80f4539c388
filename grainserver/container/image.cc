#include "grainserver/container/image.h"

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
#include "grainserver/container/image_room.h"
#include "grainserver/container/podman.h"

namespace dcs::container {
namespace {

namespace fs = std::filesystem;
constexpr const char *tar = "/bin/tar";

std::string words_for(const std::string &what, int error) { return what + ": " + std::strerror(error); }

struct stat about(const std::string &path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) st.st_mode = 0;
    return st;
}

void remove_all(const std::string &path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
}

// An image that is being unpacked. What it takes is measured many times a second, and the program that unpacks it is
// ended when it takes too much.
class Making {
public:
    Making(std::string archive, std::string making, const ImageRoom &room)
        : archive_(std::move(archive)), making_(std::move(making)), room_(room) {}
    // "", or why there is no root file system in making/root.
    std::string make();
    bool lacks_room() const { return lacks_room_; }
    std::uint64_t size() const { return size_; }

private:
    bool run_within(const std::vector<std::string> &words, const Environment &environment, int log);
    bool is_within(const std::string &path);
    bool is_in_archive(const char *name, const Environment &environment) const;
    std::string untar(const std::string &archive, const std::string &to, const Environment &environment);
    std::string flatten(const std::string &to);

    std::string archive_, making_;
    const ImageRoom &room_;
    std::uint64_t size_ = 0;
    std::string beyond_;  // not empty: in words, how it exceeds the room
    bool lacks_room_ = false;
};

bool Making::is_within(const std::string &path) {
    size_ = taken_by(path);
    const std::string most = std::to_string(room_.most() >> 20) + " MB";
    if (size_ > room_.most())
        beyond_ =
            "the image unpacks to more than the " + most +
            " that this host has for unpacked images: use a smaller one, with less files, or let the host's owner "
            "start the grain server with more --images-mb";
    else if (!room_.make(size_)) {
        beyond_ = "unpacked images that grains use leave no room for another one within " + most + " (--images-mb)";
        lacks_room_ = true;
    }
    return beyond_.empty();
}

bool Making::run_within(const std::vector<std::string> &words, const Environment &environment, int log) {
    return run(words, environment, log, [this] { return is_within(making_); }) == 0;
}

bool Making::is_in_archive(const char *name, const Environment &environment) const {
    const Fd log(::memfd_create("tar", MFD_CLOEXEC));
    return run({tar, "--list", "--file", archive_, "--occurrence=1", name}, environment, log.get()) == 0;
}

// Everything belongs to the grain's account. Devices are those of the container.
std::string Making::untar(const std::string &archive, const std::string &to, const Environment &environment) {
    const Fd log(::memfd_create("tar", MFD_CLOEXEC));
    const bool done =
        run_within({tar, "--extract", "--file", archive, "--directory", to, "--no-same-owner", "--preserve-permissions",
                    "--delay-directory-restore", "--exclude=dev/*", "--exclude=./dev/*"},
                   environment, log.get());
    return done ? "" : "the image is no archive that tar can unpack: " + tail_of(log.get());
}

// podman itself puts the layers together.
std::string Making::flatten(const std::string &to) {
    const std::string configs = making_ + "/podman", flat = making_ + "/flat.tar";
    if (const std::string error = write_configs(configs); !error.empty()) return error;
    const Environment environment{configs, configs};
    const Fd log(::memfd_create("podman", MFD_CLOEXEC));
    const auto step = [&](std::vector<std::string> words) {
        words.insert(words.begin(), podman);
        return run_within(words, environment, log.get());
    };
    const bool loaded = step({"load", "--quiet", "--input", archive_});
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
    unmount_below(making_);
    remove_all(configs + "/graph");  // a copy for each layer
    return untar(flat, to, environment);
}

std::string Making::make() {
    remove_all(making_);
    const std::string root = making_ + "/root";
    std::error_code error;
    fs::create_directories(root, error);
    if (error) return words_for("the directory of images", error.value());
    const Environment environment{making_, ""};
    const bool of_podman = is_in_archive("manifest.json", environment) || is_in_archive("oci-layout", environment) ||
                           is_in_archive("./oci-layout", environment);
    std::string wrong = of_podman ? flatten(root) : untar(archive_, root, environment);
    if (wrong.empty()) (void)is_within(root);
    return beyond_.empty() ? wrong : beyond_;
}

}  // namespace

Rootfs take_rootfs(const std::string &archive, const std::string &store, const std::string &hex, std::uint64_t most) {
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
        const ImageRoom room(store, hex, most);
        (void)room.make(0);
        const std::string making = rootfs.path + making_end;
        Making image(archive, making, room);
        rootfs.error = image.make();
        unmount_below(making);
        rootfs.of_image = !rootfs.error.empty() && !image.lacks_room();
        record_size(alone.get(), image.size());
        if (rootfs.error.empty() && ::rename((making + "/root").c_str(), rootfs.path.c_str()) != 0)
            rootfs.error = words_for(rootfs.path, errno);
        remove_all(making);
        if (!rootfs.error.empty()) return rootfs;
    }
    ::futimens(rootfs.lock.get(), nullptr);
    return rootfs;
}

}  // namespace dcs::container
