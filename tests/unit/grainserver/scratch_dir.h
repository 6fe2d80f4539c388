#pragma once
// A directory below the system's temporary one, removed with all that is in it.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

#include "grainserver/files/small_file.h"
#include "support/catch.h"

namespace bench {

struct ScratchDir {
    std::string path;
    ScratchDir() {
        const char *base = std::getenv("TMPDIR");
        std::string name = std::string(base != nullptr ? base : "/tmp") + "/dcs-gs-XXXXXX";
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~ScratchDir() { (void)dcs::files::remove_tree(AT_FDCWD, path); }
    ScratchDir(const ScratchDir &) = delete;
    ScratchDir &operator=(const ScratchDir &) = delete;
};

inline void put_file(const std::string &path, const std::string &text, unsigned mode = 0644) {
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
}
inline std::string get_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace bench
