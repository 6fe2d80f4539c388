#include "grainserver/shell/content_cache.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/text.h"
#include "base/limits.h"
#include "base/require.h"
#include "wire/content_calls.h"

namespace dcs::server {
namespace {
constexpr const char *content_name = "content", *incoming_name = "incoming";
constexpr std::uint64_t block = 4096;  // minimum size of a content on the disk
constexpr std::int64_t stale_s = 7 * 24 * 3600;
constexpr std::size_t swept_at_once = 256;
constexpr std::size_t names_max = 64;  // of one program

Result<Fd> make_folder(int parent, const std::string &name) {
    if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) return file_error(name, errno);
    Result<Fd> fd = open_directory(parent, name);
    return fd;
}

std::uint64_t on_disk(std::uint64_t size) { return (size / block + 1) * block; }

}  // namespace

Incoming &Incoming::operator=(Incoming &&other) noexcept {
    std::swap(fd, other.fd);
    std::swap(folder, other.folder);
    std::swap(name, other.name);
    return *this;
}
Incoming::~Incoming() {
    if (folder >= 0 && fd) remove_file(folder, name);
}

Status ContentCache::open(const std::string &directory, std::uint64_t max_bytes, std::function<Names()> needed) {
    path_ = directory + "/" + library_folder;
    max_bytes_ = max_bytes;
    needed_ = std::move(needed);
    const Result<Fd> base = open_directory(AT_FDCWD, directory);
    if (!base) return base.status();
    Result<Fd> library = make_folder(base->get(), library_folder);
    if (!library) return library.status();
    library_ = std::move(*library);
    if (Status s = remove_tree(library_.get(), incoming_name); !s) return s;
    Result<Fd> incoming = make_folder(library_.get(), incoming_name);
    if (!incoming) return incoming.status();
    incoming_ = std::move(*incoming);
    find_all();
    return Status::ok();
}

void ContentCache::find_all() {
    const Result<std::vector<std::string>> fans = list_directory(library_.get());
    if (!fans) return;
    for (const std::string &name : *fans) {
        if (name == incoming_name) continue;
        const Result<Fd> fan = open_directory(library_.get(), name);
        const Result<std::vector<std::string>> names =
            fan ? list_directory(fan->get()) : Result<std::vector<std::string>>(fan.status());
        if (!names) continue;
        for (const std::string &inner : *names) find_in(fan->get(), inner);
    }
}

