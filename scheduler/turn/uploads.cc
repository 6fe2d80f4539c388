#include "scheduler/turn/uploads.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/limits.h"

namespace dcs::turn {
namespace {

// An upload that is idle for so long gives way to another one that needs the room.
constexpr Duration stale_after = seconds(60);

}  // namespace

std::uint64_t Uploads::held() const {
    std::uint64_t sum = 0;
    for (const auto &[user, upload] : uploads_) sum += upload.bytes.size();
    return sum;
}

Status Uploads::begin(ConnId conn, const std::string &user, std::uint64_t total) {
    uploads_.erase(user);
    if (total > limits::import_bytes)
        return fail(Code::limit, "the session packs to " + std::to_string(total) +
                                     " bytes, but an import accepts at most " + std::to_string(limits::import_bytes));
    Upload &upload = uploads_[user];
    upload.conn = conn;
    upload.total = total;
    return Status::ok();
}

// For that many bytes more of this user's upload. A user who holds more than that upload then has could block
// many by stalling; that upload starts again.
Status Uploads::make_room(const std::string &user, Instant now, std::uint64_t more, std::uint64_t being_read) {
    const auto full = [&] { return held() + more + being_read > limits::import_bytes_of_all; };
    if (!full()) return Status::ok();
    std::erase_if(uploads_, [&](const auto &entry) {
        return entry.first != user && now - entry.second.last_piece > stale_after;
    });
    const std::uint64_t own = uploads_.at(user).bytes.size() + more;
    while (full()) {
        const auto largest = std::max_element(uploads_.begin(), uploads_.end(), [](const auto &a, const auto &b) {
            return a.second.bytes.size() < b.second.bytes.size();
        });
        if (largest->first == user || largest->second.bytes.size() <= own)
            return fail(Code::limit, "imports of other users fill the space for imports; try again in a minute");
        uploads_.erase(largest);
    }
    return Status::ok();
}

Status Uploads::add(ConnId conn, const std::string &user, Instant now, wire::ImportPiece piece,
                    std::uint64_t being_read) {
    if (piece.offset == 0)
        if (Status s = begin(conn, user, piece.total); !s) return s;
    const auto found = uploads_.find(user);
    if (found == uploads_.end() || found->second.conn != conn || found->second.bytes.size() != piece.offset ||
        found->second.total != piece.total)
        return fail(Code::not_found,
                    "this piece does not continue the upload on this connection: start the import again");
    Upload &upload = found->second;
    if (piece.bytes.size() > upload.total - upload.bytes.size()) {
        uploads_.erase(found);
        return fail(Code::invalid, "the upload is longer than announced");
    }
    upload.last_piece = now;
    if (Status s = make_room(user, now, piece.bytes.size(), being_read); !s) {
        uploads_.erase(user);
        return s;
    }
    upload.bytes += piece.bytes;
    upload.sum = crc32c(piece.bytes, upload.sum);
    DCS_REQUIRE(upload.bytes.size() <= upload.total, "no more is held than was announced");
    return Status::ok();
}

Result<std::string> Uploads::take(ConnId conn, const std::string &user, const wire::ImportSession &call) {
    const auto found = uploads_.find(user);
    if (found == uploads_.end() || found->second.conn != conn)
        return fail(Code::not_found, "nothing was uploaded on this connection");
    Upload upload = std::move(found->second);
    uploads_.erase(found);
    if (upload.bytes.size() != call.total || upload.sum != call.crc)
        return fail(Code::invalid, "the upload does not match its announcement: start again");
    return std::move(upload.bytes);
}

void Uploads::drop(ConnId conn) {
    std::erase_if(uploads_, [&](const auto &entry) { return entry.second.conn == conn; });
}

}  // namespace dcs::turn
