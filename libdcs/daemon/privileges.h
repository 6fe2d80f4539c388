#pragma once
// What a daemon gives up before it reads a byte of strangers: the rights of root, files, and system calls. Irrevocably.
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace dcs {

// Capabilities that stay, as bits by number (linux/capability.h). All others leave every set of this process, the
// bounding set too; no new privileges can be had. Nor is there a core file, in which keys and users' data would be.
// Before any thread starts.
Status give_up_capabilities(std::uint64_t keep = 0);

// Of all files it keeps those below these directories, may read those below `readable`, and what the C library wants
// when it loads a module or tells the time. A rule is of the file that is there now, and not of one that takes its
// place, except below a directory. No other file can be opened, listed, made, renamed or removed, and no other process
// be traced, nor signalled where the kernel can see to that; what is open stays open.
// False: this kernel has no Landlock of version 2. After give_up_capabilities(), before any thread starts.
Result<bool> give_up_files(const std::vector<std::string> &directories, const std::vector<std::string> &readable = {});

// What the C library reads when it looks up a host's name.
std::vector<std::string> files_of_names();

// What a daemon may keep besides.
struct KeptCalls {
    bool unix_sockets = false;  // to others, whom they tell who comes
    // Times, copies within the kernel, and of modes 0555, for a program, and, unless this is root, 0700, to get at what
    // is to be removed.
    bool foreign_files = false;
    bool process_ends = false;  // to learn when another process has ended, and nothing else about it
    bool own_children = false;  // of whatever program: to collect them
    bool children = false;      // processes of this program, which give up more, and which it ends
    bool owners = false;        // owners and modes of files, by what its capabilities leave; alarms
};
// Leaves the system calls that a daemon needs which serves sockets that are open, keeps files and has threads; for all
// threads. What is gone: programs and processes, other processes' signals, limits and memory, owners and modes of
// files, Unix sockets to others, namespaces, keys, and unknown calls. False: there is no such filter on
// this machine, or in a build with sanitizers, which need more.
Result<bool> give_up_calls(KeptCalls kept = {});

// Capabilities and files; calls. The log says what this kernel cannot do. `daemon`: "the scheduler".
Status keep_only_files(const std::string &daemon, std::uint64_t capabilities,
                       const std::vector<std::string> &directories, const std::vector<std::string> &readable = {});
Status keep_only_calls(KeptCalls kept);

// openat2 is among those that stay. On kernels before 6.2 it is not: what it is to do lies in memory, and it could cut
// off files that may only be read.
bool keeps_openat2();

}  // namespace dcs
