#include "grainserver/container/image.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grainserver/container/podman.h"

namespace dcs::container {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t images_kept = 8;  // besides the new one
constexpr std::uint64_t least_of_a_name = 16384;

struct Kept {
    std::int64_t used = 0;
    std::uint64_t size = 0;
    std::string rootfs;
    bool begun = false;
};

bool is_directory(const std::string &path) {
    struct stat st {};
    return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

// Images of former releases have no size.
std::uint64_t size_of(const std::string &rootfs) {
    const Fd fd(::open((rootfs + lock_end).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    char text[32] = "";
    const ssize_t n = fd ? ::pread(fd.get(), text, sizeof text - 1, 0) : -1;
    std::uint64_t size = 0;
    if (n > 0 && std::from_chars(text, text + n, size).ec == std::errc() && size > 0) return size;
    return taken_by(rootfs);
}

std::vector<Kept> kept_in(const std::string &store, const std::string &except) {
    std::vector<Kept> found;
    std::error_code error;
    for (fs::directory_iterator it(store, error), end; !error && it != end; it.increment(error)) {
        const std::string path = it->path();
        if (!path.ends_with(lock_end) || it->path().filename() == except + lock_end) continue;
        Kept kept{.rootfs = path.substr(0, path.size() - std::strlen(lock_end))};
        struct stat st {};
        if (::stat(path.c_str(), &st) == 0) kept.used = st.st_mtim.tv_sec;
        const bool there = is_directory(kept.rootfs);
        kept.begun = is_directory(kept.rootfs + making_end);
        if (there) kept.size = size_of(kept.rootfs);
        if (kept.begun) kept.size += taken_by(kept.rootfs + making_end);
        if (there || kept.begun) found.push_back(std::move(kept));
    }
    std::sort(found.begin(), found.end(), [](const Kept &a, const Kept &b) { return a.used < b.used; });
    return found;
}

constexpr const char *tar = "/bin/tar", *input = "/proc/self/fd/0";
const std::string of_docker = "manifest.json", of_oci[] = {"oci-layout", "./oci-layout"};

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
    Making(int archive, std::string making, const ImageRoom &room)
        : archive_(archive), making_(std::move(making)), room_(room) {}
    // "", or why there is no root file system in making/root.
    std::string make();
    bool is_at_fault() const { return at_fault_; }  // the image, not this host
    std::uint64_t size() const { return size_; }

private:
    bool run_within(const std::vector<std::string> &words, const Environment &environment, int log);
    bool is_within(const std::string &path);
    std::string untar(int archive, const std::string &to);
    std::string open_up(bool docker, std::string &path);
    std::string flatten(bool docker, const std::string &to);

    int archive_;
    std::string making_;
    const ImageRoom &room_;
    std::uint64_t size_ = 0;
    std::string beyond_;  // not empty: in words, how it exceeds the room
    bool at_fault_ = false;
};

// tar and podman write the first letter differently. tar says "Wrote only 512 of 10240 bytes" without a reason.
bool is_of_the_disk(int log) {
    const std::string said = tail_of(log, INT64_MAX);
    const auto words = {"o space left on device", "isk quota exceeded", "nput/output error", "Wrote only"};
    return std::ranges::any_of(words, [&](const char *of) { return said.find(of) != std::string::npos; });
}

bool Making::is_within(const std::string &path) {
    size_ = taken_by(path);
    const std::string most = std::to_string(room_.most() >> 20) + " MB";
    at_fault_ = size_ > room_.most();
    if (at_fault_)
        beyond_ =
            "the image unpacks to more than the " + most +
            " that this host has for unpacked images: use a smaller one, with less files, or let the host's owner "
            "start the grain server with more --images-mb";
    else if (!room_.make(size_))
        beyond_ = "unpacked images that grains use leave no room for another one within " + most + " (--images-mb)";
    return beyond_.empty();
}

bool Making::run_within(const std::vector<std::string> &words, const Environment &environment, int log) {
    at_fault_ = false;
    const int status = run(words, environment, log, [this] { return is_within(making_); });
    if (status > 0 && WIFSIGNALED(status)) {
        ::dprintf(log, "%s was ended by a signal: %s\n", words[0].c_str(), ::strsignal(WTERMSIG(status)));
        at_fault_ = WTERMSIG(status) == SIGXFSZ;  // --max-file-mb
    } else if (status > 0) {
        at_fault_ = WEXITSTATUS(status) != not_started && !is_of_the_disk(log);
    }
    return status == 0;
}

// Everything belongs to the grain's account. Devices are those of the container.
std::string Making::untar(int archive, const std::string &to) {
    const Fd log(::memfd_create("tar", MFD_CLOEXEC));
    const bool done =
        run_within({tar, "--extract", "--file", input, "--directory", to, "--no-same-owner", "--preserve-permissions",
                    "--delay-directory-restore", "--exclude=dev/*", "--exclude=./dev/*"},
                   {making_, "", archive}, log.get());
    return done ? "" : "tar cannot unpack the image: " + tail_of(log.get());
}

bool is_plain_tar(int archive) {
    constexpr std::string_view magic = "ustar";
    char bytes[magic.size()] = "";
    return ::pread(archive, bytes, magic.size(), 257) == magic.size() && std::string_view(bytes, magic.size()) == magic;
}

// What podman takes the image from, when it is not the archive itself. podman would unpack an archive of OCI in
// /var/tmp, which is not measured, and podman 4.3 cannot read the archives of docker that gzip has compressed.
std::string Making::open_up(bool docker, std::string &path) {
    if (docker && is_plain_tar(archive_)) return "";
    const std::string parts = making_ + "/parts";
    path = docker ? making_ + "/plain.tar" : parts;
    if (::mkdir(parts.c_str(), 0700) != 0) return words_for(parts, errno);
    if (std::string wrong = untar(archive_, parts); !wrong.empty() || !docker) return wrong;
    const Fd log(::memfd_create("tar", MFD_CLOEXEC));
    const bool done =
        run_within({tar, "--create", "--file", path, "--directory", parts, "--transform=s,^\\./\\(.\\),\\1,", "."},
                   {making_, "", -1}, log.get());
    remove_all(parts);
    return done ? "" : "tar cannot open the image: " + tail_of(log.get());
}

// podman itself puts the layers together.
std::string Making::flatten(bool docker, const std::string &to) {
    const std::string configs = std::string(private_place) + "/unpacking", graph = making_ + "/graph",
                      flat = making_ + "/flat.tar";
    if (const std::string error = write_configs(configs, graph); !error.empty()) return error;
    std::string path;
    if (std::string wrong = open_up(docker, path); !wrong.empty()) return wrong;
    const Fd opened(path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened && !path.empty()) return words_for(path, errno);
    const Environment environment{making_, configs, opened ? opened.get() : archive_};
    const Fd log(::memfd_create("podman", MFD_CLOEXEC));
    const auto step = [&](std::vector<std::string> words) {
        words.insert(words.begin(), podman);
        return run_within(words, environment, log.get());
    };
    if (!step({"pull", "--quiet", (docker ? "docker-archive:" : "oci:") + std::string(input)}))
        return "podman cannot load the image: " + tail_of(log.get());
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
    remove_all(graph);  // a copy for each layer
    remove_all(path);
    const Fd all(::open(flat.c_str(), O_RDONLY | O_CLOEXEC));
    return all ? untar(all.get(), to) : words_for(flat, errno);
}

std::string Making::make() {
    remove_all(making_);
    const std::string root = making_ + "/root";
    std::error_code error;
    fs::create_directories(root, error);
    if (error) return words_for("the directory of images", error.value());
    // It fails for each name that it does not find.
    const Fd found(::memfd_create("tar", MFD_CLOEXEC));
    std::vector<std::string> list = {tar, "--list", "--file", input, "--occurrence=1"};
    list.push_back(of_docker);
    list.insert(list.end(), std::begin(of_oci), std::end(of_oci));
    if (!run_within(list, {making_, "", archive_}, found.get()) && !at_fault_)
        return beyond_.empty() ? "tar cannot list the image: " + tail_of(found.get()) : beyond_;
    at_fault_ = false;
    const std::string names = "\n" + tail_of(found.get(), INT64_MAX);
    const auto has = [&](const std::string &name) { return names.find("\n" + name + "\n") != std::string::npos; };
    const bool docker = has(of_docker);
    std::string wrong = docker || std::ranges::any_of(of_oci, has) ? flatten(docker, root) : untar(archive_, root);
    if (wrong.empty()) (void)is_within(root);
    return beyond_.empty() ? wrong : beyond_;
}

}  // namespace

Fd locked(const std::string &path, int how) {
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    int done = -1;
    while (fd && (done = ::flock(fd.get(), how)) != 0 && errno == EINTR) {}
    return done == 0 ? std::move(fd) : Fd();
}

std::uint64_t taken_by(const std::string &path) {
    std::uint64_t sum = 0;
    std::error_code error;
    constexpr auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator it(path, options, error), end; !error && it != end; it.increment(error)) {
        struct stat st {};
        if (::lstat(it->path().c_str(), &st) != 0) continue;
        const std::uint64_t blocks = static_cast<std::uint64_t>(st.st_blocks) * 512;
        const std::uint64_t names = S_ISDIR(st.st_mode) ? 1 : std::max<std::uint64_t>(st.st_nlink, 1);
        sum += std::max(blocks / names, least_of_a_name);
    }
    return sum;
}

// The files of locks stay: one that is removed while another process waits for it would be two locks.
bool ImageRoom::make(std::uint64_t size) const {
    std::vector<Kept> kept = kept_in(store_, except_);
    std::size_t count = kept.size();
    std::uint64_t sum = size;
    for (const Kept &image : kept) sum += image.size;
    for (const Kept &image : kept) {
        // What was begun and is not locked is of a grain that was killed.
        if (count < images_kept && sum <= most_ && !image.begun) continue;
        const Fd lock = locked(image.rootfs + lock_end, LOCK_EX | LOCK_NB);
        if (!lock) continue;
        std::error_code ignored;
        fs::remove_all(image.rootfs, ignored);
        fs::remove_all(image.rootfs + making_end, ignored);
        sum -= image.size;
        --count;
    }
    return sum <= most_;
}

void record_size(int lock, std::uint64_t size) {
    const std::string text = std::to_string(size) + "\n";
    if (::pwrite(lock, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) (void)!::ftruncate(lock, 0);
}

Rootfs take_rootfs(int archive, const std::string &store, const std::string &hex, std::uint64_t most) {
    Rootfs rootfs{.path = store + "/" + hex};
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
        rootfs.of_image = !rootfs.error.empty() && image.is_at_fault();
        record_size(alone.get(), image.size());
        // A directory of that name counts as complete, also after a power failure.
        if (const Fd made(::open(making.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            rootfs.error.empty() && (!made || ::syncfs(made.get()) != 0))
            rootfs.error = words_for(making, errno);
        if (rootfs.error.empty() && ::rename((making + "/root").c_str(), rootfs.path.c_str()) != 0)
            rootfs.error = words_for(rootfs.path, errno);
        remove_all(making);
        if (!rootfs.error.empty()) return rootfs;
    }
    ::futimens(rootfs.lock.get(), nullptr);
    return rootfs;
}

}  // namespace dcs::container
