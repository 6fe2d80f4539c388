#pragma once
// Which GPUs of its host a grain must not open: those that the host offers, but its own. Control groups deny device
// files by their numbers, so that another file of the same device is denied too.
#include <cstdint>
#include <string>
#include <vector>

#include "base/resources.h"

namespace dcs::starter {

struct Device {
    std::uint32_t major = 0, minor = 0;  // of a character device
    bool operator==(const Device &) const = default;
};
using Devices = std::vector<Device>;

// Whether gpu 0 is /dev/nvidia0. Otherwise a batch system has given the server some GPUs, which CUDA numbers anew.
bool gpus_by_file();

// `offers`: of the host, as in the launch record. Those of which `directory` has no file nvidiaN are left out.
Devices others_devices(const std::string &offers, const GivenResources &given, const std::string &directory = "/dev");
// CUDA counts only the GPUs that a program can open; in a container, these are the grain's own. Corrects
// CUDA_VISIBLE_DEVICES, which has their indices.
void number_for_cuda(std::vector<std::string> &env, const GivenResources &given, const Devices &denied, bool contained,
                     const std::string &directory = "/dev");

// For the grain's container: the indices of its GPUs, "0,2"; "all" if these are not those of device files.
std::string gpus_of(const GivenResources &given, bool by_file);

// For all processes of a control group, whose directory this is, and in addition to what it was denied before. False:
// the kernel, or a lack of rights, prevents it.
bool deny_devices(const std::string &group, bool unified, const Devices &devices);

}  // namespace dcs::starter
