#pragma once
// A directory in memory for targets over real files: made once, its files written again for each input.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz.h"

namespace dcs::fuzz {

class Scratch {
public:
    Scratch() {
        std::string name = "/dev/shm/dcs-fuzz-XXXXXX";
        expect(::mkdtemp(name.data()) != nullptr, "there is a /dev/shm to work in");
        path_ = name;
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    const std::string &path() const { return path_; }
    void empty() const {
        for (const auto &entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove_all(entry.path());
    }
    void write(const std::string &name, std::string_view bytes) const {
        const std::filesystem::path to = path_ + "/" + name;
        std::filesystem::create_directories(to.parent_path());
        std::ofstream(to, std::ios::binary) << bytes;
    }

private:
    std::string path_;
};

}  // namespace dcs::fuzz
