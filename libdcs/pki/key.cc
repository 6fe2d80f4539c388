#include "pki/key.h"

#include <cstring>

#include <openssl/ec.h>
#include <openssl/pem.h>

#include "base/limits.h"
#include "pki/openssl_types.h"

namespace dcs::pki {
namespace {

bool on_p256(const EVP_PKEY *key) {
    char group[32] = "";
    return key != nullptr && EVP_PKEY_is_a(key, "EC") == 1 &&
           EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) == 1 && std::strcmp(group, "prime256v1") == 0;
}

KeyPtr ec_key(std::string_view der) {
    KeyPtr key(from_der<EVP_PKEY>(der, d2i_AutoPrivateKey));
    return on_p256(key.get()) ? std::move(key) : nullptr;
}

std::string pkcs8(const EVP_PKEY *key) {
    std::unique_ptr<PKCS8_PRIV_KEY_INFO, Release<PKCS8_PRIV_KEY_INFO_free>> info(EVP_PKEY2PKCS8(key));
    DCS_REQUIRE(info != nullptr, "a valid key can be encoded");
    return to_der(info.get(), i2d_PKCS8_PRIV_KEY_INFO);
}

std::string public_der(const EVP_PKEY *key) { return to_der(key, i2d_PUBKEY); }

}  // namespace

std::string new_key() {
    KeyPtr key(EVP_EC_gen("P-256"));
    DCS_REQUIRE(key != nullptr, "libcrypto generates a key");
    return pkcs8(key.get());
}

Result<std::string> public_key_of(std::string_view key) {
    const KeyPtr parsed = ec_key(key);
    if (!parsed) return fail(Code::invalid, "it is not a private key on the curve P-256");
    return public_der(parsed.get());
}

std::string key_to_pem(std::string_view key) {
    const KeyPtr parsed = ec_key(key);
    DCS_REQUIRE(parsed != nullptr, "the key is valid");
    const BioPtr out(BIO_new(BIO_s_mem()));
    DCS_REQUIRE(PEM_write_bio_PKCS8PrivateKey(out.get(), parsed.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
                "a valid key can be encoded");
    char *bytes = nullptr;
    const long size = BIO_get_mem_data(out.get(), &bytes);
    return std::string(bytes, static_cast<std::size_t>(size));
}

Result<std::string> key_from_pem(std::string_view pem) {
    const BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    const auto no_password = [](char *, int, int, void *) { return 0; };
    const KeyPtr key(PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr));
    ERR_clear_error();
    if (!on_p256(key.get())) return fail(Code::invalid, "it holds no private key on the curve P-256");
    return pkcs8(key.get());
}

Result<KeyHash> hash_of_public_key(std::string_view der) {
    const KeyPtr key(from_der<EVP_PKEY>(der, d2i_PUBKEY));
    ERR_clear_error();
    if (!on_p256(key.get()) || public_der(key.get()) != der)
        return fail(Code::invalid, "it is not a public key on the curve P-256");
    return sha256(der);
}

Result<std::string> make_request(std::string_view key) {
    const KeyPtr parsed = ec_key(key);
    if (!parsed) return fail(Code::invalid, "it is not a private key on the curve P-256");
    const RequestPtr request(X509_REQ_new());
    const bool made = request && X509_REQ_set_version(request.get(), 0) == 1 &&
                      X509_REQ_set_pubkey(request.get(), parsed.get()) == 1 &&
                      X509_REQ_sign(request.get(), parsed.get(), EVP_sha256()) > 0;
    DCS_REQUIRE(made, "libcrypto signs a request");
    return to_der(request.get(), i2d_X509_REQ);
}

Result<Request> read_request(std::string_view der) {
    if (der.size() > limits::certificate_bytes)
        return fail(Code::invalid, "the request for a certificate is longer than " +
                                       std::to_string(limits::certificate_bytes) + " bytes");
    const RequestPtr request(from_der<X509_REQ>(der, d2i_X509_REQ));
    EVP_PKEY *key = request ? X509_REQ_get0_pubkey(request.get()) : nullptr;
    ERR_clear_error();
    if (!on_p256(key)) return fail(Code::invalid, "it is not a request for a certificate of a key on the curve P-256");
    const bool signed_by_it = X509_REQ_verify(request.get(), key) == 1;
    ERR_clear_error();
    if (!signed_by_it) return fail(Code::invalid, "the request for a certificate is not signed with its own key");
    Request read{public_der(key), {}};
    read.hash = sha256(read.public_key);
    return read;
}

}  // namespace dcs::pki
