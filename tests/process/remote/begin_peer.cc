// A scheduler's door for dcs_begin and nothing behind it: takes BeginControl and answers as HOW says; prints who asked.
//   begin_peer AUTHORITY_DIR ADDRESS HOW
// HOW: serve; its certificate is for another role: client; an error reply: refuse; no answer: silent; a certificate for
// another key: other-key; a token that is too short: short; an error text full of control characters: rude; its
// certificate is longer than any of a pool: long.
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "net/loop.h"
#include "pki/authority.h"
#include "pki/openssl_types.h"
#include "wire/message.h"

namespace {
using namespace dcs;

pki::Identity certified(const pki::Authority &authority, pki::Role role, const std::string &name) {
    const std::string key = pki::new_key();
    const auto der = pki::issue(authority, *pki::public_key_of(key), role, name, wall_clock_s());
    return {key, *pki::read_certificate(*der), authority.certificate};
}

// With a comment of three kilobytes in it. No peer looks at its signature.
std::string lengthened(const std::string &der) {
    const pki::X509Ptr x(pki::from_der<X509>(der, d2i_X509));
    const std::string comment(3000, 'c');
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_netscape_comment, comment.c_str());
    if (x && extension) X509_add_ext(x.get(), extension, -1);
    X509_EXTENSION_free(extension);
    i2d_re_X509_tbs(x.get(), nullptr);  // or what it was read from is written again
    return pki::to_der(x.get(), i2d_X509);
}

wire::AnyMessage answer(const pki::Authority &authority, const wire::BeginControl &call, const std::string &how) {
    if (how == "refuse") return wire::ErrorReply{5, "not today"};
    if (how == "rude") return wire::ErrorReply{5, "\x1b[2J\x07 go\naway"};
    const auto key = how == "other-key" ? pki::public_key_of(pki::new_key()) : Result<std::string>(call.public_key);
    const std::string name = call.user + "/h1/" + call.ident;
    const auto der = pki::issue(authority, *key, pki::Role::program, name, wall_clock_s(), pki::program_life_s);
    wire::Begun begun{std::string(how == "short" ? 31 : 32, 'T'), *der, authority.certificate.der};
    return begun;
}

void take(net::Loop &loop, const net::Arrival &a, const pki::Authority &authority, const std::string &how) {
    if (a.what == net::What::refused) std::printf("refused %s\n", a.why.c_str());
    if (a.what != net::What::frame) return;
    const auto message = wire::decode_payload(a.header, a.payload);
    const auto *call = message ? std::get_if<wire::BeginControl>(&*message) : nullptr;
    if (call == nullptr) {
        std::printf("nonsense\n");
        loop.close(a.conn);
        return;
    }
    std::printf("asked %s %s\n", call->user.c_str(), call->ident.c_str());
    if (how != "silent") (void)loop.send(a.conn, answer(authority, *call, how), a.header.request);
}
}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const std::string how = argv[3];
    const auto authority = pki::authority_in(argv[1], wall_clock_s());
    const auto loop = net::Loop::create();
    if (!authority || !loop) return 2;
    const auto self = certified(*authority, how == "client" ? pki::Role::client : pki::Role::scheduler, "scheduler");
    net::TlsTrust trust;
    trust.role = pki::Role::client;
    trust.also = {pki::Role::program};  // with what it gave out before
    trust.authority = authority->certificate.der;
    const std::string shown = how == "long" ? lengthened(self.certificate.der) : self.certificate.der;
    const auto context = net::tls_context({self.key, shown, self.authority.der}, trust);
    net::Limits limits;
    limits.max_payload = limits::hello_frame_bytes;
    limits.hello = seconds(3600);
    const auto door = context ? loop->listen_tls(argv[2], limits, *context) : Result<net::Door>(context.status());
    if (!door) {
        std::fprintf(stderr, "%s\n", door.status().text.c_str());
        return 1;
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    std::printf("ready\n");
    for (;;)
        for (const net::Arrival &a : loop->wait(Instant::never(), 16)) take(*loop, a, *authority, how);
}
