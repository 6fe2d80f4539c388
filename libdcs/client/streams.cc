#include "client/streams.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "client/ahead.h"

namespace dcs::client {
Result<File> temporary_file() {
    const File named(std::tmpfile());
    // No room or no permission there: memory will do.
    Fd fd = named ? Fd(::fcntl(::fileno(named.get()), F_DUPFD_CLOEXEC, STDERR_FILENO + 1))
                  : above_standard(Fd(::memfd_create("dcs-stream", MFD_CLOEXEC)));
    std::FILE *f = fd ? ::fdopen(fd.get(), "w+") : nullptr;
    if (!f) return fail_errno(Code::io_error, "no temporary file for the stream", errno);
    (void)fd.release();
    return File(f);
}

namespace {

Status append(std::FILE *f, const std::string &bytes) {
    if (bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size()) return Status::ok();
    return fail_errno(Code::io_error, "cannot write the stream to a temporary file", errno);
}

// A checkpoint or message may be replaced by the next one between two pieces, which the length shows.
bool may_be_replaced(wire::Stream s) { return s == wire::Stream::checkpoint || s == wire::Stream::message; }

enum class Came { whole, replaced };

// The pieces up to `end`, as long as they have their full length and the connection stays.
Status fetch_ahead(Pool &pool, std::FILE *f, wire::Fetch &request, std::uint64_t end, std::uint64_t &total) {
    wire::AnyMessage call = request;
    bool whole = true;
    const NextCall next = [&, begun = false](wire::AnyMessage &message) mutable -> Result<bool> {
        auto &fetch = std::get<wire::Fetch>(message);
        if (std::exchange(begun, true)) fetch.offset += fetch.max;
        return whole && fetch.offset < end;
    };
    const TakeReply take = [&](const wire::AnyMessage &reply) {
        const auto *piece = std::get_if<wire::Piece>(&reply);
        if (!piece)
            return fail(Code::protocol, std::string("the scheduler answered Fetch with ") + wire::kind_name(reply));
        if (!whole) return Status::ok();
        total = piece->total;
        request.offset += piece->bytes.size();
        whole = piece->bytes.size() == request.max;
        return append(f, piece->bytes);
    };
    const Status s = call_ahead(pool, call, next, take);
    return s.code == Code::broken ? Status::ok() : s;
}

Result<Came> fetch_from(Pool &pool, std::FILE *f, wire::Fetch request, std::uint64_t length, With with) {
    std::uint64_t total = UINT64_MAX;
    while (request.offset < length) {
        auto piece = ask<wire::Piece>(pool, request, How{with});
        if (!piece) return piece.status();
        if (total != UINT64_MAX && piece->total != total && may_be_replaced(request.stream)) return Came::replaced;
        total = piece->total;
        if (Status s = append(f, piece->bytes); !s) return s;
        request.offset += piece->bytes.size();
        const std::uint64_t end = std::min(length, total);
        if (piece->bytes.size() == request.max && request.offset < end && !may_be_replaced(request.stream))
            if (Status s = fetch_ahead(pool, f, request, end, total); !s) return s;
        if (length == UINT64_MAX && request.offset >= total) return Came::whole;
        if (piece->bytes.empty())
            return fail(Code::io_error, "the stream ends at " + std::to_string(request.offset) + " bytes, " +
                                            std::to_string(length == UINT64_MAX ? total : length) + " were announced");
    }
    return Came::whole;
}

}  // namespace

Result<File> fetch_stream(Pool &pool, const std::string &user, int session, int grain, wire::Stream stream,
                          const std::string &known, std::uint64_t length, With with, const std::string &name) {
    for (int attempt = 0; attempt < 10; ++attempt) {
        auto file = temporary_file();
        if (!file) return file.status();
        if (Status s = append(file->get(), known); !s) return s;
        wire::Fetch request{user, session, grain, stream, known.size(), limits::fetch_chunk_bytes, name};
        auto came = fetch_from(pool, file->get(), request, length, with);
        if (!came) return came.status();
        if (*came == Came::replaced) continue;
        if (std::fflush(file->get()) != 0 || std::fseek(file->get(), 0, SEEK_SET) != 0)
            return fail_errno(Code::io_error, "cannot write the stream to a temporary file", errno);
        return file;
    }
    return fail(Code::io_error, "the grain replaces this stream faster than it can be fetched");
}

Status fetch_file(Pool &pool, int session, int grain, const std::string &name, std::FILE *to) {
    const wire::Fetch request{{}, session, grain, wire::Stream::file, 0, limits::fetch_chunk_bytes, name};
    return fetch_from(pool, to, request, UINT64_MAX, With::any).status();
}

}  // namespace dcs::client
