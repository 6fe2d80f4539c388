#include "grainserver/starter/disk_use.h"

#include <set>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/planted.h"

namespace dcs::starter {
namespace {
constexpr std::int64_t bytes_of_a_name = 1024;  // counted for each file in addition to its blocks
constexpr std::size_t one_read = 0;             // for read_names: of a directory's names, as many as come at a time
}  // namespace

std::int64_t DiskUse::look(int room, int names) {
    if (open_.empty()) {
        sum_ = 0;
        Result<Fd> top = open_directory(room, ".");
        if (!top) return 0;
        open_.push_back({std::move(*top)});
    }
    while (!open_.empty() && names-- > 0) {
        Level &level = open_.back();
        if (level.left.empty() && !level.all) {
            const auto all = read_names(level.fd.get(), one_read, level.left);
            level.all = !all || *all;
            continue;
        }
        if (level.left.empty()) {
            open_.pop_back();
            continue;
        }
        const std::string name = std::move(level.left.back());
        level.left.pop_back();
        struct stat st {};
        if (::fstatat(level.fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        sum_ += st.st_blocks * 512 + bytes_of_a_name;
        if (!S_ISDIR(st.st_mode)) continue;
        too_deep_ = too_deep_ || open_.size() >= depth_max;
        if (open_.size() >= depth_max) continue;
        struct stat above {};
        const bool same_disk = ::fstat(level.fd.get(), &above) == 0 && above.st_dev == st.st_dev;
        if (Result<Fd> below = open_directory(level.fd.get(), name); below && same_disk)
            open_.push_back({std::move(*below)});
    }
    return sum_;
}

DiskUse::Nameless DiskUse::nameless(int room, const std::vector<pid_t> &processes, int places) {
    struct stat own {
    }, st{};
    Nameless found;
    if (::fstat(room, &own) != 0 || planted("launcher.names_only")) return found;
    std::set<ino_t> seen;
    for (const pid_t pid : processes)
        for (const char *const folder : {"/fd", "/map_files"}) {
            const Result<Fd> open = open_directory(AT_FDCWD, "/proc/" + std::to_string(pid) + folder);
            std::vector<std::string> names;
            for (Result<bool> all = !open; all && !*all; names.clear()) {
                all = read_names(open->get(), one_read, names);
                for (const std::string &name : names) {
                    found.too_many = places-- <= 0;
                    if (found.too_many) return found;
                    if (::fstatat(open->get(), name.c_str(), &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0 &&
                        st.st_dev == own.st_dev && seen.insert(st.st_ino).second)
                        found.bytes += st.st_blocks * 512;
                }
            }
        }
    return found;
}

}  // namespace dcs::starter
