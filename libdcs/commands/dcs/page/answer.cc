#include "answer.h"

#include "assets.h"
#include "details.h"
#include "html.h"
#include "net/socket_calls.h"

namespace dcs::commands::page {
namespace {

Answer metrics(const AskedFor &asked, const Published &p) {
    const bool open = asked.accept.find("application/openmetrics-text") != std::string::npos;
    return {200,
            open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                 : "text/plain; version=0.0.4; charset=utf-8",
            open ? p.open_metrics : p.metrics};
}

}  // namespace

Answer refusal(int status, const std::string &why) {
    return {status, html_type, text_of(document("DCS", "<section><p>" + words(why) + "</p></section>\n"))};
}

bool is_loopback_host(std::string_view host) {
    const auto at = net::parse_address(host);
    return at && (at->host == "127.0.0.1" || at->host == "localhost" || at->host == "::1");
}

Answer answer_to(const AskedFor &asked, const Published *p, bool own, bool metrics_for_all, const Access *access) {
    if (asked.method != "GET" && asked.method != "HEAD") return refusal(405, "this page is read-only: use GET or HEAD");
    if (asked.hosts != 1 || !(access ? access->is_named(asked.host) : is_loopback_host(asked.host)))
        return refusal(421, "the name in the address must be " +
                                (access ? "one of the certificate: " + access->names : "localhost or 127.0.0.1"));
    // Another port of the same host is the same site, and may be another user's.
    const bool other_site = asked.fetch_site == "cross-site" || asked.fetch_site == "same-site";
    if (other_site && asked.fetch_mode != "navigate") return refusal(403, "this page is not for other sites");
    if (access && !access->admits(asked.authorization))
        return refusal(401, "this page asks for its token, as the password of any user name");
    const auto target = target_of(asked.target);
    const std::string path = asked.target.substr(0, asked.target.find('?'));
    if (!own && !(metrics_for_all && path == "/metrics"))
        return refusal(403, "this page belongs to another user of this host: start your own with dcs page");
    for (const Asset &asset : assets())
        if (path == asset.path) return {200, asset.type, text_of(std::string(asset.text))};
    if (!target) return refusal(404, "there is no such page");
    if (p == nullptr) return refusal(503, "the scheduler has not answered yet: try again");
    if (path == "/") return {200, html_type, p->first_page};
    if (path == "/metrics") return metrics(asked, *p);
    if (path == "/events") {
        Answer answer{200, "text/event-stream", nullptr, Answer::Kind::stream};
        answer.last_id = asked.last_id.empty() ? target->word("since") : asked.last_id;
        return answer;
    }
    if (is_detail(asked.target)) return {200, html_type, nullptr, Answer::Kind::detail};
    return refusal(404, "there is no such page");
}

}  // namespace dcs::commands::page
