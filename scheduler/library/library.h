#pragma once
// The library: contents named by their SHA-256, in library/ of the state directory, beside the update
// trees. A content is immutable. It comes piece by piece into library/incoming, and counts as there only
// when it was read back whole, its digest fitted, it was synced, renamed to its name, and the directories
// synced. Reading back and syncing take time: they are jobs, done on any thread over a Disk of its own. What there is
// of a large upload is read back, and on its way to the disk, while the rest comes. A few very large ones at a time go
// past the page cache: their digest is that of the bytes that are written, and they are not read back.
//
//   library/incoming/<number>       on their way in; a start removes them
//   library/<2 hex>/<62 hex>        contents; what a start finds is there, but not checked yet
//   library/damaged/<64 hex>        contents whose bytes have changed, kept for inspection
//
// Nothing of this is in the State: which contents grains name is derived from the grains.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/instant.h"
#include "base/large_file.h"
#include "base/status.h"
#include "pki/digest.h"
#include "store/disk.h"

namespace dcs::library {

inline constexpr const char *directory = "library";
std::string path_of(const std::string &digest);

// A very large upload, whose file is written while it comes.
struct LargeUpload {
    explicit LargeUpload(Fd file) : fd(std::move(file)) {}
    Fd fd;
    pki::Sha256 sum;
    std::uint64_t size = 0;           // of what came
    std::unique_ptr<LargeFile> file;  // its threads use what is above
};

struct Job {
    enum class Kind : std::uint8_t {
        read,  // of an upload the bytes that have come; it saves the seal that work. A very large one catches up
        seal,  // check the uploaded bytes and make them a content
        check  // read a content of before
    };
    Kind kind = Kind::seal;
    std::string digest;
    std::uint64_t size = 0;
    std::string temporary;  // read, seal
    std::string owner;      // for whom; owners take turns
    std::shared_ptr<LargeUpload> large;
};
// Code::invalid: the bytes are not those of the digest.
struct JobDone {
    Job job;
    Status status;
};

// Does jobs, one at a time.
class Worker {
public:
    explicit Worker(store::Disk &disk) : disk_(disk) {}
    JobDone work(Job job);

private:
    struct BytesRead {
        pki::Sha256 digest;
        std::uint64_t count = 0;
    };
    Status read_on(const std::string &path, std::uint64_t end, BytesRead &read);
    Status read(const Job &job);
    Status finish(LargeUpload &upload, const Job &job);
    Status check(const std::string &path, const Job &job, BytesRead &read);
    Status make_durable(const Job &job);
    Status seal(const Job &job);

    store::Disk &disk_;
    std::map<std::string, BytesRead> uploads_;  // by temporary; one that is missing is read from its beginning
};
inline JobDone work(store::Disk &disk, Job job) { return Worker(disk).work(std::move(job)); }

struct Content {
    std::uint64_t size = 0;
    bool checked = false;   // its bytes were read by this process
    Instant used{};         // last put or asked for; of before the start: the start
    bool uncached = false;  // it went past the page cache, and was not sent yet
};

class Library {
public:
    // Finds what is there, removes what never became a content. Disk outlives the Library.
    static Result<std::unique_ptr<Library>> open(store::Disk &disk, Instant now);

    const Content *find(const std::string &digest) const;
    const std::map<std::string, Content> &all() const { return contents_; }
    std::uint64_t version() const { return version_; }  // another one whenever something came or went
    void use(const std::string &digest, Instant now);
    // What a job made or found: a content of this size that was checked.
    void set(const std::string &digest, std::uint64_t size, Instant now, bool uncached = false);

    // A new temporary for so many bytes; no_space if the disk would be left too full.
    Result<std::string> begin(std::uint64_t size);
    // Code::limit: more came than can wait for the disk.
    Status append(const std::string &temporary, std::uint64_t at, const std::string &bytes);
    // Null unless it is written past the page cache.
    std::shared_ptr<LargeUpload> large(const std::string &temporary) const;
    std::shared_ptr<LargeUpload> take_large(const std::string &temporary);  // for the job that finishes it
    void discard(const std::string &temporary);

    Result<std::string> read(const std::string &digest, std::uint64_t offset, std::uint64_t max);
    // Something was wrong with it: it counts as not checked.
    void doubt(const std::string &digest);
    // No longer here: its bytes are wrong.
    void set_aside(const std::string &digest);
    void remove(const std::string &digest);

private:
    explicit Library(store::Disk &disk) : disk_(disk) {}
    Status scan(Instant now);
    Status take_directory(const std::string &name, Instant now);
    void begin_large(const std::string &temporary, std::uint64_t size);
    bool begin_sending(const std::string &digest);

    store::Disk &disk_;
    std::map<std::string, Content> contents_;
    std::map<std::string, std::shared_ptr<LargeUpload>> large_;  // by temporary
    // What is sent for the first time, by whom asks for the next piece.
    std::unique_ptr<LargeReader> sending_;
    std::string sent_;
    std::uint64_t sent_up_to_ = 0;
    std::uint64_t next_ = 1, version_ = 1;
};

}  // namespace dcs::library
