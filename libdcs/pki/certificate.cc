#include "pki/certificate.h"

#include <ctime>

#include <openssl/pem.h>

#include "base/limits.h"
#include "base/text.h"
#include "pki/openssl_types.h"

namespace dcs::pki {
namespace {

// Reads role and name from the certificate's only alternative name.
bool take_subject(const X509 *x, Certificate &into) {
    std::unique_ptr<GENERAL_NAMES, Release<GENERAL_NAMES_free>> names(
        static_cast<GENERAL_NAMES *>(X509_get_ext_d2i(x, NID_subject_alt_name, nullptr, nullptr)));
    if (!names || sk_GENERAL_NAME_num(names.get()) != 1) return false;
    const GENERAL_NAME *only = sk_GENERAL_NAME_value(names.get(), 0);
    if (only->type != GEN_URI) return false;
    const auto *text = reinterpret_cast<const char *>(ASN1_STRING_get0_data(only->d.uniformResourceIdentifier));
    const std::string_view uri(text, static_cast<std::size_t>(ASN1_STRING_length(only->d.uniformResourceIdentifier)));
    std::optional<Subject> subject = subject_of(uri);
    if (!subject) return false;
    into.role = subject->role;
    into.name = std::move(subject->name);
    return true;
}

// The extended key usage of a role.
std::uint32_t usage_of(Role role) {
    switch (role) {
    case Role::scheduler: return XKU_SSL_SERVER;
    case Role::backup: return XKU_SSL_SERVER | XKU_SSL_CLIENT;
    case Role::grain_server:
    case Role::client:
    case Role::program: return XKU_SSL_CLIENT;
    case Role::none:
    case Role::authority: break;
    }
    return 0;
}

bool usage_fits(X509 *x, Role role) {
    const bool is_authority = X509_check_ca(x) == 1;
    if (role == Role::authority) return is_authority && (X509_get_key_usage(x) & X509v3_KU_KEY_CERT_SIGN) != 0;
    return !is_authority && X509_get_extended_key_usage(x) == usage_of(role);
}

bool take_time(const ASN1_TIME *time, std::int64_t &into) {
    std::tm parts{};
    if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return false;
    into = ::timegm(&parts);
    return true;
}

std::string serial_of(const X509 *x) {
    std::unique_ptr<BIGNUM, Release<BN_free>> number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), nullptr));
    if (!number) return {};
    char *hex = BN_bn2hex(number.get());
    std::string text = hex != nullptr ? hex : "";
    OPENSSL_free(hex);
    return text;
}

std::string day(std::int64_t wall_s) {
    const std::time_t at = static_cast<std::time_t>(wall_s);
    std::tm parts{};
    char text[40];
    if (::gmtime_r(&at, &parts) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts) == 0)
        return "?";
    return text;
}

bool issued_by(const Certificate &certificate, const Certificate &authority) {
    const X509Ptr x(from_der<X509>(certificate.der, d2i_X509)), issuer(from_der<X509>(authority.der, d2i_X509));
    if (!x || !issuer || authority.role != Role::authority) return false;
    const bool good = X509_NAME_cmp(X509_get_issuer_name(x.get()), X509_get_subject_name(issuer.get())) == 0 &&
                      X509_verify(x.get(), X509_get0_pubkey(issuer.get())) == 1;
    ERR_clear_error();
    return good;
}

constexpr std::string_view scheme = "dcs:";
struct RoleWord {
    Role role;
    const char *word, *said;
};
constexpr RoleWord roles[] = {
    {Role::authority, "authority", "a pool's authority"},  {Role::scheduler, "scheduler", "a scheduler"},
    {Role::grain_server, "grainserver", "a grain server"}, {Role::client, "client", "a host of control programs"},
    {Role::program, "program", "a control program"},       {Role::backup, "backup", "a passive backup"}};

}  // namespace

