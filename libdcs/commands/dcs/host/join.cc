// dcs host join: run on the host that joins. Nothing of a pool is here yet.
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "base/known_words.h"
#include "base/limits.h"
#include "commands/dcs/frame/call.h"
#include "client_host.h"
#include "net/socket_calls.h"
#include "pki/authority.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/frame/table.h"
#include "wire/message.h"

namespace dcs::commands {
namespace {

constexpr Duration ask_again = seconds(3);
constexpr double usual_wait_s = 600;

struct JoinOrder {
    std::string address, token, directory;  // address: as it was said
    std::vector<std::string> addresses;
    TokenHash authority{};
    wire::JoinHost call;
    Duration wait;
    bool client() const { return call.role == 1; }
    bool backup() const { return call.role == 2; }
};

std::string own_name() {
    char name[256] = "";
    if (::gethostname(name, sizeof name - 1) != 0) return "";
    const std::string whole = name;
    return whole.substr(0, whole.find('.')).substr(0, limits::name_bytes);
}

std::string usual_directory(const JoinOrder &order) {
    if (order.client()) return client_directory;
    const std::string name = order.backup() ? "backup" : "server";
    if (::geteuid() == 0) return std::string(services_place) + "/" + name;
    const char *home = std::getenv("HOME");
    return home != nullptr && home[0] == '/' ? std::string(home) + "/.local/state/dcs-" + name : "";
}

// The directory and those above it. What root makes above it lets others pass: grains under accounts of their own get
// to their rooms that way. Earlier releases closed /var/lib/dcs when they made it: it is opened, too.
Status make_place(const std::string &directory) {
    const bool root = ::geteuid() == 0;
    if (Status s = make_directories(directory, root ? 0711 : 0700); !s) return s;
    const bool ours = root && directory.starts_with(std::string(services_place) + "/");
    if (ours && ::chmod(services_place, 0711) != 0) return fail_errno(Code::io_error, services_place, errno);
    return Status::ok();
}

Result<JoinOrder> take_order(const Call &call) {
    const auto wrong = [](const std::string &text) { return fail(Code::invalid, text); };
    JoinOrder order;
    order.address = call.arguments.words[0];
    auto addresses = net::parse_tcp_addresses(order.address);
    if (!addresses) return addresses.status();
    order.addresses = std::move(*addresses);
    const auto hash = bytes_of_hex(call.arguments.value("ca-hash").value_or(""), order.authority.size());
    if (!hash)
        return wrong(
            "--ca-hash is the 64 hexadecimal digits that `dcs token create` prints: without it this host "
            "cannot tell whether the right scheduler answers");
    std::copy(hash->begin(), hash->end(), order.authority.begin());
    if (auto text = call.arguments.value("token")) {
        if (*text == "-") std::getline(std::cin, *text);
        const auto token = bytes_of_hex(*text, std::tuple_size<Token>::value);
        if (!token) return wrong("--token is the 64 hexadecimal digits that `dcs token create` prints");
        order.call.token = *token;
    }
    order.wait = seconds_of(call.arguments.seconds("wait").value_or(usual_wait_s));
    order.call.role = number_of_role(call.arguments.value("role").value_or("server"));
    const auto directory = call.arguments.value("dir");
    order.directory = directory ? absolute_path(*directory) : usual_directory(order);
    if (order.directory.empty()) return wrong("--dir DIR is missing: the directory of the daemon that will run here");
    order.call.host = call.arguments.value("host").value_or("");
    order.call.own_name = own_name();
    return order;
}

Result<wire::AnyMessage> ask_once(const JoinOrder &order) {
    net::TlsTrust trust{.authority_hash = order.authority};
    return ask_scheduler(order.addresses, {}, trust, order.call);
}

// Asks until there is an answer that is one, or the time is over. A scheduler that has said to wait may be restarted.
Result<wire::Joined> ask_to_join(const JoinOrder &order, const std::string &words) {
    const Instant end = boot_clock() + order.wait;
    bool told = false, lost = false;
    for (;; ::usleep(static_cast<useconds_t>(ask_again.ns / 1000))) {
        auto reply = ask_once(order);
        const bool over = boot_clock() + ask_again > end;
        if (!reply) {
            if (!told || over || reply.status().code != Code::unreachable) return reply.status();
            if (!lost) std::fprintf(stderr, "dcs: %s; asking again\n", printable(reply.status().text).c_str());
            lost = true;
            continue;
        }
        if (auto *joined = std::get_if<wire::Joined>(&*reply)) return std::move(*joined);
        if (const auto *error = std::get_if<wire::ErrorReply>(&*reply))
            return fail(static_cast<Code>(error->code), error->text);
        const auto *pending = std::get_if<wire::JoinPending>(&*reply);
        if (pending == nullptr) return fail(Code::protocol, "the scheduler sent an unexpected kind of answer");
        if (!told)
            std::fprintf(stderr,
                         "dcs: waiting for approval. On the scheduler's host, `dcs host approve` must show the same "
                         "words:\n  %s\n  dcs host approve %s %s\n",
                         words.c_str(), pending->host.c_str(), words.c_str());
        told = true;
        if (over) return fail(Code::nothing_yet, "no operator has approved this host");
    }
}

// What the scheduler sent is believed only as far as it can be checked.
Result<pki::Identity> checked(const JoinOrder &order, const std::string &key, const wire::Joined &joined) {
    auto authority = pki::read_certificate(joined.authority), own = pki::read_certificate(joined.certificate);
    if (!authority || authority->fingerprint != order.authority)
        return fail(Code::protocol, "the scheduler's authority does not have the given hash");
    if (!own) return fail(Code::protocol, "the received certificate: " + own.status().text);
    const auto role = order.client() ? pki::Role::client : order.backup() ? pki::Role::backup : pki::Role::grain_server;
    const auto verdict = pki::verify(*own, *authority, role, joined.host, wall_clock_s());
    if (!verdict) return fail(Code::protocol, "the received certificate: " + verdict.text);
    if (pki::sha256(*pki::public_key_of(key)) != own->key)
        return fail(Code::protocol, "the received certificate is for another key");
    return pki::Identity{key, std::move(*own), std::move(*authority)};
}

// For the units of the daemons: they begin when this file appears (deploy/systemd).
Status write_service(const JoinOrder &order, const std::string &name, bool &changed) {
    const std::string path = order.directory + "/service";
    const std::string text = "DCS_NAME=" + name + "\nDCS_SCHEDULER=" + order.address + "\n";
    constexpr std::size_t text_max = 4096;
    const auto before = read_file(path, text_max);
    changed = !before || *before != text;
    return write_file(path, text);
}

std::string start_command(const JoinOrder &order, const std::string &name) {
    if (order.client()) return "dcs_begin PROGRAM";
    const std::string where = " --dir " + order.directory + " --scheduler " + order.address;
    return order.backup() ? "dcs_backupd" + where + " --tls ADDRESS:PORT"
                          : "dcs_grainserver --name " + name + where + " --log-level info";
}

// What is next on this host: where there is a service, a command by hand would be a second daemon.
std::string next_step(const JoinOrder &order, const std::string &name, bool changed) {
    const std::string start = start_command(order, name);
    if (order.client())
        return std::string(::getgrnam("dcs") != nullptr ? "" : "make a group dcs here (`groupadd --system dcs`); ") +
               "members of the group dcs start programs by (installed root:dcs-key, mode 2755): " + start;
    const std::string unit = order.backup() ? "dcs-backupd" : "dcs-grainserver";
    const std::string place = std::string(services_place) + (order.backup() ? "/backup" : "/server");
    const bool runs = daemon_runs_in(order.directory);
    if (runs && !changed) return "the daemon that runs in its directory takes the new certificate by itself";
    if (!has_service(unit))
        return runs ? "a daemon with the former settings runs in its directory: restart it as " + start
                    : "start its server: " + start;
    if (order.directory != place)
        return "the service " + unit + " does not use this directory, but " + place +
               " (join as root); start its server: " + start;
    return runs ? "its service runs with the former settings: systemctl restart " + unit
                : "its service " + unit + " starts now";
}

int tell(const Call &call, const JoinOrder &order, const pki::Identity &who, bool changed) {
    const std::string words = in_words(who.certificate.key), &name = who.certificate.name;
    JsonObject json;
    json.add("name", name).add("directory", order.directory).add("scheduler", order.address);
    json.add("key_words", words).add("serial", who.certificate.serial);
    json.add("expires", who.certificate.not_after_s).add("command", start_command(order, name));
    std::string text = "host " + name + " has joined the pool, key " + words + "\n";
    if (const std::string own = own_name(); own != name.substr(0, name.find('.')))
        text += "This machine's own name is " + own + ". If " + name +
                " is another machine, join there with a new code, and here with one for " + own + " and --new-key.\n";
    return print_as_asked(call, JsonObject("dcs.host.join/1").add_raw("host", json.text()), name,
                          text + next_step(order, name, changed));
}

int join(const Call &call) {
    auto order = take_order(call);
    if (!order) return call.fail(usage_failure(order.status().text, "`dcs host join --help` shows how it is used"));
    const std::string place = order->directory + "/pki";
    if (order->client())
        if (Status s = prepare_client(order->directory, order->address); !s)
            return call.fail(failure_of("this host has not joined", s));
    if (!order->client())
        if (Status s = make_place(order->directory); !s) return call.fail(failure_of("this host has not joined", s));
    const auto readers = order->client() ? group_of_key() : std::nullopt;
    const bool new_key = call.arguments.has("new-key");
    const auto key = new_key ? pki::next_key_in(place) : pki::key_in(place, readers);
    if (!key) return call.fail(failure_of("this host's key", key.status()));
    order->call.request = *pki::make_request(*key);
    const auto joined = ask_to_join(*order, in_words(pki::sha256(*pki::public_key_of(*key))));
    if (!joined && joined.status().code == Code::nothing_yet)
        return call.fail({exits::timeout, "timeout", joined.status().text,
                          "repeat the command: the key stays the same, and so do the words"});
    if (!joined) {
        // Unless the scheduler may have taken it: then the same command goes on with it.
        if (new_key && joined.status().code != Code::unreachable) pki::drop_next_key(place);
        Failure failure = failure_of("this host has not joined", joined.status());
        if (failure.exit == exits::usage) failure.exit = exits::refused;
        if (joined.status().code == Code::unreachable)
            failure.hint =
                failure.message.find(other_authority_words) != std::string::npos
                    ? "copy --ca-hash again from the line that `dcs token create` prints on the scheduler's host"
                : failure.message.find(" is not valid before ") != std::string::npos
                    ? "set the clock of this host, or of the scheduler's"
                    : "is the address right, and was the scheduler started with --tls?";
        return call.fail(failure);
    }
    const auto who = checked(*order, *key, *joined);
    if (!who) return call.fail(failure_of("this host has not joined", who.status()));
    if (Status s = pki::write_identity(place, *who); !s)
        return call.fail(failure_of("the certificate was not saved: repeat the command", s));
    if (readers)
        if (Status s = pki::share_identity(place, *readers); !s)
            return call.fail(failure_of("dcs_begin cannot read this host's key: repeat the command", s));
    if (order->client())
        if (Status s = write_client(order->directory, order->address); !s)
            return call.fail(failure_of("pool.conf was not written: repeat the command", s));
    bool changed = true;
    if (!order->client())
        if (Status s = write_service(*order, who->certificate.name, changed); !s)
            return call.fail(failure_of("the settings of its service were not written: repeat the command", s));
    if (new_key) pki::drop_next_key(place);
    return tell(call, *order, *who, changed);
}

}  // namespace

extern const Verb host_join_verb = {
    .noun = "host",
    .name = "join",
    .words = "HOST:PORT[,HOST:PORT...]",
    .summary = "join this host to a pool",
    .about = R"(Run it on the joining host, under the account of its grain server; for a client, as root.
`dcs token create` on the scheduler's host prints the whole command. Makes a key that never leaves this
host, and gets a certificate for it. Without --token an operator must approve the host with `dcs host approve`;
both sides show the same words. May be repeated.

Examples:
  dcs host join pool.example:7001 --token 6f1c... --ca-hash 93aa...
  dcs host join pool.example:7001 --ca-hash 93aa... --host h1 --wait 1h
  dcs host join pool.example:7001 --role client --token 6f1c... --ca-hash 93aa...
  dcs host join pool.example:7001 --role backup --token 6f1c... --ca-hash 93aa...
)",
    .options =
        {{"token", 0, "CODE", any_text,
          "created by `dcs token create`; valid once. - reads it from standard input, so that neither the list\nof "
          "processes nor the shell's history shows it"},
         {"ca-hash", 0, "HASH", any_text, "of the certificate of the pool's authority, from the same line", "",
          Given::always},
         {"host", 0, "NAME", any_text,
          "of this host in the pool's host table (default: the code's host, otherwise this host's own name)"},
         {"role", 0, "ROLE", one_of(role_words),
          "server: it runs grains (default); client: users start control programs there, by dcs_begin;\n"
          "backup: it takes grain servers' reports while the scheduler is away"},
         {"new-key", 0, nullptr, no_value,
          "with a new key, because the old one has leaked or was removed; it takes the old one's place when the\n"
          "host has joined, and certificates of the old one are refused from then on"},
         {"wait", 0, "S", seconds_from(0), "without a code: time to wait for approval (default 10m)"},
         {"dir", 0, "DIR", some_text,
          "of its grain server or backup; key and certificate come into DIR/pki\n"
          "(default: /var/lib/dcs/server or backup for root, else ~/.local/state/dcs-server or -backup);\n"
          "of a client: with pool.conf (default: /etc/dcs, where dcs_begin looks)"}},
    .notes = R"(HOST:PORT is where the scheduler is; several with commas: where it may be, as after a backup was
promoted.
)",
    .run = join};

}  // namespace dcs::commands
