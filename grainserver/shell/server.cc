#include "grainserver/shell/server.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "base/require.h"
#include "daemon/log.h"
#include "daemon/privileges.h"
#include "grainserver/shell/configured.h"

namespace dcs::server {
namespace {
constexpr std::size_t arrivals_max = 256;
constexpr Duration tidy_interval = seconds(60), tidy_pause = milliseconds(50);
constexpr Duration figures_last = milliseconds(500);

net::Limits link_limits() {
    net::Limits limits;
    limits.max_payload = limits::server_frame_bytes;
    limits.hello = seconds(60);  // the scheduler may be recovering its store
    return limits;
}

}  // namespace

std::uint64_t random_number() {
    std::uint64_t n = 0;
    if (::getrandom(&n, sizeof n, 0) != static_cast<ssize_t>(sizeof n)) n = static_cast<std::uint64_t>(boot_clock().ns);
    return n;
}

// One overload for each effect.
struct Performer {
    Server &s;

    void operator()(Connect &e) { s.connect(e.to); }
    void operator()(Disconnect &) { s.drop_link(); }
    void operator()(Send &e) {
        failpoint("server.message.before_send");
        if (auto *result = std::get_if<wire::LaunchResult>(&e.message)) result->uid = s.files_.uid_of(result->key.user);
        s.send(e.message);
    }
    void operator()(WriteLaunch &e) {
        failpoint("server.launch_record.before_write");
        const Status done = s.files_.prepare(e.id, std::move(e.launch), s.state_.epoch);
        failpoint("server.launch_record.after_write");
        const std::string note = s.files_.take_note();
        if (!note.empty()) s.log_(Level::info, to_text(e.id) + ": " + note);
        if (done) s.put(LaunchWritten{e.id});
        else s.put(LaunchUnwritten{e.id, done.code, done.text});
    }
    void operator()(ProveGrain &e) { order(files::Verb::prove, e.id); }
    void operator()(StartGrain &e) {
        if (!s.state_.launcher_queues) s.files_.make_plain(e.id);
        const files::Verb queue = e.first ? files::Verb::first : files::Verb::queue;
        order(s.state_.launcher_queues ? queue : files::Verb::start, e.id, s.state_.slots);
    }
    void operator()(RecallGrain &e) { order(files::Verb::recall, e.id); }
    void operator()(CheckpointSignal &e) { order(files::Verb::signal, e.id, SIGUSR1); }
    void operator()(ThrashSignal &e) { order(files::Verb::signal, e.id, SIGUSR2); }
    void operator()(TerminateGrain &e) { order(files::Verb::term, e.id); }
    void operator()(KillGrain &e) { order(files::Verb::kill, e.id); }
    void operator()(WriteAcked &e) {
        failpoint("server.acked_record.before_write");
        tell(e.id, s.files_.write_acked(e.id, e.sequence));
        failpoint("server.acked_record.after_write");
    }
    void operator()(WriteEnding &e) {
        failpoint("server.ending_record.before_write");
        tell(e.id, s.files_.write_ending(e));
        failpoint("server.ending_record.after_write");
    }
    void operator()(PlaceFiles &e) { s.contents_.place(e.id); }
    void operator()(KeepPiece &e) { s.contents_.keep(e); }
    void operator()(DropPieces &e) { s.contents_.drop(e.digest); }
    void operator()(KeepOutputs &e) { s.contents_.keep_outputs(e.id); }
    void operator()(SendPiece &e) { s.contents_.send(e); }
    void operator()(RemoveDir &e) {
        s.contents_.give_up(e.id);
        failpoint("server.directory.before_remove");
        tell(e.id, s.files_.remove(e.id));
        failpoint("server.directory.after_remove");
    }
    void operator()(Look &e) {
        if (const auto grain = s.state_.grains.find(e.id); grain != s.state_.grains.end())
            s.put(Looked{e.id, s.files_.look(e.id, grain->second.acked, grain->second.phase == Phase::ended)});
    }
    void operator()(SendReport &e) {
        auto built = s.files_.build(e);
        auto *report = std::get_if<wire::GrainReport>(&built);
        if (!report) return s.put(std::get<ReportUnsendable>(built));
        failpoint("server.report.before_send");
        s.send(std::move(*report));
        failpoint("server.report.after_send");
    }
    void operator()(Gauge &e) {
        if (const Instant now = boot_clock(); e.boundary || now >= s.figures_until_) {
            s.figures_ = s.gauge_.figures();
            s.figures_until_ = now + figures_last;
        }
        if (e.boundary) s.check_claims();
        const bool full = s.files_.disk_full();
        if (full) s.files_.drop_spares();
        s.put(Gauged{s.figures_.load, s.figures_.free_memory_kb, e.boundary, s.figures_.memory_kb, full, s.uids_lost_});
    }
    void operator()(PeekOutput &e) { s.send(s.files_.peek(e.id, e.peek)); }
    void operator()(WatchHost &e) {
        Watched seen{s.gauge_.host(), {}};
        for (const GrainId &id : e.grains)
            if (const pid_t pid = s.files_.process_of(id); pid > 0) seen.grains.emplace(id, s.gauge_.grain(pid));
        s.put(std::move(seen));
    }
    void operator()(SaveConfig &) {
        failpoint("server.config_record.before_write");
        if (const Status done = save_configured(s.own_.get(), s.state_); !done) s.log_(Level::warning, done.text);
        failpoint("server.config_record.after_write");
    }
    void operator()(SetLogLevel &e) {
        if (const auto level = dcs::level_of(e.level)) log_set_level(*level);
    }
    void operator()(Log &e) {
        if (e.always && log_level() == dcs::Level::off)
            std::fprintf(stderr, "dcs_grainserver %s: %s\n", s.options_.name.c_str(), e.text.c_str());
        s.log_(e.level, e.text);
    }

