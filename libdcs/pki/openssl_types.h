#pragma once
// Owning pointers for OpenSSL's objects. For .cc files only: headers do not expose OpenSSL.
#include <memory>
#include <string>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace dcs::pki {

template <auto release> struct Release {
    template <class T> void operator()(T *object) const { release(object); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Release<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Release<X509_REQ_free>>;
using BioPtr = std::unique_ptr<BIO, Release<BIO_free_all>>;

// `object` as DER, by its i2d function.
template <class T, class ToDer> std::string to_der(const T *object, ToDer to) {
    unsigned char *bytes = nullptr;
    const int size = to(object, &bytes);
    std::string der;
    if (size > 0) der.assign(reinterpret_cast<char *>(bytes), static_cast<std::size_t>(size));
    OPENSSL_free(bytes);
    return der;
}

// Decodes all of `der` by a d2i function; null on failure.
template <class T, class FromDer> T *from_der(std::string_view der, FromDer from) {
    const auto *at = reinterpret_cast<const unsigned char *>(der.data());
    const auto *end = at + der.size();
    T *object = from(nullptr, &at, static_cast<long>(der.size()));
    if (object != nullptr && at == end) return object;
    ERR_clear_error();
    if constexpr (std::is_same_v<T, X509>) X509_free(object);
    else if constexpr (std::is_same_v<T, X509_REQ>) X509_REQ_free(object);
    else EVP_PKEY_free(object);
    return nullptr;
}

inline bool add_extension(X509 *x, X509 *issuer, int which, const std::string &value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, Release<X509_EXTENSION_free>> extension(
        X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str()));
    return extension && X509_add_ext(x, extension.get(), -1) == 1;
}

}  // namespace dcs::pki
