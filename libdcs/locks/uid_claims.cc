#include "locks/uid_claims.h"

#include <cerrno>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/planted.h"
#include "base/require.h"
#include "locks/files/lock_search.h"
#include "process/table.h"

namespace dcs::locks {
namespace {

// Each owner has a row of bytes, one for each uid, beyond all other bytes of a lock file.
constexpr std::int64_t row_bytes = std::int64_t{1} << 32, row_count = std::int64_t{1} << 30;
constexpr std::int64_t first_row = last_byte;
static_assert(first_row + (row_count - 1) * row_bytes + (row_bytes - 1) == INT64_MAX);
constexpr std::int64_t uids_end = 0xffff'fffe;

std::int64_t row_of(const struct stat &owner) {
    const std::uint64_t mixed = (owner.st_ino ^ owner.st_dev << 40) * 0x9e37'79b9'7f4a'7c15u;
    return first_row + static_cast<std::int64_t>(mixed >> 34) * row_bytes;
}

std::string to_text(std::int64_t begin, std::int64_t end) {
    return std::to_string(begin) + "-" + std::to_string(end - 1);
}

// Of the file or its directory: otherwise its claims could be blocked, or it could be replaced.
Status only_ours(const std::string &path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return file_error(path, errno);
    if ((st.st_uid == 0 || st.st_uid == ::geteuid()) && (st.st_mode & 022) == 0) return Status::ok();
    return fail(Code::invalid,
                path + ": other accounts can write it, so claims to uids do not count: chown root, chmod go-w");
}

}  // namespace

Status UidClaims::open(const std::string &owner, const std::string &path) {
    struct stat st {};
    if (::stat(owner.c_str(), &st) != 0) return file_error(owner, errno);
    row_ = row_of(st);
    const std::string folder = path.substr(0, path.rfind('/'));
    if (Status s = make_directories(folder); !s) return s;
    if (Status s = only_ours(folder); !s) return s;
    Result<LockFile> file =
        LockFile::open({.path = path, .atom = Atom{"dcs-uids", path, ""}, .named = false}, FileKind::atom);
    if (!file) return file.status();
    if (Status s = only_ours(path); !s) return s;
    file_ = std::move(*file);
    return Status::ok();
}

bool UidClaims::count() const {
    struct stat now {};
    struct stat locked {};
    return ::stat(file_.path().c_str(), &now) == 0 && ::fstat(file_.fd(), &locked) == 0 &&
           now.st_ino == locked.st_ino && now.st_dev == locked.st_dev;
}

UidClaims::Range UidClaims::uids_of(const Range &locked) const {
    const std::int64_t begin = locked.begin % row_bytes;
    return {begin, begin + (locked.end - locked.begin)};
}

bool UidClaims::of_others(const Range &locked, const Range &wanted) const {
    const auto [begin, end] = uids_of(locked);
    return locked.begin - begin != row_ && begin < wanted.end && wanted.begin < end;
}

// All locked ranges, one after another: each is cut out of what is still to be looked at. begin -1: none.
Result<UidClaims::Range> UidClaims::first_of_others(const Range &wanted) const {
    constexpr int ranges_max = 100'000;
    std::vector<Range> unseen{{first_row, INT64_MAX}};
    for (int i = 0; i < ranges_max; ++i) {
        if (unseen.empty()) return Range{-1, -1};
        const Range look = unseen.back();
        unseen.pop_back();
        Range locked{};
        locked.begin = file_.first_locked(look.begin, look.end - look.begin, &locked.end);
        if (locked.begin < 0) continue;
        if (of_others(locked, wanted)) return locked;
        if (look.begin < locked.begin) unseen.push_back({look.begin, locked.begin});
        if (locked.end < look.end) unseen.push_back({locked.end, look.end});
    }
    return fail(Code::limit, file_.path() + " has too many locks");
}

std::string UidClaims::next_free(std::int64_t at, std::int64_t count) const {
    while (at + count <= uids_end) {
        const Result<Range> others = first_of_others({at, at + count});
        if (!others) break;
        if (others->begin < 0) return "; the next free uids are " + to_text(at, at + count);
        at = uids_of(*others).end;
    }
    return "";
}

std::string UidClaims::words_of(const Range &others, std::int64_t count) const {
    const auto [begin, end] = uids_of(others);
    const std::vector<pid_t> holders = processes_with_lock(file_, others.begin);
    const std::string who =
        holders.empty() ? "another process"
                        : "process " + std::to_string(holders.front()) + " (" + command_of(holders.front()) + ")";
    return to_text(begin, end) + " of " + who + next_free(end, count);
}

Status UidClaims::take(std::uint32_t first, std::uint32_t last) const {
    DCS_REQUIRE(file_.is_open() && first <= last, "a range of uids, in a file that is open");
    const Result<Guard> guard = Guard::take(file_);
    if (!guard) return guard.status();
    const Range wanted{first, std::int64_t{last} + 1};
    const Result<Range> others = first_of_others(wanted);
    if (!others) return others.status();
    if (others->begin >= 0 && !planted("locks.shared_uids"))
        return fail(Code::refused, words_of(*others, wanted.end - wanted.begin));
    const Result<bool> got = file_.lock(row_ + first, wanted.end - wanted.begin, true, Deadline::none());
    if (!got) return got.status();
    return *got ? Status::ok() : fail(Code::refused, "what a program has locked in " + file_.path());
}

}  // namespace dcs::locks
