#include "locks/dcs_atoms.h"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/planted.h"
#include "base/require.h"
#include "locks/files/lock_search.h"
#include "locks/files/record.h"

namespace dcs::locks {
namespace {

constexpr const char *for_life = "none, never";

constexpr DcsAtomRow table[] = {
    {DcsAtom::scheduler, "scheduler", "a scheduler", "a scheduler's directory", "DIR/lock", KeptBy::lock,
     DcsAtom::scheduler, for_life, "two would hand out the same grains, on the same sockets"},
    {DcsAtom::store, "store", "a writer of a backing store", "the store's directory", "DIR/state/lock", KeptBy::lock,
     DcsAtom::store, for_life,
     "two would commit turns of one number; a separate lock, as another scheduler's directory may link to the store"},
    {DcsAtom::backup, "backup", "a passive backup", "a backup's directory", "DIR/lock", KeptBy::lock, DcsAtom::backup,
     for_life, "two would give reports of one host the same numbers"},
    {DcsAtom::backup_store, "backup-store", "a writer of a backup's store", "the backup's store", "DIR/state/lock",
     KeptBy::lock, DcsAtom::backup_store, for_life, "as for the scheduler's"},
    {DcsAtom::grain_server, "grainserver", "a grain server", "a grain server's directory", "DIR/lock", KeptBy::lock,
     DcsAtom::grain_server, for_life, "two would start the same grain twice"},
    {DcsAtom::launcher, "launcher", "a parent of grains", "a grain server's directory", "DIR/launcher.lock",
     KeptBy::lock, DcsAtom::launcher, for_life, "two would each end what the other started"},
    {DcsAtom::pool_work, "pool", "a `dcs up` or `dcs down`", "a pool's directory", "DIR/up.lock", KeptBy::lock,
     DcsAtom::pool_work, "none, never; another one waits two minutes and gives up",
     "one would start what the other stops. Never expires, because the daemons that it started are its tree"},
    {DcsAtom::pilots, "pilots", "a `dcs pilot slurm`", "a pool's pilots", "DIR/pilots/lock", KeptBy::lock,
     DcsAtom::pilots, "none, never; another one gives up at once", "two would submit two jobs for one pilot"},
    {DcsAtom::page, "page", "a `dcs page`", "a pool's directory", "DIR/page/lock", KeptBy::lock, DcsAtom::page,
     for_life, "`dcs status` names one"},
    {DcsAtom::accounts, "accounts", "an assignment of an anonymous account", "the host's table of accounts",
     "DIR/server/anonymous-uids.lock", KeptBy::lock, DcsAtom::accounts, "none, never; held for milliseconds",
     "two servers of a host would give one account to two users"},
    {DcsAtom::uids, "uids", "the grain servers of one directory", "an anonymous uid of a machine", "/run/dcs/uids.lock",
     KeptBy::bytes, DcsAtom::uids, for_life,
     "grains of two servers' users would signal and read each other's; launchers and slot keepers keep the claim"},
    {DcsAtom::slot, "slot", "a grain in each slot", "a slot of a host", "slots", KeptBy::slots, DcsAtom::slot,
     "none; the limits of the grain, kept by its launcher",
     "all servers of a host share its slots; a slot lives as long as the last process of its grain"},
    {DcsAtom::map, "map", "a `dcs map` of this host that works for a session", "a session",
     "DIR/maps.lock, or a name in the user's lock directory", KeptBy::bytes, DcsAtom::map,
     "none, never; another one gives up after two seconds and names the holder",
     "the second would take over the session, and the first would end in the middle of its output"},
    {DcsAtom::begin, "begin", "a run of a control program", "the program's path, for each user",
     "a name in the user's lock directory", KeptBy::command, DcsAtom::begin,
     "what `dcs_begin -i -e` says; without either no lock is taken",
     "cron starts programs too often, again while they run, and never ends one that hangs"},
    {DcsAtom::call_in, "call-in", "a decision on a call-in of a host", "a host", "", KeptBy::process,
     DcsAtom::scheduler, for_life,
     "the scheduler has one connection for each host (a newer one replaces the older), and one thread that decides"},
    {DcsAtom::collect, "collect", "a hand-over of the backup's reports", "a scheduler's directory", "", KeptBy::process,
     DcsAtom::scheduler, for_life,
     "the scheduler has one connection to a backup (a newer one replaces the older), and one thread that decides"},
    {DcsAtom::sweep, "sweep", "a sweep", "a store, or a server's library", "", KeptBy::process, DcsAtom::scheduler,
     for_life, "sweeps are turns or slices of the loop of the scheduler or grain server that alone has the directory"},
    {DcsAtom::reread, "reread", "a reload of the configuration", "a scheduler's directory", "", KeptBy::process,
     DcsAtom::scheduler, for_life, "requested by signal or command, done by the scheduler's loop, between turns"},
};

std::string holder_text(const Answer &answer, const std::string &path) {
    if (answer.denied == Denied::failed) return answer.text;
    if (answer.holder.process.pid <= 0) return path + " is locked by another process";
    return path + " is locked by process " + std::to_string(answer.holder.process.pid) + " " + answer.holder.command;
}

}  // namespace

std::span<const DcsAtomRow> dcs_atoms() { return table; }

const DcsAtomRow &dcs_atom(DcsAtom atom) {
    const auto row = std::find_if(std::begin(table), std::end(table), [&](const auto &r) { return r.atom == atom; });
    DCS_REQUIRE(row != std::end(table), "every atom has a row");
    return *row;
}

Result<AdaptiveLock> take_dcs_atom(DcsAtom atom, const std::string &path, std::int64_t patience) {
    const DcsAtomRow &row = dcs_atom(atom);
    DCS_REQUIRE(row.kept_by == KeptBy::lock, "the atom is kept by a lock file");
    LockRequest request;
    request.place.path = path;
    request.place.atom = Atom{row.name, path.substr(0, path.rfind('/')), ""};
    request.place.named = false;
    request.log = false;  // daemons have logs of their own
    if (patience > 0) request.wait = Deadline{(boot_clock() + Duration{patience}).ns};
    AdaptiveLock lock;
    const Answer answer = AdaptiveLock::get(this_world(), request, lock);
    if (answer.denied == Denied::no) return lock;
    if (planted("locks.atom_not_needed")) return AdaptiveLock();
    return fail(answer.denied == Denied::failed ? answer.status.code : Code::refused, holder_text(answer, path));
}

namespace {

bool same_file(const struct stat &a, const struct stat &b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

bool has_its_name(const AdaptiveLock &lock) {
    struct stat ours = {}, named = {};
    return lock.held() && ::fstat(lock.fd(), &ours) == 0 && ::lstat(lock.place().path.c_str(), &named) == 0 &&
           same_file(ours, named);
}

}  // namespace

bool still_alone(const AdaptiveLock &lock) { return has_its_name(lock) && is_held(lock.place().path); }

bool still_alone(const AdaptiveLock &lock, LockFile &kept) {
    if (!has_its_name(lock)) return false;
    struct stat ours = {}, opened = {};
    const bool open = kept.is_open() && ::fstat(lock.fd(), &ours) == 0 && ::fstat(kept.fd(), &opened) == 0;
    if (open && same_file(ours, opened) && kept.held() != HeldAs::none) return true;
    Place place;
    place.path = lock.place().path;
    if (Result<LockFile> file = LockFile::look(place)) kept = std::move(*file);
    return is_held(place.path);
}

bool was_removed(const AdaptiveLock &lock) {
    struct stat ours = {}, now = {};
    if (!lock.held() || ::fstat(lock.fd(), &ours) != 0 || ours.st_nlink > 0) return false;
    const std::string &path = lock.place().path;
    if (::stat(path.substr(0, path.rfind('/')).c_str(), &now) != 0) return errno == ENOENT;
    return ::lstat(path.c_str(), &now) == 0;
}

pid_t holder_of(const std::string &path) {
    if (!is_held(path)) return 0;
    Place place{.path = path, .named = false};
    Result<LockFile> file = LockFile::look(place);
    if (!file || !file->keeps_records()) return 0;
    const Record record = read_record(*file, nullptr);
    return record.outcome == Outcome::running ? record.owner.process.pid : 0;
}

}  // namespace dcs::locks
