#pragma once
// podman, in a user namespace that maps one uid, with all that it keeps in a directory of this grain.
#include <string>
#include <vector>

namespace dcs::container {

inline constexpr const char *podman = "/usr/bin/podman";  // also in grainserver/shell/found_resources.cc

// Makes the directory, with podman's configuration files. What is wrong, or "".
std::string write_configs(const std::string &directory);

struct Mounts {
    std::string rootfs, grains, room, runner, program;  // program: of the host; empty: none
    std::vector<std::string> devices;                   // files of the host
    std::string runner_inside() const { return grains + "/.dcs_container"; }
    std::string program_inside() const { return grains + "/.program"; }
};
std::vector<std::string> podman_command(const Mounts &mounts, bool network);

// The device files of these GPUs, "0,2" or "all", and those that every program with a GPU needs.
std::vector<std::string> gpu_devices(const std::string &gpus, const std::string &directory = "/dev");

// Enters a user namespace that maps this account alone, and a mount namespace. What is wrong, or "".
std::string enter_namespaces();

// Unmounts all that podman mounted below the directory.
void unmount_below(const std::string &directory);

}  // namespace dcs::container
