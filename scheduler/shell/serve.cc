#include "scheduler/shell/serve.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/load_limits.h"
#include "base/require.h"
#include "daemon/log.h"
#include "daemon/privileges.h"
#include "scheduler/core/authorise.h"
#include "scheduler/shell/lost_hosts.h"
#include "scheduler/shell/settings_text.h"

namespace dcs::shell {
namespace {

// With nothing to do for this long, what is committed is synced away into its trees.
constexpr Duration idle_before_flush = milliseconds(200);
// At least this often a closed session is packed, or a slice of the disk checked for damage.
constexpr Duration tidy_when_busy = seconds(1);
// A flush that found no room is not repeated at once.
constexpr Duration flush_retry = seconds(10);
constexpr std::size_t arrivals_at_once = 1024;
// Replies to the last commit leave within this, or their peers ask again.
constexpr Duration farewell = milliseconds(100);
// What a grain server says first. Others who come through its door only ask.
const std::uint16_t of_server = wire::kind_of(wire::CallIn{});

}  // namespace

Service::Service(ServeSettings settings, Signals &signals, Suspect &suspect, store::Store &store,
                 std::unique_ptr<store::Disk> library_disk, net::Loop &loop, keeper::KeeperClient &keeper,
                 reader::Reader &reader, Doors doors, turn::Turn::Setup setup, MirrorParts mirror,
                 Configuration &configuration)
    : settings_(std::move(settings)),
      configuration_(configuration),
      signals_(signals),
      keeper_(keeper),
      users_(keeper, settings_.members_only),
      logins_([this](const std::string &login) { return users_.knows_login(login); }, boot_clock),
      store_(store),
      loop_(loop),
      storage_(store, loop),
      library_(std::move(library_disk), loop),
      imports_(reader, loop),
      prober_(loop, [this](bool v6) { return keeper_.echo_socket(v6); }),
      outside_(loop, storage_, library_, imports_, suspect, prober_, users_),
      turn_(std::move(setup), store, outside_),
      mirror_(mirror.setup, mirror.file, mirror.turns, store, turn_.library(), loop,
              [this](const std::string &why) { replaced(why); }),
      server_processes_(loop),
      doors_(std::move(doors)) {
    outside_.on_reread([this](bool move_grains) { return reread_settings(move_grains); });
    outside_.on_remove_line([this](const std::string &host) { return remove_host_line(host); });
    outside_.say_store_path(settings_.directory);
    outside_.use_tls(doors_.tls.get());
    outside_.on_copy_of_store([this] { return mirror_.status(); });
    outside_.on_more_problems([this] {
        auto rows = with_refused(configuration_.refused(), mirror_.problems(turn_.state()));
        if (doors_.tls)
            for (wire::ProblemRow &row : doors_.tls->problems()) rows.push_back(std::move(row));
        for (wire::ProblemRow &row : login_problems(logins_.look())) rows.push_back(std::move(row));
        users_.add_problem(rows);
        if (auto row = alike_names(turn_.state())) rows.push_back(std::move(*row));
        return rows;
    });
}

Status Service::run() {
    loop_.watch(signals_.fd());
    loop_.watch(keeper_.process().fd());
    loop_.watch(settings_.resolver->fd());
    loop_.watch(imports_.watched());
    turn_.take_limits(settings_.limits);
    turn_.take_policy(std::move(settings_.policy));
    turn_.take_host_table(std::move(settings_.hosts));
    logins_.take(std::move(settings_.logins));
    last_activity_ = boot_clock();
    turn_.run();
    failpoint("shell.start.before_ready");
    if (Status s = tell_ready(settings_.ready_fd); !s) log_warn(s.text);
    settings_.manager.tell("READY=1\nSTATUS=serving");
    if (Status s = keep_only_calls({.process_ends = true}); !s) return s;
    log_info("serving in " + settings_.directory);
    warn_of(logins_.look());
    while (!stopping_) step();
    return stop();
}

bool Service::may_flush() const { return !storage_.busy() && !turn_.committing() && store_.pending_bytes() > 0; }

void Service::step() {
    turn_out_copies();
    if (held_ || !turn_.committing()) mirror_.let_go(turn_.state());
    mirror_.pump(!storage_.busy());
    if (held_ && !mirror_.holds()) turn_.committed(*std::exchange(held_, std::nullopt));
    if (!storage_.busy()) {
        turn_.run();
        be_idle();  // here, where nothing that has arrived waits to be decided
    }
    if (settings_.removal->removed()) outside_.fatal(settings_.directory + " was removed");
    Instant deadline = std::min(storage_.busy() ? Instant::never() : turn_.next_wakeup(), mirror_.next_look());
    if (may_flush()) deadline = std::min(deadline, std::max(last_activity_ + idle_before_flush, flush_not_before_));
    if (storage_.answered()) deadline = Instant{};
    if (!storage_.busy() && !turn_.committing())
        deadline = std::min(deadline, std::max(last_activity_ + idle_before_flush, turn_.tidy_wakeup()));
    std::vector<net::Arrival> arrivals;
    if (storage_.busy() && turn_.full()) storage_.wait();
    else arrivals = loop_.wait(std::min(deadline, settings_.removal->next()), arrivals_at_once);
    for (net::Arrival &arrival : arrivals) handle(std::move(arrival));
    if (keeper_.process().lost()) look_at(keeper_.process());
    if (doors_.tls) doors_.tls->look_after(boot_clock());
    if (auto done = storage_.take()) storage_answered(std::move(*done));
    for (const library::JobDone &done : library_.take()) turn_.take_library_job(done);
    for (ImportThreads::Done &done : imports_.take()) turn_.take_import(done.id, std::move(done.rows));
    for (const core::ProbeResult &result : prober_.take()) turn_.take_probe_result(result);
}

// After a while without requests, postponed work gets its share. A little of it gets done
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
    DCS_REQUIRE(!held_ || !done.was_commit, "no turn is committed while one waits for the backup");
    if (done.was_commit) {
        if (!std::exchange(tidying_, false)) last_activity_ = boot_clock();
        return commit_answered(done.result);
    }
    if (done.result.answer != store::Answer::done)
        outside_.fatal("the backing store is in doubt: " + done.result.status.text);
    if (!done.result.status) {
        log_warn("the backing store delays its syncs: " + done.result.status.text);
        flush_not_before_ = boot_clock() + flush_retry;
    }
}

