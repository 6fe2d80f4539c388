#include "grainserver/shell/found_resources.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/limits.h"
#include "base/text.h"

namespace dcs::server {
namespace {

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

}  // namespace

Result<Offers> found_resources(const std::string &option, const char *visible, const std::string &devices) {
    if (option == "none") return Offers();
    if (option != "auto") return offers_of(option);
    Offers found;
    Offer gpus = gpus_in(devices);
    if (visible != nullptr)
        std::erase_if(gpus.indices, [words = words_of(visible, ",")](std::int32_t index) {
            return std::find(words.begin(), words.end(), std::to_string(index)) == words.end();
        });
    gpus.amount = static_cast<std::int64_t>(gpus.indices.size());
    if (gpus.amount > 0) found.emplace("gpu", std::move(gpus));
    return found;
}

}  // namespace dcs::server
