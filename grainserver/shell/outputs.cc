// Copies the files that a grain made from its working directory into the library, after it ended. They are
// not trusted: anything but a regular file of the grain counts as not made.
#include <algorithm>
#include <cerrno>

#include <sys/stat.h>

#include "base/failpoint.h"
#include "base/limits.h"
#include "base/planted.h"
#include "base/require.h"
#include "grainserver/shell/contents.h"
#include "grainserver/shell/paths.h"

namespace dcs::server {
namespace {
using files::FileRecord;

std::vector<FileRecord> declared(const files::LaunchRecord &record) {
    std::vector<FileRecord> outputs;
    for (const FileRecord &file : record.files) {
        if (file.role != wire::FileRole::output) continue;
        outputs.push_back(file);
        outputs.back().digest.clear();
        outputs.back().size = 0;
    }
    if (outputs.size() > limits::grain_files) outputs.resize(limits::grain_files);
    return outputs;
}

void add_words(std::string &words, const std::string &more) {
    if (!words.empty()) words += "; ";
    words += more;
}

// Opens an output for reading; no descriptor: it was not made, and `words` describes what is there instead.
Result<Fd> open_output(const files::Room &room, const std::string &name, std::uint64_t left, std::string &words) {
    const Result<Fd> work = open_directory(room.fd.get(), files::work_name);
    std::string last;
    Result<Fd> folder = work ? enter_folders(*work, name, false, last) : Result<Fd>(work.status());
    if (!folder) {
        if (folder.status().code != Code::not_found) add_words(words, "output " + folder.status().text);
        return Fd();
    }
    const files::Room place{std::move(*folder), room.uid, room.gid};
    Result<Fd> fd = files::open_foreign(place, last);
    if (!fd) {
        if (fd.status().code == Code::io_error) return fd.status();
        if (fd.status().code != Code::not_found) add_words(words, "output " + name + ": " + fd.status().text);
        return Fd();
    }
    struct stat st {};
    if (::fstat(fd->get(), &st) != 0) return file_error(name, errno);
    const auto size = static_cast<std::uint64_t>(st.st_size);
    if (size <= std::min<std::uint64_t>(limits::content_bytes, left)) return fd;
    if (size <= limits::content_bytes) {
        add_words(words, "output " + name + " was not copied: with its " + std::to_string(size >> 20) +
                             " MiB, holes included, the outputs exceed the disk limit of the grain");
        return Fd();
    }
    add_words(words, "output " + name + " is larger than " + std::to_string(limits::content_bytes >> 20) +
                         " MiB and was not copied");
    return Fd();
}
}  // namespace

// Copied first: the grain's processes cannot change the copy, whose name is its digest.
Work Contents::keep_one(const files::Room *room, files::FileRecord *output, std::uint64_t *left, std::string *words,
                        Status *status) {
    const Result<Fd> from = open_output(*room, output->name, *left, *words);
    if (!from) *status = from.status();
    if (!from || !*from) co_return;
    Result<Incoming> to = cache_.begin();
    if (!to) {
        *status = to.status();
        co_return;
    }
    Copying copying(from->get(), 0, std::min<std::uint64_t>(limits::content_bytes, *left), to->fd.get(), true);
    Result<bool> done = false;
    while (done && !*done) {
        co_yield Slice{};
        done = go_on(copying);
    }
    if (!done) {
        *status = done.status();
        co_return;
    }
    output->digest = copying.digest();
    output->size = copying.copied();
    *left -= output->size;
    DCS_REQUIRE(output->digest.size() == limits::digest_bytes, "the digest covers all copied bytes");
    *status = cache_.take(std::move(*to), output->digest, output->size, wall_seconds());
    if (*status) outputs_.insert(output->digest);
}

Work Contents::take_outputs(GrainId id) {
    const auto trouble = [&](const Status &s) { tell_(OutputsUnkept{id, s.code, s.text}); };
    const Result<Fd> grain = files_.directory_of(id);
    const Result<files::LaunchRecord> record =
        grain ? files_.launch_of(grain->get()) : Result<files::LaunchRecord>(grain.status());
    if (!record) {
        trouble(record.status());
        co_return;
    }
    files::OutputsRecord kept{declared(*record), {}};
    const Result<files::Room> room = files::open_room(grain->get());
    if (!room) {
        trouble(room.status());
        co_return;
    }
    Status s;
    // A file with holes takes no disk in the room, but does in libraries.
    const std::int64_t disk_mb = planted("server.holes_are_free") ? 0 : record->limits.disk_mb;
    std::uint64_t left = disk_mb > 0 ? static_cast<std::uint64_t>(disk_mb) << 20 : UINT64_MAX;
    for (FileRecord &output : kept.files) {
        for (Work keeping = keep_one(&*room, &output, &left, &kept.words, &s); keeping.go_on();) co_yield Slice{};
        if (s) continue;
        trouble(s);
        co_return;
    }
    kept.words.resize(std::min(kept.words.size(), limits::message_bytes));
    failpoint("server.outputs_record.before_write");
    s = files_.write_outputs(id, kept);
    failpoint("server.outputs_record.after_write");
    if (!s) {
        trouble(s);
        co_return;
    }
    OutputsKept told{id, {}, kept.words};
    for (const FileRecord &file : kept.files)
        told.files.push_back({wire::FileRole::output, file.name, file.digest, file.size, {}});
    tell_(std::move(told));
}

}  // namespace dcs::server
