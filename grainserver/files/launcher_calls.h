#pragma once
// The protocol between server and launcher: calls in packets of a SOCK_SEQPACKET socket. The
// launcher answers START, QUEUE, FIRST, RECALL, PROVE, LIST and QUIT; the other calls are not answered, their effect is
// the `exit` file and the EXITED event that every connected peer gets.
//
//   START <grain directory> <slot limit>   -> STARTED <dir> | HAVE <dir> | FAILED <dir> <code> <again> <text>
//   QUEUE <dir> <slot limit>               -> the same, when it gets a slot: that of a grain that has ended, if one has
//   FIRST <dir> <slot limit>               -> likewise, before all others in the queue
//   RECALL <dir>                           -> RECALLED <dir>: it does not run and will not | HAVE <dir>
//   PROVE <dir>                            -> PROVED <dir> | FAILED: whether START could run it, slots aside
//   SIGNAL <dir> <number>                     to the grain's first process
//   TERM <dir>                                CONT and TERM to its process group
//   KILL <dir>                                its whole process tree
//   LIST                                   -> QUEUES <counts>, one RUNNING <dir> per grain, then END
//   QUIT                                   -> exits if no grain runs, else BUSY
//   event: EXITED <dir>, or LEFT <dir> to a peer that uses the queue: certainly no process of the grain is left
//
// <dir> is the plain name below DIR/grains. <code> is a dcs::Code, <again> 1 if the same call may
// succeed later (no slot is free). QUEUES: the launcher knows QUEUE, FIRST and RECALL; one of release 0.1 does not.
// <counts> is 1 if no control groups limit memory and processes, although the launcher may use them. Between
// peers that know them a packet may have several calls, separated by NUL bytes. The queue belongs to the connection: when
// that ends, what waits in the queue is not started.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
    exited,
    queue,
    first,
    recall,
    recalled,
    queues,
    left
};

struct LauncherCall {
    Verb verb = Verb::none;  // none: invalid
    std::string dir;
    int number = 0;  // slot limit, signal, code, or 1
    bool again = false;
    std::string text;
};
std::string format(const LauncherCall &call);
LauncherCall parse_call(std::string_view call);
std::vector<LauncherCall> parse_calls(std::string_view packet);
// Adds a call to a packet that may have some. False: it does not fit, and the packet is as it was.
bool add_call(std::string &packet, const std::string &call);

}  // namespace dcs::files