// Where the backup's copy counts, a turn is done when the copy has it too.
void Service::commit_answered(const store::CommitResult &result) {
    if (!ended_) return;  // nothing is acknowledged from here on
    if (result.answer == store::Answer::done) {
        mirror_.committed();
        turn_out_copies();
        mirror_.pump(true);
        if (mirror_.holds()) {
            DCS_REQUIRE(!held_, "one turn at a time waits for the backup");
            held_ = result;
            return;
        }
    }
    turn_.committed(result);
}

void Service::replaced(const std::string &why) {
    ended_ = fail(Code::refused, why +
                                     ". This scheduler ends without answering, because its state directory is out "
                                     "of date: keep it aside, and use the new scheduler");
    log_error(ended_.text);
    stopping_ = true;
}

void Service::handle(net::Arrival arrival) {
    turn::Arrival a;
    a.conn = arrival.conn;
    switch (arrival.what) {
    case net::What::woken: return;
    case net::What::ready: return readable(arrival.watch);
    case net::What::held_up: return log_warn(arrival.why);
    case net::What::refused:
        DCS_REQUIRE(doors_.tls, "only the door for other hosts refuses by itself");
        return turn_.take_refusal(doors_.tls->refused(boot_clock(), arrival));
    case net::What::opened:
        return doors_.tls && doors_.tls->is(arrival.door) ? opened_from_afar(arrival) : opened(arrival);
    case net::What::frame:
        if (about_copy(arrival)) return;
        if (own_peers_.count(a.conn) != 0 && arrival.header.kind == of_server)
            server_processes_.called_in(a.conn, arrival.peer.pid);
        a.kind = turn::Arrival::Kind::frame;
        a.header = arrival.header;
        a.payload = std::move(arrival.payload);
        break;
    case net::What::closed:
        if (own_peers_.erase(a.conn) + backups_.erase(a.conn) != 0) mirror_.gone(a.conn);
        a.kind = turn::Arrival::Kind::closed;
        log_debug("connection " + to_text(a.conn) + " closed: " + arrival.why);
        break;
    }
    last_activity_ = boot_clock();
    turn_.take(std::move(a));
}

