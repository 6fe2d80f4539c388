#include "scheduler/library/library.h"

#include "base/failpoint.h"
#include "base/text.h"
#include "base/limits.h"
#include "base/require.h"

namespace dcs::library {
namespace {

const std::string top = directory;
const std::string incoming = top + "/incoming";
const std::string damaged = top + "/damaged";
constexpr std::size_t hex_of_directory = 2;

Result<std::vector<std::string>> names_in(store::Disk &disk, const std::string &path) {
    auto names = disk.list(path);
    if (!names && names.status().code == Code::not_found) return std::vector<std::string>();
    return names;
}

}  // namespace

std::string path_of(const std::string &digest) {
    DCS_REQUIRE(digest.size() > hex_of_directory / 2, "a content lies in a directory by its first byte");
    const std::string hex = hex_of(digest);
    return top + "/" + hex.substr(0, hex_of_directory) + "/" + hex.substr(hex_of_directory);
}

Result<std::unique_ptr<Library>> Library::open(store::Disk &disk, Instant now) {
    std::unique_ptr<Library> library(new Library(disk));
    if (Status s = library->scan(now); !s) return fail(s.code, "the library of contents: " + s.text);
    return library;
}

Status Library::scan(Instant now) {
    auto temporaries = names_in(disk_, incoming);
    if (!temporaries) return temporaries.status();
    for (const std::string &name : *temporaries)
        if (Status s = disk_.remove(incoming + "/" + name); !s) return s;
    auto names = names_in(disk_, top);
    if (!names) return names.status();
    for (const std::string &name : *names)
        if (name.size() == hex_of_directory + 1 && bytes_of_hex(name.substr(0, hex_of_directory)))
            if (Status s = take_directory(name.substr(0, hex_of_directory), now); !s) return s;
    if (names->empty()) return Status::ok();
    // A name that is seen may still be on its way to the disk; from now on a caller may rely on it.
    if (Status s = disk_.sync_dir(top); !s) return s;
    return disk_.sync_dir("");
}

Status Library::take_directory(const std::string &name, Instant now) {
    const std::string path = top + "/" + name;
    auto names = disk_.list(path);
    if (!names) return names.status();
    for (const std::string &file : *names) {
        const auto digest = bytes_of_hex(name + file);
        if (!digest) continue;
        auto size = disk_.size(path + "/" + file);
        if (!size) return size.status();
        contents_[*digest] = Content{*size, false, now};
    }
    return disk_.sync_dir(path);
}

const Content *Library::find(const std::string &digest) const {
    const auto it = contents_.find(digest);
    return it == contents_.end() ? nullptr : &it->second;
}

void Library::use(const std::string &digest, Instant now) {
    if (const auto it = contents_.find(digest); it != contents_.end()) it->second.used = now;
}

void Library::set(const std::string &digest, std::uint64_t size, Instant now) {
    if (!find(digest)) ++version_;
    contents_[digest] = Content{size, true, now};
}

Result<std::string> Library::begin(std::uint64_t size) {
    auto room = disk_.free_bytes();
    if (!room) return room.status();
    if (*room < size || *room - size < limits::library_leaves_bytes)
        return fail(Code::no_space, "the scheduler's disk has " + std::to_string(*room >> 20) +
                                        " MiB free, of which contents leave " +
                                        std::to_string(limits::library_leaves_bytes >> 20) + "; this one has " +
                                        std::to_string(size) + " bytes");
    for (const std::string &path : {top, incoming})
        if (auto made = disk_.make_dir(path); !made) return made.status();
    const std::string temporary = incoming + "/" + std::to_string(next_++);
    if (Status s = disk_.create(temporary, {}); !s) {
        discard(temporary);
        return s;
    }
    return temporary;
}

Status Library::append(const std::string &temporary, std::uint64_t at, const std::string &bytes) {
    failpoint("library.append.before");
    return disk_.truncate_append(temporary, at, bytes);
}

// If it cannot be removed now, the next start does it.
void Library::discard(const std::string &temporary) { (void)disk_.remove(temporary); }

Result<std::string> Library::read(const std::string &digest, std::uint64_t offset, std::uint64_t max) {
    return disk_.read(path_of(digest), offset, max);
}

void Library::doubt(const std::string &digest) {
    if (const auto it = contents_.find(digest); it != contents_.end()) it->second.checked = false;
}

void Library::set_aside(const std::string &digest) {
    if (contents_.erase(digest) > 0) ++version_;
    (void)disk_.make_dir(damaged);
    // Under its name it would be taken for the content by the next start.
    if (Status s = disk_.rename(path_of(digest), damaged + "/" + hex_of(digest)); !s)
        (void)disk_.remove(path_of(digest));
}

void Library::remove(const std::string &digest) {
    if (contents_.erase(digest) > 0) ++version_;
    (void)disk_.remove(path_of(digest));
}

}  // namespace dcs::library
