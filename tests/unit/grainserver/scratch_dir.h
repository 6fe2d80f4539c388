#pragma once
// A directory below the system's temporary one, removed with all that is in it, once the launchers that serve it have
// ended: also one that was started a moment ago and has no lock yet.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/files.h"
#include "process/table.h"
#include "soon.h"
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
    ~ScratchDir() {
        soon([&] { return !ends_launchers(); });
        (void)dcs::remove_tree(AT_FDCWD, path);
    }
    ScratchDir(const ScratchDir &) = delete;
    ScratchDir &operator=(const ScratchDir &) = delete;

private:
    bool ends_launchers() const {
        bool any = false;
        for (const dcs::ProcessStat &p : dcs::all_processes()) {
            const std::string command = dcs::kernel_text("/proc/" + std::to_string(p.pid) + "/cmdline", 65536);
            if (p.state == 'Z' || command.find("dcs_launcher") == std::string::npos ||
                command.find(path) == std::string::npos)
                continue;
            any = true;
            ::kill(p.pid, SIGTERM);
            ::kill(p.pid, SIGCONT);
        }
        return any;
    }
};

inline void put_file(const std::string &path, const std::string &text, unsigned mode = 0644) {
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
}
inline std::string get_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();  // an iterator would throw when the process of a file in /proc ends
    return all.str();
}

}  // namespace bench
