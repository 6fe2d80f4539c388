#include "scheduler/turn/contents.h"

#include <algorithm>

#include "base/limits.h"
#include "base/planted.h"
#include "base/require.h"
#include "wire/checks.h"

namespace dcs::turn {
namespace {

// An upload that has stalled for this long is dropped; its peer starts again.
constexpr Duration stalled_after = seconds(60);
// So much of an upload is read back at a time, while the rest comes.
constexpr std::uint64_t read_back_bytes = 8u << 20;
// Pieces that waited for a check and are sent in one turn, and how many may wait on one connection.
constexpr std::size_t waiting_pieces_per_turn = 16, parked_pieces = 256;
// A very large one catches up so often; what came since then and is more than that waits for its answer.
constexpr std::uint64_t catch_up_bytes = 4u << 20;

std::string name_of(const std::string &digest) { return "content " + wire::digest_text(digest); }

Status check_piece(const wire::PutContent &piece) {
    if (piece.digest.size() != limits::digest_bytes) return fail(Code::invalid, "a content digest must have 32 bytes");
    if (piece.total > limits::content_bytes)
        return fail(Code::limit, "a content has at most " + std::to_string(limits::content_bytes) +
                                     " bytes, but this one has " + std::to_string(piece.total));
    const bool empty = piece.bytes.empty() && piece.total != 0;
    if (empty || piece.offset > piece.total || piece.bytes.size() > piece.total - piece.offset)
        return fail(Code::invalid, name_of(piece.digest) + ": this piece is outside the content");
    return Status::ok();
}

}  // namespace

// ---- what is asked ------------------------------------------------------------------------

bool Holder::has(const std::string &digest) const {
    return privileged || stored.has(user, digest) || planted("turn.a_digest_is_enough");
}

wire::AnyMessage Contents::missing(const wire::AskContents &call, const Holder &holder) {
    wire::MissingContents reply;
    for (const std::string &digest : call.digests) {
        if (library_->find(digest) && holder.has(digest)) library_->use(digest, outside_.now());
        else reply.digests.push_back(digest);
    }
    return reply;
}

bool Contents::has(const wire::GrainFile &file) const {
    const library::Content *content = library_->find(file.digest);
    return content && content->size == file.size;
}

bool Contents::use(const wire::GrainFile &file, const Holder &holder) {
    if (!holder.has(file.digest)) return false;
    library_->use(file.digest, outside_.now());
    return has(file);
}

Status Contents::check(const std::vector<wire::GrainFile> &files, const Holder &holder) {
    for (const wire::GrainFile &file : files) {
        if (file.role == wire::FileRole::output) continue;
        if (use(file, holder)) continue;
        if (const library::Content *other = holder.has(file.digest) ? library_->find(file.digest) : nullptr)
            return fail(Code::invalid, to_text(file) + ": the content has " + std::to_string(other->size) + " bytes");
        return fail(Code::not_found, "the library does not have " + to_text(file) + ": upload it first");
    }
    return Status::ok();
}

// ---- uploads ------------------------------------------------------------------------------

void Contents::put(const Peer &peer, const wire::PutContent &piece, const core::State &state) {
    if (Status s = check_piece(piece); !s) return refuse_put(peer, piece.digest, s);
    if (is_known(peer, piece.digest, state)) {
        library_->use(piece.digest, outside_.now());
        drop_upload(peer.conn, piece.digest);
        return answer_put(peer, piece.digest, piece.total);
    }
    const Key key{peer.conn, piece.digest};
    if (piece.offset == 0)
        if (Status s = begin(peer, piece, state); !s) return refuse_put(peer, piece.digest, s);
    const auto found = uploads_.find(key);
    const bool follows = found != uploads_.end() && found->second.total == piece.total && found->second.complete == 0;
    if (!follows || found->second.next != piece.offset) {
        // A server learns where to continue; a control program starts again.
        if (peer.server) return answer_put(peer, piece.digest, follows ? found->second.next : 0);
        return refuse_put(
            peer, piece.digest,
            fail(Code::not_found,
                 name_of(piece.digest) + ": this piece does not continue the upload on this connection; start again"));
    }
    Upload &upload = found->second;
    upload.peer = peer;
    upload.last_piece = outside_.now();
    if (Status s = library_->append(upload.temporary, upload.next, piece.bytes); !s) {
        forget(found);
        return refuse_put(peer, piece.digest, s);
    }
    upload.next += piece.bytes.size();
    if (upload.next == upload.total) {
        answer_all(piece.digest, upload);
        return seal(key, upload);
    }
    read_back(piece.digest, upload);
    upload.unanswered.emplace_back(peer, upload.next);
    const bool behind = upload.next - upload.read > catch_up_bytes && library_->large(upload.temporary);
    if (!behind) answer_all(piece.digest, upload);
}

void Contents::answer_all(const std::string &digest, Upload &upload) {
    for (const auto &[peer, next] : std::exchange(upload.unanswered, {})) answer_put(peer, digest, next);
}

Status Contents::begin(const Peer &peer, const wire::PutContent &piece, const core::State &state) {
    const auto found = uploads_.find(Key{peer.conn, piece.digest});
    if (found != uploads_.end() && found->second.complete > 0)
        return fail(Code::invalid, name_of(piece.digest) + " is complete and being checked: wait for the answer");
    if (found != uploads_.end()) forget(found);
    if (Status s = check_room(peer, piece.total, state); !s) return s;
    auto temporary = library_->begin(piece.total);
    if (!temporary) return temporary.status();
    uploads_[Key{peer.conn, piece.digest}] = Upload{peer, *temporary, piece.total, 0, outside_.now()};
    return Status::ok();
}

Status Contents::check_room(const Peer &peer, std::uint64_t size, const core::State &state) {
    drop_stalled();
    std::size_t own = 0;
    std::uint64_t bytes = core::on_disk(size);
    for (const auto &[key, upload] : uploads_) {
        if (upload.peer.owner != peer.owner || (upload.gone && planted("turn.gone_uploads_are_free"))) continue;
        ++own;
        bytes += core::on_disk(upload.total);
    }
    // What hosts bring is the output of grains that were let in.
    if (Status s = peer.server ? Status::ok() : core::check_stored(state, peer.owner, peer.privileged, bytes); !s)
        return s;
    if (own >= limits::content_uploads_each || uploads_.size() >= limits::content_uploads)
        return fail(Code::limit, std::to_string(own) + " uploads of " + peer.owner + " and " +
                                     std::to_string(uploads_.size()) +
                                     " in total are in progress: wait until one ends");
    return Status::ok();
}

void Contents::read_back(const std::string &digest, Upload &upload) {
    const auto large = library_->large(upload.temporary);
    const std::uint64_t step = large ? catch_up_bytes : read_back_bytes;
    if (upload.reading || upload.complete > 0 || upload.next - upload.read < step) return;
    upload.reading = true;
    upload.read = upload.next;
    outside_.start_library_job(
        {library::Job::Kind::read, digest, upload.next, upload.temporary, upload.peer.owner, large});
}

// Whatever came of it: the seal reads what was not read.
void Contents::was_read(const library::JobDone &done) {
    for (auto &[key, upload] : uploads_) {
        if (upload.temporary != done.job.temporary) continue;
        upload.reading = false;
        read_back(key.second, upload);
        return answer_all(key.second, upload);
    }
}

// Two that bring the same content at once: the second one waits for the first one's job, and then for its own. Who has
// nothing but the digest must not have the content by the bytes of another.
void Contents::seal(const Key &key, Upload &upload) {
    if (upload.complete == 0) upload.complete = ++completed_;
    if (!sealing_.emplace(key.second, upload.temporary).second) return;
    outside_.start_library_job({library::Job::Kind::seal, key.second, upload.total, upload.temporary, upload.peer.owner,
                                library_->take_large(upload.temporary)});
}

// Of those that wait the one that has waited longest; but owners take turns, or one who sends wrong bytes again and
// again would keep the others from bringing the right ones.
void Contents::seal_next(const std::string &digest, const std::string &last_owner) {
    const std::pair<const Key, Upload> *next = nullptr;
    const auto rank = [&](const Upload &u) { return std::pair(u.peer.owner == last_owner, u.complete); };
    for (const auto &entry : uploads_) {
        if (entry.first.second != digest || entry.second.complete == 0) continue;
        if (!next || rank(entry.second) < rank(next->second)) next = &entry;
    }
    if (next) seal(next->first, uploads_.at(next->first));
}

void Contents::tell(core::Stored &stored) const {
    for (const auto &[digest, content] : library_->all()) stored.came(digest, content.size);
}

std::optional<Line> Contents::done(const library::JobDone &done, core::State &state) {
    switch (done.job.kind) {
    case library::Job::Kind::read: was_read(done); break;
    case library::Job::Kind::seal: return sealed(done, state);
    case library::Job::Kind::check: checked(done, state.stored); break;
    }
    return std::nullopt;
}

std::optional<Line> Contents::sealed(const library::JobDone &done, core::State &state) {
    const std::string &digest = done.job.digest;
    sealing_.erase(digest);
    if (done.status) {
        damaged_.erase(digest);
        library_->set(digest, done.job.size, outside_.now(), done.job.large != nullptr);
        state.stored.came(digest, done.job.size);
    }
    const auto upload = std::find_if(uploads_.begin(), uploads_.end(), [&](const auto &entry) {
        return entry.first.second == digest && entry.second.temporary == done.job.temporary;
    });
    DCS_REQUIRE(upload != uploads_.end(), "an upload stays while a job works on it");
    const Peer peer = upload->second.peer;
    settle(upload->second, done, state);
    uploads_.erase(upload);
    seal_next(digest, peer.owner);
    if (done.status) return std::nullopt;
    return Line{name_of(digest) + " was not accepted: " + done.status.text, (peer.server ? "" : "user ") + peer.owner};
}

// It is its owner's and counts as such, also when its connection was closed before the answer.
void Contents::settle(const Upload &upload, const library::JobDone &done, core::State &state) {
    const Peer &peer = upload.peer;
    const std::string &digest = done.job.digest;
    if (done.status && peer.server) brought_by(peer, digest, state);
    else if (done.status) state.stored.brought(digest, peer.owner);
    if (upload.gone) return;
    if (done.status) answer_put(peer, digest, upload.total);
    else refuse_put(peer, digest, fail(done.status.code, name_of(digest) + ": " + done.status.text));
}

// While a job works on it, it stays, and counts among its owner's: who hangs up has no more of them than who waits.
void Contents::forget(std::map<Key, Upload>::iterator upload) {
    answer_all(upload->first.second, upload->second);  // in the order of the pieces, before what is said of this one
    const auto job = sealing_.find(upload->first.second);
    if (job != sealing_.end() && job->second == upload->second.temporary) {
        upload->second.gone = true;
        return;
    }
    library_->discard(upload->second.temporary);
    uploads_.erase(upload);
}

void Contents::drop_upload(ConnId conn, const std::string &digest) {
    if (const auto found = uploads_.find(Key{conn, digest}); found != uploads_.end()) forget(found);
}

void Contents::drop(ConnId conn) {
    for (auto it = uploads_.lower_bound(Key{conn, {}}); it != uploads_.end() && it->first.first == conn;) {
        it->second.unanswered.clear();
        forget(it++);
    }
    const auto of_it = [conn](const Parked &p) { return p.peer.conn == conn; };
    for (auto &[digest, parked] : checking_) std::erase_if(parked, of_it);
    for (auto &[owner, waiting] : waiting_) std::erase_if(waiting, of_it);
    std::erase_if(waiting_, [](const auto &entry) { return entry.second.empty(); });
}

void Contents::drop_stalled() {
    for (auto it = uploads_.begin(); it != uploads_.end();) {
        const auto upload = it++;
        if (upload->second.complete == 0 && outside_.now() - upload->second.last_piece > stalled_after) forget(upload);
    }
}

void Contents::answer_put(const Peer &peer, const std::string &digest, std::uint64_t next) {
    if (peer.server) return outside_.send(peer.conn, wire::ContentTaken{digest, next, 0, {}}, peer.request);
    outside_.send(peer.conn, wire::Done{}, peer.request);
}

void Contents::refuse_put(const Peer &peer, const std::string &digest, const Status &why) {
    const auto code = static_cast<std::int32_t>(why.code);
    if (peer.server) return outside_.send(peer.conn, wire::ContentTaken{digest, 0, code, why.text}, peer.request);
    outside_.send(peer.conn, wire::error_reply(why), peer.request);
}

// ---- what goes out ------------------------------------------------------------------------

void Contents::send(const Peer &peer, const std::string &digest, std::uint64_t offset, std::uint64_t max) {
    const library::Content *content = library_->find(digest);
    library_->use(digest, outside_.now());
    if (!content) {
        const auto why = damaged_.find(digest);
        return refuse_want(
            peer, digest,
            fail(Code::not_found, "the library does not have " + name_of(digest) +
                                      (why == damaged_.end() ? std::string() : " any longer: " + why->second)));
    }
    if (content->checked) return send_now(peer, digest, offset, max);
    const bool first = checking_.count(digest) == 0;
    std::vector<Parked> &parked = checking_[digest];
    if (peer.server)  // it asks for one piece at a time; what it asked before is out of date
        std::erase_if(parked, [&](const Parked &p) { return p.peer.conn == peer.conn; });
    const auto own =
        std::count_if(parked.begin(), parked.end(), [&](const Parked &p) { return p.peer.conn == peer.conn; });
    if (static_cast<std::size_t>(own) >= parked_pieces)
        return refuse_want(peer, digest,
                           fail(Code::limit, std::to_string(own) + " pieces of " + name_of(digest) +
                                                 " wait on this connection until it has been checked: ask for fewer"));
    parked.push_back({peer, digest, offset, max});
    if (first) outside_.start_library_job({library::Job::Kind::check, digest, content->size, {}, peer.owner});
}

void Contents::checked(const library::JobDone &done, core::Stored &stored) {
    const std::string &digest = done.job.digest;
    std::vector<Parked> parked = std::move(checking_[digest]);
    checking_.erase(digest);
    const bool there = library_->find(digest) != nullptr;  // it may have been swept in the meantime
    const bool comes_again = sealing_.contains(digest) && !planted("turn.removes_what_comes");
    if (there && done.status) {
        library_->set(digest, done.job.size, outside_.now());
    } else if (there && comes_again) {
        library_->doubt(digest);  // its file may be the new one already
    } else if (there && (done.status.code == Code::invalid || done.status.code == Code::not_found)) {
        library_->set_aside(digest);
        stored.gone(digest);
        damaged_[digest] = done.status.text;
        outside_.log(Level::error, name_of(digest) + " is damaged and was set aside: " + done.status.text +
                                       "; submit a grain with it again to upload it again");
    }
    const bool refused = !done.status && library_->find(digest) && !comes_again;
    for (Parked &p : parked) {
        if (refused) refuse_want(p.peer, digest, done.status);
        else waiting_[p.peer.owner].push_back(std::move(p));
    }
}

void Contents::send_waiting_pieces() {
    for (std::size_t sent = 0; sent < waiting_pieces_per_turn && !waiting_.empty();) {
        for (auto it = waiting_.begin(); it != waiting_.end() && sent < waiting_pieces_per_turn; ++sent) {
            const Parked p = std::move(it->second.front());
            it->second.pop_front();
            it = it->second.empty() ? waiting_.erase(it) : std::next(it);
            send(p.peer, p.digest, p.offset, p.max);
        }
    }
}

void Contents::send_now(const Peer &peer, const std::string &digest, std::uint64_t offset, std::uint64_t max) {
    const std::uint64_t total = library_->find(digest)->size;
    auto bytes = library_->read(digest, offset, std::min<std::uint64_t>(max, limits::content_piece_bytes));
    const bool gone = !bytes && bytes.status().code == Code::not_found;
    if (gone || (bytes && offset < total && bytes->empty())) {
        // It is no longer what was checked: it is checked again, set aside, and then refused.
        library_->doubt(digest);
        return send(peer, digest, offset, max);
    }
    if (!bytes) return refuse_want(peer, digest, bytes.status());
    if (peer.server)
        return outside_.send(peer.conn, wire::ContentPiece{digest, total, offset, std::move(*bytes), 0, {}},
                             peer.request);
    outside_.send(peer.conn, wire::Piece{total, std::move(*bytes)}, peer.request);
}

void Contents::refuse_want(const Peer &peer, const std::string &digest, const Status &why) {
    const auto code = static_cast<std::int32_t>(why.code);
    if (peer.server)
        return outside_.send(peer.conn, wire::ContentPiece{digest, 0, 0, {}, code, why.text}, peer.request);
    outside_.send(peer.conn, wire::error_reply(why), peer.request);
}

}  // namespace dcs::turn
