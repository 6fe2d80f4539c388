#include "scheduler/turn/uploads.h"

#include "base/checksum.h"
#include "base/limits.h"

namespace dcs::turn {
namespace {

// An upload that has stood still for so long gives way to another one that needs the room.
constexpr Duration stale_after = seconds(60);

}  // namespace

std::uint64_t Uploads::announced() const {
    std::uint64_t sum = 0;
    for (const auto &[user, upload] : uploads_) sum += upload.total;
    return sum;
}

Status Uploads::begin(ConnId conn, const std::string &user, Instant now, std::uint64_t total) {
    uploads_.erase(user);
    if (total > limits::import_bytes)
        return fail(Code::limit, "the session packs to " + std::to_string(total) +
                                     " bytes, an import takes at most " +
                                     std::to_string(limits::import_bytes));
    if (announced() + total > limits::import_bytes_of_all)
        std::erase_if(uploads_, [&](const auto &entry) {
            return now - entry.second.last_piece > stale_after;
        });
    if (announced() + total > limits::import_bytes_of_all)
        return fail(Code::limit, "other users' imports take all the room there is for imports; "
                                 "repeat it in a minute");
    Upload &upload = uploads_[user];
    upload.conn = conn;
    upload.total = total;
    return Status::ok();
}

Status Uploads::add(ConnId conn, const std::string &user, Instant now, wire::ImportPiece piece) {
    if (piece.offset == 0)
        if (Status s = begin(conn, user, now, piece.total); !s) return s;
    const auto found = uploads_.find(user);
    if (found == uploads_.end() || found->second.conn != conn ||
        found->second.bytes.size() != piece.offset || found->second.total != piece.total)
        return fail(Code::not_found, "this piece does not follow what was uploaded on this "
                                     "connection: begin the import again");
    Upload &upload = found->second;
    if (piece.bytes.size() > upload.total - upload.bytes.size()) {
        uploads_.erase(found);
        return fail(Code::invalid, "more was uploaded than was announced");
    }
    if (upload.bytes.empty()) upload.bytes.reserve(upload.total);
    upload.bytes += piece.bytes;
    upload.last_piece = now;
    return Status::ok();
}

Result<std::string> Uploads::take(ConnId conn, const std::string &user,
                                  const wire::ImportSession &call) {
    const auto found = uploads_.find(user);
    if (found == uploads_.end() || found->second.conn != conn)
        return fail(Code::not_found, "nothing was uploaded on this connection");
    const std::string bytes = std::move(found->second.bytes);
    uploads_.erase(found);
    if (bytes.size() != call.total || crc32c(bytes) != call.crc)
        return fail(Code::invalid, "what was uploaded is not what was announced: begin again");
    return bytes;
}

void Uploads::drop(ConnId conn) {
    std::erase_if(uploads_, [&](const auto &entry) { return entry.second.conn == conn; });
}

}  // namespace dcs::turn
