#pragma once
// Copies bytes from one open file to another, in slices.
#include <cstdint>
#include <memory>
#include <string>

#include "base/large_file.h"
#include "base/status.h"
#include "pki/digest.h"

namespace dcs::server {

class Copying {
public:
    // Copies from `offset` of `from` to its end, at most `max` bytes, to the present position of `to`. `to` -1: only
    // reads. With `digest` the bytes pass through this process, else the kernel copies or shares them. A large file
    // goes past the page cache.
    Copying(int from, std::uint64_t offset, std::uint64_t max, int to, bool digest);
    // One slice. True: the end is reached.
    Result<bool> go_on();
    // After a failure: `to` becomes what it was. False: it does not.
    bool begin_again();
    std::uint64_t copied() const { return copied_; }
    std::string digest() { return sum_->finish(); }  // call once

private:
    Result<bool> shared();
    void begin_large();
    Result<bool> by_block();
    Result<bool> by_kernel();
    Result<bool> by_hand();

    int from_, to_;
    std::uint64_t offset_, max_, copied_ = 0;
    off_t start_ = 0;  // position of `to`
    bool kernel_, begun_ = false;
    std::unique_ptr<pki::Sha256> sum_;
    std::unique_ptr<LargeReader> reader_;
    std::unique_ptr<LargeFile> large_;  // its threads use what is above
};

}  // namespace dcs::server
