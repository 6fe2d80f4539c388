#include "grainserver/files/giving.h"

#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "grainserver/files/launcher_calls.h"
#include "grainserver/files/owner_rules.h"

namespace dcs::files {
namespace {

Status check(const std::string &name) {
    const bool plain = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
    return plain ? Status::ok() : fail(Code::invalid, "not the name of a directory of this server: " + name);
}

// Opens a folder of the server's directory, then one in it. Follows no link.
Result<Fd> open_in(const std::string &directory, const char *folder, const std::string &name) {
    const Result<Fd> base = open_directory(AT_FDCWD, directory);
    const Result<Fd> in = base ? open_directory(base->get(), folder) : Result<Fd>(base.status());
    return in ? open_directory(in->get(), name) : Result<Fd>(in.status());
}

Status give(const Fd &fd, const std::string &name, uid_t uid, gid_t gid) {
    return ::fchown(fd.get(), uid, gid) == 0 ? Status::ok() : file_error(name, errno);
}

Status give_all(const Fd &folder, const Account &account) {
    const Result<std::vector<std::string>> names = list_directory(folder.get());
    if (!names) return names.status();
    for (const std::string &name : *names) {
        if (::fchownat(folder.get(), name.c_str(), account.uid, account.gid, AT_SYMLINK_NOFOLLOW) != 0)
            return file_error(name, errno);
        const Result<Fd> inner = open_directory(folder.get(), name);
        if (!inner) continue;  // a file
        if (Status s = give_all(*inner, account); !s) return s;
    }
    return Status::ok();
}

}  // namespace

Result<Fd> DirectGiving::room_of(const std::string &grain) const {
    const Result<Fd> in = open_in(directory_, grains_folder, grain);
    return in ? open_directory(in->get(), room_name) : Result<Fd>(in.status());
}

Status DirectGiving::give_room(const std::string &grain, const Account &account) const {
    if (Status s = check(grain); !s || !account.change) return s;
    const Result<Fd> room = room_of(grain);
    if (!room) return room.status();
    const Status s = give_all(*room, account);
    return s ? give(*room, room_name, account.uid, account.gid) : s;
}

Status DirectGiving::take_room(const std::string &grain, const Account &account) const {
    if (Status s = check(grain); !s || !account.change) return s;
    const Result<Fd> room = room_of(grain);
    return room ? give(*room, room_name, ::geteuid(), ::getegid()) : room.status();
}

Status DirectGiving::give_home(const std::string &user, const Account &account) const {
    if (Status s = check(user); !s || !account.change) return s;
    const Result<Fd> home = open_in(directory_, homes_folder, user);
    return home ? give(*home, user, account.uid, account.gid) : home.status();
}

}  // namespace dcs::files
