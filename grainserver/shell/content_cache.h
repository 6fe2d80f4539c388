#pragma once
// The library on this host: DIR/library/<2 hex>/<all hex>/content, named by the SHA-256 of what is in it.
// A content is there whole or not at all. It is verified once per server process before it is used, as fetched
// ones were when they came. Contents belong to the server, and no other account gets here, however much it knows of
// their names: grains get copies. Only grains under the server's own account execute a program where it lies.
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/status.h"
#include "base/files.h"
#include "pki/digest.h"

namespace dcs::server {

inline constexpr const char *library_folder = "library";  // in the server's directory

// A content that is being written; its name goes with it.
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

    // Removes what came only half. `needed`: contents that stay, however old they are.
    Status open(const std::string &directory, std::uint64_t max_bytes, std::function<Names()> needed);

    bool has(const std::string &digest) const { return contents_.count(digest) != 0; }
    bool verified(const std::string &digest) const { return verified_.count(digest) != 0; }
    void set_verified(const std::string &digest) { verified_.insert(digest); }
    // To read it; it counts as used now.
    Result<Fd> open_content(const std::string &digest, std::int64_t now_s);
    // Its path under `name`, for an exec by the server's own account.
    Result<std::string> program(const std::string &digest, const std::string &name);
    void remove(const std::string &digest);

    // ---- from the scheduler, in order ----
    // How much is here now; at `total` it is verified and in the library. On failure nothing of it is kept.
    Result<std::uint64_t> keep(const std::string &digest, std::uint64_t total, std::uint64_t offset,
                               const std::string &bytes, std::int64_t now_s);
    void drop(const std::string &digest) { coming_.erase(digest); }

    // ---- from a grain ----
    Result<Incoming> begin();
    // What was written there, and has this digest.
    Status take(Incoming incoming, const std::string &digest, std::uint64_t size, std::int64_t now_s);

    // Removes a few that nobody needs: those that were not used for long, and the least recently used ones as
    // long as all are too large. False: there was nothing to do.
    bool sweep(std::int64_t now_s);
    void keep_at_most(std::uint64_t bytes) { max_bytes_ = bytes; }  // instead of open()'s; what is too much is swept
    std::uint64_t bytes() const { return bytes_; }

private:
    struct Content {
        std::uint64_t bytes = 0;  // that it takes on the disk, about
        std::int64_t used_s = 0;
    };
    struct Coming {
        Incoming file;
        std::uint64_t next = 0, total = 0;
        pki::Sha256 sum;
    };

    Result<Fd> folder_of(const std::string &digest, bool make) const;
    void find_all();
    void find_in(int fan, const std::string &name);
    Status append(Coming &coming, const std::string &bytes);
    void set(const std::string &digest, std::uint64_t size, std::int64_t used_s);
    bool free_oldest(const Names &needed);
    bool make_room();

    std::string path_;
    Fd library_, incoming_;
    std::uint64_t number_ = 0;  // of the last one that came in
    std::uint64_t max_bytes_ = 0, bytes_ = 0;
    std::function<Names()> needed_;
    std::map<std::string, Content> contents_;
    Names verified_;
    std::map<std::string, Coming> coming_;  // after incoming_: their names are in it
};

}  // namespace dcs::server
