// Where and when the test build of dcs_lock believes to be. Variables of its environment, all optional:
//   DCS_LOCK_TEST_WALL, _MONO, _BOOT   seconds (fractions allowed) by which these clocks are ahead
//   DCS_LOCK_TEST_BOOT_ID              32 hex digits; minus signs are left out
//   DCS_LOCK_TEST_PIDNS                inode of the pid namespace
//   DCS_LOCK_TEST_HOST                 name of the host
// What is not named is as it is. Instead of libdcs/locks/files/world.cc, which the linker then leaves out.
#include "locks/files/world.h"

#include <cstdlib>
#include <ctime>
#include <string>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "process/table.h"

namespace dcs::locks {
namespace {

const char *variable(const char *name) { return std::getenv((std::string("DCS_LOCK_TEST_") + name).c_str()); }

std::int64_t ahead(const char *name) {
    const char *value = variable(name);
    return value != nullptr ? static_cast<std::int64_t>(std::strtod(value, nullptr) * 1e9) : 0;
}

std::int64_t reading(clockid_t clock, std::int64_t more) {
    timespec t = {};
    ::clock_gettime(clock, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec + more;
}

BootId bytes_of(const std::string &hex) {
    BootId id{};
    std::size_t digits = 0;
    for (char c : hex) {
        const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (value < 0 || digits / 2 == id.size()) continue;
        id[digits / 2] = static_cast<unsigned char>(id[digits / 2] << 4 | value);
        ++digits;
    }
    return id;
}

class TestWorld final : public World {
public:
    TestWorld() {
        const char *id = variable("BOOT_ID"), *space = variable("PIDNS"), *name = variable("HOST");
        boot = bytes_of(id != nullptr ? id : boot_id());
        struct stat st = {};
        if (space != nullptr) pid_namespace = std::strtoull(space, nullptr, 10);
        else if (::stat("/proc/self/ns/pid", &st) == 0) pid_namespace = st.st_ino;
        utsname names = {};
        if (name != nullptr) host = name;
        else if (::uname(&names) == 0) host = names.nodename;
    }
    Moment now() const override {
        return {reading(CLOCK_REALTIME, wall_), reading(CLOCK_MONOTONIC, mono_), reading(CLOCK_BOOTTIME, boot_)};
    }

private:
    std::int64_t wall_ = ahead("WALL"), mono_ = ahead("MONO"), boot_ = ahead("BOOT");
};

}  // namespace

const World &this_world() {
    static const TestWorld world;
    return world;
}

}  // namespace dcs::locks