Result<Certificate> read_certificate(std::string_view der) {
    if (der.size() > limits::certificate_bytes)
        return fail(Code::invalid, "it is longer than " + std::to_string(limits::certificate_bytes) + " bytes");
    const X509Ptr x(from_der<X509>(der, d2i_X509));
    if (!x) return fail(Code::invalid, "it is not a certificate, or it is damaged");
    Certificate c{.der = std::string(der)};
    const bool whole = take_subject(x.get(), c) && take_time(X509_get0_notBefore(x.get()), c.not_before_s) &&
                       take_time(X509_get0_notAfter(x.get()), c.not_after_s);
    ERR_clear_error();
    if (!whole) return fail(Code::invalid, "it does not have a role and a name, as certificates of a pool do");
    if (!usage_fits(x.get(), c.role))
        return fail(Code::invalid, std::string("its key usage is not that of ") + name_of(c.role));
    c.serial = serial_of(x.get());
    c.key = sha256(to_der(X509_get_X509_PUBKEY(x.get()), i2d_X509_PUBKEY));
    c.fingerprint = sha256(der);
    return c;
}

std::string certificate_to_pem(std::string_view der) {
    const X509Ptr x(from_der<X509>(der, d2i_X509));
    const BioPtr out(BIO_new(BIO_s_mem()));
    DCS_REQUIRE(x && PEM_write_bio_X509(out.get(), x.get()) == 1, "a certificate can be encoded");
    char *bytes = nullptr;
    const long size = BIO_get_mem_data(out.get(), &bytes);
    return std::string(bytes, static_cast<std::size_t>(size));
}

Result<std::string> certificate_from_pem(std::string_view pem) {
    const BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    const X509Ptr x(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
    ERR_clear_error();
    if (!x) return fail(Code::invalid, "it contains no certificate");
    return to_der(x.get(), i2d_X509);
}

Verification verify(const Certificate &certificate, const Certificate &authority, Role role, const std::string &name,
                    std::int64_t now_s) {
    const std::string whose = "the certificate of " + certificate.name;
    if (!issued_by(certificate, authority))
        return {Check::unknown_authority, whose + " was issued by another authority than this pool's"};
    for (const Certificate *c : {&certificate, &authority}) {
        const std::string which = c == &authority ? "the certificate of the pool's authority" : whose;
        if (now_s < c->not_before_s)
            return {Check::not_yet_valid, which + " is not valid before " + day(c->not_before_s) +
                                              ": is the clock of this host, or of its issuer, wrong?"};
        if (now_s > c->not_after_s)
            return {Check::expired,
                    which + " expired on " + day(c->not_after_s) + " (the clock of this host says " + day(now_s) + ")"};
    }
    if (certificate.role != role)
        return {Check::wrong_role, whose + " is for " + name_of(certificate.role) + ", not for " + name_of(role)};
    if (!name.empty() && certificate.name != name)
        return {Check::wrong_name, "the certificate is of " + certificate.name + ", not of " + name};
    return {};
}

Verification verify(std::string_view der, const Certificate &authority, Role role, const std::string &name,
                    std::int64_t now_s) {
    const auto certificate = read_certificate(der);
    if (!certificate) return {Check::malformed, "it is not a certificate of a pool: " + certificate.status().text};
    return verify(*certificate, authority, role, name, now_s);
}

const char *name_of(Role role) {
    for (const RoleWord &r : roles)
        if (r.role == role) return r.said;
    return "nobody";
}

std::string subject_uri(Role role, const std::string &name) {
    for (const RoleWord &r : roles)
        if (r.role == role) return std::string(scheme) + r.word + "/" + name;
    return {};
}

std::optional<ProgramName> program_name(const std::string &name) {
    const std::size_t first = name.find('/'), second = name.find('/', first + 1);
    if (first == std::string::npos || second == std::string::npos) return std::nullopt;
    ProgramName parts{name.substr(0, first), name.substr(first + 1, second - first - 1), name.substr(second + 1)};
    const bool good = is_name(parts.user) && is_name(parts.host) && is_name(parts.ident);
    return good ? std::optional(parts) : std::nullopt;
}

std::string name_of(const ProgramName &program) { return program.user + "/" + program.host + "/" + program.ident; }

bool good_subject(Role role, const std::string &name) {
    return role == Role::program ? program_name(name).has_value() : is_name(name);
}

std::optional<Subject> subject_of(std::string_view uri) {
    const std::size_t slash = uri.find('/');
    if (uri.substr(0, scheme.size()) != scheme || slash == std::string_view::npos) return std::nullopt;
    const std::string_view word = uri.substr(scheme.size(), slash - scheme.size());
    for (const RoleWord &r : roles)
        if (word == r.word && good_subject(r.role, std::string(uri.substr(slash + 1))))
            return Subject{r.role, std::string(uri.substr(slash + 1))};
    return std::nullopt;
}

}  // namespace dcs::pki
