#include "locks/files/world.h"

#include <ctime>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/first_made.h"
#include "process/table.h"

namespace dcs::locks {
namespace {

std::int64_t reading(clockid_t clock) {
    timespec t = {};
    ::clock_gettime(clock, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// "1b4e28ba-2fa1-11d2-883f-b9a761bde3fb" -> its 16 bytes
BootId bytes_of(const std::string &uuid) {
    BootId id{};
    std::size_t digits = 0;
    for (char c : uuid) {
        int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (value < 0 || digits / 2 == id.size()) continue;
        id[digits / 2] = static_cast<unsigned char>(id[digits / 2] << 4 | value);
        ++digits;
    }
    return id;
}

class ThisWorld final : public World {
public:
    ThisWorld() {
        boot = bytes_of(boot_id());
        struct stat st = {};
        if (::stat("/proc/self/ns/pid", &st) == 0) pid_namespace = st.st_ino;
        utsname names = {};
        if (::uname(&names) == 0) host = names.nodename;
    }
    Moment now() const override { return {reading(CLOCK_REALTIME), reading(CLOCK_MONOTONIC), boot_clock().ns}; }
};

}  // namespace

const World &this_world() {
    static std::atomic<const ThisWorld *> world{nullptr};
    return first_made(world, [] { return ThisWorld(); });
}

}  // namespace dcs::locks
