#include "one_question.h"

#include "base/limits.h"
#include "net/loop.h"

namespace dcs::commands {
namespace {

constexpr Duration answer_patience = seconds(30);

Result<wire::AnyMessage> ask_at(const std::string &address, net::TlsContextPtr context,
                                const wire::AnyMessage &question) {
    const std::unique_ptr<net::Loop> loop = net::Loop::create();
    if (!loop) return fail(Code::limit, "no descriptors left: raise ulimit -n");
    net::Limits limits;
    limits.max_payload = 4 * limits::certificate_bytes;
    limits.hello = answer_patience;
    const ConnId conn = loop->connect_tls(address, limits, std::move(context));
    (void)loop->send(conn, question);
    for (;;)
        for (const net::Arrival &a : loop->wait(Instant::never(), 1)) {
            if (a.what == net::What::closed) return fail(Code::unreachable, address + ": " + a.why);
            if (a.what == net::What::frame) return wire::decode_payload(a.header, a.payload);
        }
}

}  // namespace

Result<wire::AnyMessage> ask_scheduler(const std::vector<std::string> &addresses, const net::TlsSelf &self,
                                       net::TlsTrust trust, const wire::AnyMessage &question) {
    trust.role = pki::Role::scheduler;
    const auto context = net::tls_context(self, trust);
    if (!context) return context.status();
    Status why = Status::ok();
    for (const std::string &address : addresses) {
        auto answer = ask_at(address, *context, question);
        if (answer || answer.status().code != Code::unreachable) return answer;
        why = fail(Code::unreachable, (why.text.empty() ? "" : why.text + "; ") + answer.status().text);
    }
    return why;
}

}  // namespace dcs::commands
