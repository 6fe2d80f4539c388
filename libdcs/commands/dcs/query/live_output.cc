#include "live_output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/limits.h"
#include "commands/dcs/frame/table.h"
#include "commands/dcs/query/scheduler.h"

namespace dcs::commands {
namespace {

// Behind everything: the answer tells how much there is.
constexpr std::uint64_t behind_all = std::uint64_t{1} << 62;

constexpr long live_pause_ms = 300, live_tick_ms = 50;

}  // namespace

Result<wire::Piece> LiveOutput::piece_at(std::uint64_t offset) const {
    wire::Fetch fetch;
    fetch.user = user_;
    fetch.session = session_;
    fetch.grain = grain_;
    fetch.stream = stream_;
    fetch.offset = offset;
    fetch.max = limits::fetch_chunk_bytes;
    fetch.live = true;
    return ask_any<wire::Piece>(fetch);
}

// What the scheduler had of the incarnation before stays, whatever the next one writes behind it.
Result<std::string> LiveOutput::next() {
    auto piece = piece_at(place_);
    if (!piece) return piece.status();
    if (piece->incarnation == 0) {  // a scheduler of an earlier release
        place_ = std::min(place_, piece->total);
    } else if (incarnation_ != 0 && piece->incarnation != incarnation_) {
        const std::uint64_t good = std::min({place_, recorded_, piece->recorded});
        void_ += place_ - good;
        place_ = good;
        recorded_ = good;
        incarnation_ = piece->incarnation;
        piece = piece_at(place_);
        if (!piece) return piece.status();
        if (piece->incarnation != incarnation_) return std::string();  // it began again once more
    }
    incarnation_ = piece->incarnation;
    recorded_ = piece->recorded;
    place_ += piece->bytes.size();
    return std::move(piece->bytes);
}

Result<std::string> LiveOutput::range(std::uint64_t begin, std::uint64_t end) const {
    std::string text;
    while (begin + text.size() < end) {
        auto piece = piece_at(begin + text.size());
        if (!piece) return piece.status();
        if (piece->bytes.empty()) break;
        text += piece->bytes;
    }
    text.resize(std::min<std::uint64_t>(text.size(), end - begin));
    return text;
}

// Backwards, a piece at a time.
Status LiveOutput::go_to_end_but(std::int64_t lines) {
    const auto all = piece_at(behind_all);
    if (!all) return all.status();
    const std::uint64_t total = all->total;
    place_ = lines == 0 ? total : 0;
    for (std::uint64_t end = total; end > 0 && lines > 0;) {
        const std::uint64_t begin = end - std::min<std::uint64_t>(end, limits::fetch_chunk_bytes);
        const auto text = range(begin, end);
        if (!text) return text.status();
        for (std::size_t i = text->size(); i-- > 0 && lines > 0;) {
            const bool is_end = begin + i + 1 == total;  // of the last line, not of one before it
            if ((*text)[i] == '\n' && !is_end && --lines == 0) place_ = begin + i + 1;
        }
        end = begin;
    }
    return Status::ok();
}

std::string void_text(std::uint64_t bytes) {
    return "the grain restarted from its last checkpoint: the last " + counted(bytes, "byte") +
           " shown above are void and replaced by what follows";
}

ShownOutput::ShownOutput(int session, int grain, std::function<void()> no_reader)
    : out_("", session, grain, wire::Stream::out),
      err_("", session, grain, wire::Stream::err),
      no_reader_(std::move(no_reader)) {}

void ShownOutput::start() {
    thread_ = std::thread([this] { follow(); });
}

void ShownOutput::stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
}

// A reader that has had enough is no error. After any other failed write the stream shows no more: bytes are missing.
Result<bool> ShownOutput::show_some(LiveOutput &output, std::FILE *to) {
    Status &lost = to == stdout ? out_lost_ : err_lost_;
    if (!lost) return lost;
    const auto bytes = output.next();
    if (!bytes) return bytes.status();
    if (const std::uint64_t n = output.take_void(); n > 0) std::fprintf(stderr, "dcs run: %s\n", void_text(n).c_str());
    if (bytes->empty()) return false;
    const bool good = std::fwrite(bytes->data(), 1, bytes->size(), to) == bytes->size() && std::fflush(to) == 0;
    if (good) return true;
    if (errno != EPIPE) return lost = fail_errno(Code::io_error, "the output cannot be written", errno);
    if (to == stdout && !over_) no_reader_();
    return false;
}

// What cannot be asked for or written now is found out at the end.
void ShownOutput::follow() {
    while (!over_) {
        for (long slept = 0; slept < live_pause_ms && !over_; slept += live_tick_ms) pause_ms(live_tick_ms);
        for (const auto &[output, to] : {std::pair{&out_, stdout}, std::pair{&err_, stderr}})
            while (!over_) {
                if (const auto more = show_some(*output, to); !more || !*more) break;
            }
    }
}

Status ShownOutput::finish() {
    Status first;
    for (const auto &[output, to] : {std::pair{&out_, stdout}, std::pair{&err_, stderr}}) {
        auto more = show_some(*output, to);
        while (more && *more) more = show_some(*output, to);
        if (!more && first) first = more.status();
    }
    return first;
}

}  // namespace dcs::commands
