#include "pki/authority.h"

#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/files.h"
#include "base/text.h"
#include "base/limits.h"
#include "pki/openssl_types.h"

namespace dcs::pki {
namespace {

constexpr int serial_bytes = 16;

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
    return (unit.empty() || (add("O", "DCS") && add("OU", unit))) && add("CN", common);
}

bool add_usage(X509 *x, X509 *issuer, Role role) {
    if (role == Role::authority)
        return add_extension(x, issuer, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
               add_extension(x, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    return add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
           add_extension(x, issuer, NID_ext_key_usage,
                         role == Role::none        ? "serverAuth"
                         : role == Role::scheduler ? "critical,serverAuth"
                         : role == Role::backup    ? "critical,serverAuth,clientAuth"
                                                   : "critical,clientAuth");
}

// Fills in and signs `x`; `issuer` may be `x`. With `names` it is for no party of a pool.
void complete(X509 *x, X509 *issuer, EVP_PKEY *public_key, EVP_PKEY *signer, Role role, const std::string &name,
              std::int64_t from_s, std::int64_t to_s, const std::string &names = "") {
    const std::string uri = names.empty() ? subject_uri(role, name) : "";
    const std::string unit = uri.empty() ? "" : uri.substr(4, uri.find('/') - 4);
    const bool good = X509_set_version(x, 2) == 1 && set_serial(x) && set_times(x, from_s, to_s) &&
                      set_name(X509_get_subject_name(x), unit, name.substr(0, name.find('/'))) &&
                      X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 &&
                      X509_set_pubkey(x, public_key) == 1 && add_usage(x, issuer, role) &&
                      add_extension(x, issuer, NID_subject_alt_name, uri.empty() ? names : "URI:" + uri) &&
                      X509_sign(x, signer, EVP_sha256()) > 0;
    DCS_REQUIRE(good, "libcrypto issues a certificate");
}

KeyPtr private_key(std::string_view der) { return KeyPtr(from_der<EVP_PKEY>(der, d2i_AutoPrivateKey)); }

constexpr const char *key_name = "key.pem", *next_key_name = "next-key.pem", *certificate_name = "certificate.pem",
                     *authority_name = "authority.pem", *authority_key_name = "authority-key.pem",
                     *unfinished_key_name = "authority-key.unfinished";
constexpr std::size_t file_bytes = 4 * limits::certificate_bytes;

// Writes a file that only its owner can ever read.
Status write_private(const std::string &directory, const char *name, std::string_view bytes) {
    const Status s = replace_durably(AT_FDCWD, directory + "/" + name, bytes);
    return s ? s : fail(s.code, "cannot write " + s.text);
}

using Readers = std::optional<std::uint32_t>;

// Refuses a private key that other users can read.
Status check_private(int fd, const std::string &path, Readers readers) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return fail_errno(Code::io_error, "cannot read " + path, errno);
    if (!S_ISREG(st.st_mode)) return fail(Code::refused, path + " is not a file");
    if (st.st_uid != ::geteuid() && st.st_uid != 0)
        return fail(Code::refused,
                    path + " belongs to uid " + std::to_string(st.st_uid) + ", not to the user of this program");
    const bool open_to_others = (st.st_mode & (readers && st.st_gid == *readers ? 037 : 077)) != 0;
    if (open_to_others && path.ends_with(authority_key_name))
        return fail(Code::refused, path +
                                       " can be read by other users, who could act as any host of the pool: if no "
                                       "other user has read it, chmod 600; otherwise remove all files of that "
                                       "directory, but not the directory, for a new authority, with which every host "
                                       "must join again");
    if (open_to_others)
        return fail(Code::refused, path +
                                       " can be read by other users, who could use this identity: remove it and join "
                                       "again, or, if no other user has read it, " +
                                       (readers ? "chgrp dcs-key and chmod 640" : "chmod 600"));
    return Status::ok();
}

Result<std::string> read_small(const std::string &directory, const char *name, bool secret, Readers readers = {}) {
    const std::string path = directory + "/" + name;
    const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) return fail_errno(errno == ENOENT ? Code::not_found : Code::io_error, "cannot read " + path, errno);
    if (secret)
        if (Status s = check_private(file.get(), path, readers); !s) return s;
    auto bytes = read_open(file.get(), "cannot read " + path, file_bytes, false);
    if (bytes.status().code == Code::limit) return fail(Code::invalid, path + " is too long");
    return bytes;
}

Result<std::string> read_key(const std::string &directory, const char *name, Readers readers = {}) {
    const auto pem = read_small(directory, name, true, readers);
    if (!pem) return pem.status();
    auto key = key_from_pem(*pem);
    if (!key) return fail(Code::invalid, directory + "/" + name + ": " + key.status().text);
    return key;
}

Result<Certificate> read_one(const std::string &directory, const char *name) {
    const auto pem = read_small(directory, name, false);
    if (!pem) return pem.status();
    const auto der = certificate_from_pem(*pem);
    auto certificate = der ? read_certificate(*der) : Result<Certificate>(der.status());
    if (!certificate) return fail(Code::invalid, directory + "/" + name + ": " + certificate.status().text);
    return certificate;
}

Status key_belongs(const std::string &directory, const std::string &key, const Certificate &certificate) {
    const auto public_key = public_key_of(key);
    if (public_key && sha256(*public_key) == certificate.key) return Status::ok();
    return fail(Code::invalid, directory + ": the private key does not belong to the certificate beside it");
}

// The key gets its name last, so a start that is interrupted leaves no authority.pem alone: that of a pool whose key is
// lost is kept.
Result<Authority> new_authority(const std::string &directory, std::int64_t now_s) {
    if (Status s = make_directories(directory); !s) return s;
    const Fd dir(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir) return file_error(directory, errno);
    struct stat st {};
    const auto is_there = [&](const char *name) { return ::fstatat(dir.get(), name, &st, AT_SYMLINK_NOFOLLOW) == 0; };
    if (is_there(authority_name) && !is_there(unfinished_key_name))
        return fail(Code::refused, directory + "/" + authority_key_name +
                                       " is missing, but authority.pem beside it is there: without this key the hosts "
                                       "that joined cannot be served; restore it from your copy of " +
                                       directory +
                                       ", or, for a new authority with which every host must join again, remove all "
                                       "files of that directory, but not the directory");
    Authority fresh = make_authority(now_s);
    if (Status s = write_private(directory, unfinished_key_name, key_to_pem(fresh.key)); !s) return s;
    if (Status s = write_private(directory, authority_name, certificate_to_pem(fresh.certificate.der)); !s) return s;
    if (::renameat(dir.get(), unfinished_key_name, dir.get(), authority_key_name) != 0 || ::fsync(dir.get()) != 0)
        return fail_errno(Code::io_error, "cannot write " + directory + "/" + authority_key_name, errno);
    return fresh;
}

}  // namespace

