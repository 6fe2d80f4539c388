#include "grainserver/files/program_mark.h"

#include <sys/stat.h>

namespace dcs::files {

std::string program_mark(pid_t pid, const std::string &path) {
    struct stat st = {};
    if (::stat(path.c_str(), &st) != 0) return {};
    std::string mark;
    for (const auto number : {static_cast<long long>(pid), static_cast<long long>(st.st_dev),
                              static_cast<long long>(st.st_ino), static_cast<long long>(st.st_mtim.tv_sec),
                              static_cast<long long>(st.st_mtim.tv_nsec), static_cast<long long>(st.st_size)})
        mark += std::to_string(number) + " ";
    return mark;
}

}  // namespace dcs::files
