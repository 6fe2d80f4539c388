// dcs grain tail: the end of what a grain has written, and what it goes on to write.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "commands/dcs/query/scheduler.h"
#include "base/limits.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/this_pool.h"
#include "client/call.h"
#include "commands/dcs/query/grains.h"

namespace dcs::commands {
namespace {

constexpr std::int64_t most_lines = 1'000'000;

struct Tail {
    std::string user, name;
    std::int32_t session = 0, grain = 0;
    wire::Stream stream = wire::Stream::out;
    std::uint64_t offset = 0;  // what stands before was printed
};

Result<wire::Piece> piece_at(const Tail &tail, std::uint64_t offset) {
    wire::Fetch fetch;
    fetch.user = tail.user;
    fetch.session = tail.session;
    fetch.grain = tail.grain;
    fetch.stream = tail.stream;
    fetch.offset = offset;
    fetch.max = limits::fetch_chunk_bytes;
    return client::ask<wire::Piece>(this_pool(), fetch, client::How{client::With::any});
}

// Where the last `lines` lines begin, looking backwards a piece at a time.
Result<std::uint64_t> beginning_of(const Tail &tail, std::int64_t lines) {
    auto first = piece_at(tail, 0);
    if (!first) return first.status();
    const std::uint64_t total = first->total;
    if (lines == 0) return total;
    for (std::uint64_t end = total; end > 0;) {
        const std::uint64_t begin = end - std::min<std::uint64_t>(end, limits::fetch_chunk_bytes);
        auto piece = piece_at(tail, begin);
        if (!piece) return piece.status();
        piece->bytes.resize(std::min<std::uint64_t>(piece->bytes.size(), end - begin));
        for (std::size_t i = piece->bytes.size(); i-- > 0;) {
            const bool is_end = begin + i + 1 == total;  // of the last line, not of one before it
            if (piece->bytes[i] == '\n' && !is_end && --lines == 0) return begin + i + 1;
        }
        end = begin;
    }
    return 0;
}

// What is there and was not printed yet.
Status print_more(Tail &tail) {
    while (true) {
        const auto piece = piece_at(tail, tail.offset);
        if (!piece) return piece.status();
        if (piece->total < tail.offset) tail.offset = piece->total;  // it began anew
        else if (piece->bytes.empty()) break;
        if (std::fwrite(piece->bytes.data(), 1, piece->bytes.size(), stdout) != piece->bytes.size()) break;
        tail.offset += piece->bytes.size();
    }
    return std::fflush(stdout) == 0 ? Status::ok() : fail_errno(Code::io_error, "standard output", errno);
}

bool is_over(const Tail &tail) {
    Info info;
    if (!info.ask(wire::QueryType::grain, tail.user, tail.session, tail.grain) || info.grains.empty()) return false;
    const std::string &state = info.grains[0].state;
    return state == "finished" || state == "killed";
}

Status follow(Tail &tail) {
    set_patience(away_patience_s);
    while (true) {
        const bool over = is_over(tail);  // asked first: what it wrote last is there then
        if (Status s = print_more(tail); !s || over) return s;
        const timespec pause = {0, poll_ms * 1'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

int tail(const Call &call) {
    const Arguments &arguments = call.arguments;
    const std::int64_t lines = arguments.number("lines").value_or(10);
    const ChosenGrains chosen = choose_grains(arguments.words, false);
    if (chosen.failure) return call.fail(*chosen.failure);
    if (chosen.grains.rows.size() != 1) return call.fail(usage_failure("dcs grain tail shows one grain at a time"));
    const wire::GrainRow &row = chosen.grains.rows[0];
    Tail tail{row.user, chosen.name(0), row.session, row.grain,
              arguments.has("err") ? wire::Stream::err : wire::Stream::out, 0};
    const auto from = beginning_of(tail, lines);
    Status s = from ? Status::ok() : from.status();
    if (from) {
        tail.offset = *from;
        s = arguments.has("follow") ? follow(tail) : print_more(tail);
    }
    return s ? exits::ok : call.fail(failure_of("the output of grain " + tail.name, s));
}

}  // namespace

extern const Verb grain_tail_verb = {
    .noun = "grain", .name = "tail", .words = "SEL",
    .summary = "print the end of a grain's output",
    .about = R"(Prints the last lines that a grain has written, and with -f goes on as it writes more. What a
running grain wrote shows when its host has reported it: at each checkpoint of a grain that makes some, else at the
end.

Examples:
  dcs grain tail last:1
  dcs grain tail -f 7:12
  dcs grain tail -n 100 --err 7:12
)",
    .options = {
     {"lines", 'n', "N", whole_number(0, most_lines), "so many lines; default 10"},
     {"follow", 'f', nullptr, {}, "go on until the grain has ended, also through a restart of the scheduler"},
     {"err", 0, nullptr, {}, "standard error instead of standard output"}},
    .notes = R"(SEL is SES:G; SES is NUM, USER/NUM or last (your session with the highest number).
)",
    .run = tail, .formats = false};

}  // namespace dcs::commands
