#pragma once
// The room: the part of a grain's directory that the grain sees (DCS_GRAIN_DIR) and may change. Its content is
// not trusted. A file is accepted only if it is a regular file with a single link that belongs to the owner of the
// room: no symbolic link, FIFO or socket, and no link to another user's file.
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/files.h"

namespace dcs::files {

struct Room {
    Fd fd;
    uid_t uid = 0;
    gid_t gid = 0;
};

// `grain`: the grain's directory, in `parent`, which is our own.
Result<Room> open_room(int parent, const std::string &grain = ".");
// Makes an empty room of mode 0700 that belongs to the server: fill it, then give it away (giving.h).
Result<Fd> make_room(int grain);

// Opens for reading. Code::not_found if there is no such file; Code::refused with the reason if it is not accepted.
Result<Fd> open_foreign(const Room &room, const std::string &name);
// As read_file() for the server's own files; the second reads the first `max` bytes of a longer one.
Result<std::string> read_foreign(const Room &room, const std::string &name, std::size_t max);
Result<std::string> read_foreign_start(const Room &room, const std::string &name, std::size_t max);
// Its size, or -1. `strange` receives a sentence if a file of this name exists but is not accepted.
std::int64_t foreign_size(const Room &room, const std::string &name, std::string *strange = nullptr);

}  // namespace dcs::files
