#pragma once
// The room: the part of a grain's directory that the grain sees (DCS_GRAIN_DIR) and may change. What lies
// there is foreign. A file counts only if it is a regular one with a single name that belongs to whom the
// room belongs: no symbolic link, FIFO or socket, and no second name of somebody else's file.
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

// `grain`: the grain's directory.
Result<Room> open_room(int grain);
// Makes an empty one of mode 0700, still ours: fill it, then give it away (giving.h).
Result<Fd> make_room(int grain);

// To read. Code::not_found if there is no such file; Code::refused, in words, if it does not count.
Result<Fd> open_foreign(const Room &room, const std::string &name);
// As read_file() of our own files; the second takes the first `max` bytes of a longer one.
Result<std::string> read_foreign(const Room &room, const std::string &name, std::size_t max);
Result<std::string> read_foreign_start(const Room &room, const std::string &name, std::size_t max);
// Its size, or -1. `strange` gets a sentence if there is something of this name that does not count.
std::int64_t foreign_size(const Room &room, const std::string &name, std::string *strange = nullptr);

}  // namespace dcs::files
