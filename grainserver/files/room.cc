#include "grainserver/files/room.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/beneath.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/files/grain_record.h"

namespace dcs::files {
namespace {
Status strange(const std::string &name, const std::string &what) {
    return fail(Code::refused, name + " is " + what + " and is ignored");
}
Result<std::string> read_some(const Room &room, const std::string &name, std::size_t max, bool cut) {
    const Result<Fd> fd = open_foreign(room, name);
    return fd ? read_open(fd->get(), name, max, cut) : Result<std::string>(fd.status());
}
}  // namespace

Result<Room> open_room(int parent, const std::string &grain) {
    Result<Fd> fd = open_directory(parent, grain + "/" + room_name);
    if (!fd) return fd.status();
    struct stat st {};
    if (::fstat(fd->get(), &st) != 0) return file_error(room_name, errno);
    return Room{std::move(*fd), st.st_uid, st.st_gid};
}

Result<Fd> make_room(int grain) {
    if (::mkdirat(grain, room_name, 0700) != 0) return file_error(room_name, errno);
    return open_directory(grain, room_name);
}

Result<Fd> open_foreign(const Room &room, const std::string &name) {
    DCS_REQUIRE(room.fd, "the room is open");
    const bool careless = planted("files.room.follow");
    Fd fd(careless ? ::openat(room.fd.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                   : open_beneath(room.fd.get(), name.c_str(), O_RDONLY));
    if (!fd && errno == ELOOP) return strange(name, "reached by a symbolic link");
    if (!fd && errno == EXDEV) return strange(name, "reached through another file system");
    if (!fd && errno == ENXIO) return strange(name, "not a regular file");  // a socket
    if (!fd) return file_error(name, errno);
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0) return file_error(name, errno);
    if (const std::string wrong = strange_file(st, room.uid); !wrong.empty() && !careless) return strange(name, wrong);
    return fd;
}

Result<std::string> read_foreign(const Room &room, const std::string &name, std::size_t max) {
    return read_some(room, name, max, false);
}
Result<std::string> read_foreign_start(const Room &room, const std::string &name, std::size_t max) {
    return read_some(room, name, max, true);
}

std::int64_t foreign_size(const Room &room, const std::string &name, std::string *words) {
    struct stat st {};
    if (::fstatat(room.fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    const std::string wrong = strange_file(st, room.uid);
    if (wrong.empty()) return st.st_size;
    if (words != nullptr) *words = strange(name, wrong).text;
    return -1;
}

}  // namespace dcs::files
