// dcs page: the pool in a browser, and its figures for Prometheus.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <arpa/inet.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "client/remote.h"
#include "collector.h"
#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/ending_signals.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/frame/start_hint.h"
#include "commands/dcs/query/scheduler.h"
#include "locks/dcs_atoms.h"
#include "net/socket_calls.h"
#include "server.h"

namespace dcs::commands {
namespace {

constexpr std::uint16_t usual_port = 8327;
constexpr double usual_interval_s = 2;

// "ADDRESS:PORT", of IPv6 "[ADDRESS]:PORT".
bool takes_address(const std::string &text, page::Place &place) {
    const auto at = net::parse_tcp_address(text);
    unsigned char bytes[sizeof(in6_addr)];
    if (!at || ::inet_pton(text[0] == '[' ? AF_INET6 : AF_INET, at->host.c_str(), bytes) != 1) return false;
    place.address = at->host, place.port = at->port;
    return true;
}

// Of this host alone.
Result<page::Place> local_place(const std::string &listen) {
    page::Place place;
    if (listen.find('/') != std::string::npos) {
        place.path = absolute_path(listen);
        if (place.path.size() < sizeof(sockaddr_un{}.sun_path)) return place;
        return fail(Code::invalid, "--listen: the path " + place.path + " is too long for a socket");
    }
    std::string_view left = listen;
    for (const std::string_view host : {"127.0.0.1:", "localhost:"})
        if (left.substr(0, host.size()) == host) left.remove_prefix(host.size());
    if (read_number(left, place.port)) return place;
    if (left.find_first_not_of("0123456789") == std::string_view::npos)
        return fail(Code::invalid, "--listen " + listen + ": the port must be a number from 0 to 65535");
    return fail(Code::invalid, "--listen " + listen +
                                   (takes_address(listen, place)
                                        ? ": with another address than 127.0.0.1 name a directory by --access"
                                        : ": give a port of 127.0.0.1, the path of a socket, or ADDRESS:PORT"));
}

Result<page::Place> place_of(const Arguments &arguments) {
    const auto listen = arguments.value("listen"), directory = arguments.value("access");
    if (!directory) return listen ? local_place(*listen) : page::Place{"", "", usual_port, true, {}};
    page::Place place;
    if (!listen || !takes_address(*listen, place))
        return fail(Code::invalid, "--access needs --listen ADDRESS:PORT, such as 0.0.0.0:8327");
    if (arguments.has("metrics"))
        return fail(Code::invalid, "--metrics is for logins of this host: with --access all readers show the token");
    auto access = page::access_in(absolute_path(*directory), place.address);
    if (!access) return access.status();
    place.access = std::move(*access);
    return place;
}

// Where the other commands look for the page of a pool.
struct Noted {
    locks::AdaptiveLock lock;
    std::string file;
};

// Only beside a pool of the caller's own: elsewhere the directory is the administrator's.
Result<std::optional<Noted>> take_note(const Pool &pool, bool elsewhere) {
    struct stat st = {};
    const bool own = !elsewhere && ::stat(pool.directory().c_str(), &st) == 0 && st.st_uid == ::geteuid() &&
                     pool.maker() == Pool::Maker::dcs_up;
    if (!own) return std::optional<Noted>();
    const Daemon page = pool.page();
    if (::mkdir(page.directory.c_str(), 0700) != 0 && errno != EEXIST)
        return fail_errno(Code::io_error, page.directory, errno);
    auto lock = locks::take_dcs_atom(locks::DcsAtom::page, page.lock);
    if (!lock) {
        const std::string url = pool.page_url();
        return fail(lock.status().code,
                    url.empty() ? lock.status().text : "the page of this pool is already served at " + url);
    }
    return std::optional(Noted{std::move(*lock), page.directory + "/url"});
}

// A socket that its process left behind; nothing else.
Status remove_old_socket(const std::string &path) {
    struct stat st = {};
    if (path.empty() || ::lstat(path.c_str(), &st) != 0) return Status::ok();
    if (!S_ISSOCK(st.st_mode)) return fail(Code::io_error, path + " exists and is not a socket: name another path");
    const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un where = {};
    where.sun_family = AF_UNIX;
    path.copy(where.sun_path, sizeof where.sun_path - 1);
    if (::connect(probe.get(), reinterpret_cast<const sockaddr *>(&where), sizeof where) == 0)
        return fail(Code::refused, "another process listens on " + path);
    return ::unlink(path.c_str()) == 0 ? Status::ok() : fail_errno(Code::io_error, path, errno);
}

void say_who(const Call &call, const std::string &url) {
    if (const auto access = call.arguments.value("access"))
        std::printf(
            "For all who have the token, as the password of any user name: %s/token\n"
            "Browsers and Prometheus check it by %s/certificate.pem\n",
            access->c_str(), access->c_str());
    else
        std::printf("For you and root on this host. Elsewhere: ssh -L 8327:%s HOST\n",
                    url.compare(0, 5, "unix:") == 0 ? url.c_str() + 5 : url.substr(7, url.size() - 8).c_str());
}

void say_ready(const Call &call, const std::string &url, bool noted) {
    if (call.format == Format::json) {
        std::printf("%s\n", JsonObject("dcs.page/1").add("url", url).add("pid", ::getpid()).text().c_str());
    } else if (call.format == Format::name) {
        std::printf("%s\n", url.c_str());
    } else {
        std::printf("The pool's page: %s\n", url.c_str());
        say_who(call, url);
        if (noted) std::printf("`dcs status` names it. Ctrl-C ends it; the pool goes on.\n");
    }
    std::fflush(stdout);
    if (const auto fd = call.arguments.number("ready-fd")) {
        (void)dcs::write_all(static_cast<int>(*fd), "ready\n");
        ::close(static_cast<int>(*fd));
    }
}

int show_page(const Call &call) {
    const auto place = place_of(call.arguments);
    if (!place) {
        if (place.status().code != Code::invalid || call.arguments.has("access"))
            return call.fail(failure_of("dcs page", place.status()));
        return call.fail(
            usage_failure("dcs page: " + place.status().text,
                          "--listen PORT or --listen PATH; from another host, ssh -L 8327:127.0.0.1:PORT HOST"));
    }
    const bool elsewhere = client::adopt_remote(this_pool()) && this_pool().remote();
    const Pool pool(call.directory);
    if (!elsewhere && !pool.exists())
        return call.fail({exits::unreachable, "unreachable", "there is no pool in " + pool.directory(),
                          start_hint(pool.directory())});
    auto noted = take_note(pool, elsewhere);
    if (!noted) return call.fail(failure_of("dcs page", noted.status()));
    const sigset_t ending = block_ending_signals();
    const Fd signals(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
    if (Status s = remove_old_socket(place->path); !s) return call.fail(failure_of("dcs page", s));
    page::Server server(*place, call.arguments.value("metrics") == "all");
    ::umask(call.arguments.value("metrics") == "all"
                ? 0111
                : 0177);  // a socket is asked who calls; its mode is the first lock
    if (Status s = server.listen(); !s) return call.fail(failure_of("dcs page", s));
    ::umask(077);
    const std::string url = server.url();
    if (*noted)
        if (Status s = write_file((*noted)->file, url + "\n"); !s) return call.fail(failure_of("dcs page", s));
    page::Collector collector(elsewhere ? "" : call.directory, *noted ? pool.page().directory + "/load" : "",
                              call.arguments.seconds("interval").value_or(usual_interval_s),
                              place->access ? place->access->not_after_s : 0,
                              [&](auto published) { server.publish(std::move(published)); });
    collector.start();
    say_ready(call, url, noted->has_value());
    server.serve(collector, signals.get());
    if (*noted) ::unlink((*noted)->file.c_str());
    if (!place->path.empty()) ::unlink(place->path.c_str());
    std::fflush(nullptr);
    std::_Exit(exits::ok);  // the collector may wait for a scheduler that does not answer
}

}  // namespace

extern const Verb page_verb = {
    .noun = "",
    .name = "page",
    .summary = "show the pool in a browser, and its figures to Prometheus",
    .about =
        R"(Serves a page about the pool until it is interrupted: hosts with their slots, sessions with their progress, a
time line of what ran where with checkpoints and moves, throughput, events, and why each grain is where it is. The
page follows the pool by itself. Its figures are at /metrics. It shows what you may see, to you and root on this
host, and changes nothing.

Examples:
  dcs page                               prints the address to open
  dcs page --listen 9000
  dcs page --listen /run/user/1000/dcs   a Unix socket: ssh -L 8327:/run/user/1000/dcs HOST
  dcs page --listen 0.0.0.0:8327 --access /etc/dcs/page   for other hosts, by TLS and a token
  dcs up --page                          starts it with the pool; `dcs down` ends it
)",
    .options =
        {{"listen", 0, "WHERE", some_text,
          "a port of 127.0.0.1, or the path of a Unix socket; default port 8327, or a free one if it is taken.\n"
          "With --access ADDRESS:PORT, such as 0.0.0.0:8327"},
         {"access", 0, "DIR", some_text,
          "serve other hosts too, by TLS, with certificate.pem, key.pem and token of DIR. What is missing there is\n"
          "made. Who shows the token sees what you see"},
         {"metrics", 0, "WHO", one_of("own|all"),
          "who may read /metrics: own (the default) is you and root, all is every login of this host"},
         {"interval", 0, "S", seconds_from(0.5, 3600),
          "seconds between queries of the pool while a browser is open (default 2); without a browser at\n"
          "least 10, and longer if queries are slow"},
         {"ready-fd", 0, "N", whole_number(3, 1023), "writes a line there when it serves (for `dcs up`)"}},
    .notes =
        R"(The kernel says which user is at the other end of each connection; other users get a refusal. From
another host, forward a port by ssh, or use --access: then each request shows the token, as a bearer's or as the
password of any user name, and the page has your rights in this. Outputs of grains are not shown.
docs/STATUS_PAGE.md describes the panels and the figures.
)",
    .run = show_page};

}  // namespace dcs::commands
