// dcs host renew: a host of control programs gets its next certificate. Daemons renew their own.
#include <cerrno>
#include <cstdio>

#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "client_host.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/table.h"
#include "net/socket_calls.h"
#include "pki/authority.h"
#include "pki/key.h"

namespace dcs::commands {
namespace {

int tell(const Call &call, const pki::Certificate &certificate, bool renewed) {
    const std::string &name = certificate.name, until = time_text(static_cast<double>(certificate.not_after_s));
    JsonObject json;
    json.add("name", name).add("serial", certificate.serial).add("renewed", renewed);
    json.add("expires", certificate.not_after_s);
    return print_as_asked(call, JsonObject("dcs.host.renew/1").add_raw("host", json.text()), name,
                          renewed ? "host " + name + " has a new certificate, valid until " + until
                                  : "the certificate of host " + name + " is valid until " + until +
                                        "; it is renewed when a third of its time is left");
}

Result<pki::Identity> ask_for_next(const std::string &scheduler, const pki::Identity &who) {
    const auto addresses = net::parse_tcp_addresses(scheduler);
    if (!addresses) return addresses.status();
    auto request = pki::make_request(who.key);
    if (!request) return request.status();
    net::TlsTrust trust{.authority = who.authority.der};
    const auto answer = ask_scheduler(*addresses, {who.key, who.certificate.der, who.authority.der}, trust,
                                      wire::RenewCertificate{std::move(*request)});
    if (!answer) return answer.status();
    if (const auto *error = std::get_if<wire::ErrorReply>(&*answer))
        return fail(static_cast<Code>(error->code), error->text);
    const auto *renewed = std::get_if<wire::Renewed>(&*answer);
    if (renewed == nullptr) return fail(Code::protocol, "the scheduler sent an unexpected kind of answer");
    return pki::with_next(who, renewed->certificate, pki::Role::client, wall_clock_s());
}

int renew(const Call &call) {
    const auto said = call.arguments.value("dir");
    const std::string directory = said ? absolute_path(*said) : client_directory, place = directory + "/pki";
    const auto failed = [&](const std::string &what, const Status &why, const char *hint) {
        return call.fail(failure_of(what, why, hint));
    };
    const std::string scheduler = scheduler_of(directory);
    if (scheduler.empty())
        return failed("", fail(Code::not_found, directory + "/pool.conf names no scheduler of another host"),
                      "this command is for hosts that joined with --role client; daemons renew their own certificates");
    const auto who = pki::read_identity(place, group_of_key());
    if (!who)
        return failed("this host's certificate", who.status(),
                      ::geteuid() != 0 ? "run it as root"
                                       : "`dcs token create` on the scheduler's host prints the command by which this "
                                         "host joins again");
    if (!call.arguments.has("now") && !pki::wants_renewal(who->certificate, wall_clock_s()))
        return tell(call, who->certificate, false);
    if (::access(place.c_str(), W_OK) != 0)
        return failed("", fail_errno(Code::refused, place, errno), "run it as root, who wrote that directory");
    const auto next = ask_for_next(scheduler, *who);
    if (!next)
        return failed("the certificate was not renewed", next.status(),
                      next.status().code == Code::unreachable ? "the certificate stays; repeat the command later"
                                                              : "`dcs token create` on the scheduler's host prints the "
                                                                "command by which this host joins again");
    if (Status saved = pki::replace_certificate(place, next->certificate); !saved)
        return failed("the new certificate was not saved", saved, "repeat the command");
    return tell(call, next->certificate, true);
}

}  // namespace

extern const Verb host_renew_verb = {
    .noun = "host",
    .name = "renew",
    .summary = "renew the certificate of this host of control programs",
    .about =
        R"(Renews the certificate of a host that joined with --role client, if at most a third of its 90 days is left.
The key stays. The packages' timer dcs-renew.timer runs this once a day; without systemd, use a daily cron job.
Grain servers and backups renew their own certificates.

Examples:
  dcs host renew
  dcs host renew --now     however long the present one is valid
)",
    .options = {{"now", 0, nullptr, no_value, "renew it now, however long it is valid"},
                {"dir", 0, "DIR", some_text, "with pool.conf and pki (default: /etc/dcs, where dcs_begin looks)"}},
    .notes = R"(A host whose certificate has expired must join again.
)",
    .run = renew};

}  // namespace dcs::commands
