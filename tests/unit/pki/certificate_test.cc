// Keys, requests and certificates: what is issued passes, and each thing that can be wrong is named.
#include <string>

#include "base/limits.h"
#include "base/text.h"
#include "pki/authority.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::pki;

namespace {

constexpr std::int64_t now = 1'800'000'000;

struct Pool {
    Authority authority = make_authority(now);
    std::string key = new_key();
    std::string public_key = *public_key_of(key);

    std::string der(Role role = Role::grain_server, const std::string &name = "h1", std::int64_t at = now,
                    std::int64_t life = certificate_life_s) const {
        const auto issued = issue(authority, public_key, role, name, at, life);
        REQUIRE(issued);
        return *issued;
    }
    Verification check(const std::string &bytes, std::int64_t at = now) const {
        return verify(bytes, authority.certificate, Role::grain_server, "h1", at);
    }
};

}  // namespace

TEST_CASE("a certificate says for whom it is, and passes") {
    Pool pool;
    const auto c = read_certificate(pool.der());
    REQUIRE(c);
    CHECK(c->role == Role::grain_server);
    CHECK(c->name == "h1");
    CHECK(c->key == sha256(pool.public_key));
    CHECK(c->fingerprint == sha256(c->der));
    CHECK(c->serial.size() == 32);
    CHECK(c->not_before_s == now - backdated_s);
    CHECK(c->not_after_s == now + certificate_life_s);
    CHECK(pool.check(c->der));
    CHECK(pool.check(c->der, now - backdated_s));
    CHECK(pool.check(c->der, now + certificate_life_s));
    CHECK(read_certificate(pool.der())->serial != c->serial);
    CHECK(verify(*c, pool.authority.certificate, Role::grain_server, "", now));
}

TEST_CASE("each check that fails is named") {
    Pool pool;
    const Pool other;
    const auto says = [&](const Verification &v, Check check, const std::string &word) {
        CHECK(v.check == check);
        CHECK(v.text.find(word) != std::string::npos);
    };
    const std::string good = pool.der();
    says(pool.check(good, now + certificate_life_s + 1), Check::expired, "h1 expired on 2027-");
    says(pool.check(good, now + certificate_life_s + 1), Check::expired, "(the clock of this host says 2027-");
    says(pool.check(good, now - backdated_s - 1), Check::not_yet_valid, "not valid before");
    says(pool.check(pool.der(Role::client)), Check::wrong_role,
         "for a host of control programs, not for a grain server");
    says(pool.check(pool.der(Role::scheduler)), Check::wrong_role, "for a scheduler");
    says(pool.check(pool.der(Role::grain_server, "h2")), Check::wrong_name, "of h2, not of h1");
    says(pool.check(other.der()), Check::unknown_authority, "another authority");
    says(pool.check(pool.authority.certificate.der), Check::wrong_role, "a pool's authority");
    says(pool.check(good, now + authority_life_s + 1), Check::expired, "expired");
}

TEST_CASE("who issues must be the authority itself") {
    Pool pool;
    // A host that signs with its own key, under the authority's name.
    Authority impostor = pool.authority;
    impostor.key = pool.key;
    const auto forged = issue(impostor, pool.public_key, Role::grain_server, "h1", now);
    REQUIRE(forged);
    CHECK(pool.check(*forged).check == Check::unknown_authority);
    // A host's certificate in the place of the authority's.
    const auto host = read_certificate(pool.der());
    CHECK(verify(pool.der(), *host, Role::grain_server, "h1", now).check == Check::unknown_authority);
}

TEST_CASE("the authority's own end bounds what it issues") {
    Pool pool;
    const std::int64_t late = now + authority_life_s - day_s;
    CHECK(read_certificate(pool.der(Role::grain_server, "h1", late))->not_after_s == now + authority_life_s);
}

TEST_CASE("any byte that is changed, cut or added is noticed") {
    Pool pool;
    const std::string good = pool.der();
    for (std::size_t i = 0; i < good.size(); ++i) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ 0x10);
        INFO("byte " << i);
        CHECK_FALSE(pool.check(bad));
        CHECK_FALSE(pool.check(good.substr(0, i)));
    }
    CHECK(pool.check(good + '\0').check == Check::malformed);
    CHECK(pool.check(std::string(limits::certificate_bytes + 1, '0')).check == Check::malformed);
    CHECK(pool.check("").check == Check::malformed);
}

TEST_CASE("renewal is due when a third of the life is left") {
    Pool pool;
    const auto c = read_certificate(pool.der());
    const std::int64_t third = (certificate_life_s + backdated_s) / 3;
    CHECK_FALSE(wants_renewal(*c, now));
    CHECK_FALSE(wants_renewal(*c, c->not_after_s - third));
    CHECK(wants_renewal(*c, c->not_after_s - third + 1));
    CHECK(wants_renewal(*c, c->not_after_s + 1));
    CHECK(wants_renewal(*c, c->not_before_s - 1));
}

