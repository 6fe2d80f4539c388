#include "access.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "commands/dcs/frame/table.h"
#include "net/socket_calls.h"
#include "pki/authority.h"
#include "pki/openssl_types.h"

namespace dcs::commands::page {
namespace {

constexpr std::size_t file_bytes = 64 << 10, token_bytes = 20, least_token = 20, most_token = 256;
constexpr std::int64_t life_s = 10 * 365 * pki::day_s;
constexpr const char *certificate_name = "certificate.pem", *key_name = "key.pem", *token_name = "token";

using NamesPtr = std::unique_ptr<GENERAL_NAMES, pki::Release<GENERAL_NAMES_free>>;

pki::X509Ptr first_certificate(const std::string &pem) {
    const pki::BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    return pki::X509Ptr(in ? PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr) : nullptr);
}

std::string names_of_this_host(const std::string &address) {
    std::vector<std::string> names = {"DNS:localhost", "IP:127.0.0.1"};
    const auto add = [&](const std::string &kind, const std::string &name) {
        if (std::find(names.begin(), names.end(), kind + name) == names.end()) names.push_back(kind + name);
    };
    char name[256] = "";
    if (::gethostname(name, sizeof name - 1) == 0 && is_name(name)) {
        add("DNS:", name);
        addrinfo hints = {}, *found = nullptr;
        hints.ai_flags = AI_CANONNAME;
        if (::getaddrinfo(name, nullptr, &hints, &found) == 0) {
            if (found->ai_canonname != nullptr && is_name(found->ai_canonname)) add("DNS:", found->ai_canonname);
            ::freeaddrinfo(found);
        }
    }
    if (address != "0.0.0.0" && address != "::") add("IP:", address);
    return joined(names, ",");
}

Result<std::string> read_one(const std::string &directory, const char *name, bool secret) {
    const std::string path = directory + "/" + name;
    const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file) return fail_errno(errno == ENOENT ? Code::not_found : Code::io_error, path, errno);
    struct stat st = {};
    if (::fstat(file.get(), &st) != 0) return fail_errno(Code::io_error, path, errno);
    if (!S_ISREG(st.st_mode)) return fail(Code::refused, path + " is not a file");
    if (secret && (st.st_mode & 077) != 0)
        return fail(Code::refused,
                    path + " can be read by other users: make a new one, or if it was not read, chmod 600");
    auto bytes = read_open(file.get(), path, file_bytes, false);
    return bytes.status().code == Code::limit ? fail(Code::invalid, path + " is too long") : bytes;
}

Status make_missing(const std::string &directory, const std::string &address) {
    if (Status s = make_directories(directory); !s) return s;
    const bool certificate = file_exists(AT_FDCWD, directory + "/" + certificate_name);
    const bool key = file_exists(AT_FDCWD, directory + "/" + key_name);
    if (certificate != key)
        return fail(Code::invalid, directory + " has only one of " + certificate_name + " and " + key_name +
                                       ": add the other one, or remove it to have both made");
    if (!certificate) {
        const std::string pair = pki::new_key();
        if (Status s = replace_durably(AT_FDCWD, directory + "/" + key_name, pki::key_to_pem(pair)); !s) return s;
        // Its readers get it as a file, or accept it once.
        const std::string der =
            pki::self_signed(pair, "dcs page", names_of_this_host(address), std::time(nullptr), life_s);
        const std::string made = pki::certificate_to_pem(der);
        if (Status s = replace_durably(AT_FDCWD, directory + "/" + certificate_name, made); !s) return s;
    }
    if (file_exists(AT_FDCWD, directory + "/" + token_name)) return Status::ok();
    unsigned char random[token_bytes];
    DCS_REQUIRE(RAND_bytes(random, sizeof random) == 1, "the kernel provides random bytes");
    const std::string_view bytes(reinterpret_cast<const char *>(random), sizeof random);
    return replace_durably(AT_FDCWD, directory + "/" + token_name, hex_of(bytes) + "\n");
}

double end_of(const X509 *x) {
    std::tm parts = {};
    return ASN1_TIME_to_tm(X509_get0_notAfter(x), &parts) == 1 ? static_cast<double>(::timegm(&parts)) : 0;
}

std::string names_in(X509 *x) {
    const NamesPtr all(static_cast<GENERAL_NAMES *>(X509_get_ext_d2i(x, NID_subject_alt_name, nullptr, nullptr)));
    std::string text;
    for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all.get(), i);
        if (name->type != GEN_DNS) continue;
        text += (text.empty() ? "" : ", ") +
                std::string(reinterpret_cast<const char *>(ASN1_STRING_get0_data(name->d.dNSName)),
                            static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    }
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.empty() || text.size() % 4 != 0 || text.size() > 1024) return {};
    std::string bytes(text.size() / 4 * 3, '\0');
    const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char *>(bytes.data()),
                                  reinterpret_cast<const unsigned char *>(text.data()), static_cast<int>(text.size()));
    if (n < 0) return {};
    const std::size_t padding = text.back() != '=' ? 0 : text[text.size() - 2] != '=' ? 1 : 2;
    bytes.resize(static_cast<std::size_t>(n) - padding);
    return bytes;
}

bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool takes_scheme(std::string_view &field, std::string_view scheme) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    if (field.size() <= scheme.size() || field[scheme.size()] != ' ') return false;
    for (std::size_t i = 0; i < scheme.size(); ++i)
        if (lower(field[i]) != scheme[i]) return false;
    field.remove_prefix(std::min(field.find_first_not_of(' ', scheme.size()), field.size()));
    return true;
}

constexpr std::uint8_t established = 1;  // TCP_ESTABLISHED of the kernel

struct Question {
    nlmsghdr head = {};
    inet_diag_req_v2 what = {};
};

