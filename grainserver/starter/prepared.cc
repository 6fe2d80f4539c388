#include "grainserver/starter/prepared.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/planted.h"

namespace dcs::starter {
namespace {
std::int64_t nanoseconds(const timespec &t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; }
}  // namespace

Result<const files::OwnerRules *> Prepared::rules(int base) {
    struct stat st {};
    if (::fstatat(base, files::rules_name, &st, AT_SYMLINK_NOFOLLOW) != 0) return file_error(files::rules_name, errno);
    const Seen now{st.st_dev, st.st_ino, st.st_size, nanoseconds(st.st_mtim), nanoseconds(st.st_ctim)};
    if (now == seen_ || (seen_.size >= 0 && planted("launcher.old_rules"))) return &rules_;
    const Result<std::string> bytes = read_file(base, files::rules_name, files::record_bytes_max);
    if (!bytes) return bytes.status();
    Result<files::OwnerRules> read = files::unpack_rules(*bytes);
    if (!read) return read.status();
    rules_ = std::move(*read);
    seen_ = now;  // from before the read: a file that was replaced meanwhile is read again
    return &rules_;
}

Result<const files::Confinement *> Prepared::confinement(const files::ConfinementWish &wish) {
    const bool shared = (wish.rungs & (rung_files | rung_namespaces)) == 0;
    if (const auto it = confinements_.find(wish.rungs); shared && it != confinements_.end()) return &it->second;
    Result<files::Confinement> made = files::make_confinement(wish);
    if (!made) return made.status();
    files::Confinement &place = shared ? confinements_[wish.rungs] : last_;
    place = std::move(*made);
    return &place;
}

}  // namespace dcs::starter
