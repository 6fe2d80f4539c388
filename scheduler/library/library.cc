#include "scheduler/library/library.h"

#include <cerrno>

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
// At one time, and blocks of each that wait for the disk: the memory that they take.
constexpr std::size_t large_uploads = 4, large_blocks = 16;

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
        // When it was used is not known. Counted from now, it would stay for ever where each day has a start.
        contents_[*digest] = Content{*size, false, now + seconds(limits::content_found_s - limits::content_unnamed_s)};
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

void Library::set(const std::string &digest, std::uint64_t size, Instant now, bool uncached) {
    if (!find(digest)) ++version_;
    contents_[digest] = Content{size, true, now, uncached};
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
    begin_large(temporary, size);
    return temporary;
}

// Where that does not work it is written like the others.
void Library::begin_large(const std::string &temporary, std::uint64_t size) {
    if (size < large_file_bytes || large_.size() >= large_uploads) return;
    Result<Fd> fd = disk_.open_large(temporary, true);
    if (!fd) return;
    const auto upload = std::make_shared<LargeUpload>(std::move(*fd));
    LargeUpload &its = *upload;  // the file ends before it
    its.file = LargeFile::begin(
        its.fd.get(), size, [&its](std::string_view bytes) { its.sum.add(bytes); }, large_blocks);
    if (its.file) large_[temporary] = upload;
}

std::shared_ptr<LargeUpload> Library::large(const std::string &temporary) const {
    const auto it = large_.find(temporary);
    return it == large_.end() ? nullptr : it->second;
}

std::shared_ptr<LargeUpload> Library::take_large(const std::string &temporary) {
    auto found = large_.extract(temporary);
    return found ? std::move(found.mapped()) : nullptr;
}

Status Library::append(const std::string &temporary, std::uint64_t at, const std::string &bytes) {
    failpoint("library.append.before");
    if (const auto upload = large(temporary)) {
        DCS_REQUIRE(upload->size == at, "a piece follows the one before");
        if (upload->file->room() < bytes.size())
            return fail(Code::limit, "more pieces came than the scheduler's disk can take: wait for answers");
        upload->size += bytes.size();
        if (upload->file->append(bytes)) return Status::ok();
        return fail_errno(Code::io_error, "cannot write " + temporary, errno);
    }
    return disk_.truncate_append(temporary, at, bytes);
}

// If it cannot be removed now, the next start does it.
void Library::discard(const std::string &temporary) {
    large_.erase(temporary);
    (void)disk_.remove(temporary);
}

bool Library::begin_sending(const std::string &digest) {
    const auto it = contents_.find(digest);
    if (it == contents_.end() || !std::exchange(it->second.uncached, false)) return false;
    Result<Fd> fd = disk_.open_large(path_of(digest), false);
    if (!fd) return false;
    sending_ = std::make_unique<LargeReader>(std::move(*fd));
    sent_ = digest;
    sent_up_to_ = 0;
    return true;
}

// A very large one is not in the cache when it is sent for the first time. One that is asked for again will be there:
// others want it too.
Result<std::string> Library::read(const std::string &digest, std::uint64_t offset, std::uint64_t max) {
    const bool goes_on = sending_ && sent_ == digest && sent_up_to_ == offset;
    if (goes_on || (offset == 0 && begin_sending(digest))) {
        std::string bytes(max, '\0');
        if (!sending_->read(offset, bytes)) return fail_errno(Code::io_error, "cannot read " + path_of(digest), errno);
        sent_up_to_ = offset + bytes.size();
        if (bytes.size() < max) sending_.reset();
        return bytes;
    }
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
    if (sent_ == digest) sending_.reset();
    if (contents_.erase(digest) > 0) ++version_;
    (void)disk_.remove(path_of(digest));
}

}  // namespace dcs::library
