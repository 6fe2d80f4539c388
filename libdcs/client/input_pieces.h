#pragma once
// The input of a grain, from a descriptor.
#include <string>

#include <unistd.h>

#include "base/files.h"

namespace dcs::client {

// What a descriptor has to read, piece by piece. The place of a file's descriptor does not change by it.
class InputPieces {
public:
    explicit InputPieces(int fd) : fd_(fd), at_(::lseek(fd, 0, SEEK_CUR)) {}
    // As many bytes as there are, up to `most`; none: that was the end. False with errno.
    bool next(std::size_t most, std::string &piece) {
        if (at_ < 0) return read_to_end(fd_, most - 1, piece);
        piece.resize(most);
        const bool read = pread_all(fd_, piece, at_);
        if (read) at_ += static_cast<off_t>(piece.size());
        return read;
    }
    off_t end() const { return at_; }  // negative: it is no file

private:
    const int fd_;
    off_t at_;
};

}  // namespace dcs::client