// The copy is for processes of our own account here, and for the backup that the host table names.
bool Service::about_copy(const net::Arrival &arrival) {
    const bool of_backup = turn::Mirror::of_backup(arrival.header.kind);
    if (own_peers_.count(arrival.conn) != 0)
        return (of_backup && mirror_.turn_out(arrival.conn, {}, turn_.state())) || mirror_.frame(arrival);
    const auto peer = backups_.find(arrival.conn);
    if (peer == backups_.end() || !of_backup) return false;
    peer->second.copies = true;
    turn_out_copies();
    return backups_.count(arrival.conn) == 0 || mirror_.frame(arrival);
}

// A host that is no longer the backup gets nothing more of the store, from the turn on that says so.
void Service::turn_out_copies() {
    for (auto at = backups_.begin(); at != backups_.end();) {
        const auto [conn, peer] = *at++;
        if (peer.copies && mirror_.turn_out(conn, peer.certified, turn_.state())) backups_.erase(conn);
    }
}

void Service::opened(const net::Arrival &arrival) {
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::opened;
    a.conn = arrival.conn;
    a.door = arrival.door == doors_.server ? turn::Door::server : turn::Door::user;
    const bool ours = owner_or_root(arrival.peer.uid);
    const auto user = users_.name_of(arrival.peer.uid);
    if (keeper_.process().lost()) return loop_.close(arrival.conn);  // the peer cannot be identified
    if (!user) return turn_away(arrival.conn, user.status());
    a.user = *user;
    const std::vector<std::string> &masters = settings_.masters;
    a.privileged = ours || std::find(masters.begin(), masters.end(), a.user) != masters.end();
    if (a.door == turn::Door::server && !ours) {
        log_warn("a process of " + a.user + " (pid " + std::to_string(arrival.peer.pid) +
                 ") connected to the grain servers' socket and was refused");
        return loop_.close(arrival.conn);
    }
    if (a.door == turn::Door::server) own_peers_.insert(a.conn);
    log_debug("connection " + to_text(a.conn) + " of " + a.user + ", pid " + std::to_string(arrival.peer.pid));
    turn_.take(std::move(a));
}

// Its further messages are not read.
void Service::turn_away(ConnId conn, const Status &why) {
    DCS_REQUIRE(!why, "a refusal has a reason");
    log_debug("connection " + to_text(conn) + " was refused: " + why.text);
    (void)loop_.send(conn, wire::ErrorReply{static_cast<std::int32_t>(why.code), why.text});
    loop_.close(conn);
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
    case pki::Role::backup:
        a.door = turn::Door::backup;
        backups_[a.conn] = {a.certified, false};
        break;
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
    log_debug("connection " + to_text(a.conn) + " of " + a.user + " at " + arrival.address +
              (peer.serial.empty() ? "" : ", certificate " + peer.serial));
    turn_.take(std::move(a));
}

void Service::readable(int watch) {
    if (watch == keeper_.process().fd()) return look_at(keeper_.process());
    if (watch == settings_.resolver->fd()) return look_at(*settings_.resolver);
    if (watch == imports_.watched()) return imports_.look_at_reader();
    if (watch == signals_.fd()) return handle_signals();
    if (const auto conn = server_processes_.ended(watch)) turn_.take_end(*conn);
}

