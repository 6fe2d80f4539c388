// A grain server that says what it likes to a scheduler or a backup: shows the certificate of PKI_DIR ("-": none, and
// believes a peer that shows the authority of the third argument's directory), calls itself NAME, and prints what
// comes.   tls_call HOST:PORT PKI_DIR NAME [AUTHORITY_DIR]
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "net/loop.h"
#include "pki/authority.h"
#include "wire/message.h"

namespace {
using namespace dcs;

bool answered(const net::Arrival &a) {
    if (a.what == net::What::opened) std::printf("opened\n");
    if (a.what == net::What::closed) std::printf("closed: %s\n", a.why.c_str());
    if (a.what != net::What::frame) return a.what == net::What::closed;
    const auto message = wire::decode_payload(a.header, a.payload);
    if (!message) return true;
    const auto *refused = std::get_if<wire::Refused>(&*message);
    const auto *error = std::get_if<wire::ErrorReply>(&*message);
    std::printf("%s: %s\n", wire::kind_name(*message),
                refused != nullptr ? refused->text.c_str()
                : error != nullptr ? error->text.c_str()
                                   : "");
    return std::holds_alternative<wire::Configure>(*message) || std::holds_alternative<wire::BackupReady>(*message);
}
}  // namespace

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    net::TlsSelf self;
    net::TlsTrust trust;
    trust.role = pki::Role::scheduler;
    trust.also = {pki::Role::backup};
    if (std::string(argv[2]) != "-") {
        const auto who = pki::read_identity(argv[2]);
        if (!who) {
            std::fprintf(stderr, "%s\n", who.status().text.c_str());
            return 2;
        }
        self = {who->key, who->certificate.der, who->authority.der};
        trust.authority = who->authority.der;
    }
    if (argc > 4) {
        const auto authority = pki::authority_in(argv[4], wall_clock_s());
        if (!authority) return 2;
        trust.authority = authority->certificate.der;
    }
    const auto context = net::tls_context(self, trust);
    const auto loop = net::Loop::create();
    if (!context || !loop) return 2;
    net::Limits limits;
    limits.max_payload = 1 << 20;
    const ConnId conn = loop->connect_tls(argv[1], limits, *context);
    wire::FirstCall call;
    call.host = argv[3];
    call.binary_class = "x86_64-linux-gnu";
    (void)loop->send(conn, call);
    for (;;)
        for (const net::Arrival &a : loop->wait(Instant::never(), 1))
            if (answered(a)) return 0;
}
