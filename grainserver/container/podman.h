#pragma once
// Programs of this host, run by the process outside of the container; podman above all.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dcs::container {

// Keys and values of what such a program gets; nothing of the grain's, which its user chose.
struct Environment {
    std::string temporary;  // a directory for large temporary files
    std::string configs;    // of podman, and its home; empty: none
    int input = -1;         // its standard input; -1: empty
};
inline constexpr int not_started = 127;  // exit status: the exec, or what precedes it, has failed
// Starts it with no signal blocked. `fds`: take the places from 3 on. Both outputs go to `log`. -1 and errno.
pid_t start(const std::vector<std::string> &argv, const Environment &environment, const std::vector<int> &fds, int log);
// Runs it to its end: its status as of wait(2), -1 if it cannot be started. `goes_on` is called many times a second: if
// it is false, the program and all other children end, and -1 is returned.
int run(const std::vector<std::string> &argv, const Environment &environment, int log,
        const std::function<bool()> &goes_on = {});
// Ends podman, conmon and what else is left. As the subreaper, this process gets them all.
void end_all();
// The last part of a log.
std::string tail_of(int log, std::int64_t most = 2000);

// podman, in a user namespace that maps one uid, with all that it keeps in a directory of this grain.

// A tmpfs in the mount namespace of this grain. Other processes of its account do not see it, and cannot rename its
// directory, as they could one of the account's own, to have podman read their configuration: it is the kernel's.
inline constexpr const char *private_place = "/proc/driver";

inline constexpr const char *podman = "/usr/bin/podman";  // also in grainserver/shell/found_resources.cc

// Makes the directory, with podman's configuration files. Layers of images go to `graph`. What is wrong, or "".
std::string write_configs(const std::string &directory, const std::string &graph);

struct Mounts {
    std::string rootfs, grains, room, runner, program;  // program: of the host; empty: none
    std::vector<std::string> devices;                   // files of the host
    std::string runner_inside() const { return grains + "/.dcs_container"; }
    std::string program_inside() const { return grains + "/.program"; }
};
std::vector<std::string> podman_command(const Mounts &mounts, bool network);

// The device files of these GPUs, "0,2" or "all", and those that every program with a GPU needs.
std::vector<std::string> gpu_devices(const std::string &gpus, const std::string &directory = "/dev");

// Enters a user namespace that maps this account alone, and a mount namespace with a private place. What is wrong, or
// "".
std::string enter_namespaces();

// Mounts an unpacked image in the private place, with a layer for mount points above it: other processes of the account
// write in the image, but the first program in the container, below `grains`, they cannot replace. Returns the root.
std::string mount_root(const std::string &rootfs, const std::string &grains);

// Unmounts all that podman mounted below the directory.
void unmount_below(const std::string &directory);

}  // namespace dcs::container
