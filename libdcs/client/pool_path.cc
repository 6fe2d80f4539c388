#include "client/pool_path.h"

#include <cstdlib>

#include <pwd.h>
#include <unistd.h>

namespace dcs::client {
namespace {

std::string variable(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

std::string home_directory() {
    const std::string home = variable("HOME");
    if (!home.empty() && home[0] == '/') return home;
    char buffer[4096];
    passwd entry{}, *found = nullptr;
    if (::getpwuid_r(::geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found && found->pw_dir)
        return found->pw_dir;
    return {};
}

}  // namespace

Result<std::string> pool_directory() {
    const std::string dir = variable("DCS_DIR");
    if (!dir.empty()) {
        if (dir[0] != '/')
            return fail(Code::invalid, "DCS_DIR is \"" + dir + "\": give it as an absolute path");
        return dir;
    }
    const std::string state = variable("XDG_STATE_HOME");
    if (!state.empty() && state[0] == '/') return state + "/dcs";  // relative ones do not count there
    const std::string home = home_directory();
    if (home.empty())
        return fail(Code::invalid, "neither DCS_DIR nor HOME is set: set DCS_DIR to the pool's directory");
    return home + "/.local/state/dcs";
}

}  // namespace dcs::client
