#include "pki/authority.h"

#include <ctime>

#include <openssl/rand.h>

#include "base/hex.h"
#include "pki/openssl_types.h"

namespace dcs::pki {
namespace {

constexpr int serial_bytes = 16;

bool add_extension(X509 *x, X509 *issuer, int which, const std::string &value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x, nullptr, nullptr, 0);
    std::unique_ptr<X509_EXTENSION, Release<X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str()));
    return extension && X509_add_ext(x, extension.get(), -1) == 1;
}

// Serial numbers are random, so that no state is needed to keep them unique.
bool set_serial(X509 *x) {
    unsigned char bytes[serial_bytes];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
    bytes[0] &= 0x7f;
    bytes[0] |= 0x40;
    std::unique_ptr<BIGNUM, Release<BN_free>> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
    return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x)) != nullptr;
}

bool set_times(X509 *x, std::int64_t from_s, std::int64_t to_s) {
    return ASN1_TIME_set(X509_getm_notBefore(x), static_cast<std::time_t>(from_s)) != nullptr &&
           ASN1_TIME_set(X509_getm_notAfter(x), static_cast<std::time_t>(to_s)) != nullptr;
}

// For people who use another tool; DCS evaluates the URI only.
bool set_name(X509_NAME *name, const std::string &unit, const std::string &common) {
    const auto add = [name](const char *field, const std::string &value) {
        return X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC,
                                          reinterpret_cast<const unsigned char *>(value.c_str()), -1, -1, 0) == 1;
    };
    return add("O", "DCS") && add("OU", unit) && add("CN", common);
}

bool add_usage(X509 *x, X509 *issuer, Role role) {
    if (role == Role::authority)
        return add_extension(x, issuer, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
               add_extension(x, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    return add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
           add_extension(x, issuer, NID_ext_key_usage,
                         role == Role::scheduler ? "critical,serverAuth"
                         : role == Role::backup  ? "critical,serverAuth,clientAuth"
                                                 : "critical,clientAuth");
}

// Fills in and signs `x`; `issuer` may be `x`.
void complete(X509 *x, X509 *issuer, EVP_PKEY *public_key, EVP_PKEY *signer, Role role, const std::string &name,
              std::int64_t from_s, std::int64_t to_s) {
    const std::string uri = subject_uri(role, name);
    const std::string unit = uri.substr(4, uri.find('/') - 4);
    const bool good = X509_set_version(x, 2) == 1 && set_serial(x) && set_times(x, from_s, to_s) &&
                      set_name(X509_get_subject_name(x), unit, name.substr(0, name.find('/'))) &&
                      X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 &&
                      X509_set_pubkey(x, public_key) == 1 && add_usage(x, issuer, role) &&
                      add_extension(x, issuer, NID_subject_alt_name, "URI:" + uri) &&
                      X509_sign(x, signer, EVP_sha256()) > 0;
    DCS_REQUIRE(good, "libcrypto issues a certificate");
}

KeyPtr private_key(std::string_view der) { return KeyPtr(from_der<EVP_PKEY>(der, d2i_AutoPrivateKey)); }

}  // namespace

Authority make_authority(std::int64_t now_s) {
    Authority authority;
    authority.key = new_key();
    const KeyPtr key = private_key(authority.key);
    const X509Ptr x(X509_new());
    // A unique name, so that other tools can distinguish the authorities of two pools.
    const std::string name = in_words(random_token()).substr(0, 11);
    complete(x.get(), x.get(), key.get(), key.get(), Role::authority, name, now_s - backdated_s,
             now_s + authority_life_s);
    auto read = read_certificate(to_der(x.get(), i2d_X509));
    DCS_REQUIRE(bool(read), "a new certificate can be read");
    authority.certificate = std::move(*read);
    return authority;
}

Result<std::string> issue(const Authority &authority, std::string_view public_key, Role role, const std::string &name,
                          std::int64_t now_s, std::int64_t life_s) {
    if (!good_subject(role, name)) return fail(Code::invalid, "\"" + name + "\" cannot be the name of a host");
    const KeyPtr subject_key(from_der<EVP_PKEY>(public_key, d2i_PUBKEY));
    if (!subject_key) return fail(Code::invalid, "it is not a public key");
    const KeyPtr signer = private_key(authority.key);
    const X509Ptr issuer(from_der<X509>(authority.certificate.der, d2i_X509));
    DCS_REQUIRE(signer && issuer, "the authority has a key and a certificate");
    const X509Ptr x(X509_new());
    complete(x.get(), issuer.get(), subject_key.get(), signer.get(), role, name, now_s - backdated_s,
             std::min(now_s + life_s, authority.certificate.not_after_s));
    return to_der(x.get(), i2d_X509);
}

bool in_time(const Certificate &certificate, std::int64_t now_s) {
    return certificate.not_before_s <= now_s && now_s <= certificate.not_after_s;
}

bool wants_renewal(const Certificate &certificate, std::int64_t now_s) {
    const std::int64_t life = certificate.not_after_s - certificate.not_before_s;
    return now_s < certificate.not_before_s || certificate.not_after_s - now_s < life / 3;
}

}  // namespace dcs::pki
