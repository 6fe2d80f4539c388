#include "backupd/shell/serve.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <sys/random.h>
#include <unistd.h>

#include "backupd/shell/backup_options.h"
#include "backupd/shell/members_file.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "daemon/privileges.h"
#include "daemon/log.h"

namespace dcs::backup {
namespace {

constexpr std::size_t arrivals_at_once = 256;
// After this idle time committed turns are flushed into the trees.
constexpr Duration idle_before_flush = milliseconds(200);
constexpr Duration flush_retry = seconds(10);
// Maximum interval between checks of the certificate's validity.
constexpr Duration certificate_look = seconds(3600);
// Time to send the replies to the last commit; otherwise the peers repeat their requests.
constexpr Duration farewell = milliseconds(100);

net::Limits frame_limits() {
    net::Limits limits;
    limits.max_payload = limits::server_frame_bytes;
    limits.per_user = limits::connections;  // all grain servers of a pool may belong to one user
    return limits;
}

}  // namespace

Service::Service(ServeSettings settings, Signals &signals, store::Store &store, net::Loop &loop, net::PoolLink &link,
                 Doors doors, State state, const MirrorLink &mirror, Configuration &configuration)
    : settings_(std::move(settings)),
      signals_(signals),
      store_(store),
      loop_(loop),
      link_(link),
      doors_(doors),
      storage_(store, loop),
      turn_(std::move(state), store, *this),
      mirror_(mirror),
      configuration_(configuration) {}

Result<Doors> open_doors(net::Loop &loop, const std::string &directory, const std::string &tls_address,
                         const net::PoolLink &link) {
    Doors doors;
    const auto own = loop.listen_unix(directory, "backup.sock", 0600, frame_limits());
    if (!own) return own.status();
    if (tls_address.empty()) return doors;
    auto context = link.context_for(pki::Role::grain_server);
    if (!context) return context.status();
    const auto tls = loop.listen_tls(tls_address, frame_limits(), *context);
    if (!tls) return tls.status();
    doors.tls = *tls;
    log_info("serving grain servers of other hosts at port " + std::to_string(loop.port_of(doors.tls)) +
             " with TLS 1.3");
    return doors;
}

Status Service::run() {
    loop_.watch(signals_.fd());
    if (settings_.resolver) loop_.watch(settings_.resolver->fd());
    last_activity_ = boot_clock();
    failpoint("backup.start.before_ready");
    if (Status s = tell_ready(settings_.ready_fd); !s) log_warn(s.text);
    settings_.manager.tell("READY=1\nSTATUS=serving");
    if (Status s = keep_only_calls({.unix_sockets = true}); !s) return s;  // for the connection to the scheduler
    log_info("serving in " + settings_.directory + ", " + std::to_string(turn_.state().reports) + " reports held");
    while (!stopping_) step();
    return stop();
}

bool Service::may_flush() const { return !storage_.busy() && !turn_.committing() && store_.pending_bytes() > 0; }

void Service::step() {
    if (!storage_.busy()) {
        turn_.run();
        const Instant idle = std::max(last_activity_ + idle_before_flush, flush_not_before_);
        if (may_flush() && boot_clock() >= idle) storage_.flush();
    }
    if (settings_.removal.removed()) fatal(settings_.directory + " was removed");
    Instant deadline = settings_.removal.next();
    if (!storage_.busy()) deadline = std::min(deadline, turn_.next_wakeup());
    keep_certificate();
    if (link_.tls()) deadline = std::min(deadline, boot_clock() + certificate_look);
    if (may_flush()) deadline = std::min(deadline, std::max(last_activity_ + idle_before_flush, flush_not_before_));
    if (storage_.answered()) deadline = Instant{};
    if (storage_.busy() && turn_.full()) {
        storage_.wait();
    } else {
        for (net::Arrival &arrival : loop_.wait(deadline, arrivals_at_once)) handle(std::move(arrival));
    }
    if (const auto done = storage_.take()) storage_answered(*done);
}

void Service::keep_certificate() {
    if (turn_.scheduler() == no_connection) return;
    if (const auto wish = link_.wish(boot_clock())) send(turn_.scheduler(), *wish, 0);
}

void Service::renewed(const wire::Renewed &answer) {
    if (const Status s = link_.renewed(answer); !s) return log_error(s.text);
    const auto context = link_.context_for(pki::Role::grain_server);
    if (context && doors_.tls >= 0) loop_.set_tls(doors_.tls, *context);
    log_info("the certificate of this backup was renewed");
}

// On failure, the scheduler sends the list again with the next connection.
void Service::save(const Members &members) {
    if (const Status s = write_members(settings_.directory, members); !s) log_error(s.text);
}

void Service::storage_answered(const storage::StorageThread::Done &done) {
    if (done.was_commit) {
        last_activity_ = boot_clock();
        return turn_.committed(done.result);
    }
    if (done.result.answer != store::Answer::done) fatal("the backup's store is in doubt: " + done.result.status.text);
    if (!done.result.status) {
        log_warn("the backup's store postpones its syncs: " + done.result.status.text);
        flush_not_before_ = boot_clock() + flush_retry;
    }
}

void Service::readable(int watch) {
    if (watch == signals_.fd()) return handle_signals();
    if (const Status s = settings_.resolver->stops_daemon(); !s) fatal(s.text);
}

void Service::handle_signals() {
    while (const int number = signals_.next()) {
        if (number == SIGHUP) reread_configuration();
        stopping_ = stopping_ || number == SIGTERM || number == SIGINT;
    }
}

void Service::reread_configuration() {
    BackupOptions fresh;
    const auto change = configuration_.read(command_line(fresh));
    if (!change) return configuration_.refuse(configuration_stays, change.status());
    configuration_.take(*change);
    if (change->has("log-level")) log_set_level(*level_of(fresh.log_level));
    turn_.hold_at_most(fresh.most_bytes());
}

void Service::handle(net::Arrival arrival) {
    Arrival a{.conn = arrival.conn};
    switch (arrival.what) {
    case net::What::woken: return;
    case net::What::held_up: return log_warn(arrival.why);
    case net::What::refused: return log_warn("a peer at " + arrival.address + " was refused: " + arrival.why);
    case net::What::ready: return readable(arrival.watch);
    case net::What::opened:
        if (!may_come_in(arrival)) return loop_.close(arrival.conn);
        a.kind = Arrival::Kind::opened;
        break;
    case net::What::frame:
        if (about_mirror(arrival)) return;
        a.kind = Arrival::Kind::frame;
        a.header = arrival.header;
        a.payload = std::move(arrival.payload);
        if (const auto peer = certified_.find(arrival.conn); peer != certified_.end()) a.guest = peer->second;
        break;
    case net::What::closed:
        certified_.erase(arrival.conn);
        a.kind = Arrival::Kind::closed;
        a.why = arrival.why;
        break;
    }
    last_activity_ = boot_clock();
    turn_.take(std::move(a));
}

// Answers queries about the copy from processes of this account, with the state of the copy's thread.
bool Service::about_mirror(const net::Arrival &arrival) {
    static const std::uint16_t asked = wire::kind_of(wire::AskMirror{});
    if (arrival.header.kind != asked || certified_.count(arrival.conn) != 0) return false;
    const auto message = wire::decode_payload(arrival.header, arrival.payload);
    const auto *ask = message ? std::get_if<wire::AskMirror>(&*message) : nullptr;
    if (!ask || ask->detach) return false;
    send(arrival.conn, mirror_.status(), arrival.header.request);
    return true;
}

// By the certificate at the TLS port, by the account at the socket.
bool Service::may_come_in(const net::Arrival &opened) {
    if (opened.door < 0) return true;  // the backup's own connection to the scheduler
    if (opened.door == doors_.tls) {
        certified_[opened.conn] = Guest{opened.certified.name, opened.certified.key};
        return true;
    }
    if (opened.peer.uid == 0 || opened.peer.uid == ::geteuid()) return true;
    log_warn("a process of another user (pid " + std::to_string(opened.peer.pid) + ") was refused");
    return false;
}

// Completes and answers the commit in flight; undecided reports are sent again by their servers.
Status Service::stop() {
    log_info("stopping");
    settings_.manager.tell("STOPPING=1\nSTATUS=committing what has arrived");
    while (storage_.busy()) {
        storage_.wait();
        if (const auto done = storage_.take()) storage_answered(*done);
    }
    loop_.wait(boot_clock() + farewell, arrivals_at_once);
    const store::CommitResult flushed = store_.flush();
    if (flushed.answer != store::Answer::done)
        return fail(Code::io_error, "the backup's store is in doubt: " + flushed.status.text);
    if (!flushed.status) log_warn("last flush: " + flushed.status.text);
    store_.retire_journal();
    log_info("stopped");
    return Status::ok();
}

// ---- requests of the turn -----------------------------------------------------------------

Instant Service::now() { return boot_clock(); }

double Service::jitter() {
    std::uint32_t n = 0;
    if (::getrandom(&n, sizeof n, 0) != static_cast<ssize_t>(sizeof n)) n = static_cast<std::uint32_t>(boot_clock().ns);
    return static_cast<double>(n) / 4294967296.0;
}

void Service::send(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) {
    if (Status s = loop_.send(conn, message, request); !s)
        log_warn("connection " + to_text(conn) + ": " + wire::kind_name(message) + " was not sent: " + s.text);
}

void Service::close(ConnId conn) {
    certified_.erase(conn);
    loop_.close(conn);
}

Result<ConnId> Service::connect() { return link_.connect(loop_, frame_limits()); }

void Service::log(Level level, const std::string &line) { log_line(level, line); }

void Service::start_commit(std::vector<store::TreeUpdate> updates, store::Room room) {
    storage_.commit(std::move(updates), room);
}

void Service::fatal(const std::string &why) {
    log_error(why + "; the backup ends without replying: restart it, and it recovers");
    std::_Exit(1);  // without destructors, which would touch the store
}

}  // namespace dcs::backup
