#include "service.h"

#include <unistd.h>

#include "locks/files/lock_search.h"
#include "pool_directory.h"

namespace dcs::commands {
namespace {

constexpr std::size_t most_service_bytes = 4096;
constexpr const char *unit_folders[] = {"/etc/systemd/system/", "/usr/local/lib/systemd/system/",
                                        "/usr/lib/systemd/system/", "/lib/systemd/system/"};

bool exists(const std::string &path) { return ::access(path.c_str(), F_OK) == 0; }

// Of the file that `dcs host join` writes for the unit; " at ADDRESS", or nothing.
std::string scheduler_in(const std::string &file) {
    const std::string key = "DCS_SCHEDULER=";
    const auto text = read_file(file, most_service_bytes);
    const std::size_t at = text ? text->find(key) : std::string::npos;
    if (at == std::string::npos) return "";
    return " at " + text->substr(at + key.size(), text->find('\n', at) - at - key.size());
}

}  // namespace

bool has_service(const std::string &unit) {
    if (!exists("/run/systemd/system")) return false;
    for (const std::string folder : unit_folders)
        if (exists(folder + unit + ".service")) return true;
    return false;
}

bool daemon_runs_in(const std::string &directory) { return locks::is_held(directory + "/lock"); }

std::string part_in_far_pool() {
    const std::string server = services_place + std::string("/server/service"),
                      backup = services_place + std::string("/backup/service");
    if (exists(server)) return "this host runs grains for the pool" + scheduler_in(server);
    if (exists(backup)) return "this host has the backup of the pool" + scheduler_in(backup);
    return "";
}

}  // namespace dcs::commands
