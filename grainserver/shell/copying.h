#pragma once
// Bytes from one open file to another, a slice at a time.
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "pki/digest.h"

namespace dcs::server {

class Copying {
public:
    // From `offset` of `from` to its end, at most `max` bytes, to the place where `to` stands. No `to` (-1): only
    // read. With `digest` the bytes pass through us, else the kernel copies them or lets the files share them.
    Copying(int from, std::uint64_t offset, std::uint64_t max, int to, bool digest);
    // One slice. True: there is no more.
    Result<bool> go_on();
    std::uint64_t copied() const { return copied_; }
    std::string digest() { return sum_->finish(); }  // once

private:
    Result<bool> by_kernel();
    Result<bool> by_hand();

    int from_, to_;
    std::uint64_t offset_, max_, copied_ = 0;
    bool kernel_;
    std::unique_ptr<pki::Sha256> sum_;
};

}  // namespace dcs::server
