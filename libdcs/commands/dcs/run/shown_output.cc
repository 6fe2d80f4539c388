#include "shown_output.h"

#include <cerrno>
#include <cstdio>

#include "commands/dcs/query/scheduler.h"

namespace dcs::commands {
namespace {

constexpr long live_pause_ms = 300, live_tick_ms = 50;

}  // namespace

ShownOutput::ShownOutput(int session, int grain)
    : out_("", session, grain, wire::Stream::out), err_("", session, grain, wire::Stream::err) {}

void ShownOutput::start() {
    thread_ = std::thread([this] { follow(); });
}

void ShownOutput::stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
}

// A reader that has had enough is no error.
Result<bool> ShownOutput::show_some(LiveOutput &output, std::FILE *to) {
    const auto bytes = output.next();
    if (!bytes) return bytes.status();
    if (const std::uint64_t n = output.take_void(); n > 0) std::fprintf(stderr, "dcs run: %s\n", void_text(n).c_str());
    if (bytes->empty()) return false;
    const bool good = std::fwrite(bytes->data(), 1, bytes->size(), to) == bytes->size() && std::fflush(to) == 0;
    if (good) return true;
    if (errno == EPIPE) return false;
    return fail_errno(Code::io_error, "the output cannot be written", errno);
}

// What cannot be asked for or written now is found out at the end.
void ShownOutput::follow() {
    while (!over_) {
        for (long slept = 0; slept < live_pause_ms && !over_; slept += live_tick_ms) pause_ms(live_tick_ms);
        for (const auto &[output, to] : {std::pair{&out_, stdout}, std::pair{&err_, stderr}})
            while (!over_) {
                const auto more = show_some(*output, to);
                if (!more || !*more) break;
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
