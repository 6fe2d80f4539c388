#include "grainserver/shell/contents.h"

#include <algorithm>

#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/planted.h"

namespace dcs::server {

std::int64_t wall_seconds() { return wall_clock_s(); }

Status Contents::open(const std::string &directory, const std::string &binary_class, std::uint64_t max_bytes,
                      std::function<ContentCache::Names()> needed) {
    binary_class_ = binary_class;
    return cache_.open(directory, max_bytes, [this, needed = std::move(needed)] {
        ContentCache::Names all = needed();
        all.insert(outputs_.begin(), outputs_.end());
        return all;
    });
}

void Contents::keep(const KeepPiece &piece) {
    failpoint("server.piece.before_write");
    const Result<std::uint64_t> next =
        cache_.keep(piece.digest, piece.total, piece.offset, piece.bytes, wall_seconds());
    failpoint("server.piece.after_write");
    if (next) tell_(PieceKept{piece.digest, *next});
    else tell_(PieceUnkept{piece.digest, next.status().code, next.status().text});
}

void Contents::give_up(const GrainId &id) {
    const auto its = jobs_.find(id.key.session.user);
    if (its == jobs_.end()) return;
    std::erase_if(its->second, [&](const Job &job) { return job.id == id; });
    if (its->second.empty()) jobs_.erase(its);
}

void Contents::go_on() {
    if (jobs_.empty()) return;
    auto next = planted("server.contents_in_order") ? jobs_.begin() : jobs_.upper_bound(last_);
    if (next == jobs_.end()) next = jobs_.begin();
    last_ = next->first;
    if (next->second.front().work.go_on()) return;
    next->second.pop_front();
    if (next->second.empty()) jobs_.erase(next);
}

bool Contents::tidy() {
    sending_.reset();
    outputs_.clear();
    return cache_.sweep(wall_seconds());
}

Work Contents::read_digest(int fd, std::string *digest) {
    Copying reading(fd, 0, limits::content_bytes + 1, -1, true);
    Result<bool> done = false;
    while (done && !*done) {
        co_yield Slice{};
        done = reading.go_on();
    }
    *digest = done ? reading.digest() : std::string();
}

Result<bool> Contents::go_on(Copying &copying) {
    Result<bool> done = copying.go_on();
    const bool full = !done && done.status().code == Code::no_space;
    return full && cache_.make_room() && copying.begin_again() ? Result<bool>(false) : done;
}

// For contents of an earlier server process: checks that the disk still has the same bytes.
Work Contents::verify(std::string digest) {
    if (!cache_.has(digest) || cache_.verified(digest)) co_return;
    const Result<Fd> fd = cache_.open_content(digest, wall_seconds());
    std::string found;
    if (fd)
        for (Work reading = read_digest(fd->get(), &found); reading.go_on();) co_yield Slice{};
    if (found == digest) cache_.set_verified(digest);
    else cache_.remove(digest);
}

Work Contents::send_piece(SendPiece piece) {
    for (Work verifying = verify(piece.digest); verifying.go_on();) co_yield Slice{};
    if (cache_.has(piece.digest)) send_now(piece);
    else tell_(PieceUnreadable{piece.digest, wire::digest_text(piece.digest) + " is missing or damaged"});
}

// Pieces of a large content come from one open file.
Status Contents::read_piece(const SendPiece &piece, std::string &bytes) {
    const std::size_t wanted = bytes.size();
    const bool large = piece.total >= large_file_bytes;
    const bool continues = large && sending_ && sent_ == piece.digest && piece.offset != 0;
    Result<Fd> fd = continues ? Result<Fd>(Fd()) : cache_.open_content(piece.digest, wall_seconds());
    if (!fd) return fd.status();
    bool good = false;
    if (large) {
        if (!continues) sending_ = std::make_unique<LargeReader>(std::move(*fd));
        sent_ = piece.digest;
        good = sending_->read(piece.offset, bytes);
        if (piece.offset + wanted == piece.total) sending_.reset();
    } else {
        good = pread_all(fd->get(), bytes, static_cast<std::int64_t>(piece.offset));
    }
    if (good && bytes.size() == wanted) return Status::ok();
    return fail(Code::io_error, "reading " + wire::digest_text(piece.digest));
}

void Contents::send_now(const SendPiece &piece) {
    wire::PutContent message{piece.digest, piece.total, piece.offset, {}};
    const std::uint64_t wanted =
        std::min<std::uint64_t>(limits::content_piece_bytes, piece.total - std::min(piece.offset, piece.total));
    message.bytes.resize(wanted);
    if (const Status s = read_piece(piece, message.bytes); !s) return tell_(PieceUnreadable{piece.digest, s.text});
    failpoint("server.put.before_send");
    say_(std::move(message));
    failpoint("server.put.after_send");
}

}  // namespace dcs::server
