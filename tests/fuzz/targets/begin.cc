// What dcs_begin reads: root's pool.conf, a scheduler's frames, credentials and certificate; what the library reads of
// dcs_begin's; and codes for joining.
#include <algorithm>
#include <cstring>

#include <sys/socket.h>
#include <unistd.h>

#include "client/remote.h"
#include "base/bytes.h"
#include "fuzz.h"
#include "base/text.h"
#include "pki/authority.h"
#include "wire/message.h"

extern "C" {
#include "libdcs/commands/dcs_begin/begin.h"
int fuzz_read_conf(char *text, struct host *host);
int fuzz_ask_for_token(int fd, const char *ident, unsigned char *token);
void fuzz_make_ident(const char *program, char *ident);
long fuzz_credentials(const unsigned char *reply, size_t length, const char *key_pem, const char *authority_pem,
                      char *to, size_t most);
int fuzz_judge(const unsigned char *der, size_t length, const char *authority_pem);
}

namespace dcs::fuzz {
namespace {

enum What : std::uint8_t { conf, frames, answer, certificate, credentials, program, code, last };

// A key that is the same in each run, so that what the fuzzer has found goes on being found.
constexpr const char *program_key =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg95eCyW2HZVp8sQln\n"
    "ju5zr3jhq12BiUacECftMRYm59+hRANCAAT+WPdbZq3vPFjoscWnWdYD+fgAt6et\n"
    "ZxBiHLiIEBB4EWE2/4wgetVWpAZiDUmJDhKrWu+9w2bcbeHggMS3DIxA\n"
    "-----END PRIVATE KEY-----\n";

struct World {
    const std::int64_t now = wall_clock();
    pki::Authority authority = pki::make_authority(now);
    std::string pem = pki::certificate_to_pem(authority.certificate.der);
    std::string key = *pki::key_from_pem(program_key), open = *pki::public_key_of(key);
    std::string scheduler = *pki::issue(authority, open, pki::Role::scheduler, "scheduler", now);
    std::string own = *pki::issue(authority, open, pki::Role::program, "ann/desk1/find", now);
    static std::int64_t wall_clock() { return static_cast<std::int64_t>(::time(nullptr)); }
    static const World &it() {
        static const World *world = new World;
        return *world;
    }
};

const unsigned char *bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char *>(text.data()); }

void read_conf(std::string text) {
    static struct host host;
    std::memset(&host, 0, sizeof host);
    text.resize(std::min<std::size_t>(text.size(), file_bytes));
    const bool good = fuzz_read_conf(text.data(), &host) != 0;
    expect(good == (host.wrong[0] == '\0'), "what is wrong is said");
    expect(std::memchr(host.wrong, 0, sizeof host.wrong) != nullptr, "and ends");
    for (const char *path : {host.dir, host.pki}) expect(*path == '\0' || *path == '/', "paths are absolute");
}

// All that a scheduler says, at once, and then it hangs up.
void read_frames(std::string_view said) {
    int ends[2];
    expect(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a pair of sockets");
    const bool sent = ::send(ends[1], said.data(), said.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(said.size());
    ::shutdown(ends[1], SHUT_WR);
    unsigned char token[token_bytes];
    why[0] = '\0';
    if (sent && !fuzz_ask_for_token(ends[0], "find", token)) {
        expect(why[0] != '\0', "who gets no token is told why");
        expect(std::none_of(why, why + std::strlen(why), [](char c) { return c > 0 && c < ' '; }),
               "in words that steer no terminal");
    }
    ::close(ends[0]);
    ::close(ends[1]);
}

// Frames of pieces, with the checksums made right.
std::string framed(std::string_view bytes) {
    std::string said;
    std::uint64_t request = 1;
    for (Choices input(bytes); !input.empty() && request < 8; ++request) {
        const std::uint8_t kind = input.byte();
        const std::string_view payload = input.piece();
        std::string frame = *wire::encode(wire::Gwait{}, request, wire::positional_form);
        frame.resize(wire::header_bytes);
        frame[4] = static_cast<char>(kind);
        frame[5] = 0;
        const std::uint32_t sum = crc32c(payload);
        for (std::size_t i = 0; i < 4; ++i) {
            frame[8 + i] = static_cast<char>(payload.size() >> (8 * i));
            frame[20 + i] = static_cast<char>(sum >> (8 * i));
        }
        said.append(frame).append(payload);
    }
    return said;
}

void read_answer(std::string_view reply) {
    const World &world = World::it();
    char to[16 * 1024];
    const long made = fuzz_credentials(bytes_of(reply), std::min<std::size_t>(reply.size(), reply_bytes), program_key,
                                       world.pem.c_str(), to, sizeof to);
    if (made < 0) return;
    const auto read = client::read_remote_credentials(std::string(to, static_cast<std::size_t>(made)));
    expect(!read || read->key == world.key, "they are of the program's own key");
}

// Bytes from anywhere, or one of ours with some of its bytes changed: it was made by this process, as its authority.
void read_certificate(Choices input) {
    const World &world = World::it();
    const std::uint8_t which = input.byte() % 3;
    std::string der = which == 0 ? std::string(input.rest()) : which == 1 ? world.scheduler : world.own;
    while (which != 0 && !input.empty()) {
        const std::size_t at = input.number() % der.size();
        const std::string_view piece = input.piece();
        der.replace(at, std::min(piece.size(), der.size() - at), piece);
        if (der.size() > 4096) return;
    }
    const auto verdict = pki::verify(der, world.authority.certificate, pki::Role::scheduler, "", world.now);
    if (fuzz_judge(bytes_of(der), der.size(), world.pem.c_str()) != 0)
        expect(static_cast<bool>(verdict), "dcs_begin believes no more than the library");
    if (der == world.scheduler) expect(static_cast<bool>(verdict), "what was issued is believed");
}

}  // namespace

void run(std::string_view bytes) {
    Choices input(bytes);
    const std::uint8_t first = input.byte();
    const std::string_view text = input.rest();
    switch (static_cast<What>((first & 0x7f) % last)) {
    case conf: return read_conf(std::string(text));
    case frames: return read_frames((first & 0x80) != 0 ? framed(text) : std::string(text));
    case answer: return read_answer(text);
    case certificate: return read_certificate(input);
    case credentials: return (void)client::read_remote_credentials(std::string(text));
    case code:
        for (const std::size_t size : {sizeof(Token), std::size_t{12}})
            if (const auto read = bytes_of_hex(text, size)) {
                expect(read->size() == size, "a code has its length");
                expect(bytes_of_hex(hex_of(*read), size) == read, "and is read back");
            }
        return;
    default: {
        char ident[ident_bytes + 1];
        fuzz_make_ident(std::string(text).c_str(), ident);
        expect(ident[0] != '\0' && std::strlen(ident) <= ident_bytes, "every program has a name");
    }
    }
}

std::vector<Seed> seeds() {
    const World &world = World::it();
    const auto payload = [](const wire::AnyMessage &m) {
        return wire::encode(m, 1, wire::positional_form)->substr(wire::header_bytes);
    };
    const auto begun = [&](const std::string &token, const std::string &der) {
        return payload(wire::Begun{token, der, world.authority.certificate.der});
    };
    const std::string token(token_bytes, 't');
    const auto piece = [](std::uint8_t kind, const std::string &s) { return static_cast<char>(kind) + piece_of(s); };
    const std::string welcome = piece(kind_welcome, payload(wire::Welcome{7, "ann"}));
    const std::string whole = *wire::encode(wire::Welcome{7, "ann"}, 1, wire::positional_form) +
                              *wire::encode(wire::AuthReply{token}, 2, wire::positional_form);
    const std::string text = "DCS-CREDENTIALS 1\nscheduler pool:7001\ntoken " + std::string(64, 'a') + "\n" +
                             program_key + pki::certificate_to_pem(world.own) + world.pem;
    const std::vector<std::pair<int, std::string>> all = {
        {conf, "# the pool\nscheduler pool.example:7001\npki /etc/dcs/pki # keys\n"},
        {conf, "dir /var/lib/dcs\n"},
        {conf, "scheduler a:1,[::1]:2,b:3\n"},
        {frames, whole},
        {frames | 0x80, welcome + piece(kind_auth_reply, payload(wire::AuthReply{token}))},
        {frames | 0x80, piece(kind_error, payload(wire::ErrorReply{5, "no\x1b[2J"}))},
        {frames | 0x80, welcome + piece(kind_error, payload(wire::ErrorReply{5, std::string(5000, 'x')}))},
        {answer, begun(token, world.own)},
        {answer, begun(token, world.scheduler)},
        {answer, begun("short", world.own)},
        {certificate, std::string(1, '\0') + world.scheduler},
        {certificate, "\1"},
        {certificate, "\2"},
        {certificate, "\1" + std::string("\x20\0", 2) + piece_of("x")},
        {credentials, text},
        {program, "/usr/bin/find factor"},
        {code, std::string(64, 'a')},
        {code, std::string(24, '0')}};
    std::vector<Seed> list;
    for (const auto &[what, bytes] : all)
        list.push_back({"what-" + std::to_string(list.size()), static_cast<char>(what) + bytes});
    return list;
}

}  // namespace dcs::fuzz
