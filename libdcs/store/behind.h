#pragma once
// What committed turns have changed and no file shows yet. Small turns are applied in groups, so that ten turns that
// append to one log write it once; the turns themselves are durable already, and replay needs no more than them.
#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "store/disk.h"
#include "store/turn_root.h"

namespace dcs::store {

class Behind {
public:
    struct File {
        std::string directory, name;
        Action action = Action::replace;
        std::uint64_t start = 0;  // of an append: where its bytes begin
        std::string bytes;
    };

    // A step with bytes of its own; those of one file become one.
    void add(const Step &step);
    void count_turn() { ++turns_; }
    bool has(const std::string &path) const { return files_.count(path) != 0; }
    bool has_below(const std::string &directory) const;
    // The file as it will be.
    Result<std::string> read(Disk &disk, const std::string &path, std::uint64_t offset, std::uint64_t max) const;

    const std::map<std::string, File> &files() const { return files_; }
    std::size_t turns() const { return turns_; }
    std::uint64_t bytes() const { return bytes_; }
    // Disk space that applying may take, with so much for each file besides its bytes.
    std::uint64_t room(std::uint64_t for_each) const { return bytes_ + for_each * files_.size(); }

private:
    std::map<std::string, File> files_;  // by path
    std::uint64_t bytes_ = 0;
    std::size_t turns_ = 0;
};

}  // namespace dcs::store
