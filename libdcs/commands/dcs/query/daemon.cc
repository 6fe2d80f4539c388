#include "daemon.h"

#include "base/clock.h"
#include "net/loop.h"

namespace dcs::commands {

Result<wire::AnyMessage> ask_daemon(const std::string &socket, const wire::AnyMessage &question, int patience_s) {
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

}  // namespace dcs::commands