// Without the keeper callers cannot be identified and no certificate be issued, without the resolver no host be found.
void Service::look_at(SideProcess &beside) {
    const Status why = beside.stops_daemon();
    if (why || stopping_) return;
    ended_ = fail(why.code, why.text + ". Nothing is lost; programs and grain servers reconnect by themselves");
    log_error(ended_.text);
    stopping_ = true;
}

void Service::handle_signals() {
    for (int signal = 0; (signal = signals_.next()) != 0;) {
        stopping_ = stopping_ || signal != SIGHUP;
        if (signal != SIGHUP) continue;
        users_.forget();
        (void)reread_settings(true);
    }
}

Result<SettingsFiles> Service::read_tables(bool move_grains) {
    const auto read = [this](keeper::Settings which, const std::string &file, const char *what) {
        return keeper_.settings(which, file, what);
    };
    std::vector<Status> why;
    SettingsFiles files = read_settings_files(settings_.files, read, why);
    if (!why.empty()) return in_short(why.front());
    if (Status s = keeps_hosts(turn_.state(), files.hosts, settings_.files.hosts, move_grains); !s) return s;
    return files;
}

void Service::take_tables(SettingsFiles tables) {
    log_reread(settings_.files.hosts, settings_.files.policy, changes_of_hosts(turn_.state(), tables.hosts),
               changes_of_rules(std::exchange(settings_.rules, tables.rules), tables.rules));
    turn_.take_limits(tables.limits);
    turn_.take_policy(std::move(tables.policy));
    turn_.take_host_table(std::move(tables.hosts));
    if (settings_.look_up_logins) logins_.take(with_masters(std::move(tables.logins), settings_.masters));
    warn_of(logins_.look());
    for (const wire::ProblemRow &row : mirror_.problems(turn_.state()))
        log_warn(row.entity + ": " + row.problem + ": " + row.affects + "; " + row.advice);
}

// The configuration and all three files are read and checked, whole, before anything changes.
Status Service::reread_settings(bool move_grains) {
    SchedulerOptions fresh;
    const auto change = configuration_.read(command_line(fresh));
    auto tables = read_tables(move_grains);
    if (!change || !tables) {
        const Status why = !change ? change.status() : tables.status();
        configuration_.refuse(!change ? "the old configuration, host table, policy and limits remain in effect"
                                      : "the old host table, policy and limits remain in effect",
                              why);
        return why;
    }
    configuration_.take(*change);
    if (change->has("log-level")) log_set_level(*level_of(fresh.log_level));
    settings_.masters = fresh.master_names();
    take_tables(std::move(*tables));
    return Status::ok();
}

Status Service::remove_host_line(const std::string &host) {
    if (Status s = keeper_.remove_host(host); !s) return s;
    (void)reread_settings(true);  // whether that succeeds or not, the host and its line are gone
    return Status::ok();
}

// What is in flight is finished and answered; what was not decided is asked again by its sender.
Status Service::stop() {
    DCS_REQUIRE(stopping_, "the loop has ended");
    log_info("stopping");
    settings_.manager.tell("STOPPING=1\nSTATUS=committing what has arrived");
    failpoint("shell.stop.begin");
    while (storage_.busy()) {
        storage_.wait();
        if (auto done = storage_.take()) storage_answered(std::move(*done));
    }
    loop_.wait(boot_clock() + farewell, arrivals_at_once);
    failpoint("shell.stop.before_flush");
    const store::CommitResult flushed = held_ ? *held_ : store_.flush();  // the journal keeps what the backup lacks
    failpoint("shell.stop.after_flush");
    if (flushed.answer != store::Answer::done)
        return fail(Code::io_error, "the backing store is in doubt: " + flushed.status.text);
    if (!flushed.status) log_warn("last flush: " + flushed.status.text);
    store_.retire_journal();
    log_info("stopped");
    return ended_;
}

}  // namespace dcs::shell
