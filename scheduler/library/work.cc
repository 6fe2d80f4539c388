// What takes time: a content is read whole, and made durable.
#include "base/failpoint.h"
#include "base/limits.h"
#include "pki/digest.h"
#include "scheduler/library/library.h"

namespace dcs::library {
namespace {

Status check_bytes(store::Disk &disk, const std::string &path, const Job &job) {
    pki::Sha256 digest;
    std::uint64_t at = 0;
    while (at < job.size) {
        auto bytes = disk.read(path, at, limits::content_piece_bytes);
        if (!bytes) return bytes.status();
        if (bytes->empty()) break;
        digest.add(*bytes);
        at += bytes->size();
    }
    auto size = disk.size(path);
    if (!size) return size.status();
    if (*size != job.size || at != job.size)
        return fail(Code::invalid, "it has " + std::to_string(*size) + " bytes, not " + std::to_string(job.size));
    return digest.finish() == job.digest ? Status::ok() : fail(Code::invalid, "content does not match its SHA-256");
}

Status make_durable(store::Disk &disk, const Job &job) {
    const std::string path = path_of(job.digest), parent = path.substr(0, path.rfind('/'));
    if (Status s = disk.sync_file(job.temporary); !s) return s;
    failpoint("library.seal.synced");
    if (auto made = disk.make_dir(parent); !made) return made.status();
    Status s = disk.rename(job.temporary, path);
    failpoint("library.seal.renamed");
    for (const std::string &name : {parent, std::string(directory), std::string()})
        if (s) s = disk.sync_dir(name);
    // No caller has seen it yet. What a start may find of it is whole.
    if (!s) (void)disk.remove(path);
    return s;
}

Status seal(store::Disk &disk, const Job &job) {
    Status s = check_bytes(disk, job.temporary, job);
    if (s) s = make_durable(disk, job);
    if (!s) (void)disk.remove(job.temporary);
    return s;
}

}  // namespace

JobDone work(store::Disk &disk, Job job) {
    failpoint(job.kind == Job::Kind::seal ? "library.seal.before" : "library.check.before");
    Status status = job.kind == Job::Kind::seal ? seal(disk, job) : check_bytes(disk, path_of(job.digest), job);
    failpoint(job.kind == Job::Kind::seal ? "library.seal.after" : "library.check.after");
    return JobDone{std::move(job), std::move(status)};
}

}  // namespace dcs::library
