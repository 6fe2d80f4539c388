#include "grainserver/shell/copying.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/require.h"

namespace dcs::server {
namespace {
constexpr std::uint64_t slice = 4u << 20;  // takes some milliseconds
constexpr std::size_t buffer_bytes = 256u << 10;

}  // namespace

Copying::Copying(int from, std::uint64_t offset, std::uint64_t max, int to, bool digest)
    : from_(from),
      to_(to),
      offset_(offset),
      max_(max),
      kernel_(!digest && to >= 0),
      sum_(digest ? std::make_unique<pki::Sha256>() : nullptr) {}

Result<bool> Copying::go_on() {
    DCS_REQUIRE(copied_ <= max_, "the copied bytes do not exceed the maximum");
    const bool first = !std::exchange(begun_, true);
    if (first && to_ >= 0) start_ = ::lseek(to_, 0, SEEK_CUR);
    const bool whole = first && offset_ == 0 && to_ >= 0 && start_ == 0;
    if (whole && kernel_ && ::ioctl(to_, FICLONE, from_) == 0) return shared();
    if (whole) begin_large();
    if (large_) return by_block();
    return kernel_ ? by_kernel() : by_hand();
}

bool Copying::begin_again() {
    large_.reset();
    reader_.reset();
    if (const int flags = to_ >= 0 ? ::fcntl(to_, F_GETFL) : -1; flags >= 0)  // as it was before a large copy
        (void)::fcntl(to_, F_SETFL, flags & ~O_DIRECT);
    if (sum_) sum_ = std::make_unique<pki::Sha256>();
    kernel_ = !sum_ && to_ >= 0;
    begun_ = false;
    copied_ = 0;
    return to_ >= 0 && start_ >= 0 && ::ftruncate(to_, start_) == 0 && ::lseek(to_, start_, SEEK_SET) == start_;
}

Result<bool> Copying::shared() {
    const off_t end = ::lseek(to_, 0, SEEK_END);
    if (end < 0) return file_error("a copy", errno);
    copied_ = static_cast<std::uint64_t>(end);
    if (copied_ > max_ && ::ftruncate(to_, static_cast<off_t>(max_)) != 0) return file_error("a copy", errno);
    return true;
}

void Copying::begin_large() {
    struct stat st {};
    if (::fstat(from_, &st) != 0) return;
    const std::uint64_t size = std::min(static_cast<std::uint64_t>(st.st_size), max_);
    if (size < large_file_bytes) return;
    Fd again(::fcntl(from_, F_DUPFD_CLOEXEC, 0));
    if (!again) return;
    LargeFile::Look look;
    if (sum_) look = [this](std::string_view bytes) { sum_->add(bytes); };
    large_ = LargeFile::begin(to_, size, std::move(look));
    if (!large_) return;
    // What a grain has just written is in the cache.
    reader_ = std::make_unique<LargeReader>(std::move(again), !sum_);
}

Result<bool> Copying::by_block() {
    std::string_view bytes;
    for (std::uint64_t done = 0; done < slice; done += bytes.size()) {
        if (!reader_->look(copied_, bytes)) return file_error("cannot read the source of a copy", errno);
        bytes = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), max_ - copied_)));
        if (!large_->append(bytes)) return file_error("cannot write a copy", errno);
        copied_ += bytes.size();
        if (!bytes.empty()) continue;
        if (!large_->finish()) return file_error("cannot write a copy", errno);
        return true;
    }
    return false;
}

Result<bool> Copying::by_kernel() {
    auto at = static_cast<off64_t>(offset_ + copied_);
    const std::uint64_t wanted = std::min(slice, max_ - copied_);
    if (wanted == 0) return true;
    const ssize_t n = ::copy_file_range(from_, &at, to_, nullptr, wanted, 0);
    if (n > 0) copied_ += static_cast<std::uint64_t>(n);
    if (n > 0 || (n < 0 && errno == EINTR)) return false;
    if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) return file_error("a copy", errno);
    kernel_ = false;  // unsupported between these files, or the end is reported, which a read verifies
    return false;
}

Result<bool> Copying::by_hand() {
    std::vector<char> buffer(buffer_bytes);
    for (std::uint64_t done = 0; done < slice;) {
        const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), max_ - copied_));
        if (wanted == 0) return true;
        const ssize_t n = ::pread(from_, buffer.data(), wanted, static_cast<off_t>(offset_ + copied_));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_error("cannot read the source of a copy", errno);
        if (n == 0) return true;
        const auto count = static_cast<std::size_t>(n);
        if (sum_) sum_->add({buffer.data(), count});
        if (to_ >= 0)
            if (!write_all(to_, {buffer.data(), count})) return file_error("cannot write a copy", errno);
        copied_ += count;
        done += count;
    }
    return false;
}

}  // namespace dcs::server
