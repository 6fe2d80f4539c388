#include "scheduler/keeper/keeper.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/files.h"
#include "daemon/privileges.h"
#include "scheduler/keeper/logins.h"
#include "scheduler/keeper/settings_file.h"

namespace dcs::keeper {
namespace {

// SubjectPublicKeyInfo of an uncompressed point on P-256, up to the point.
constexpr unsigned char key_start[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
                                       0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                       0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};

bool may_name(Ask ask) {
    return ask == Ask::certificate || ask == Ask::remove_host || ask == Ask::check_login || ask == Ask::knows_login;
}
bool may_key(Ask ask) { return ask == Ask::certificate || ask == Ask::own_certificate; }
bool is_role(pki::Role role) {
    return role == pki::Role::grain_server || role == pki::Role::client || role == pki::Role::program ||
           role == pki::Role::backup;
}

// Each field is used by its rows and by no other.
bool is_one(const Request &r) {
    if (r.ask < Ask::authority || r.ask > Ask::last || r.which > Settings::last) return false;
    if ((r.ask == Ask::certificate) != is_role(r.role)) return false;
    if (r.ask != Ask::certificate && r.role != pki::Role::none) return false;
    if (r.ask != Ask::settings && r.which != Settings::hosts) return false;
    if (r.name.empty() == may_name(r.ask) || r.name.size() >= name_max || r.name.find('\0') != r.name.npos)
        return false;
    if (!may_key(r.ask) && r.point != Point{}) return false;
    if (r.ask == Ask::echo_socket) return r.number == 4 || r.number == 6;
    return r.ask == Ask::user_name || r.number == 0;
}

Reply say(Status status) { return Reply{std::move(status), ""}; }

Reply open_echo_socket(std::uint32_t family, int *fd) {
    *fd = raw_echo_socket(family == 6);
    return *fd >= 0 ? Reply{} : say(fail_errno(Code::refused, "a socket for echo requests", errno));
}

// Of root's rights: files of --hosts, --policy and --limits may belong to any user; echo requests need a raw socket.
constexpr std::uint64_t kept = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_CHOWN | 1ull << CAP_FOWNER | 1ull << CAP_NET_RAW;

// Of the user database: files, and what its modules keep elsewhere.
const std::vector<std::string> users_of_this_host = {
    "/etc",        "/run", "/var/run", "/var/lib/sss", "/var/lib/extrausers", "/var/lib/misc", "/var/cache/nscd",
    "/var/db/nscd"};

std::string above(const std::string &path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// The directory in which the file lies, and that of what it links to.
void add_folders_of(const std::string &file, std::vector<std::string> &folders) {
    if (file.empty()) return;
    folders.push_back(above(file));
    char *real = ::realpath(file.c_str(), nullptr);
    if (real != nullptr && above(real) != folders.back()) folders.push_back(above(real));
    ::free(real);
}

}  // namespace

std::string to_packet(const Request &request) {
    ByteWriter w;
    w.u8(static_cast<std::uint8_t>(request.ask));
    w.u8(static_cast<std::uint8_t>(request.role));
    w.u8(static_cast<std::uint8_t>(request.which));
    w.u32(request.number);
    w.raw({reinterpret_cast<const char *>(request.point.data()), point_size});
    w.text(request.name);
    return std::move(w.bytes());
}

std::optional<Request> read_packet(std::string_view packet) {
    ByteReader r(packet);
    Request request{static_cast<Ask>(r.u8()), static_cast<pki::Role>(r.u8()), static_cast<Settings>(r.u8()), r.u32()};
    for (std::uint8_t &byte : request.point) byte = r.u8();
    request.name = r.text();
    if (!r.at_end() || !is_one(request)) return {};
    return request;
}

std::optional<Point> point_of(std::string_view public_key) {
    if (public_key.size() != sizeof key_start + point_size) return {};
    if (std::memcmp(public_key.data(), key_start, sizeof key_start) != 0) return {};
    Point point{};
    std::memcpy(point.data(), public_key.data() + sizeof key_start, point_size);
    return point;
}

std::string public_key_of(const Point &point) {
    std::string key(reinterpret_cast<const char *>(key_start), sizeof key_start);
    return key.append(reinterpret_cast<const char *>(point.data()), point.size());
}

int raw_echo_socket(bool v6) {
    return ::socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                    v6 ? int{IPPROTO_ICMPV6} : int{IPPROTO_ICMP});
}

Reply Keeper::answer(std::string_view packet, std::int64_t now_s, int *fd) {
    *fd = -1;
    const std::optional<Request> request = read_packet(packet);
    if (!request) return say(fail(Code::invalid, "the keeper does not know this request"));
    return grant(*request, now_s, fd);
}

Reply Keeper::grant(const Request &request, std::int64_t now_s, int *fd) {
    switch (request.ask) {
    case Ask::authority: {
        const auto known = authority(now_s);
        return known ? Reply{Status::ok(), (*known)->certificate.der} : say(known.status());
    }
    case Ask::own_certificate: return sign_own(request.point, now_s);
    case Ask::certificate: return sign(request.role, request.name, request.point, now_s);
    case Ask::settings: return open(request.which, fd);
    case Ask::remove_host: return say(remove_from_host_table(place_.hosts, request.name));
    case Ask::user_name: {
        const auto name = login_of(request.number);
        return name ? Reply{Status::ok(), *name} : say(name.status());
    }
    case Ask::check_login: return say(check_login(request.name, place_.group));
    case Ask::knows_login: return say(knows_login(request.name));
    case Ask::echo_socket: break;
    }
    return open_echo_socket(request.number, fd);
}

Result<const pki::Authority *> Keeper::authority(std::int64_t now_s) {
    if (!authority_) {
        auto known = pki::authority_in(place_.pki, now_s);
        if (!known) return known.status();
        authority_ = std::move(*known);
    }
    return &*authority_;
}

// Its validity depends on the role, not on the request. A bad name or key is refused there.
Reply Keeper::sign(pki::Role role, const std::string &name, const Point &point, std::int64_t now_s) {
    const auto known = authority(now_s);
    if (!known) return say(known.status());
    const auto life_s = role == pki::Role::program ? pki::program_life_s : pki::certificate_life_s;
    auto issued = pki::issue(**known, public_key_of(point), role, name, now_s, life_s);
    return issued ? Reply{Status::ok(), std::move(*issued)} : say(issued.status());
}

// The first one asks before a byte of strangers was read.
Reply Keeper::sign_own(const Point &point, std::int64_t now_s) {
    if (own_ && *own_ != point)
        return say(fail(Code::refused, "another key has the scheduler's certificate: there is one key for each start"));
    Reply reply = sign(pki::Role::scheduler, "scheduler", point, now_s);
    if (reply.status) own_ = point;
    return reply;
}

Reply Keeper::open(Settings which, int *fd) const {
    Result<int> file = which == Settings::hosts    ? open_settings(place_.hosts, "the host table")
                       : which == Settings::policy ? open_settings(place_.policy, "the policy")
                                                   : open_settings(place_.limits, "the limits");
    if (file) *fd = *file;
    return say(file.status());
}

Result<bool> fence_keeper(const Place &place) {
    // The authority is made when it is first asked for.
    std::vector<std::string> folders = {file_exists(AT_FDCWD, place.pki) ? place.pki : above(place.pki)};
    for (const std::string *file : {&place.hosts, &place.policy, &place.limits}) add_folders_of(*file, folders);
    return give_up_files(folders, users_of_this_host);
}

void run_keeper(int socket, Place place) {
    Status s = settle_side_process(socket, "dcs_keeper");
    if (s) s = give_up_capabilities(kept);
    const Result<bool> fenced = s ? fence_keeper(place) : Result<bool>(s);
    s = fenced.status();
    // What it holds is in no core file, and no process of the same user may look at it.
    if (s && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) s = fail_errno(Code::io_error, "prctl PR_SET_DUMPABLE", errno);
    // Some hosts look up users over sockets.
    if (s) s = give_up_calls({.unix_sockets = true, .owners = true}).status();
    Keeper keeper(std::move(place));
    serve_side_process(s, socket, patience_s,
                       [&](std::string_view packet, int *fd) { return keeper.answer(packet, wall_clock_s(), fd); });
}

Result<std::unique_ptr<KeeperClient>> KeeperClient::start(const Place &place) {
    auto process = SideProcess::start({"the scheduler's keeper", "the scheduler"}, patience_s,
                                      [&](int socket) { run_keeper(socket, place); });
    if (!process) return process.status();
    return std::unique_ptr<KeeperClient>(new KeeperClient(std::move(*process)));
}

Result<std::string> KeeperClient::call(const Request &request, Fd *fd) {
    if (request.name.size() >= name_max) return fail(Code::invalid, "the name is too long");
    return process_->call(to_packet(request), fd);
}

Result<std::string> KeeperClient::authority() { return call({.ask = Ask::authority}); }

Result<std::string> KeeperClient::own_certificate(std::string_view public_key) {
    return certificate(pki::Role::scheduler, "", public_key);
}

Result<std::string> KeeperClient::certificate(pki::Role role, const std::string &name, std::string_view public_key) {
    const std::optional<Point> point = point_of(public_key);
    if (!point) return fail(Code::invalid, "it is not a public key on the curve P-256");
    const bool own = role == pki::Role::scheduler;
    return call({.ask = own ? Ask::own_certificate : Ask::certificate,
                 .role = own ? pki::Role::none : role,
                 .name = name,
                 .point = *point});
}

Result<std::string> KeeperClient::settings(Settings which, const std::string &file, const std::string &what) {
    Fd fd;
    const Result<std::string> reply = call({.ask = Ask::settings, .which = which}, &fd);
    if (!reply) return reply.status();
    if (!fd)
        return fail(Code::limit, "the keeper could not hand over " + file +
                                     ": this process has no file descriptors left, raise ulimit -n");
    return read_settings(fd.release(), file, what);
}

Status KeeperClient::remove_host(const std::string &host) {
    return call({.ask = Ask::remove_host, .name = host}).status();
}

Result<std::string> KeeperClient::user_name(std::uint32_t uid) { return call({.ask = Ask::user_name, .number = uid}); }

Status KeeperClient::check_login(const std::string &user) {
    return call({.ask = Ask::check_login, .name = user}).status();
}

Status KeeperClient::knows_login(const std::string &user) {
    return call({.ask = Ask::knows_login, .name = user}).status();
}

int KeeperClient::echo_socket(bool v6) {
    Fd socket;
    return call({.ask = Ask::echo_socket, .number = v6 ? 6u : 4u}, &socket) ? socket.release() : -1;
}

}  // namespace dcs::keeper
