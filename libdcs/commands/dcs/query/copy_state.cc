#include "copy_state.h"

#include <cerrno>

#include <unistd.h>

#include "base/known_words.h"
#include "commands/dcs/frame/table.h"
#include "base/clock.h"
#include "net/loop.h"

namespace dcs::commands {
namespace {

constexpr int copy_patience_s = 2;  // the scheduler has been asked something else before

}  // namespace

Result<wire::AnyMessage> ask_daemon(const std::string &socket, const wire::AnyMessage &question, int patience_s) {
    if (::access(socket.c_str(), W_OK) != 0 && errno == EACCES)
        return fail(Code::refused, "only root and the account of the pool's daemons may ask it");
    const auto loop = net::Loop::create();
    if (!loop) return fail(Code::limit, "no descriptors left: raise ulimit -n");
    net::Limits limits;
    limits.max_payload = limits::hello_frame_bytes;
    limits.hello = Duration{0};  // the deadline below counts
    const ConnId conn = loop->connect_unix(socket, limits);
    const Instant deadline = boot_clock() + seconds(patience_s);
    while (boot_clock() < deadline)
        for (const net::Arrival &arrival : loop->wait(deadline, 1)) {
            if (arrival.what == net::What::opened) (void)loop->send(conn, question);
            if (arrival.what == net::What::closed) return fail(Code::unreachable, arrival.why);
            if (arrival.what != net::What::frame) continue;
            auto message = wire::decode_payload(arrival.header, arrival.payload);
            const auto *error = message ? std::get_if<wire::ErrorReply>(&*message) : nullptr;
            if (error) return fail(static_cast<Code>(error->code), error->text);
            return message;
        }
    return fail(Code::unreachable, "it does not answer");
}

std::string copy_state_text(const wire::MirrorStatus &s) {
    std::string text = s.mode + ", " + s.state;
    if (s.copied == 0 && s.state == "away" && s.text == no_backup_words)
        text += ", not connected since the scheduler was started";
    else if (s.lag_turns > 0 && s.state != "ahead")
        text += ": " + counted(s.lag_turns, "turn") + ", " + bytes_text(s.lag_bytes) + ", " + seconds_text(s.lag_s) +
                " behind";
    if (s.waiting_s > 0) text += "; commits have waited for it for " + seconds_text(s.waiting_s);
    if (s.detached) text += "; detached, commits do not wait for it";
    if (!s.text.empty()) text += " (" + s.text + ")";
    return text;
}

std::string backup_text(const wire::BackupRow &backup) {
    std::string text = backup.name + (backup.state == "connected"    ? ", connected"
                                      : backup.state == "not_joined" ? ", has not joined, or its certificate is revoked"
                                                                     : ", not connected");
    if (!backup.mode.empty()) text += "; copy of the store: " + backup.mode + ", " + backup.copy;
    if (backup.copy == "detached") text += ": commits do not wait for it";
    if (backup.lag_s > 0 && backup.copy != "ahead") text += ", " + seconds_text(backup.lag_s) + " behind";
    return text;
}

std::optional<Failure> waits_for_copy(const std::string &pool_directory) {
    const auto copy =
        ask<wire::MirrorStatus>(pool_directory + "/scheduler/server.sock", wire::AskMirror{}, copy_patience_s);
    if (!copy || copy->waiting_s <= 0) return {};
    const char *without = is_ahead(copy->text) ? ""
                                               : "; `dcs backup detach` continues without it; if it was promoted "
                                                 "elsewhere, stop this scheduler instead";
    return Failure{exits::unreachable, "unreachable",
                   "the scheduler does not answer: its commits have waited for the backup's copy of the store for " +
                       seconds_text(copy->waiting_s) + (copy->text.empty() ? "" : " (" + copy->text + ")"),
                   copy_advice(copy->text) + without};
}

}  // namespace dcs::commands