// A socket that was closed has no owner any more, and is reported as root's: only open ones count.
Result<std::uint32_t> owner_in(const char *answer, std::size_t length) {
    nlmsghdr head = {};
    inet_diag_msg socket = {};
    if (length < sizeof head) return fail(Code::protocol, "the kernel's answer is too short");
    std::memcpy(&head, answer, sizeof head);
    if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || length < NLMSG_LENGTH(sizeof socket))
        return fail(Code::not_found, "the peer is not a socket of this host");
    std::memcpy(&socket, answer + NLMSG_HDRLEN, sizeof socket);
    if (socket.idiag_state != established || socket.idiag_inode == 0)
        return fail(Code::not_found, "the peer has closed its socket");
    return socket.idiag_uid;
}

Result<std::uint32_t> owner_of(const sockaddr_in &own, const sockaddr_in &peer) {
    const Fd kernel(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (!kernel) return fail_errno(Code::io_error, "a socket to the kernel", errno);
    Question question;
    question.head.nlmsg_len = sizeof question;
    question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.head.nlmsg_flags = NLM_F_REQUEST;
    question.what.sdiag_family = AF_INET;
    question.what.sdiag_protocol = IPPROTO_TCP;
    question.what.idiag_states = 1u << established;
    // As the peer's socket has it: its own end first.
    question.what.id.idiag_sport = peer.sin_port;
    question.what.id.idiag_dport = own.sin_port;
    question.what.id.idiag_src[0] = peer.sin_addr.s_addr;
    question.what.id.idiag_dst[0] = own.sin_addr.s_addr;
    question.what.id.idiag_cookie[0] = question.what.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (::send(kernel.get(), &question, sizeof question, 0) < 0)
        return fail_errno(Code::io_error, "cannot ask the kernel", errno);
    char answer[4096];
    const ssize_t n = ::recv(kernel.get(), answer, sizeof answer, 0);
    if (n < 0) return fail_errno(Code::io_error, "the kernel's answer", errno);
    return owner_in(answer, static_cast<std::size_t>(n));
}

}  // namespace

bool Access::is_named(std::string_view host) const {
    const pki::X509Ptr x = first_certificate(certificate);
    const auto at = net::parse_address(host);
    return x && at &&
           (X509_check_ip_asc(x.get(), at->host.c_str(), 0) == 1 ||
            X509_check_host(x.get(), at->host.data(), at->host.size(), 0, nullptr) == 1);
}

bool Access::admits(std::string_view authorization) const {
    if (takes_scheme(authorization, "bearer")) return same(authorization, token);
    if (!takes_scheme(authorization, "basic")) return false;
    const auto pair = from_base64(authorization);
    const std::size_t colon = pair ? pair->find(':') : std::string::npos;
    return colon != std::string::npos && same(std::string_view(*pair).substr(colon + 1), token);
}

Result<Access> access_in(const std::string &directory, const std::string &address) {
    if (Status s = make_missing(directory, address); !s) return s;
    Access access;
    auto certificate = read_one(directory, certificate_name, false);
    auto key = read_one(directory, key_name, true), token = read_one(directory, token_name, true);
    for (const auto *each : {&certificate, &key, &token})
        if (!*each) return each->status();
    const std::string where = directory + "/";
    const pki::X509Ptr x = first_certificate(*certificate);
    const pki::BioPtr in(BIO_new_mem_buf(key->data(), static_cast<int>(key->size())));
    const pki::KeyPtr pair(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, const_cast<char *>("")));
    ERR_clear_error();
    if (!x) return fail(Code::invalid, where + certificate_name + " has no certificate in PEM form");
    if (!pair) return fail(Code::invalid, where + key_name + " has no key in PEM form, or one with a password");
    if (X509_check_private_key(x.get(), pair.get()) != 1)
        return fail(Code::invalid, where + key_name + " is not the key of " + certificate_name);
    const double end_s = end_of(x.get());
    if (end_s < static_cast<double>(std::time(nullptr)))
        return fail(Code::invalid, where + certificate_name + " has expired: replace it, or remove it and " + key_name +
                                       " to have new ones made");
    while (!token->empty() && (token->back() == '\n' || token->back() == '\r')) token->pop_back();
    if (token->size() < least_token || token->size() > most_token ||
        !std::all_of(token->begin(), token->end(), [](char c) { return c > ' ' && c < 127 && c != ':'; }))
        return fail(Code::invalid, where + token_name + ": a token has " + std::to_string(least_token) + " to " +
                                       std::to_string(most_token) +
                                       " characters without blanks and colons; remove the file to have one made");
    return Access{std::move(*certificate), std::move(*key), std::move(*token), end_s, names_in(x.get())};
}

Result<std::uint32_t> uid_of_peer(int socket) {
    sockaddr_storage own = {}, peer = {};
    socklen_t length = sizeof own;
    if (::getsockname(socket, reinterpret_cast<sockaddr *>(&own), &length) != 0)
        return fail_errno(Code::io_error, "the socket's name", errno);
    if (own.ss_family == AF_UNIX) {
        ucred credentials = {};
        length = sizeof credentials;
        if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
            return fail_errno(Code::io_error, "the peer of a socket", errno);
        return static_cast<std::uint32_t>(credentials.uid);
    }
    length = sizeof peer;
    if (own.ss_family != AF_INET || ::getpeername(socket, reinterpret_cast<sockaddr *>(&peer), &length) != 0)
        return fail(Code::not_found, "the peer has closed its socket");
    sockaddr_in own_address = {}, peer_address = {};
    std::memcpy(&own_address, &own, sizeof own_address);
    std::memcpy(&peer_address, &peer, sizeof peer_address);
    return owner_of(own_address, peer_address);
}

}  // namespace dcs::commands::page
