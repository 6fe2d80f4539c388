// dcs grain tail: the end of what a grain has written, and what it goes on to write.
#include <cerrno>
#include <cstdio>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/query/grains.h"
#include "commands/dcs/query/live_output.h"
#include "commands/dcs/query/scheduler.h"

namespace dcs::commands {
namespace {

constexpr std::int64_t most_lines = 1'000'000;

// What is there and was not printed yet.
Status print_more(LiveOutput &output) {
    while (true) {
        const auto bytes = output.next();
        if (!bytes) return bytes.status();
        if (const std::uint64_t n = output.take_void(); n > 0) {
            std::fflush(stdout);
            std::fprintf(stderr, "dcs grain tail: %s\n", void_text(n).c_str());
        }
        if (bytes->empty() || std::fwrite(bytes->data(), 1, bytes->size(), stdout) != bytes->size()) break;
    }
    return std::fflush(stdout) == 0 ? Status::ok() : fail_errno(Code::io_error, "standard output", errno);
}

// Then the grain does not continue.
bool is_closed(const wire::GrainRow &grain) {
    const SessionsAnswer now = sessions_of({grain.user + "/" + std::to_string(grain.session)});
    return !now.failure && now.sessions[0].terminated();
}

Status follow(LiveOutput &output, const wire::GrainRow &grain) {
    set_patience(away_patience_s);
    while (true) {
        const auto now = grain_now(grain.user, grain.session, grain.grain);
        const bool over = now && is_over(*now);  // asked first: what it wrote last is there then
        const bool closed = !over && is_closed(grain);
        if (Status s = print_more(output); !s || over) return s;
        if (closed) {
            std::fprintf(stderr, "dcs grain tail: the session is closed, so the grain does not continue\n");
            return Status::ok();
        }
        pause_ms(poll_ms);
    }
}

int tail(const Call &call) {
    const Arguments &arguments = call.arguments;
    const std::int64_t lines = arguments.number("lines").value_or(10);
    const ChosenGrains chosen = choose_grains(arguments.words, false);
    if (chosen.failure) return call.fail(*chosen.failure);
    if (chosen.grains.rows.size() != 1) return call.fail(usage_failure("dcs grain tail shows one grain at a time"));
    const wire::GrainRow &row = chosen.grains.rows[0];
    LiveOutput output(row.user, row.session, row.grain, arguments.has("err") ? wire::Stream::err : wire::Stream::out);
    Status s = output.go_to_end_but(lines);
    if (s) s = arguments.has("follow") ? follow(output, row) : print_more(output);
    return s ? exits::ok : call.fail(failure_of("the output of grain " + chosen.name(0), s));
}

}  // namespace

extern const Verb grain_tail_verb = {
    .noun = "grain",
    .name = "tail",
    .words = "SEL",
    .summary = "print the end of a grain's output",
    .about = R"(Prints the last lines of a grain's output; with -f it continues until the grain ends.

The output of a running grain is shown as the program writes it (many programs
buffer 4 KiB if they do not write to a terminal: use stdbuf -oL CMD or python3 -u). A grain that moves
continues from its last checkpoint and writes what follows again; standard error then says how much of the
shown output is void. After the grain's end `dcs grain cat` prints everything once.

Examples:
  dcs grain tail last:1
  dcs grain tail -f 7:12
  dcs grain tail -n 100 --err 7:12
)",
    .options = {{"lines", 'n', "N", whole_number(0, most_lines), "number of lines; default 10"},
                {"follow", 'f', nullptr, no_value,
                 "continue until the grain has ended, also through a restart of the scheduler"},
                {"err", 0, nullptr, no_value, "standard error instead of standard output"}},
    .notes =
        R"(SEL is SES:G, or SES alone if it has one grain; SES is NUM, USER/NUM or last (your session that was
opened last).
)",
    .run = tail,
    .formats = false};

}  // namespace dcs::commands