void ContentCache::find_in(int fan, const std::string &name) {
    const auto digest = bytes_of_hex(name, limits::digest_bytes);
    const Result<Fd> folder = open_directory(fan, name);
    struct stat st {};
    const bool whole = folder && digest && ::fstatat(folder->get(), content_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                       S_ISREG(st.st_mode);
    if (whole) return set(*digest, static_cast<std::uint64_t>(st.st_size), st.st_mtim.tv_sec);
    if (!remove_tree(fan, name)) return;
}

void ContentCache::set(const std::string &digest, std::uint64_t size, std::int64_t used_s) {
    DCS_REQUIRE(digest.size() == limits::digest_bytes, "a content is named by its digest");
    Content &content = contents_[digest];
    DCS_REQUIRE(bytes_ >= content.bytes, "the sum covers all known contents");
    bytes_ += on_disk(size) - content.bytes;
    content = Content{on_disk(size), used_s};
}

Result<Fd> ContentCache::folder_of(const std::string &digest, bool make) const {
    const std::string hex = hex_of(digest);
    const auto enter = make ? make_folder : open_directory;
    const Result<Fd> fan = enter(library_.get(), hex.substr(0, 2));
    return fan ? enter(fan->get(), hex) : Result<Fd>(fan.status());
}

Result<Fd> ContentCache::open_content(const std::string &digest, std::int64_t now_s) {
    const Result<Fd> folder = folder_of(digest, false);
    if (!folder) return folder.status();
    Fd fd(::openat(folder->get(), content_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return file_error(wire::digest_text(digest), errno);
    const timespec now{now_s, 0}, times[] = {now, now};
    (void)::futimens(fd.get(), times);  // used by the sweep only
    if (const auto found = contents_.find(digest); found != contents_.end()) found->second.used_s = now_s;
    return fd;
}

// The content has a link for every name under which it is executed.
Result<std::string> ContentCache::program(const std::string &digest, const std::string &name) {
    const Result<Fd> folder = folder_of(digest, false);
    if (!folder) return folder.status();
    const int fd = folder->get();
    const Fd content(::openat(fd, content_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!content || ::fchmod(content.get(), 0555) != 0) return file_error(wire::digest_text(digest), errno);
    const std::string hex = hex_of(digest), path = path_ + "/" + hex.substr(0, 2) + "/" + hex + "/";
    const Result<std::vector<std::string>> names = list_directory(fd);
    if (!names) return names.status();
    const bool bad = name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos;
    if (bad || (names->size() >= names_max && !std::binary_search(names->begin(), names->end(), name)))
        return path + content_name;
    if (::linkat(fd, content_name, fd, name.c_str(), 0) != 0 && errno != EEXIST) return file_error(name, errno);
    return path + name;
}

void ContentCache::remove(const std::string &digest) {
    verified_.erase(digest);
    if (const auto found = contents_.find(digest); found != contents_.end()) {
        DCS_REQUIRE(bytes_ >= found->second.bytes, "the sum covers all known contents");
        bytes_ -= found->second.bytes;
        contents_.erase(found);
    }
    const std::string hex = hex_of(digest);
    const Result<Fd> fan = open_directory(library_.get(), hex.substr(0, 2));
    if (!fan) return;
    if (const Result<Fd> folder = open_directory(fan->get(), hex))
        remove_file(folder->get(), content_name);  // first: without it the rest counts as incomplete
    if (!remove_tree(fan->get(), hex)) return;
}

// ---- incoming contents --------------------------------------------------------------------

Result<Incoming> ContentCache::begin() {
    const std::string name = std::to_string(++number_);
    Fd fd(::openat(incoming_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400));
    if (!fd) return file_error("the library of this host", errno);
    return Incoming(incoming_.get(), name, std::move(fd));
}

void ContentCache::begin_large(Coming &coming) {
    if (coming.total < large_file_bytes) return;
    const auto begin = [&] {
        return LargeFile::begin(coming.file.fd.get(), coming.total,
                                [&coming](std::string_view bytes) { coming.sum.add(bytes); });
    };
    coming.large = begin();
    if (!coming.large && errno == ENOSPC && make_room()) coming.large = begin();
}

Status ContentCache::append(Coming &coming, const std::string &bytes) {
    DCS_REQUIRE(coming.file.fd && coming.next <= coming.total, "a piece follows the one before");
    if (coming.large) {
        coming.next += bytes.size();
        const bool good = coming.large->append(bytes) && (coming.next < coming.total || coming.large->finish());
        return good ? Status::ok() : file_error("a content of the library", errno);
    }
    const std::uint64_t from = coming.next;
    const auto write = [&] {
        return pwrite_all(coming.file.fd.get(), bytes, static_cast<std::int64_t>(from))
                   ? Status::ok()
                   : file_error("a content of the library", errno);
    };
    Status s = write();
    if (!s && s.code == Code::no_space && make_room()) s = write();
    if (!s) return s;
    coming.sum.add(bytes);
    coming.next += bytes.size();
    return s;
}

Result<std::uint64_t> ContentCache::keep(const std::string &digest, std::uint64_t total, std::uint64_t offset,
                                         const std::string &bytes, std::int64_t now_s) {
    if (offset == 0) coming_.erase(digest);
    auto it = coming_.find(digest);
    if (it == coming_.end()) {
        if (offset != 0) return fail(Code::invalid, "the beginning of the content is missing");
        Result<Incoming> file = begin();
        if (!file) return file.status();
        it = coming_.try_emplace(digest).first;
        it->second.file = std::move(*file);
        it->second.total = total;
        begin_large(it->second);
    }
    Coming &coming = it->second;
    Status s = offset == coming.next && total == coming.total ? append(coming, bytes)
                                                              : fail(Code::invalid, "a piece arrived out of order");
    const std::uint64_t next = coming.next;
    if (s && next < total) return next;
    if (s && coming.sum.finish() != digest) s = fail(Code::io_error, "content does not match its SHA-256");
    if (s) s = take(std::move(coming.file), digest, total, now_s);
    coming_.erase(digest);
    return s ? Result<std::uint64_t>(next) : Result<std::uint64_t>(s);
}

Status ContentCache::take(Incoming incoming, const std::string &digest, std::uint64_t size, std::int64_t now_s) {
    DCS_REQUIRE(incoming.fd && incoming.folder == incoming_.get(), "the file is in the incoming directory");
    if (verified(digest) && open_content(digest, now_s)) return Status::ok();  // a grain may use a name that it has
    if (has(digest)) remove(digest);                                           // perhaps damaged
    const Result<Fd> folder = folder_of(digest, true);
    if (!folder) return folder.status();
    failpoint("server.content.before_rename");
    if (::renameat(incoming_.get(), incoming.name.c_str(), folder->get(), content_name) != 0)
        return file_error(wire::digest_text(digest), errno);
    incoming.folder = -1;
    failpoint("server.content.after_rename");
    set(digest, size, now_s);
    set_verified(digest);
    return Status::ok();
}

// ---- removal ------------------------------------------------------------------------------

// Up to so many that no grain needs, the least recently used first.
std::vector<std::pair<std::int64_t, std::string>> ContentCache::oldest(std::size_t most) const {
    const Names needed = needed_();
    std::vector<decltype(contents_)::const_iterator> found;
    for (auto it = contents_.begin(); it != contents_.end(); ++it)
        if (needed.count(it->first) == 0) found.push_back(it);
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
    std::partial_sort(found.begin(), end, found.end(),
                      [](const auto &a, const auto &b) { return a->second.used_s < b->second.used_s; });
    std::vector<std::pair<std::int64_t, std::string>> named;
    for (auto it = found.begin(); it != end; ++it) named.emplace_back((*it)->second.used_s, (*it)->first);
    return named;
}

bool ContentCache::sweep(std::int64_t now_s) {
    bool some = false;
    for (const auto &[used_s, digest] : oldest(swept_at_once)) {
        if (used_s + stale_s >= now_s && bytes_ <= max_bytes_) break;
        remove(digest);
        some = true;
    }
    return some;
}

bool ContentCache::make_room() {
    const auto all = oldest(contents_.size());
    for (const auto &[used_s, digest] : all) remove(digest);
    return !all.empty();
}

}  // namespace dcs::server