Authority make_authority(std::int64_t now_s) {
    Authority authority{.key = new_key()};
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

std::string self_signed(const std::string &key, const std::string &name, const std::string &names, std::int64_t now_s,
                        std::int64_t life_s) {
    const KeyPtr pair = private_key(key);
    const X509Ptr x(X509_new());
    complete(x.get(), x.get(), pair.get(), pair.get(), Role::none, name, now_s - backdated_s, now_s + life_s, names);
    return to_der(x.get(), i2d_X509);
}

bool in_time(const Certificate &certificate, std::int64_t now_s) {
    return certificate.not_before_s <= now_s && now_s <= certificate.not_after_s;
}

bool wants_renewal(const Certificate &certificate, std::int64_t now_s) {
    const std::int64_t life = certificate.not_after_s - certificate.not_before_s;
    return now_s < certificate.not_before_s || certificate.not_after_s - now_s < life / 3;
}

// ---- keys and certificates in files ----

Result<Identity> read_identity(const std::string &directory, Readers readers) {
    auto key = read_key(directory, key_name, readers);
    if (!key) return key.status();
    auto certificate = read_one(directory, certificate_name), authority = read_one(directory, authority_name);
    if (!certificate) return certificate.status();
    if (!authority) return authority.status();
    if (Status s = key_belongs(directory, *key, *certificate); !s) return s;
    return Identity{std::move(*key), std::move(*certificate), std::move(*authority)};
}

Result<Identity> with_next(Identity who, std::string_view certificate, Role role, std::int64_t now_s) {
    const std::string what = "the new certificate from the scheduler";
    auto fresh = read_certificate(certificate);
    if (!fresh) return fail(Code::protocol, what + ": " + fresh.status().text);
    const auto verdict = verify(*fresh, who.authority, role, who.certificate.name, now_s);
    if (!verdict) return fail(Code::protocol, what + ": " + verdict.text);
    if (fresh->name != who.certificate.name || fresh->key != who.certificate.key)
        return fail(Code::protocol, what + " is for another name or key");
    who.certificate = std::move(*fresh);
    return who;
}

Status write_identity(const std::string &directory, const Identity &identity) {
    if (Status s = make_directories(directory); !s) return s;
    if (Status s = write_private(directory, authority_name, certificate_to_pem(identity.authority.der)); !s) return s;
    if (Status s = write_private(directory, key_name, key_to_pem(identity.key)); !s) return s;
    return write_private(directory, certificate_name, certificate_to_pem(identity.certificate.der));
}

Status replace_certificate(const std::string &directory, const Certificate &certificate) {
    constexpr const char *next_name = "next.pem";
    const Fd dir(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat old {};
    if (!dir || ::fstatat(dir.get(), certificate_name, &old, AT_SYMLINK_NOFOLLOW) != 0)
        return fail_errno(Code::io_error, "cannot examine " + directory + "/" + certificate_name, errno);
    if (Status s = write_private(directory, next_name, certificate_to_pem(certificate.der)); !s) return s;
    struct stat next {};
    bool good = ::fstatat(dir.get(), next_name, &next, AT_SYMLINK_NOFOLLOW) == 0;
    // Daemons, which may do neither, share theirs with no group.
    if (good && next.st_gid != old.st_gid)
        good = ::fchownat(dir.get(), next_name, static_cast<uid_t>(-1), old.st_gid, AT_SYMLINK_NOFOLLOW) == 0;
    if (good && next.st_mode != old.st_mode) good = ::fchmodat(dir.get(), next_name, old.st_mode & 0777, 0) == 0;
    good = good && ::renameat(dir.get(), next_name, dir.get(), certificate_name) == 0 && ::fsync(dir.get()) == 0;
    return good ? Status::ok()
                : fail_errno(Code::io_error, "cannot write " + directory + "/" + certificate_name, errno);
}
Status share_identity(const std::string &directory, std::uint32_t readers) {
    const Fd dir(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    constexpr auto same = static_cast<uid_t>(-1);
    bool good = dir && ::fchown(dir.get(), same, readers) == 0 && ::fchmod(dir.get(), 0710) == 0;
    for (const char *name : {authority_name, key_name, certificate_name})
        good = good && ::fchownat(dir.get(), name, same, readers, AT_SYMLINK_NOFOLLOW) == 0 &&
               ::fchmodat(dir.get(), name, 0640, 0) == 0;
    return good ? Status::ok() : fail_errno(Code::io_error, "cannot share " + directory, errno);
}

namespace {
Result<std::string> made_once(const std::string &directory, const char *name, Readers readers) {
    if (Status s = make_directories(directory); !s) return s;
    auto known = read_key(directory, name, readers);
    if (known || known.status().code != Code::not_found) return known;
    std::string key = new_key();
    if (Status s = write_private(directory, name, key_to_pem(key)); !s) return s;
    return key;
}
}  // namespace

Result<std::string> key_in(const std::string &directory, Readers readers) {
    return made_once(directory, key_name, readers);
}

Result<std::string> next_key_in(const std::string &directory) { return made_once(directory, next_key_name, {}); }

void drop_next_key(const std::string &directory) { (void)::unlink((directory + "/" + next_key_name).c_str()); }

Result<Authority> authority_in(const std::string &directory, std::int64_t now_s) {
    auto key = read_key(directory, authority_key_name);
    if (!key && key.status().code != Code::not_found) return key.status();
    if (!key) return new_authority(directory, now_s);
    auto certificate = read_one(directory, authority_name);
    if (!certificate) return certificate.status();
    if (certificate->role != Role::authority)
        return fail(Code::invalid, directory + "/" + authority_name + " is not the certificate of an authority");
    if (Status s = key_belongs(directory, *key, *certificate); !s) return s;
    return Authority{std::move(*key), std::move(*certificate)};
}

}  // namespace dcs::pki
