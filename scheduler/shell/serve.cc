#include "scheduler/shell/serve.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/load_limits.h"
#include "daemon/log.h"
#include "daemon/ready.h"
#include "scheduler/shell/host_table_file.h"
#include "scheduler/shell/limits_file.h"
#include "scheduler/shell/policy_file.h"

namespace dcs::shell {
namespace {

// With nothing to do for this long, what is committed is synced away into its trees.
constexpr Duration idle_before_flush = milliseconds(200);
// So often at least a closed session is packed, or a slice of the disk looked at for damage.
constexpr Duration tidy_when_busy = seconds(1);
// A flush that found no room is not repeated at once.
constexpr Duration flush_retry = seconds(10);
constexpr std::size_t arrivals_at_once = 1024;
// Replies to the last commit leave within this, or their peers ask again.
constexpr Duration farewell = milliseconds(100);

// Both doors let in only who the kernel names, so frames may be large from the first one on.
net::Limits door_limits(std::size_t max_payload) {
    net::Limits limits;
    limits.max_payload = max_payload;
    return limits;
}

bool owner_or_root(std::uint32_t uid) { return uid == 0 || uid == ::geteuid(); }

// Members of the group come through the directory to this socket, and to nothing else in there.
Status open_to_group(const std::string &directory, const std::string &socket, const std::string &group) {
    const auto gid = group_number(group);
    if (!gid) return fail(gid.status().code, "--group: " + gid.status().text);
    const std::string path = directory + "/" + socket;
    if (::chown(path.c_str(), static_cast<uid_t>(-1), *gid) != 0 || ::chmod(path.c_str(), 0660) != 0 ||
        ::chmod(directory.c_str(), 0711) != 0)
        return fail_errno(Code::io_error, "opening " + path + " to the group " + group, errno);
    log_info("members of the group " + group + " may call");
    return Status::ok();
}

}  // namespace

Service::Service(ServeSettings settings, Signals &signals, Suspect &suspect, store::Store &store,
                 std::unique_ptr<store::Disk> library_disk, net::Loop &loop, turn::Turn::Setup setup)
    : settings_(std::move(settings)), signals_(signals), store_(store), loop_(loop),
      storage_(store, loop), library_(std::move(library_disk), loop), prober_(loop),
      outside_(loop, storage_, library_, suspect, prober_), turn_(std::move(setup), store, outside_) {}

Status Service::listen() {
    outside_.on_reread([this] { return reread_settings(); });
    outside_.on_remove_line([this](const std::string &host) { return remove_host_line(host); });
    net::Limits users = door_limits(limits::user_frame_bytes);
    users.per_user = limits::connections_per_user + limits::refused_connections;
    auto user = loop_.listen_unix(settings_.directory, "user.sock", 0600, users);
    if (!user) return user.status();
    if (!settings_.group.empty())
        if (Status s = open_to_group(settings_.directory, "user.sock", settings_.group); !s) return s;
    net::Limits servers = door_limits(limits::server_frame_bytes);
    servers.per_user = limits::connections;  // all of a pool's servers may be one user's
    auto server = loop_.listen_unix(settings_.directory, "server.sock", 0600, servers);
    if (!server) return server.status();
    user_door_ = *user;
    server_door_ = *server;
    if (settings_.tls_address.empty()) return Status::ok();
    auto tls = TlsDoor::open(loop_, settings_.directory + "/pki", settings_.tls_address);
    if (!tls) return tls.status();
    tls_ = std::move(*tls);
    outside_.use_tls(tls_.get(), settings_.group_afar);
    return Status::ok();
}

Status Service::run() {
    loop_.watch(signals_.fd());
    turn_.take_limits(settings_.limits);
    turn_.take_policy(std::move(settings_.policy));
    turn_.take_host_table(std::move(settings_.hosts));
    last_activity_ = boot_clock();
    turn_.run();
    failpoint("shell.start.before_ready");
    if (Status s = tell_ready(settings_.ready_fd); !s) log_warn(s.text);
    if (Status s = notify_service_manager("READY=1"); !s) log_warn(s.text);
    log_info("serving in " + settings_.directory);
    while (!stopping_) step();
    return stop();
}

bool Service::may_flush() const {
    return !storage_.busy() && !turn_.committing() && store_.pending_bytes() > 0;
}

void Service::step() {
    if (!storage_.busy()) {
        turn_.run();
        be_idle();  // here, where nothing that has arrived waits to be decided
    }
    Instant deadline = storage_.busy() ? Instant::never() : turn_.next_wakeup();
    if (may_flush())
        deadline = std::min(deadline,
                            std::max(last_activity_ + idle_before_flush, flush_not_before_));
    if (!storage_.busy())
        deadline = std::min(deadline,
                            std::max(last_activity_ + idle_before_flush, turn_.tidy_wakeup()));
    std::vector<net::Arrival> arrivals;
    if (storage_.busy() && turn_.full())
        storage_.wait();
    else
        arrivals = loop_.wait(deadline, arrivals_at_once);
    for (net::Arrival &arrival : arrivals) handle(std::move(arrival));
    if (tls_) tls_->look_after(boot_clock());
    if (auto done = storage_.take()) storage_answered(std::move(*done));
    for (const library::JobDone &done : library_.take()) turn_.take_library_job(done);
    for (core::ProbeResult &result : prober_.take()) turn_.take_probe_result(std::move(result));
}

// Nobody has wanted anything for a while: what was put off gets its share. A little of it gets done
// however much is going on.
void Service::be_idle() {
    const Instant now = boot_clock();
    if (storage_.busy() || turn_.committing() || turn_.next_wakeup() <= now) return;
    const bool idle = now >= last_activity_ + idle_before_flush;
    if (now >= turn_.tidy_wakeup() && (idle || now >= last_tidy_ + tidy_when_busy)) {
        last_tidy_ = now;
        turn_.tidy();
        tidying_ = turn_.committing();
    }
    if (idle && may_flush() && now >= flush_not_before_) storage_.flush();
}

void Service::storage_answered(storage::StorageThread::Done done) {
    if (done.was_commit) {
        if (!std::exchange(tidying_, false)) last_activity_ = boot_clock();
        return turn_.committed(done.result);
    }
    if (done.result.answer != store::Answer::done)
        outside_.fatal("the backing store is in doubt: " + done.result.status.text);
    if (!done.result.status) {
        log_warn("the backing store waits with its syncs: " + done.result.status.text);
        flush_not_before_ = boot_clock() + flush_retry;
    }
}

void Service::handle(net::Arrival arrival) {
    turn::Arrival a;
    a.conn = arrival.conn;
    switch (arrival.what) {
    case net::What::woken: return;
    case net::What::ready: return handle_signals();
    case net::What::refused: return tls_->refused(boot_clock(), arrival.address, arrival.why);
    case net::What::opened:
        return tls_ && arrival.door == tls_->door() ? opened_from_afar(arrival) : opened(arrival);
    case net::What::frame:
        a.kind = turn::Arrival::Kind::frame;
        a.header = arrival.header;
        a.payload = std::move(arrival.payload);
        break;
    case net::What::closed:
        a.kind = turn::Arrival::Kind::closed;
        log_debug("connection " + std::to_string(a.conn) + " closed: " + arrival.why);
        break;
    }
    last_activity_ = boot_clock();
    turn_.take(std::move(a));
}

void Service::opened(const net::Arrival &arrival) {
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::opened;
    a.conn = arrival.conn;
    a.door = arrival.door == server_door_ ? turn::Door::server : turn::Door::user;
    a.user = names_.of(arrival.peer.uid);
    const bool ours = owner_or_root(arrival.peer.uid);
    const std::vector<std::string> &masters = settings_.masters;
    a.privileged = ours || std::find(masters.begin(), masters.end(), a.user) != masters.end();
    if (a.door == turn::Door::server && !ours) {
        log_warn("a process of " + a.user + " (pid " +
                            std::to_string(arrival.peer.pid) +
                            ") came to the grain servers' socket and was turned away");
        return loop_.close(arrival.conn);
    }
    log_debug("connection " + std::to_string(a.conn) + " of " + a.user + ", pid " +
                      std::to_string(arrival.peer.pid));
    turn_.take(std::move(a));
}

// Its certificate says what it is; without one it may ask for one.
void Service::opened_from_afar(const net::Arrival &arrival) {
    const net::TlsPeer &peer = arrival.certified;
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::opened;
    a.conn = arrival.conn;
    a.address = arrival.address;
    a.certified = core::Certified{peer.name, peer.key, peer.not_after_s};
    a.user = "host " + peer.name + " at " + arrival.address;
    switch (peer.role) {
    case pki::Role::grain_server: a.door = turn::Door::server; break;
    case pki::Role::backup: a.door = turn::Door::backup; break;
    case pki::Role::client:
        a.door = turn::Door::begin;
        loop_.set_max_payload(a.conn, limits::hello_frame_bytes);
        break;
    case pki::Role::program: {
        const auto name = pki::program_name(peer.name);
        if (!name) return loop_.close(a.conn);
        a.door = turn::Door::user;
        a.user = name->user;
        a.certified.host = name->host;
        loop_.set_max_payload(a.conn, limits::user_frame_bytes);
        break;
    }
    default:
        a.door = turn::Door::join;
        a.user = "a stranger at " + arrival.address;
        a.certified = {};
    }
    log_debug("connection " + std::to_string(a.conn) + " of " + a.user + " at " + arrival.address +
              (peer.serial.empty() ? "" : ", certificate " + peer.serial));
    turn_.take(std::move(a));
}

void Service::handle_signals() {
    for (int signal = 0; (signal = signals_.next()) != 0;) {
        if (signal == SIGHUP)
            (void)reread_settings();
        else
            stopping_ = true;
    }
}

// All three files are read and checked, whole, before anything changes.
Status Service::reread_settings() {
    auto hosts = read_host_table(settings_.hosts_file);
    auto policy = read_policy(settings_.policy_file);
    const auto limits = read_limits(settings_.limits_file);
    if (!hosts || !policy || !limits) {
        const Status why = !hosts ? hosts.status() : !policy ? policy.status() : limits.status();
        log_error("the old host table, policy and limits stay: " + why.text);
        return why;
    }
    log_info("host table " + settings_.hosts_file + " and policy " + settings_.policy_file + " reread");
    turn_.take_limits(*limits);
    turn_.take_policy(std::move(*policy));
    turn_.take_host_table(std::move(*hosts));
    return Status::ok();
}

Status Service::remove_host_line(const std::string &host) {
    if (Status s = remove_from_host_table(settings_.hosts_file, host); !s) return s;
    return reread_settings();
}

// What is in flight is finished and answered; what was not decided is asked again by its sender.
Status Service::stop() {
    log_info("stopping");
    failpoint("shell.stop.begin");
    while (storage_.busy()) {
        storage_.wait();
        if (auto done = storage_.take()) storage_answered(std::move(*done));
    }
    loop_.wait(boot_clock() + farewell, arrivals_at_once);
    failpoint("shell.stop.before_flush");
    const store::CommitResult flushed = store_.flush();
    failpoint("shell.stop.after_flush");
    if (flushed.answer != store::Answer::done)
        return fail(Code::io_error, "the backing store is in doubt: " + flushed.status.text);
    if (!flushed.status) log_warn("last flush: " + flushed.status.text);
    log_info("stopped");
    return Status::ok();
}

}  // namespace dcs::shell
