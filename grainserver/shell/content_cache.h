#pragma once
// The library on this host: DIR/library/<2 hex>/<all hex>/content, named by the SHA-256 of the content.
// A content is present whole or not at all. It is verified once per server process before its use; fetched
// contents are verified on arrival. Contents belong to the server, and no other account can access them, even if it
// knows their names: grains get copies. Only grains under the server's own account execute a program in place.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/large_file.h"
#include "base/status.h"
#include "pki/digest.h"

namespace dcs::server {

inline constexpr const char *library_folder = "library";  // in the server's directory

// A content that is being written; the destructor removes its name.
struct Incoming {
    Incoming() = default;
    Incoming(int folder_fd, std::string its_name, Fd file)
        : fd(std::move(file)), folder(folder_fd), name(std::move(its_name)) {}
    Incoming(Incoming &&other) noexcept = default;
    Incoming &operator=(Incoming &&other) noexcept;
    ~Incoming();

    Fd fd;
    int folder = -1;
    std::string name;
};

class ContentCache {
public:
    using Names = std::set<std::string>;

    // Removes incomplete contents. `needed`: contents that are kept, however old they are.
    Status open(const std::string &directory, std::uint64_t max_bytes, std::function<Names()> needed);

    bool has(const std::string &digest) const { return contents_.count(digest) != 0; }
    bool verified(const std::string &digest) const { return verified_.count(digest) != 0; }
    void set_verified(const std::string &digest) { verified_.insert(digest); }
    // Opens it for reading; counts as a use.
    Result<Fd> open_content(const std::string &digest, std::int64_t now_s);
    // A path to it with the file name `name`, for an exec by the server's own account.
    Result<std::string> program(const std::string &digest, const std::string &name);
    void remove(const std::string &digest);

    // ---- from the scheduler, in order ----
    // Returns how much is present; at `total` it is verified and in the library. On failure all of it is removed.
    Result<std::uint64_t> keep(const std::string &digest, std::uint64_t total, std::uint64_t offset,
                               const std::string &bytes, std::int64_t now_s);
    void drop(const std::string &digest) { coming_.erase(digest); }

    // ---- from a grain ----
    Result<Incoming> begin();
    // Adds the content of `incoming`, which has this digest.
    Status take(Incoming incoming, const std::string &digest, std::uint64_t size, std::int64_t now_s);

    // Removes a few contents that are not needed: those unused for long, and the least recently used ones as
    // long as the total is too large. False: there was nothing to do.
    bool sweep(std::int64_t now_s);
    // The disk is full: removes all contents that are not needed. False: there were none.
    bool make_room();
    void keep_at_most(std::uint64_t bytes) { max_bytes_ = bytes; }  // instead of open()'s; what is too much is swept
    std::uint64_t bytes() const { return bytes_; }

private:
    struct Content {
        std::uint64_t bytes = 0;  // approximate size on the disk
        std::int64_t used_s = 0;
    };
    struct Coming {
        Incoming file;
        std::uint64_t next = 0, total = 0;
        pki::Sha256 sum;
        std::unique_ptr<LargeFile> large;  // if its file is written so; its thread uses what is above
    };

    Result<Fd> folder_of(const std::string &digest, bool make) const;
    void find_all();
    void find_in(int fan, const std::string &name);
    void begin_large(Coming &coming);
    Status append(Coming &coming, const std::string &bytes);
    void set(const std::string &digest, std::uint64_t size, std::int64_t used_s);
    std::vector<std::pair<std::int64_t, std::string>> oldest(std::size_t most) const;

    std::string path_;
    Fd library_, incoming_;
    std::uint64_t number_ = 0;  // of the last incoming file
    std::uint64_t max_bytes_ = 0, bytes_ = 0;
    std::function<Names()> needed_;
    std::map<std::string, Content> contents_;
    Names verified_;
    std::map<std::string, Coming> coming_;  // declared after incoming_, which contains their names
};

}  // namespace dcs::server
