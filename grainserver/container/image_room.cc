#include "grainserver/container/image_room.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
        Kept kept;
        kept.rootfs = path.substr(0, path.size() - std::strlen(lock_end));
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
    if (::pwrite(lock, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) (void)::ftruncate(lock, 0);
}

}  // namespace dcs::container
