// Very large contents of the library, on a real disk: written past the page cache while they come.
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "pki/digest.h"
#include "scheduler/library/library.h"
#include "store/disk_posix.h"
#include "support/catch.h"

using namespace dcs;

namespace {
constexpr std::size_t sent_piece = 256 * 1024;

struct LargePlace {
    std::string path = "/var/tmp/dcs-library-XXXXXX";
    std::unique_ptr<store::Disk> disk;
    std::unique_ptr<library::Library> library;
    LargePlace() {
        REQUIRE(::mkdtemp(path.data()) != nullptr);
        auto opened = store::open_posix_disk(path);
        REQUIRE(opened);
        disk = std::move(*opened);
        auto made = library::Library::open(*disk, Instant{});
        REQUIRE(made);
        library = std::move(*made);
    }
    ~LargePlace() {
        library.reset();
        CHECK(remove_tree(AT_FDCWD, path));
    }
    std::string begin(std::size_t size) {
        auto temporary = library->begin(size);
        REQUIRE(temporary);
        return *temporary;
    }
    // Waits for the disk as the scheduler does, by a job.
    void append(const std::string &temporary, const std::string &bytes) {
        for (std::size_t at = 0; at < bytes.size(); at += sent_piece) {
            Status s = library->append(temporary, at, bytes.substr(at, sent_piece));
            if (s.code == Code::limit) {
                const auto large = library->large(temporary);
                REQUIRE(large);
                REQUIRE(library::work(*disk, {library::Job::Kind::read, "", at, temporary, "", large}).status);
                s = library->append(temporary, at, bytes.substr(at, sent_piece));
            }
            REQUIRE(s);
        }
    }
    library::JobDone seal(const std::string &temporary, const std::string &digest, std::size_t size) {
        return library::work(*disk,
                             {library::Job::Kind::seal, digest, size, temporary, "", library->take_large(temporary)});
    }
    std::string sent(const std::string &digest, std::size_t size) {
        std::string all;
        for (std::size_t at = 0; at < size; at += sent_piece) {
            const auto bytes = library->read(digest, at, sent_piece);
            REQUIRE(bytes);
            all += *bytes;
        }
        return all;
    }
};

std::string large_bytes() {
    std::string bytes(large_file_bytes + 5000, '\0');
    std::uint32_t x = 7;
    for (char &c : bytes) c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
    return bytes;
}
}  // namespace

TEST_CASE("a very large content is sealed by the bytes that came, and sent as often as it is wanted") {
    LargePlace p;
    const std::string bytes = large_bytes(), digest = pki::sha256_text(bytes);
    const std::string temporary = p.begin(bytes.size());
    if (!p.library->large(temporary)) return;  // a file system that cannot do it
    p.append(temporary, bytes);
    const auto done = p.seal(temporary, digest, bytes.size());
    REQUIRE(done.status);
    CHECK_FALSE(p.library->large(temporary));
    p.library->set(digest, bytes.size(), Instant{}, true);
    CHECK(library::work(*p.disk, {library::Job::Kind::check, digest, bytes.size(), "", "", nullptr}).status);
    CHECK(p.sent(digest, bytes.size()) == bytes);
    CHECK_FALSE(p.library->find(digest)->uncached);
    CHECK(p.sent(digest, bytes.size()) == bytes);
}

TEST_CASE("two that ask for a very large content at once both get it") {
    LargePlace p;
    const std::string bytes = large_bytes(), digest = pki::sha256_text(bytes);
    const std::string temporary = p.begin(bytes.size());
    p.append(temporary, bytes);
    REQUIRE(p.seal(temporary, digest, bytes.size()).status);
    p.library->set(digest, bytes.size(), Instant{}, true);
    std::string first, second;
    for (std::size_t at = 0; at < bytes.size(); at += sent_piece) {
        first += *p.library->read(digest, at, sent_piece);
        if (at >= 3 * sent_piece) second += *p.library->read(digest, at - 3 * sent_piece, sent_piece);
    }
    CHECK(first == bytes);
    CHECK(second == bytes.substr(0, second.size()));
}

TEST_CASE("a very large upload with another byte, or that is too short, does not become a content") {
    LargePlace p;
    const std::string bytes = large_bytes(), digest = pki::sha256_text(bytes);
    std::string other = bytes;
    const bool shorter = GENERATE(false, true);
    if (shorter) other.resize(bytes.size() - 1);
    else other[10'000'000] ^= 1;
    const std::string temporary = p.begin(bytes.size());
    p.append(temporary, other);
    const auto done = p.seal(temporary, digest, bytes.size());
    CHECK(done.status.code == Code::invalid);
    CHECK(p.disk->list("library/incoming")->empty());
    CHECK(p.disk->size(library::path_of(digest)).status().code == Code::not_found);
}

TEST_CASE("of very large uploads only a few at a time take memory, and the others are written as ever") {
    LargePlace p;
    const std::string bytes = large_bytes(), digest = pki::sha256_text(bytes);
    std::vector<std::string> all;
    for (int i = 0; i < 5; ++i) all.push_back(p.begin(bytes.size()));
    if (!p.library->large(all[0])) return;
    CHECK_FALSE(p.library->large(all[4]));
    p.append(all[4], bytes);
    REQUIRE(p.seal(all[4], digest, bytes.size()).status);
    p.library->discard(all[0]);
    CHECK(p.library->large(p.begin(bytes.size())));
    CHECK_FALSE(p.library->large(p.begin(large_file_bytes - 1)));
}
