// What takes time: a content is read whole, and made durable.
#include <algorithm>
#include <cerrno>

#include "base/failpoint.h"
#include "base/limits.h"
#include "base/planted.h"
#include "scheduler/library/library.h"

namespace dcs::library {
namespace {

constexpr std::uint64_t read_at_once = 4 * limits::content_piece_bytes;

Status bad(const std::string &why) { return fail(Code::invalid, why); }

}  // namespace

// Up to `end`, or to the end of the file.
Status Worker::read_on(const std::string &path, std::uint64_t end, BytesRead &read) {
    while (read.count < end) {
        auto bytes = disk_.read(path, read.count, std::min(read_at_once, end - read.count));
        if (!bytes) return bytes.status();
        if (bytes->empty()) break;
        read.digest.add(*bytes);
        read.count += bytes->size();
    }
    return Status::ok();
}

Status Worker::read(const Job &job) {
    if (job.large) {
        job.large->file->catch_up();
        return Status::ok();
    }
    if (uploads_.size() >= limits::content_uploads)
        uploads_.erase(uploads_.begin());  // perhaps of one that was dropped
    BytesRead &upload = uploads_[job.temporary];
    Status s = read_on(job.temporary, job.size, upload);
    if (s) disk_.write_back(job.temporary);
    else uploads_.erase(job.temporary);
    return s;
}

// `read`: what was read of it before.
Status Worker::check(const std::string &path, const Job &job, BytesRead &read) {
    if (Status s = read_on(path, job.size, read); !s) return s;
    auto size = disk_.size(path);
    if (!size) return size.status();
    if (*size != job.size || read.count != job.size)
        return bad("it has " + std::to_string(*size) + " bytes, not " + std::to_string(job.size));
    return read.digest.finish() == job.digest ? Status::ok() : bad("content does not match its SHA-256");
}

Status Worker::finish(LargeUpload &upload, const Job &job) {
    if (!upload.file->finish()) return fail_errno(Code::io_error, "cannot write " + job.temporary, errno);
    if (upload.size != job.size)
        return bad("it has " + std::to_string(upload.size) + " bytes, not " + std::to_string(job.size));
    return upload.sum.finish() == job.digest ? Status::ok() : bad("content does not match its SHA-256");
}

Status Worker::make_durable(const Job &job) {
    const std::string path = path_of(job.digest), parent = path.substr(0, path.rfind('/'));
    if (Status s = disk_.sync_file(job.temporary); !s) return s;
    failpoint("library.seal.synced");
    if (auto made = disk_.make_dir(parent); !made) return made.status();
    const auto before = disk_.size(path);
    const bool is_first = !before && before.status().code == Code::not_found;
    Status s = disk_.rename(job.temporary, path);
    failpoint("library.seal.renamed");
    for (const std::string &name : {parent, std::string(directory), std::string()})
        if (s) s = disk_.sync_dir(name);
    // No caller has seen the first one yet, and what a start may find of it is whole. Grains may need an earlier one,
    // whose bytes another user or a host has brought again.
    if (!s && (is_first || planted("library.forgets_the_first"))) (void)disk_.remove(path);
    return s;
}

Status Worker::seal(const Job &job) {
    auto known = uploads_.extract(job.temporary);
    BytesRead nothing;
    Status s = job.large ? finish(*job.large, job) : check(job.temporary, job, known ? known.mapped() : nothing);
    if (s) s = make_durable(job);
    if (!s) (void)disk_.remove(job.temporary);
    return s;
}

JobDone Worker::work(Job job) {
    Status status;
    BytesRead nothing;
    switch (job.kind) {
    case Job::Kind::read: status = read(job); break;
    case Job::Kind::seal:
        failpoint("library.seal.before");
        status = seal(job);
        failpoint("library.seal.after");
        break;
    case Job::Kind::check:
        failpoint("library.check.before");
        status = check(path_of(job.digest), job, nothing);
        failpoint("library.check.after");
        break;
    }
    return JobDone{std::move(job), std::move(status)};
}

}  // namespace dcs::library
