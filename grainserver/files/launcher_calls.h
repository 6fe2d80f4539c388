#pragma once
// The protocol between server and launcher: one packet of a SOCK_SEQPACKET socket per call. The
// launcher answers START, PROVE, LIST and QUIT; the other calls are not answered, their effect is
// the `exit` file and the EXITED event that every connected peer gets.
//
//   START <grain directory> <slot limit>   -> STARTED <dir> | HAVE <dir> | FAILED <dir> <code> <again> <text>
//   PROVE <dir>                            -> PROVED <dir> | FAILED: whether START could run it, slots aside
//   SIGNAL <dir> <number>                     to the grain's first process
//   TERM <dir>                                CONT and TERM to its process group
//   KILL <dir>                                its whole process tree
//   LIST                                   -> one RUNNING <dir> per grain, then END
//   QUIT                                   -> exits if no grain runs, else BUSY
//   event: EXITED <dir>
//
// <dir> is the plain name below DIR/grains. <code> is a dcs::Code, <again> 1 if the same call may
// succeed later (no slot is free).
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace dcs::files {

inline constexpr const char *launcher_socket = "launcher.sock";
inline constexpr const char *launcher_lock = "launcher.lock";
inline constexpr const char *slots_folder = "slots";
inline constexpr const char *slots_file = "slots";  // in slots_folder, or in the directory that servers share
inline constexpr const char *grains_folder = "grains";
inline constexpr std::size_t launcher_packet_max = 8192;

enum class Verb : std::uint8_t {
    none,
    start,
    prove,
    signal,
    term,
    kill,
    list,
    quit,
    started,
    have,
    proved,
    failed,
    running,
    end,
    busy,
    exited
};

struct LauncherCall {
    Verb verb = Verb::none;  // none: invalid
    std::string dir;
    int number = 0;  // slot limit, signal, or code
    bool again = false;
    std::string text;
};
std::string format(const LauncherCall &call);
LauncherCall parse_call(std::string_view packet);

}  // namespace dcs::files
