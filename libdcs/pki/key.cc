#include "pki/key.h"

#include <cstring>
#include <optional>

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

// ---- what strangers send ----------------------------------------------------------------
// Of these two there is one form each. It is compared byte by byte, so that libcrypto's readers of ASN.1, and of
// requests, see nothing of a stranger's but a point and a signature of two numbers.

template <std::size_t n> constexpr std::string_view octets(const unsigned char (&bytes)[n]) {
    return {reinterpret_cast<const char *>(bytes), n};
}

// SubjectPublicKeyInfo of an uncompressed point on P-256, up to the point.
constexpr unsigned char key_begins[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
                                        0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                        0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};
constexpr std::size_t key_size = sizeof key_begins + 64;
// CertificationRequestInfo: version 0, no subject, the key, no attributes. Then: ecdsa-with-SHA256.
constexpr unsigned char info_begins[] = {0x30, 0x62, 0x02, 0x01, 0x00, 0x30, 0x00}, info_ends[] = {0xa0, 0x00};
constexpr unsigned char algorithm[] = {0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02};
constexpr std::size_t info_size = sizeof info_begins + key_size + sizeof info_ends;

KeyPtr known_form(std::string_view der) {
    if (der.size() != key_size || der.substr(0, sizeof key_begins) != octets(key_begins)) return nullptr;
    KeyPtr key(from_der<EVP_PKEY>(der, d2i_PUBKEY));
    ERR_clear_error();
    return on_p256(key.get()) ? std::move(key) : nullptr;
}

// Takes `tag`, a length of one byte, or of two where one would not do, and that many bytes off the front.
std::optional<std::string_view> take_value(std::string_view &in, unsigned char tag) {
    const auto at = [&](std::size_t i) { return i < in.size() ? static_cast<unsigned char>(in[i]) : 0u; };
    const bool two = at(1) == 0x81;
    const std::size_t head = two ? 3 : 2, length = two ? at(2) : at(1);
    if (in.size() < head + length || at(0) != tag || length > 0xff || (two ? length < 0x80 : length >= 0x80)) return {};
    const std::string_view value = in.substr(head, length);
    in.remove_prefix(head + length);
    return value;
}

// A positive number of at most 256 bits, without needless zeros.
bool take_number(std::string_view &in) {
    const auto number = take_value(in, 0x02);
    if (!number || number->empty() || number->size() > 33) return false;
    const auto first = static_cast<unsigned char>((*number)[0]);
    if (first >= 0x80 || (number->size() == 33 && first != 0)) return false;
    return first != 0 || (number->size() > 1 && static_cast<unsigned char>((*number)[1]) >= 0x80);
}

struct RequestForm {
    std::string_view signed_part, public_key, signature;
};

std::optional<RequestForm> form_of_request(std::string_view der) {
    const auto body = take_value(der, 0x30);
    if (!body || !der.empty() || body->size() < info_size + sizeof algorithm) return {};
    RequestForm form{body->substr(0, info_size), body->substr(sizeof info_begins, key_size), {}};
    if (form.signed_part.substr(0, sizeof info_begins) != octets(info_begins)) return {};
    if (form.signed_part.substr(info_size - sizeof info_ends) != octets(info_ends)) return {};
    std::string_view rest = body->substr(info_size);
    if (rest.substr(0, sizeof algorithm) != octets(algorithm)) return {};
    rest.remove_prefix(sizeof algorithm);
    const auto bits = take_value(rest, 0x03);
    if (!bits || !rest.empty() || bits->empty() || (*bits)[0] != 0) return {};
    form.signature = bits->substr(1);
    std::string_view pair = form.signature;
    auto numbers = take_value(pair, 0x30);
    if (!numbers || !pair.empty() || !take_number(*numbers) || !take_number(*numbers) || !numbers->empty()) return {};
    return form;
}

bool signed_with(EVP_PKEY *key, const RequestForm &form) {
    const std::unique_ptr<EVP_MD_CTX, Release<EVP_MD_CTX_free>> check(EVP_MD_CTX_new());
    const auto bytes = [](std::string_view text) { return reinterpret_cast<const unsigned char *>(text.data()); };
    const bool good = check && EVP_DigestVerifyInit(check.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
                      EVP_DigestVerify(check.get(), bytes(form.signature), form.signature.size(),
                                       bytes(form.signed_part), form.signed_part.size()) == 1;
    ERR_clear_error();
    return good;
}

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
    const KeyPtr key = known_form(der);
    if (!key || public_der(key.get()) != der) return fail(Code::invalid, "it is not a public key on the curve P-256");
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
    const std::optional<RequestForm> form = form_of_request(der);
    const KeyPtr key = form ? known_form(form->public_key) : nullptr;
    if (!key) return fail(Code::invalid, "it is not a request for a certificate of a key on the curve P-256");
    if (!signed_with(key.get(), *form))
        return fail(Code::invalid, "the request for a certificate is not signed with its own key");
    return Request{std::string(form->public_key), sha256(form->public_key)};
}

}  // namespace dcs::pki
