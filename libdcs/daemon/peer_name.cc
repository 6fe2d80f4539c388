#include "daemon/peer_name.h"

#include <cerrno>
#include <map>
#include <pwd.h>
#include <vector>

namespace dcs::daemon {
namespace {

std::string look_up(std::uint32_t uid) {
    std::vector<char> buffer(4096);
    passwd entry{};
    passwd *found = nullptr;
    int error = 0;
    while ((error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
           buffer.size() < (1u << 20))
        buffer.resize(buffer.size() * 2);
    if (error == 0 && found && found->pw_name[0] != '\0') return found->pw_name;
    return "uid" + std::to_string(uid);
}

}  // namespace

const std::string &peer_name(std::uint32_t uid) {
    static std::map<std::uint32_t, std::string> known;
    auto it = known.find(uid);
    if (it == known.end()) it = known.emplace(uid, look_up(uid)).first;
    return it->second;
}

}  // namespace dcs::daemon
