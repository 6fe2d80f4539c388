#include "grainserver/files/giving.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/planted.h"
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

// A DCS home may be a link into the home of its user's login. Only looked at: what it leads to has that owner already,
// and a link that another account made is not believed.
Status check_link(const std::string &path, const struct stat &link, const Account &account) {
    const auto refused = [&](const std::string &why) { return fail(Code::not_found, "the DCS home " + path + why); };
    const bool trusted = link.st_uid == 0 || link.st_uid == ::geteuid();
    if (!trusted) return refused(" is a link that another account than root made: recreate it as root");
    struct stat target {};
    if (::stat(path.c_str(), &target) != 0)
        return refused(std::string(" is a link that leads nowhere: ") + std::strerror(errno));
    const bool own = (S_ISDIR(target.st_mode) && target.st_uid == account.uid) || planted("files.any_home");
    if (own) return Status::ok();
    return refused(" is a link to what is not a directory of the account of these grains, uid " +
                   std::to_string(account.uid) + ": link it to a directory of that account, or remove the link");
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
    const std::string path = directory_ + "/" + homes_folder + "/" + user;
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0 && S_ISLNK(st.st_mode)) return check_link(path, st, account);
    const Result<Fd> home = open_in(directory_, homes_folder, user);
    return home ? give(*home, user, account.uid, account.gid) : home.status();
}

}  // namespace dcs::files
