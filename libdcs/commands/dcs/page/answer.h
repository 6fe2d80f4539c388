#pragma once
// What a request gets, without any socket.
#include <cstddef>
#include <string>
#include <utility>

#include "access.h"
#include "published.h"

namespace dcs::commands::page {

struct AskedFor {
    std::string method, target, host, accept, last_id, fetch_site, fetch_mode, authorization;
    std::size_t hosts = 1;  // Host fields
};

struct Answer {
    enum class Kind { text, detail, stream };  // detail: the collector has to be asked
    int status = 200;
    std::string type = html_type;
    Text body;
    Kind kind = Kind::text;
    std::string last_id;  // stream: what the browser has
};

// With every answer.
inline constexpr std::pair<const char *, const char *> fixed_fields[] = {
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
     "base-uri 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

// Instead, with a picture: its style is inside.
inline constexpr const char *picture_policy =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox";

Answer refusal(int status, const std::string &why);
// `own`: the peer is the user whom the page belongs to, or root. `published`: nullptr before the first look. `access`:
// of a page for other hosts, whose readers show its token instead.
Answer answer_to(const AskedFor &asked, const Published *published, bool own, bool metrics_for_all,
                 const Access *access = nullptr);
// Whether a Host field names this host's loopback. Other names are of sites that point their name here, so that
// their scripts may read what they could not otherwise.
bool is_loopback_host(std::string_view host);

}  // namespace dcs::commands::page
