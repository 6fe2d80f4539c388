#include "grainserver/shell/found_resources.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/limits.h"
#include "base/text.h"

namespace dcs::server {
namespace {

constexpr const char *podman = "/usr/bin/podman";    // also in grainserver/container/podman.cc
constexpr std::string_view device_start = "nvidia";  // nvidiactl and others are none of the devices

bool is_device(int directory, const std::string &name) {
    struct stat st {};
    return ::fstatat(directory, name.c_str(), &st, 0) == 0 && S_ISCHR(st.st_mode);
}

Offer gpus_in(const std::string &devices) {
    Offer gpus;
    const Result<Fd> directory = open_directory(AT_FDCWD, devices);
    if (!directory) return gpus;
    const auto names = list_directory(directory->get());
    if (!names) return gpus;
    for (const std::string &name : *names) {
        std::uint16_t index = 0;
        if (!name.starts_with(device_start) || !read_number(std::string_view(name).substr(device_start.size()), index))
            continue;
        if (is_device(directory->get(), name)) gpus.indices.push_back(index);
    }
    std::sort(gpus.indices.begin(), gpus.indices.end());
    if (gpus.indices.size() > limits::resource_indices) gpus.indices.resize(limits::resource_indices);
    return gpus;
}

// Tried in a process of its own, and under an account without privileges if grains have such ones.
bool may_make_namespaces(bool users) {
    constexpr uid_t nobody = 65534;
    const pid_t child = ::fork();
    if (child == 0) {
        if (users && ::syscall(SYS_setresuid, nobody, nobody, nobody) != 0) ::_exit(1);
        ::_exit(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 0 : 1);
    }
    int status = 1;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return child > 0 && status == 0;
}

}  // namespace

std::string lacks_containers(bool users) {
    if (::access(podman, X_OK) != 0) return std::string(podman) + " is missing";
    if (!may_make_namespaces(users))
        return std::string("its kernel refuses user namespaces") + (users ? " to accounts without privileges" : "");
    return "";
}

Result<Offers> found_resources(const std::string &option, const char *visible, bool containers,
                               const std::string &devices) {
    if (option == "none") return Offers();
    if (option != "auto" && option != no_devices) return offers_of_this_host(option);
    Offers found;
    Offer gpus;
    if (option == "auto") gpus = gpus_in(devices);
    if (visible != nullptr)
        std::erase_if(gpus.indices, [words = words_of(visible, ",")](std::int32_t index) {
            return std::find(words.begin(), words.end(), std::to_string(index)) == words.end();
        });
    gpus.amount = static_cast<std::int64_t>(gpus.indices.size());
    if (gpus.amount > 0) found.emplace("gpu", std::move(gpus));
    if (containers) found.emplace(container_resource, Offer{limits::host_slots, {}});
    return found;
}

}  // namespace dcs::server