TEST_CASE("a request shows that its sender has the key") {
    const std::string key = new_key();
    const auto der = make_request(key);
    REQUIRE(der);
    const auto request = read_request(*der);
    REQUIRE(request);
    CHECK(request->public_key == *public_key_of(key));
    CHECK(request->hash == sha256(request->public_key));
    for (std::size_t i = 0; i < der->size(); ++i) {
        std::string bad = *der;
        bad[i] = static_cast<char>(bad[i] ^ 1);
        INFO("byte " << i);
        CHECK_FALSE(read_request(bad));
    }
    CHECK_FALSE(read_request(std::string(limits::certificate_bytes + 1, '0')));
    CHECK_FALSE(make_request("no key"));
    CHECK_FALSE(public_key_of("no key"));
}

TEST_CASE("requests have one form, which any key and any signature fit in") {
    for (int i = 0; i < 300; ++i) CHECK(read_request(*make_request(new_key())));
    // Signed with its key, but with a subject: made by another tool, and no business of the scheduler's parsers.
    const std::string_view hex =
        "3081c7306f020100300d310b300906035504030c0268313059301306072a8648ce3d020106082a8648ce3d03010703420004ac06"
        "cc27156a6d51f07a750a64ad5796ccb6debea662337e7ceab47b140ce947465c55a8eeafa220162a099a907c36e7d0d541e647a6"
        "bcae397acfcfeb8d8d4da000300a06082a8648ce3d0403020348003045022100f8092af12faad6cfaa517664306b95ce8eb436b1"
        "0b4de1cc22ce4d93f0dd0827022007716b0f16b5125d5d7239a003c7e096db53ae2690c3f68f51bf8b516b1d642d";
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::string der;
    for (std::size_t i = 0; i < hex.size(); i += 2)
        der.push_back(static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1])));
    const auto read = read_request(der);
    REQUIRE_FALSE(read);
    CHECK(read.status().text.find("it is not a request") == 0);
}

TEST_CASE("names that are none are not certified") {
    Pool pool;
    for (const std::string &name :
         {std::string(), std::string("a/b"), std::string("../x"), std::string("-x"), std::string("a b"),
          std::string("h1,DNS:x"), std::string("h\0x", 3), std::string(limits::name_bytes + 1, 'n')})
        CHECK_FALSE(issue(pool.authority, pool.public_key, Role::grain_server, name, now));
    CHECK(issue(pool.authority, pool.public_key, Role::grain_server, std::string(limits::name_bytes, 'n'), now));
}

TEST_CASE("PEM and back") {
    Pool pool;
    CHECK(*key_from_pem(key_to_pem(pool.key)) == pool.key);
    CHECK(*certificate_from_pem(certificate_to_pem(pool.der())) != "");
    const std::string der = pool.der();
    CHECK(*certificate_from_pem(certificate_to_pem(der)) == der);
    CHECK_FALSE(key_from_pem("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"));
    CHECK_FALSE(certificate_from_pem("nothing"));
}

TEST_CASE("a hash in words") {
    TokenHash hash{};
    CHECK(in_words(hash) == "babab-babab-babab-babab-babab-babab");
    // The published example of this way of writing: 127.0.0.1 is lusab-babad.
    hash[0] = 127;
    hash[3] = 1;
    CHECK(in_words(hash) == "lusab-babad-babab-babab-babab-babab");
    hash[11] = 1;
    CHECK(in_words(hash) == "lusab-babad-babab-babab-babab-babad");
    hash[12] = 1;
    CHECK(in_words(hash) == "lusab-babad-babab-babab-babab-babad");
}

TEST_CASE("a control program is named by user, host and ident") {
    const Pool pool;
    const std::string key = *public_key_of(new_key()), longest(64, 'a');
    for (const std::string &name : {std::string("ann/desk1/find"), longest + "/" + longest + "/" + longest}) {
        const auto der = issue(pool.authority, key, Role::program, name, now);
        REQUIRE(der);
        const auto c = read_certificate(*der);
        REQUIRE(c);
        CHECK(c->role == Role::program);
        CHECK(c->name == name);
        CHECK(name_of(*program_name(c->name)) == name);
        CHECK(verify(*c, pool.authority.certificate, Role::program, name, now));
        CHECK(verify(*c, pool.authority.certificate, Role::client, "", now).check == Check::wrong_role);
    }
    for (const char *name :
         {"ann", "ann/desk1", "ann/desk1/", "/desk1/x", "ann//x", "ann/desk1/x/y", "ann/../x", "a b/d/x"})
        CHECK_FALSE(issue(pool.authority, key, Role::program, name, now));
    CHECK_FALSE(issue(pool.authority, key, Role::client, "ann/desk1/x", now));
    CHECK(hash_of_public_key(key));
    CHECK_FALSE(hash_of_public_key(key + "x"));
    CHECK_FALSE(hash_of_public_key(key.substr(1)));
    CHECK_FALSE(hash_of_public_key(""));
}
