// Certificates, requests and keys that a stranger shows, and the files of an identity: nothing but what the pool's
// authority issued is believed, and no peer's word changes whom a certificate is for.
#include "pki/authority.h"

#include <array>

#include "meter.h"
#include "scratch.h"

namespace dcs::fuzz {
namespace {

using namespace pki;

// Made once: keys cost more than reading one.
struct World {
    static constexpr std::int64_t now = 1'700'000'000;
    Authority ours = make_authority(now), theirs = make_authority(now);
    std::string key = new_key(), request;
    std::array<std::string, 4> certificates;  // host's, scheduler's, of another pool, expired
    World() {
        request = *make_request(key);
        const std::string open = *public_key_of(key);
        certificates = {*issue(ours, open, Role::grain_server, "h1", now),
                        *issue(ours, open, Role::scheduler, "scheduler", now),
                        *issue(theirs, open, Role::grain_server, "h1", now),
                        *issue(ours, open, Role::grain_server, "h1", now - 400 * day_s)};
    }
    static const World &it() {
        static const World *world = new World;
        return *world;
    }
    bool issued(std::string_view der) const {
        return der == certificates[0] || der == certificates[1] || der == certificates[3];
    }
};

void read_der(std::string_view der) {
    const World &world = World::it();
    const Meter meter;
    const auto certificate = read_certificate(der);
    const auto shown = read_request(der);
    constexpr Cost most{.memory = 64, .memory_beside = 256 * 1024, .allocations_beside = 4096, .ns = 20'000};
    meter.expect(der.size(), most, "a certificate, or a request");
    if (const auto &read = certificate) {
        expect(read->role != Role::none && !read->name.empty(), "a certificate says for whom it is");
        expect(read->der == der, "it is what was shown");
        (void)wants_renewal(*read, World::now);
        for (const Role role : {Role::grain_server, Role::scheduler, Role::client}) {
            const Verification verdict = verify(*read, world.ours.certificate, role, "h1", World::now);
            if (verdict)
                expect(der == world.certificates[0] && role == Role::grain_server, "only what was issued counts");
            else expect(!verdict.text.empty(), "who is refused is told why");
        }
        if (!world.issued(der))
            expect(!verify(*read, world.ours.certificate, read->role, "", World::now), "nothing else is signed");
        expect(*certificate_from_pem(certificate_to_pem(der)) == der, "PEM keeps it");
    }
    if (const auto &request = shown)
        expect(der != world.request || request->public_key == *public_key_of(world.key), "a request is for its key");
    (void)public_key_of(der);
    (void)issue(world.ours, der, Role::grain_server, "h1", World::now);
}

void read_text(const std::string &text) {
    if (const auto key = key_from_pem(text)) expect(*key_from_pem(key_to_pem(*key)) == *key, "PEM keeps a key");
    if (const auto der = certificate_from_pem(text)) read_der(*der);
    (void)issue(World::it().ours, *public_key_of(World::it().key), Role::grain_server, text, World::now);
}

void read_files(Choices input) {
    static const Scratch scratch;
    scratch.empty();
    for (const char *name : {"key.pem", "certificate.pem", "authority.pem", "authority-key.pem"}) {
        const std::string_view bytes = input.piece();
        if (bytes.empty()) continue;
        scratch.write(name, bytes);
        std::filesystem::permissions(scratch.path() + "/" + name, std::filesystem::perms(0600));
    }
    if (const auto identity = read_identity(scratch.path()))
        expect(!identity->key.empty() && identity->authority.role == Role::authority, "an identity is whole");
    (void)authority_in(scratch.path(), World::now);
}

}  // namespace

void run(std::string_view bytes) {
    Choices input(bytes);
    switch (input.byte() % 4) {
    case 0: return read_der(input.rest());
    case 1: return read_text(std::string(input.rest()));
    case 2: return read_files(input);
    default: break;
    }
    // One of the real ones, with some bytes changed.
    const World &world = World::it();
    const std::size_t which = input.byte() % 5;
    std::string der = which < 4 ? world.certificates[which] : world.request;
    while (!input.empty()) der[input.number() % der.size()] ^= static_cast<char>(input.byte());
    read_der(der);
}

std::vector<Seed> seeds() {
    const World &world = World::it();
    const std::string key = key_to_pem(world.key), authority = certificate_to_pem(world.ours.certificate.der);
    const std::string host = certificate_to_pem(world.certificates[0]);
    std::vector<Seed> all = {{"request", '\0' + world.request},
                             {"key", '\1' + key},
                             {"pem", '\1' + host},
                             {"identity", '\2' + piece_of(key) + piece_of(host) + piece_of(authority) + piece_of("")},
                             {"authority", '\2' + piece_of("") + piece_of("") + piece_of(authority) + piece_of(key)}};
    for (char which = 0; which < 5; ++which)
        all.push_back({"changed-" + std::to_string(which), std::string{'\3', which}});
    for (const std::string &der : world.certificates) all.push_back({"real-" + std::to_string(all.size()), '\0' + der});
    return all;
}

}  // namespace dcs::fuzz
