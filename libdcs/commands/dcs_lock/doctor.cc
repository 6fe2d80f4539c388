// dcs_lock doctor: diagnoses problems of this user's locks and proposes remedies.
#include <algorithm>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "call.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "locks/learn.h"
#include "locks/files/lock_header.h"
#include "process/table.h"
#include "locks/files/record.h"
#include "places.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

struct Finding {
    std::string word, name, text;  // text: problem, cause and remedy
};
using Findings = std::vector<Finding>;

const char *network_file_system(const std::string &path) {
    struct statfs fs = {};
    if (::statfs(path.c_str(), &fs) != 0) return nullptr;
    switch (static_cast<unsigned long>(fs.f_type) & 0xffffffffUL) {
    case 0x6969: return "NFS";
    case 0xff534d42:
    case 0xfe534d42:
    case 0x517b: return "SMB";
    case 0x01021997: return "9P";
    case 0x5346414f: return "AFS";
    case 0x00c36400: return "Ceph";
    case 0x65735546: return "FUSE";
    default: return nullptr;
    }
}

void examine_directory(const std::string &path, Findings &found) {
    struct stat st = {};
    if (::stat(path.c_str(), &st) != 0) return;
    if (st.st_uid != ::geteuid())
        found.push_back({"owner", path,
                         "belongs to uid " + std::to_string(st.st_uid) +
                             ", who can replace every lock in it; set DCS_LOCK_DIR to your own directory"});
    if ((st.st_mode & 022) != 0)
        found.push_back({"mode", path, "other users can write here and replace every lock; chmod 700 " + path});
    if (const char *kind = network_file_system(path))
        found.push_back({"network", path,
                         std::string("is on ") + kind +
                             ", where a lock may take effect late or not exclude "
                             "other hosts; set DCS_LOCK_DIR to a local directory"});
    struct statvfs space = {};
    if (::statvfs(path.c_str(), &space) == 0 && space.f_blocks > 0 && space.f_bavail == 0)
        found.push_back({"full", path, "the file system is full, so new locks are refused; free some space"});
    if (::access(path.c_str(), W_OK) != 0)
        found.push_back(
            {"read-only", path, "cannot be written, so locks are refused; check its permissions and mount options"});
}

void examine_file(const Seen &seen, Findings &found) {
    const std::string name = shown_name(seen.place.atom);
    struct stat st = {};
    if (::lstat(seen.place.path.c_str(), &st) != 0) return;
    if (!S_ISREG(st.st_mode))
        found.push_back({"kind", name,
                         seen.place.path + " is not a regular file, so the lock is refused; find out which program "
                                           "created it, and remove it"});
    else if (st.st_uid != ::geteuid() && st.st_uid != 0)
        found.push_back(
            {"owner", name, seen.place.path + " belongs to uid " + std::to_string(st.st_uid) + "; find out why"});
    if (S_ISREG(st.st_mode) && (st.st_mode & 0002) != 0)
        found.push_back(
            {"mode", name, "any user can lock it; chmod o-rwx " + seen.place.path + " unless that is intended"});
    if (!seen.trouble) found.push_back({"unreadable", name, seen.trouble.text});
    if (seen.atom.damaged)
        found.push_back(
            {"damaged", name, "its record is damaged, so the last run is not known; the next run rebuilds it"});
    if (!seen.waiting.empty() && seen.waiting.front().state == 'T')
        found.push_back({"stopped-head", name,
                         "the first waiter, pid " + std::to_string(seen.waiting.front().process.pid) +
                             ", is stopped and blocks all waiters behind it; continue it, or dcs_lock break --head"});
    const pid_t holder = seen.atom.held ? seen.atom.record.owner.process.pid : 0;
    if (is_stopped(holder))
        found.push_back({"stopped-holder", name,
                         "its holder, pid " + std::to_string(holder) + ", is stopped; continue it, or dcs_lock break"});
}

void examine_history(const Seen &seen, Findings &found) {
    if (seen.counted || seen.atom.foreign) return;
    auto file = locks::LockFile::look(seen.place);
    if (!file || !file->keeps_records()) return;
    const std::string name = shown_name(seen.place.atom);
    const locks::Learned learned = locks::learn(locks::read_samples(*file), locks::read_denials(*file), {}, 0, -1, -1);
    if (learned.starving)
        found.push_back({"starving", name,
                         "it was ended at its limit " + std::to_string(learned.killed) +
                             " times and never completed; dcs_lock advise proposes a better -e"});
    if (learned.spammed)
        found.push_back({"spam", name,
                         "it is requested repeatedly before its time: " + learned.spammer +
                             "; request it less often, or use -i auto"});
}

// The lock that an open file is for, from its header; empty if it is not a lock file.
std::string name_of_open_file(const std::string &path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    locks::Atom atom;
    const bool ours = fd && locks::recognise(fd.get(), false, &atom) != locks::FileKind::foreign;
    return ours ? shown_name(atom) : std::string();
}

// Files of `process` that were in `directory` and have no name any more: the next requester locks another file.
void examine_process(const std::string &process, const std::string &directory, Findings &found) {
    const std::string fds = "/proc/" + process + "/fd";
    std::vector<ino_t> told;
    for (const int number : numbers_in(fds)) {
        const std::string fd = fds + "/" + std::to_string(number);
        char target[4096];
        const ssize_t length = ::readlink(fd.c_str(), target, sizeof target);
        const std::string_view path(target, length > 0 ? static_cast<std::size_t>(length) : 0);
        struct stat st = {};
        if (!path.starts_with(directory + "/") || ::stat(fd.c_str(), &st) != 0 || !S_ISREG(st.st_mode) ||
            st.st_nlink != 0 || std::find(told.begin(), told.end(), st.st_ino) != told.end())
            continue;
        const std::string name = name_of_open_file(fd);
        if (name.empty()) continue;
        told.push_back(st.st_ino);
        found.push_back({"replaced", name,
                         "pid " + process +
                             " holds its file, which was removed, so another run may start beside it; never "
                             "remove lock files, and wait for that process or end it"});
    }
}

}  // namespace

int examine_locks(const locks::World &world, const Options &options) {
    const auto directory = locks::lock_directory();
    if (!directory) return tell(options, failed("", directory.status()));
    const auto all = look_around(world, options);
    if (!all) return tell(options, failed("", all.status()));
    Findings found;
    examine_directory(*directory, found);
    for (const Seen &seen : *all) {
        examine_file(seen, found);
        examine_history(seen, found);
    }
    if (char *real = ::realpath(directory->c_str(), nullptr)) {
        for (const int process : numbers_in("/proc")) examine_process(std::to_string(process), real, found);
        ::free(real);
    }
    if (options.json) {
        const auto json = [](const Finding &one) {
            return JsonObject().add("finding", one.word).add("name", one.name).add("message", one.text).text();
        };
        print(JsonObject("dcs_lock.doctor/1")
                  .add("directory", *directory)
                  .add("locks", all->size())
                  .add_list("findings", found, json)
                  .text() +
              "\n");
    } else {
        std::string out;
        for (const Finding &one : found) out += one.name + ": " + one.text + "\n";
        if (found.empty()) out = std::to_string(all->size()) + " locks in " + *directory + ": no problems found\n";
        print(printable(out, true));
    }
    return found.empty() ? exits::ok : exits::findings;
}

}  // namespace dcs::lock_command
