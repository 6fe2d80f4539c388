#include "sim/scheduler_node.h"

#include "scheduler/record/paths.h"

namespace dcs::sim {
namespace {

constexpr std::uint32_t own_mark = 0x5348;
// As scheduler/shell/serve.cc has them.
constexpr Duration idle_before_flush = milliseconds(200);
constexpr Duration tidy_when_busy = seconds(1);
constexpr Duration flush_retry = seconds(10);
constexpr int listen_backlog = 128;

}  // namespace

SchedulerNode::SchedulerNode(Clock &clock, Medium &medium, HostTable hosts, Reachable reachable)
    : clock_(clock),
      medium_(medium),
      hosts_(std::move(hosts)),
      reachable_(std::move(reachable)),
      random_(random_for(clock.plan.seed, "scheduler")) {}

SchedulerNode::~SchedulerNode() = default;

// ---- the process --------------------------------------------------------------------------

Status SchedulerNode::recover() {
    store::RecoveryReport report;
    auto opened = store::Store::open(medium_.disk(), record::forest(), clock_.plan.store, &report);
    if (!opened) return opened.status();
    store_ = std::move(*opened);
    if (!report.damaged.empty()) return fail(Code::io_error, report.damaged[0].path + ": " + report.damaged[0].what);
    auto rebuilt = record::rebuild(*store_, clock_.now);
    if (!rebuilt) return rebuilt.status();
    if (!rebuilt->reports.empty()) return fail(Code::io_error, rebuilt->reports[0]);
    committed_turn_ = store_->turn();
    watch_->started(rebuilt->state, *store_);
    turn::Turn::Setup setup;
    setup.state = std::move(rebuilt->state);
    setup.state.policy.stored_share = 0;  // its disks are full for other reasons
    if (clock_.plan.resources) setup.state.policy.resources["licence"] = 4;
    auto library = library::Library::open(medium_.disk(), clock_.now);
    if (!library) return library.status();
    setup.library = std::move(*library);
    turn_ = std::make_unique<turn::Turn>(std::move(setup), *store_, *this);
    return Status::ok();
}

void SchedulerNode::start() {
    ++figures.starts;
    ++life_;
    died_ = flushing_ = tidying_ = false;
    job_.reset();
    probes_.clear();
    library_jobs_.clear();
    wake_at_ = Instant::never();
    stopped_until_ = Instant{};
    awake_since_ = started_at_ = last_activity_ = clock_.now;
    flush_not_before_ = last_tidy_ = Instant{};
    if (Status s = recover(); !s) return clock_.complain("recovery", s.text);
    if (clock_.tracing) clock_.note("scheduler starts, turn " + std::to_string(store_->turn()));
    turn_->take_host_table(hosts_());
    step();
}

void SchedulerNode::lose(bool power, Duration away) {
    if (!turn_) return;
    if (clock_.tracing) clock_.note(power ? "scheduler's machine loses its power" : "scheduler is killed");
    watch_->lost(turn_->state(), turn_->committing() || died_, committed_turn_);
    crash_disk(power);
    turn_.reset();
    store_.reset();
    job_.reset();
    inbox_.clear();
    waiting_ = 0;
    flushing_ = fail_sync_ = false;
    ++life_;
    links_->lose_listener(power);
    stopped_until_ = clock_.now + away;
    clock_.put(stopped_until_, this, own_mark, start_again, life_);
}

// If a commit or flush was under way it ends somewhere in the middle, at one of its disk operations.
void SchedulerNode::crash_disk(bool power) {
    test::SimDisk *disk = medium_.sim();
    if (!disk) return;
    if (busy() && random_.chance(70)) {
        std::uint64_t left = random_.below(random_.chance(70) ? 12 : 60);
        std::optional<test::SimDisk> frozen;
        disk->after_operation = [&] {
            if (left-- == 0) frozen.emplace(*disk);
        };
        if (job_) (void)store_->commit(*job_, room_);
        else (void)store_->flush();
        disk->after_operation = nullptr;
        if (frozen) *disk = std::move(*frozen);
    }
    disk->after_operation = nullptr;
    test::SimDisk left;
    if (!power) {
        left = disk->killed();
    } else {
        const auto model = random_.chance(50) ? test::CrashModel::weak : test::CrashModel::journal;
        const std::uint64_t wanted = random_.below(6);
        std::uint64_t seen = 0;
        left = disk->crashed();
        disk->each_crash(
            model, 6, random_.next(), [&](std::uint64_t) { return seen++ == wanted; },
            [&](test::SimDisk &state) { left = std::move(state); });
    }
    *disk = left.killed();
    fill_disk(full_);
}

void SchedulerNode::fill_disk(bool full) {
    full_ = full;
    if (test::SimDisk *disk = medium_.sim())
        disk->set_capacity(full ? disk->used_bytes() + random_.below(64 * 1024) : ~0ull);
}

void SchedulerNode::pause(Duration length) {
    if (!turn_) return;
    if (clock_.tracing) clock_.note("scheduler stands still for " + std::to_string(length.seconds()) + " s");
    watch_->paused(length);
    stopped_until_ = std::max(stopped_until_, clock_.now + length);
    // Shorter ones may pass without any deadline in them, and then no party's time ran out.
    if (length > clock_.plan.alert + seconds(3)) awake_since_ = stopped_until_;
    clock_.put(stopped_until_, this, own_mark, go_on, life_);
}

void SchedulerNode::reread() {
    if (!turn_) return;
    turn_->take_host_table(hosts_());
    if (!busy() && clock_.now >= stopped_until_) step();
}

void SchedulerNode::fatal(const std::string &why) {
    if (clock_.tracing) clock_.note("scheduler ends: " + why);
    died_ = true;
}

void SchedulerNode::probe(const core::ProbeHost &probe) {
    probes_.push_back(probe);
    clock_.put(clock_.now + seconds(2), this, own_mark, probed, life_);
}

// ---- what the shell does ------------------------------------------------------------------

void SchedulerNode::happen(std::uint32_t what, std::uint64_t arg) {
    if (arg != life_) return;
    if (what == start_again) return start();
    if (!turn_) return;
    if (clock_.now < stopped_until_) {
        if (what != go_on) clock_.put(stopped_until_, this, own_mark, what, arg);
        return;
    }
    switch (what) {
    case go_on: {
        std::vector<turn::Arrival> arrivals = std::exchange(inbox_, {});
        waiting_ = 0;
        // The process wakes in the middle of anything: what arrived in the meantime may be read before
        // the next turn or after it.
        if (random_.chance(50) && !busy()) step();
        for (turn::Arrival &a : arrivals) take(std::move(a));
        return step();
    }
    case probed: {
        const core::ProbeHost probe = std::move(probes_.front());
        probes_.pop_front();
        const bool answers = reachable_(turn_->state().host(probe.host)->config->name);
        turn_->take_probe_result({probe.host, probe.probe, answers, std::nullopt, std::nullopt});
        return step();
    }
    case job_done: library_answered(); return step();
    case stored: {
        const Stopwatch watch(clock_.plan.scale, figures.commit_cpu);
        return storage_answered();
    }
    case wake:
        if (clock_.now < wake_at_) return;  // an earlier one came in between
        wake_at_ = Instant::never();
        return step();
    }
}

void SchedulerNode::step() {
    const Stopwatch watch(clock_.plan.scale, figures.cpu);
    go_on_working();
}

void SchedulerNode::go_on_working() {
    if (!turn_ || !clock_.fine()) return;
    if (!busy()) {
        run_turns();
        be_idle();
    }
    schedule();
}

void SchedulerNode::run_turns() {
    ++figures.turns;
    watch_->before_turn(turn_->state());
    turn_->run();
    if (!turn_->committing()) watch_->after_turn(turn_->state(), *store_);
}

bool SchedulerNode::may_flush() const { return !busy() && !turn_->committing() && store_->pending_bytes() > 0; }

void SchedulerNode::be_idle() {
    const Instant now = clock_.now;
    if (busy() || turn_->committing() || turn_->next_wakeup() <= now) return;
    const bool idle = now >= last_activity_ + idle_before_flush;
    if (now >= turn_->tidy_wakeup() && (idle || now >= last_tidy_ + tidy_when_busy)) {
        last_tidy_ = now;
        watch_->before_turn(turn_->state());
        turn_->tidy();
        tidying_ = turn_->committing();
        if (!tidying_) watch_->after_turn(turn_->state(), *store_);
    }
    if (idle && may_flush() && now >= flush_not_before_) {
        flushing_ = true;
        clock_.put(now + between(random_, clock_.plan.commit_min, clock_.plan.commit_max), this, own_mark, stored,
                   life_);
    }
}

void SchedulerNode::start_commit(std::vector<store::TreeUpdate> updates, store::Room room) {
    job_ = std::move(updates);
    room_ = room;
    clock_.put(clock_.now + between(random_, clock_.plan.commit_min, clock_.plan.commit_max), this, own_mark, stored,
               life_);
}

void SchedulerNode::start_library_job(library::Job job) {
    library_jobs_.push_back(std::move(job));
    clock_.put(clock_.now + between(random_, clock_.plan.commit_min, clock_.plan.commit_max), this, own_mark, job_done,
               life_);
}

void SchedulerNode::library_answered() {
    const library::Job job = std::move(library_jobs_.front());
    library_jobs_.pop_front();
    turn_->take_library_job(library::work(medium_.disk(), job));
}

void SchedulerNode::storage_answered() {
    test::SimDisk *disk = medium_.sim();
    if (fail_sync_ && disk) disk->fail_syncs(true);
    const bool was_commit = job_.has_value();
    store::CommitResult result;
    if (was_commit) {
        const std::vector<store::TreeUpdate> updates = std::move(*job_);
        job_.reset();
        ++figures.commits;
        result = store_->commit(updates, room_);
        if (!std::exchange(tidying_, false)) last_activity_ = clock_.now;
    } else {
        flushing_ = false;
        ++figures.flushes;
        result = store_->flush();
    }
    const bool may_fail = fail_sync_ || full_;
    if (disk) disk->clear_faults();
    fail_sync_ = false;
    clock_.mark(store_->turn());
    if (result.answer == store::Answer::unknown) {
        ++figures.doubts;
        if (!may_fail) return clock_.complain("store", "in doubt without a reason: " + result.status.text);
        if (was_commit) turn_->committed(result);
        if (was_commit && !died_) return clock_.complain("turn", "it goes on though its disk is in doubt");
        return lose(false, between(random_, seconds(1), seconds(20)));
    }
    if (was_commit || result.answer == store::Answer::done) committed_turn_ = store_->turn();
    if (result.answer == store::Answer::nothing && !full_)
        return clock_.complain("store", "refused without a reason: " + result.status.text);
    figures.refused += result.answer == store::Answer::nothing;
    if (was_commit) {
        turn_->committed(result);
        if (!turn_->committing()) watch_->after_turn(turn_->state(), *store_);
    } else if (!result.status) {
        flush_not_before_ = clock_.now + flush_retry;
    }
    go_on_working();
}

void SchedulerNode::schedule() {
    if (busy()) return;  // the answer comes
    Instant at = turn_->next_wakeup();
    if (may_flush()) at = std::min(at, std::max(last_activity_ + idle_before_flush, flush_not_before_));
    at = std::min(at, std::max(last_activity_ + idle_before_flush, turn_->tidy_wakeup()));
    sleep_until(at);
}

void SchedulerNode::sleep_until(Instant at) {
    at = std::max(at, clock_.now + Duration{1000});
    if (at >= wake_at_ || at == Instant::never()) return;
    wake_at_ = at;
    clock_.put(at, this, own_mark, wake, life_);
}

// A process that is suspended accepts no party; the kernel keeps some waiting for it.
bool SchedulerNode::listening() const {
    return turn_ != nullptr && (clock_.now >= stopped_until_ || waiting_ < listen_backlog);
}

// ---- arrivals -----------------------------------------------------------------------------

void SchedulerNode::take(turn::Arrival arrival) {
    if (!turn_) return;
    if (clock_.now < stopped_until_) {
        waiting_ += arrival.kind == turn::Arrival::Kind::opened;
        return inbox_.push_back(std::move(arrival));
    }
    if (arrival.kind != turn::Arrival::Kind::opened) last_activity_ = clock_.now;
    if (arrival.kind == turn::Arrival::Kind::frame) watch_->hears(arrival.conn, arrival.header);
    const Stopwatch watch(clock_.plan.scale, figures.cpu);
    turn_->take(std::move(arrival));
    // What arrives at the same moment is decided together.
    if (!busy()) sleep_until(clock_.now);
}

void SchedulerNode::opened(ConnId conn, turn::Door door, const std::string &user) {
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::opened;
    a.conn = conn;
    a.door = door;
    a.user = user;
    a.privileged = door == turn::Door::server;
    take(std::move(a));
}

void SchedulerNode::frame(ConnId conn, std::string bytes) {
    ++figures.frames_in;
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::frame;
    a.conn = conn;
    const std::string_view all = bytes;
    auto header = wire::decode_header(all.substr(0, wire::header_bytes), limits::server_frame_bytes);
    if (!header) return clock_.complain("wire", "a frame cannot be decoded: " + header.status().text);
    a.header = *header;
    static const std::uint16_t call_in = static_cast<std::uint16_t>(wire::AnyMessage(wire::CallIn{}).index() + 1);
    figures.call_ins += header->kind == call_in;
    a.payload = bytes.substr(wire::header_bytes);
    take(std::move(a));
}

void SchedulerNode::closed(ConnId conn, const std::string &why) {
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::closed;
    a.conn = conn;
    a.why = why;
    take(std::move(a));
}

void SchedulerNode::send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) {
    ++figures.frames_out;
    figures.launches += std::holds_alternative<wire::Launch>(message);
    watch_->sends(conn, message, turn_->state());
    if (clock_.tracing) clock_.note("scheduler -> " + to_text(conn) + " " + wire::kind_name(message));
    links_->send_down(conn, wire::encode(message, static_cast<std::uint64_t>(request)));
}

void SchedulerNode::log(turn::Level, const std::string &line) {
    if (clock_.tracing) clock_.note("scheduler: " + line);
}

Token SchedulerNode::fresh_token() {
    Token token{};
    for (std::size_t i = 0; i < token.size(); i += 8) {
        std::uint64_t n = random_.next();
        for (std::size_t k = 0; k < 8; ++k, n >>= 8) token[i + k] = static_cast<std::uint8_t>(n);
    }
    return token;
}

}  // namespace dcs::sim
