#include "sim/server_node.h"

#include <algorithm>

#include "base/limits.h"
#include "support/server_check.h"

namespace dcs::sim {
namespace {
constexpr std::uint32_t server_mark = 0x5356;
constexpr Duration launcher_delay_max = milliseconds(20);
}  // namespace

// One overload per effect, as in grainserver/shell/server.cc.
struct ServerEffects {
    ServerNode &s;

    void operator()(server::Connect &e) {
        s.way_ = e.to == server::Peer::backup ? s.backup_ : &s.links_;
        s.conn_ = s.way_->connect(&s, s.host_.site, turn::Door::server, "root");
    }
    void operator()(server::Disconnect &) {
        if (s.conn_ != no_connection) s.way_->close_client(s.conn_);
        s.conn_ = no_connection;
    }
    void operator()(server::Send &e) { s.send(e.message); }
    void operator()(server::WriteLaunch &e) {
        if (s.host_.disk_full())
            return s.put(server::LaunchUnwritten{e.id, Code::no_space, "the disk of this host is full"});
        Directory dir;
        dir.boot = s.host_.boot();
        dir.input = std::move(e.launch.input);
        dir.launch = std::move(e.launch);
        dir.launch.input.clear();
        dir.acked = dir.launch.next_seq - 1;
        dir.placed = dir.launch.files.empty();
        s.host_.directories[e.id] = std::move(dir);
        s.put(server::LaunchWritten{e.id});
    }
    void operator()(server::ProveGrain &e) { s.host_.prove(e.id); }
    void operator()(server::StartGrain &e) {
        if (s.state_.launcher_queues) s.host_.queue(e.id, e.first, s.state_.slots);
        else s.host_.start(e.id, s.state_.slots);
    }
    void operator()(server::RecallGrain &e) { s.host_.recall(e.id); }
    void operator()(server::CheckpointSignal &e) { s.host_.signal(e.id); }
    void operator()(server::ThrashSignal &) {}  // these programs cannot shrink
    void operator()(server::TerminateGrain &e) { s.host_.terminate(e.id); }
    void operator()(server::KillGrain &e) { s.host_.kill(e.id); }
    void operator()(server::WriteAcked &e) {
        const auto dir = s.host_.directories.find(e.id);
        if (dir == s.host_.directories.end() || s.host_.disk_full()) return;
        Directory &d = dir->second;
        d.acked = e.sequence;
        d.increments.erase(d.increments.begin(), d.increments.upper_bound(e.sequence));
        d.checkpoints.erase(d.checkpoints.begin(), d.checkpoints.lower_bound(e.sequence));
    }
    void operator()(server::WriteEnding &e) {
        const auto dir = s.host_.directories.find(e.id);
        if (dir == s.host_.directories.end() || s.host_.disk_full()) return;
        dir->second.ending = e.ending;
        dir->second.reason = e.reason;
        dir->second.limit_signal = e.limit_signal;
        dir->second.given_back = e.given_back;
    }
    void operator()(server::RemoveDir &e) { s.host_.directories.erase(e.id); }
    void operator()(server::Look &e) {
        s.last_look_ = s.clock_.now;
        s.put(server::Looked{e.id, s.look(e.id)});
    }
    void operator()(server::SendReport &e) {
        auto built = s.build(e);
        if (auto *report = std::get_if<wire::GrainReport>(&built)) return s.send(std::move(*report));
        s.put(std::get<server::ReportUnsendable>(built));
    }
    void operator()(server::PlaceFiles &e) { s.place(e.id); }
    void operator()(server::KeepPiece &e) { s.keep(e); }
    void operator()(server::DropPieces &e) { s.coming_.erase(e.digest); }
    void operator()(server::KeepOutputs &e) { s.keep_outputs(e.id); }
    void operator()(server::SendPiece &e) { s.put_piece(e); }
    void operator()(server::PeekOutput &e) { s.send(wire::Peeked{e.peek.ticket, 0, {}}); }
    void operator()(server::Gauge &e) {
        s.put(server::Gauged{s.host_.load(), s.host_.free_memory_kb(), e.boundary, Host::memory_kb});
    }
    void operator()(server::WatchHost &e) {
        server::Watched seen;
        for (const server::GrainId &id : e.grains) {
            s.host_.bring_up(id);
            seen.grains.emplace(id, s.host_.grain_sample(id));
        }
        seen.host = s.host_.host_sample();
        s.put(std::move(seen));
    }
    void operator()(server::SetLogLevel &) {}  // nothing is logged here
    void operator()(server::SaveConfig &) {
        s.saved_interval_ = s.state_.interval;
        s.saved_slots_ = s.state_.slots;
        s.saved_epoch_ = s.state_.epoch;
        s.saved_store_ = s.state_.backup_store;
        s.saved_number_ = s.state_.backup_number;
    }
    void operator()(server::Log &e) {
        if (s.clock_.tracing) s.clock_.note(s.host_.name + ": " + e.text);
    }
};

ServerNode::ServerNode(Clock &clock, Links &links, Host &host, Links *backup)
    : clock_(clock),
      links_(links),
      backup_(backup),
      host_(host),
      random_(random_for(clock.plan.seed, "server", static_cast<std::uint64_t>(host.number))) {
    host_.attach(this);
}

// ---- the process --------------------------------------------------------------------------

void ServerNode::start() {
    if (up_ || !host_.on()) return;
    up_ = true;
    ++life_;
    state_ = server::State{};
    state_.host = host_.name;
    state_.binary_class = "x86_64-linux-gnu";
    state_.boot_id = std::to_string(host_.boot());
    state_.instance = random_.next();
    state_.interval = saved_interval_;
    state_.slots = saved_slots_;
    state_.epoch = saved_epoch_;
    state_.has_backup = backup_ != nullptr;
    state_.backup_store = saved_store_;
    state_.backup_number = saved_number_;
    state_.courtesy.on = !clock_.plan.scale;
    state_.courtesy.every = clock_.plan.interval / 8;  // as seldom as a day of fifty hosts bears
    tick_at_ = Instant::never();
    last_look_ = Instant{};
    pending_.clear();
    heard_.clear();
    coming_.clear();
    adopt();
    put(server::Began{});
    if (host_.launcher_up()) launcher_says(Host::Answer{});
    handle();
}

void ServerNode::kill() {
    if (!up_) return;
    up_ = false;
    host_.forget_queue();
    ++life_;
    if (conn_ != no_connection) way_->close_client(conn_);
    conn_ = no_connection;
    pending_.clear();
    inbox_.clear();
    heard_.clear();
}

void ServerNode::machine_lost() {
    if (conn_ != no_connection) way_->lose_client(conn_);
    conn_ = no_connection;
    kill();
}

void ServerNode::stop(bool on) {
    stopped_ += on ? 1 : -1;
    if (stopped_ > 0 || !up_) return;
    tick_at_ = Instant::never();
    handle();  // what it was about to do
    std::deque<Waiting> waiting = std::exchange(inbox_, {});
    for (Waiting &w : waiting) {
        if (w.kind == 0) link_opened(w.conn);
        else if (w.kind == 1) link_frame(w.conn, std::move(w.frame));
        else link_closed(w.conn, w.frame);
    }
    if (!heard_.empty()) hear_launcher();
    handle();
}

// ---- what its loop does -------------------------------------------------------------------

void ServerNode::handle() {
    if (!up_ || stopped_ > 0) return;
    while (!pending_.empty()) {
        server::Input input = std::move(pending_.front());
        pending_.pop_front();
        ++steps_;
        const double jitter = static_cast<double>(random_.next() >> 11) / 9007199254740992.0;
        for (server::Effect &effect : server::step(state_, clock_.now, jitter, std::move(input)))
            std::visit(ServerEffects{*this}, effect);
    }
    if (!clock_.plan.scale && steps_ % 8 == 0)
        if (const std::string what = server::check(state_); !what.empty()) clock_.complain("grain server", what);
    schedule();
}

// Looking at grains that run may be late by the plan's drowsiness; nothing else may.
void ServerNode::schedule() {
    Instant looks = Instant::never();
    std::vector<std::pair<server::Grain *, Instant>> hidden;
    for (auto &[id, g] : state_.grains) {
        if (g.phase != server::Phase::running || g.look_at == Instant::never()) continue;
        looks = std::min(looks, g.look_at);
        hidden.emplace_back(&g, g.look_at);
        g.look_at = Instant::never();
    }
    const Instant urgent = server::next_deadline(state_);
    for (const auto &[g, at] : hidden) g->look_at = at;
    Instant at = std::min(urgent, std::max(looks, last_look_ + clock_.plan.drowse));
    at = std::max(at, clock_.now + Duration{1000});
    if (at >= tick_at_ || at == Instant::never()) return;
    tick_at_ = at;
    clock_.put(at, this, server_mark, tick, life_);
}

void ServerNode::happen(std::uint32_t what, std::uint64_t arg) {
    if (arg != life_ || !up_ || stopped_ > 0) return;
    if (what == hear) {
        hear_launcher();
        return handle();
    }
    if (clock_.now < tick_at_) return;  // a later one was planned again after a stop
    tick_at_ = Instant::never();
    if (clock_.now >= server::next_deadline(state_)) put(server::Tick{});
    handle();
}

void ServerNode::send(const wire::AnyMessage &message) {
    if (conn_ == no_connection) return;
    if (clock_.tracing) clock_.note(host_.name + " -> scheduler " + wire::kind_name(message));
    way_->send_up(conn_, wire::encode(message, 0));
}

// ---- what arrives -------------------------------------------------------------------------

void ServerNode::link_opened(ConnId conn) {
    if (conn != conn_ || !up_) return;
    if (stopped_ > 0) return inbox_.push_back({conn, 0, {}});
    put(server::LinkOpened{});
    handle();
}

void ServerNode::link_frame(ConnId conn, std::string frame) {
    if (conn != conn_ || !up_) return;
    if (stopped_ > 0) return inbox_.push_back({conn, 1, std::move(frame)});
    const std::string_view all = frame;
    auto header = wire::decode_header(all.substr(0, wire::header_bytes), limits::server_frame_bytes);
    if (!header) return clock_.complain("wire", "to a server: " + header.status().text);
    auto message = wire::decode_payload(*header, all.substr(wire::header_bytes));
    if (!message) return clock_.complain("wire", "to a server: " + message.status().text);
    put(server::FromScheduler{std::move(*message)});
    handle();
}

void ServerNode::link_closed(ConnId conn, const std::string &why) {
    if (conn != conn_ || !up_) return;
    if (stopped_ > 0) return inbox_.push_back({conn, 2, why});
    conn_ = no_connection;
    put(server::LinkClosed{why});
    handle();
}

void ServerNode::launcher_says(Host::Answer answer) {
    if (!up_) return;
    heard_.push_back(std::move(answer));
    const Duration wait = between(random_, milliseconds(1), launcher_delay_max);
    if (heard_.size() == 1) clock_.put(clock_.now + wait, this, server_mark, hear, life_);
}

void ServerNode::look_for_exit(const server::GrainId &id) {
    const auto dir = host_.directories.find(id);
    if (dir != host_.directories.end() && dir->second.exit) put(server::GrainExited{id, *dir->second.exit});
}

void ServerNode::hear_launcher() {
    using Kind = Host::Answer::Kind;
    std::deque<Host::Answer> answers = std::exchange(heard_, {});
    for (const Host::Answer &a : answers) {
        if (clock_.tracing)
            clock_.note(host_.name + ": launcher says " + std::to_string(static_cast<int>(a.kind)) + " " +
                        server::to_text(a.id));
        switch (a.kind) {
        case Kind::down: put(server::LauncherDown{}); break;
        case Kind::up:
            put(server::LauncherUp{clock_.plan.queues});
            for (const auto &[id, g] : state_.grains)
                if (g.phase == server::Phase::running) look_for_exit(id);
            break;
        case Kind::proved: put(server::GrainProved{a.id}); break;
        case Kind::recalled: put(server::GrainRecalled{a.id}); break;
        case Kind::started: put(server::GrainStarted{a.id}); break;
        case Kind::have:
            put(server::GrainStarted{a.id});
            look_for_exit(a.id);
            break;
        case Kind::failed: put(server::StartFailed{a.id, a.code, a.again, a.text}); break;
        case Kind::exited: look_for_exit(a.id); break;
        }
    }
}

}  // namespace dcs::sim