    void order(files::Verb verb, const GrainId &id, int number = 0) {
        files::LauncherCall call{.verb = verb, .dir = s.files_.name_of(id), .number = number};
        s.launcher_.send(call);
    }
    void tell(const GrainId &id, const Status &done) {
        if (!done) s.log_(Level::error, to_text(id) + ": " + done.text);
    }
};

Server::~Server() {
    if (loop_ && conn_ != no_connection) loop_->close(conn_);
}

void Server::look_at(SideProcess &beside) {
    const Status why = beside.stops_daemon();
    if (why || stop_) return;
    ended_ = fail(why.code, why.text + ". Its grains continue to run");
    log_(Level::error, ended_.text);
    stop_ = true;
}

double Server::jitter() { return static_cast<double>(random_() >> 11) / 9007199254740992.0; }

void Server::connect(Peer to) {
    DCS_REQUIRE(conn_ == no_connection, "the previous connection is closed");
    const std::string &backup = options_.backup.empty() ? state_.backup_place.address : options_.backup;
    Result<ConnId> conn = ConnId{0};
    if (to == Peer::scheduler) conn = link_.connect(*loop_, link_limits());
    else if (!state_.asks_for_backup) conn = loop_->connect_unix(backup, link_limits());
    else conn = link_.connect_to(*loop_, link_limits(), backup, pki::Role::backup);
    if (conn) conn_ = *conn;
    else put(LinkClosed{conn.status().text});
}

void Server::keep_certificate() {
    if (!state_.with_scheduler()) return;
    if (const auto wish = link_.wish(boot_clock())) send(*wish);
}

void Server::send(const wire::AnyMessage &message) {
    if (Status s = loop_->send(conn_, message); !s)
        log_(Level::error, std::string(wire::kind_name(message)) + " was not sent: " + s.text);
}

void Server::take_certificate(const wire::Renewed &renewed) {
    const Status s = link_.renewed(renewed);
    log_(s ? Level::info : Level::error, s ? "the certificate of this host was renewed" : s.text);
}

void Server::drop_link() {
    if (conn_ != no_connection) loop_->close(conn_);
    conn_ = no_connection;
}

void Server::handle_pending() {
    while (!pending_.empty()) {
        Input input = std::move(pending_.front());
        pending_.pop_front();
        for (Effect &effect : step(state_, boot_clock(), jitter(), std::move(input)))
            std::visit(Performer{*this}, effect);
    }
}

void Server::take_frame(const net::Arrival &arrival) {
    Result<wire::AnyMessage> message = wire::decode_payload(arrival.header, arrival.payload);
    if (message)
        if (const auto *renewed = std::get_if<wire::Renewed>(&*message)) return take_certificate(*renewed);
    if (message && std::holds_alternative<wire::ErrorReply>(*message))
        *message = wire::Refused{*wire::refusal(*message)};
    if (message) tell_service_manager(*message);
    if (message) return put(FromScheduler{std::move(*message)});
    drop_link();
    put(LinkClosed{"the scheduler sent an invalid message: " + message.status().text});
}

// Whether the scheduler wants this server; a refused one runs on, and asks again.
void Server::tell_service_manager(const wire::AnyMessage &message) const {
    if (state_.peer != Peer::scheduler) return;
    const auto *refused = std::get_if<wire::Refused>(&message);
    if (refused) manager_.tell("STATUS=refused by the scheduler: " + escape_text(refused->text));
    if (std::holds_alternative<wire::Configure>(message)) manager_.tell("STATUS=serving");
}

void Server::handle_signals() {
    while (const int number = signals_->next()) {
        if (number == SIGHUP) reread_configuration();
        if (number == SIGTERM && state_.job.part_of) put(Leave{"the batch system ends the job of this host"});
        else stop_ = stop_ || number == SIGTERM || number == SIGINT;
    }
}

// The rest takes a restart, which grains do not notice.
void Server::reread_configuration() {
    OptionWords fresh;
    const auto change = configuration_.read(command_line(fresh));
    if (!change) return configuration_.refuse(configuration_stays, change.status());
    configuration_.take(*change);
    if (change->has("log-level")) log_set_level(*dcs::level_of(fresh.log_level));
    contents_.keep_at_most(static_cast<std::uint64_t>(fresh.server.library_mb) << 20);
}

void Server::take(net::Arrival &arrival) {
    if (arrival.what == net::What::ready && arrival.watch == signals_->fd()) {
        handle_signals();
    } else if (arrival.what == net::What::ready && arrival.watch == warden_->process().fd()) {
        look_at(warden_->process());
    } else if (arrival.what == net::What::ready && resolver_ && arrival.watch == resolver_->fd()) {
        look_at(*resolver_);
    } else if (arrival.what == net::What::ready) {
        read_launcher();
    } else if (arrival.conn == conn_ && conn_ != no_connection) {
        if (arrival.what == net::What::opened) opened(arrival.certified);
        if (arrival.what == net::What::frame) take_frame(arrival);
        if (arrival.what == net::What::closed) {
            conn_ = no_connection;
            put(LinkClosed{arrival.why});
        }
    }
}

// Accepts only the backup that the scheduler has named; another one of this pool is a former or a future backup.
void Server::opened(const net::TlsPeer &peer) {
    const wire::BackupPlace &named = state_.backup_place;
    const std::string key(peer.key.begin(), peer.key.end());
    const bool to_other_host = state_.peer == Peer::backup && state_.asks_for_backup;
    if (!to_other_host || (peer.name == named.name && key == named.key)) return put(LinkOpened{});
    drop_link();
    put(LinkClosed{"the peer is " + peer.name +
                   ", not the backup that the scheduler has named, or its key has changed"});
}

ContentCache::Names Server::needed_contents() const {
    ContentCache::Names names;
    for (const auto &[id, g] : state_.grains) {
        names.insert(g.content.needs.begin(), g.content.needs.end());
        if (!g.content.outputs) continue;
        for (const wire::GrainFile &file : *g.content.outputs) names.insert(file.digest);
    }
    return names;
}

// Runs between events.
void Server::keep_contents() {
    contents_.go_on();
    if (files_.removes())
        if (const Status s = files_.remove_some(); !s)
            log_(Level::error, "cannot remove the files of an ended grain: " + s.text);
    if (contents_.busy() || boot_clock() < tidy_at_) return;
    const bool more = contents_.tidy();
    if (!more) files_.tidy_spares();  // which counts the intervals
    tidy_at_ = boot_clock() + (more ? tidy_pause : tidy_interval);
}

Status Server::run(Signals &signals) {
    DCS_REQUIRE(loop_ && warden_, "the server is open before it serves");
    signals_ = &signals;
    loop_->watch(signals.fd());
    loop_->watch(warden_->process().fd());
    if (resolver_) loop_->watch(resolver_->fd());
    if (Status s = keep_only_calls({.unix_sockets = true, .foreign_files = true}); !s) return s;
    handle_pending();
    while (!stop_ && !(has_left(state_) && !files_.removes())) {
        keep_launcher();
        handle_pending();
        if (launcher_.has_calls()) {  // of all that has happened since the last wait
            failpoint("server.calls.before_send");
            launcher_.flush();
            failpoint("server.calls.after_send");
        }
        const bool busy = contents_.busy() || files_.removes();
        const Instant deadline =
            busy ? boot_clock() : std::min({next_deadline(state_), launcher_.retry_at(), tidy_at_, removal_.next()});
        std::vector<net::Arrival> arrivals = loop_->wait(deadline, arrivals_max);
        for (net::Arrival &arrival : arrivals) {
            take(arrival);
            handle_pending();
        }
        keep_contents();
        keep_certificate();
        if (removal_.removed()) return fail(Code::io_error, options_.directory + " was removed; its grains end, too");
        if (warden_->process().lost()) look_at(warden_->process());
        if (boot_clock() >= next_deadline(state_)) put(Tick{});
        handle_pending();
    }
    if (has_left(state_)) launcher_.send({files::Verb::quit});
    launcher_.flush();
    loop_->unwatch(signals.fd());
    loop_->unwatch(warden_->process().fd());
    return ended_;
}

}  // namespace dcs::server
