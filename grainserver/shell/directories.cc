// How grains' directories come and go.
//
// Spare directories, DIR/grains/spare-N: a small grain's directory becomes one when the grain has ended and been
// reported, and then that of another grain of the same account. To make and to remove its files takes the kernel longer
// than to start a process. A server that starts removes those of an earlier one.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/files/room.h"
#include "grainserver/shell/grain_files.h"

namespace dcs::server {
namespace {
constexpr std::size_t spares_max = 1024;                // as many as a host has ahead
constexpr int spare_calls = 10;                         // of tidy_spares()
constexpr int names_at_once = 2000;                     // removed without a look at anything else,
constexpr Duration longest_removal = milliseconds(20);  // and for so long
constexpr std::size_t clean_names = 4;                  // in the room of a small grain
constexpr blkcnt_t clean_blocks = 128;                  // of 512 bytes: what they may keep on the disk

// Makes the room with the grain's input. Written in place: the directory is incomplete until its record exists.
Status furnish(int grain, const std::string &bytes) {
    const Result<Fd> room = files::make_room(grain);
    if (!room) return room.status();
    Fd input(::openat(room->get(), files::input_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    const bool good = input && write_all(input.get(), bytes) && input.close_checked();
    return good ? Status::ok() : file_error(files::input_name, errno);
}

// Of a directory that has just been opened; not all if they are many.
std::optional<std::vector<std::string>> few_names(const Fd &directory) {
    std::vector<std::string> names;
    return read_names(directory.get(), clean_names, names) ? std::optional(std::move(names)) : std::nullopt;
}

// Whether everything in the directory has its first mode, owner and length, the files of its streams aside, which the
// next grain examines itself: they are only files, and not large.
bool room_is_clean(int grain, const files::Account &account) {
    const uid_t uid = account.change ? account.uid : ::geteuid();
    const Result<files::Room> room = files::open_room(grain);
    const auto names = room ? few_names(room->fd) : std::nullopt;
    if (!names || room->uid != uid) return false;
    const std::string out = files::out_name(1), err = files::err_name(1);
    blkcnt_t blocks = 0;
    struct stat input {
    }, itself{}, work{};
    for (const std::string &name : *names) {
        struct stat st {};
        const bool known = name == files::input_name || name == files::work_name || name == out || name == err;
        if (!known || ::fstatat(room->fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
        blocks += st.st_blocks;
        if (name == files::input_name) input = st;
        if ((name == out || name == err) && !S_ISREG(st.st_mode)) return false;
    }
    if (blocks > clean_blocks) return false;
    if (input.st_uid != uid || !S_ISREG(input.st_mode) || input.st_size != 0 || input.st_nlink != 1 ||
        (input.st_mode & 07777) != 0600)
        return false;
    if (::fstat(room->fd.get(), &itself) != 0 || (itself.st_mode & 07777) != 0700) return false;
    const Result<Fd> inner = open_directory(room->fd.get(), files::work_name);
    if (!inner) return inner.status().code == Code::not_found;
    const auto left = few_names(*inner);
    return left && left->empty() && ::fstat(inner->get(), &work) == 0 && work.st_uid == uid &&
           (work.st_mode & 07777) == 0700;
}

// `pid` first: one without `exit` would be a grain whose launcher has died.
bool clean(int grain, const files::Account &account) {
    if (!room_is_clean(grain, account) && !planted("server.untidy_spare")) return false;
    return files::void_record(grain, files::pid_name) &&
           (planted("server.old_exit_in_spare") || files::void_record(grain, files::exit_name));
}
}  // namespace

static Result<bool> remove_part(TreeRemoval &tree) {
    const Instant until = boot_clock() + longest_removal;
    for (int names = 0; names < names_at_once; names += 50) {
        auto done = tree.go_on(50);
        if (!done || *done || boot_clock() >= until) return done;
    }
    return false;
}

Status GrainFiles::make_fresh(const GrainId &id, const files::LaunchRecord &record, const std::string &input) {
    const std::string name = name_of(id);
    const mode_t mode = identities_.users() ? 0711 : 0700;
    const auto make = [&] { return ::mkdirat(grains_.get(), name.c_str(), mode) == 0 ? 0 : errno; };
    int error = make();
    if (Status s = error == EEXIST ? remove(id) : Status::ok(); !s) return s;
    if (error == EEXIST) error = make();
    if (error != 0) return file_error(name, error);
    const Result<Fd> grain = directory_of(id);
    Status s = grain ? furnish(grain->get(), input) : grain.status();
    // So that the launcher can write it on a disk that became full meanwhile.
    if (s) s = files::reserve_record(grain->get(), files::exit_name);
    // If files are still missing, the room belongs to the server until they are placed (staging.cc).
    if (s && record.placed) s = giving_->give_room(name, record.account);
    if (s) s = replace_file(grain->get(), files::launch_name, files::pack(record));
    if (!s && !remove(id)) s.text += " (and its directory could not be removed)";
    return s;
}

Status GrainFiles::prepare(const GrainId &id, wire::Launch launch, std::uint64_t epoch) {
    const Result<files::LaunchRecord> record = record_of(id, launch, epoch);
    if (!record) {
        if (file_exists(grains_.get(), name_of(id))) (void)remove(id);
        return record.status();
    }
    const bool small = is_small(launch);
    small_.erase(id);
    const Status s = small && use_spare(id, *record) ? Status::ok() : make_fresh(id, *record, launch.input);
    if (s && small) small_[id] = {record->account};
    return s;
}

// Removes the record first: a directory without it counts as incomplete, whatever else is in it.
Status GrainFiles::remove(const GrainId &id) {
    const std::string name = name_of(id);
    if (const auto grain = small_.extract(id); grain && keep_spare(name, grain.mapped())) return Status::ok();
    if (const Result<Fd> grain = open_directory(grains_.get(), name)) remove_file(grain->get(), files::launch_name);
    TreeRemoval tree(grains_.get(), name);
    auto done = remove_part(tree);
    if (done && *done) return Status::ok();
    std::string aside;
    do aside = aside_prefix + std::to_string(++aside_);
    while (file_exists(grains_.get(), aside));
    if (::renameat(grains_.get(), name.c_str(), grains_.get(), aside.c_str()) != 0)
        return done ? file_error(name, errno) : done.status();
    removing_.emplace_back(grains_.get(), aside);  // from the top again, and also after an error, which may pass
    return Status::ok();
}

Status GrainFiles::remove_some() {
    auto done = remove_part(removing_.front());
    // Another grain of the account may still make files there: once more after a while.
    if (!done) later_.push_back(removing_.front().name());
    if (!done || *done) removing_.pop_front();
    return done.status();
}

void GrainFiles::note_alone(const GrainId &id) {
    if (const auto grain = small_.find(id); grain != small_.end()) grain->second.alone = true;
}

// The name comes last: what is not complete is a spare directory, and no grain's.
bool GrainFiles::use_spare(const GrainId &id, const files::LaunchRecord &record) {
    DCS_REQUIRE(record.placed && record.next_seq == 1, "only a small grain gets a spare directory");
    const auto spare =
        std::find_if(spares_.rbegin(), spares_.rend(), [&](const Spare &one) { return one.account == record.account; });
    if (spare == spares_.rend()) return false;
    const std::string from = spare->name;
    spares_.erase(std::next(spare).base());
    const Status written = files::write_record(grains_.get(), from + "/" + files::launch_name, files::pack(record));
    failpoint("server.spare.before_use");
    const bool good = written && ::renameat(grains_.get(), from.c_str(), grains_.get(), name_of(id).c_str()) == 0;
    failpoint("server.spare.after_use");
    if (!good) removing_.emplace_back(grains_.get(), from);
    return good;
}

// With the name the grain is gone, so the rest may fail.
bool GrainFiles::keep_spare(const std::string &name, const Small &grain) {
    if (!grain.alone) return false;
    const std::string spare = spare_prefix + std::to_string(++aside_);
    failpoint("server.spare.before_keep");
    if (::renameat2(grains_.get(), name.c_str(), grains_.get(), spare.c_str(), RENAME_NOREPLACE) != 0) return false;
    failpoint("server.spare.after_keep");
    const Result<Fd> directory = open_directory(grains_.get(), spare);
    if (directory && clean(directory->get(), grain.account)) spares_.push_back({spare, grain.account});
    else removing_.emplace_back(grains_.get(), spare);
    if (spares_.size() > spares_max) drop_oldest();
    return true;
}

void GrainFiles::make_plain(const GrainId &id) {
    const Result<Fd> grain = directory_of(id);
    if (!grain) return;
    for (const char *name : {files::pid_name, files::exit_name})
        if (!files::has_record(grain->get(), name)) remove_file(grain->get(), name);
}

void GrainFiles::drop_oldest() {
    removing_.emplace_back(grains_.get(), spares_.front().name);
    spares_.pop_front();
}

void GrainFiles::drop_spares() {
    while (!spares_.empty()) drop_oldest();
}

// The last one is taken first, so those in front are the ones that are not needed.
void GrainFiles::tidy_spares() {
    for (const std::string &name : std::exchange(later_, {})) removing_.emplace_back(grains_.get(), name);
    for (Spare &spare : spares_) ++spare.unused;
    while (!spares_.empty() && spares_.front().unused >= spare_calls) drop_oldest();
}

}  // namespace dcs::server
