#include "daemon_record.h"

#include <unistd.h>

#include "pool_directory.h"

namespace dcs::commands {
namespace {
constexpr std::size_t most_bytes = 1u << 20;
constexpr int looks = 100;  // a daemon writes it in one moment, which may be this one
constexpr unsigned pause_us = 10'000;
}  // namespace

Result<ConfigRecord> daemon_record(const std::string &directory) {
    const std::string path = directory + "/" + configuration_name;
    for (int look = 0; look < looks; ++look) {
        const auto text = read_file(path, most_bytes);
        if (!text) return text.status();
        if (auto record = config_record_of(*text)) return std::move(*record);
        ::usleep(pause_us);
    }
    return fail(Code::io_error, path + " is not in the format that daemons write");
}

}  // namespace dcs::commands
