#include "scheduler/turn/turn.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "base/failpoint.h"
#include "base/load_limits.h"
#include "base/planted.h"
#include "scheduler/core/decisions.h"
#include "scheduler/turn/weight.h"
#include "wire/checks.h"

namespace dcs::turn {
namespace {

// A decision that asks for more follow-ups than this runs in a circle.
constexpr std::size_t max_follow_ups = std::size_t{1} << 24;
// Grains that a decision looks through cost as much as a request.
constexpr std::size_t looks_per_request = 64;
// What could not be saved, or read, is tried again after this long.
constexpr Duration retry_after = seconds(1);
constexpr Duration relaunch_after = seconds(5);
constexpr Duration pack_retry = seconds(10);
// Statistics of up to a hundred hosts are written no more often, and with other things.
constexpr Duration hosts_pause = seconds(10);
// A Tick that leaves work for another Tick lets others in between.
constexpr Duration tick_pause = milliseconds(10);
// Turns that need no commit follow one another for this long; then what has arrived is read.
constexpr Duration turns_at_once = milliseconds(limits::own_turn_ms);
// Woken later than promised by this much: the process was suspended (SIGSTOP, suspend, a slow disk).
constexpr Duration stood_still = seconds(2);

// Whatever these do is a lease, and that is committed.
bool places_grains(const core::Input &input) {
    return std::holds_alternative<core::FillHost>(input) || std::holds_alternative<core::PlaceGrain>(input) ||
           std::holds_alternative<core::Usurp>(input);
}

bool is_of_ordinary_user(const core::Input &input) {
    const auto *call = std::get_if<core::UserCall>(&input);
    return call && !call->caller.privileged;
}

}  // namespace

Turn::Turn(Setup setup, store::Store &store, Outside &outside)
    : state_(std::move(setup.state)),
      store_(store),
      outside_(outside),
      contents_(std::move(setup.library), outside),
      live_(outside),
      perform_(state_, store, scrub_, age_clock_, contents_, live_, figures_, outside, std::move(setup.about)) {
    state_.set_aside = std::move(setup.set_aside);
    contents_.tell(state_.stored);
    std::int64_t recorded_ms = 0;
    for (const auto &[key, session] : state_.sessions)
        recorded_ms = std::max({recorded_ms, session.info.opened_ms, session.info.settled_ms, session.info.closed_ms});
    age_clock_.start(outside_.now(), outside_.wall_ms(), recorded_ms);
    measure();
}

// ---- one turn after the other -------------------------------------------------------------

void Turn::run() {
    if (phase_ != Phase::open) return;
    now_ = outside_.now();
    grace_after_pause();
    live_.sweep(now_);
    const Instant until = now_ + turns_at_once;
    while (phase_ == Phase::open && now_ < until && gather()) {
        hosts_stale_ = hosts_stale_ || changes_.hosts();
        if (changes_.empty()) finish();
        else start_commit(store::Room::ordinary);
        promised_ = now_;
        now_ = outside_.now();
        if (!committing()) grace_after_pause();  // a machine may be suspended in the middle of a turn
    }
    if (!committing()) promised_ = std::max(now_, next_wakeup());
}

Instant Turn::next_wakeup() const {
    if (phase_ != Phase::open) return Instant::never();
    if (!intake_.empty() || !imports_.idle() || contents_.has_waiting_pieces()) return now_;
    Instant wakeup = std::min(std::max(core::next_deadline(state_), tick_not_before_), live_.wakeup());
    if (!delayed_.empty()) wakeup = std::min(wakeup, delayed_.begin()->first);
    return wakeup;
}

bool Turn::tick_is_due() const {
    const Instant deadline = core::next_deadline(state_);
    if (deadline > now_ || tick_not_before_ > now_) return false;
    // What has arrived is taken first: it may be the sign of life that the deadline is about.
    return intake_.empty() || now_ - deadline > stood_still;
}

// How much room there is, for who may still store what.
void Turn::measure() {
    if (state_.policy.stored_share == 0) return;
    if (const auto room = store_.space()) state_.stored.measured(room->free_bytes);
}

// What only reads gains nothing by a long turn, and keeps those waiting who are not read meanwhile.
bool Turn::read_enough() const {
    if (planted("turn.readers_without_end")) return false;
    return answers_weight_ >= limits::answers_per_turn || read_for_ >= milliseconds(limits::own_turn_ms);
}

void Turn::take_and_measure(Arrival arrival) {
    const Instant begun = outside_.now();
    const std::size_t before = taken_.size();
    take_one(std::move(arrival));
    const Duration took = outside_.now() - begun;
    intake_.spent(took);
    const bool saved = taken_.size() > before && taken_.back().needed_disk;
    if (!saved) read_for_ = read_for_ + took;
}

bool Turn::gather() {
    intake_.begin_turn();
    if (!intake_.empty()) measure();
    while (taken_weight_ < limits::inputs_per_turn && taken_bytes_ < limits::bytes_per_turn && !read_enough()) {
        if (!delayed_.empty() && delayed_.begin()->first <= now_) {
            core::Input input = std::move(delayed_.begin()->second);
            delayed_.erase(delayed_.begin());
            decide_new(std::move(input));
        } else if (auto arrival = intake_.take()) {
            take_and_measure(std::move(*arrival));
        } else {
            break;
        }
    }
    if (tick_is_due()) {
        tick_not_before_ = now_ + tick_pause;
        decide_new(core::Tick{});
    }
    read_imports();
    contents_.send_waiting_pieces();
    return !taken_.empty() || !intake_.empty() || !imports_.idle();  // a user who had a share gets another
}

// ---- decide and apply ---------------------------------------------------------------------

void Turn::decide_new(core::Input input, Instant at) {
    failpoint("turn.decide.before");
    taken_weight_ += weight_of(input);
    const bool needed_disk = decide_all(input, DiskFor::all);
    taken_.push_back(Taken{std::move(input), needed_disk, at});
    failpoint("turn.decide.after");
}

bool Turn::decide_all(const core::Input &input, DiskFor disk) {
    std::deque<core::Input> work{input};
    bool own_needs_disk = false;
    for (std::size_t step = 0; !work.empty(); ++step) {
        DCS_REQUIRE(step < max_follow_ups, "follow-ups run in a circle");
        if (step > 0 && disk != DiskFor::all && places_grains(work.front())) {
            work.pop_front();  // free slots are filled at the next call-in
            continue;
        }
        if (step > 0) ++followed_;
        suspect(concerns(state_, work.front()));
        core::Decision decision = core::decide(state_, now_, work.front());
        followed_ += decision.looked_at / looks_per_request;
        const bool needs_disk = std::any_of(decision.changes.begin(), decision.changes.end(), core::durable);
        if (step == 0) own_needs_disk = needs_disk;
        if (needs_disk && (disk == DiskFor::none || (disk == DiskFor::own && step > 0))) {
            // No other input asks for a parked wait.
            if (step > 0 && std::holds_alternative<core::AnswerWaiters>(work.front()))
                delayed_.emplace(now_ + retry_after, work.front());
            work.pop_front();
            continue;
        }
        // What a host or an operator has committed is bounded by commits; of users' calls one has hundreds.
        const bool few = !decision.events.empty() && (!needs_disk || is_of_ordinary_user(work.front()));
        const std::string sender = few ? sender_of(connections_, state_, work.front()) : std::string();
        work.pop_front();
        for (const core::Change &change : decision.changes) apply(change);
        std::move(decision.effects.begin(), decision.effects.end(), std::back_inserter(effects_));
        for (std::string &event : decision.events) events_.push_back({std::move(event), sender});
        work.insert(work.begin(), std::make_move_iterator(decision.follow_ups.begin()),
                    std::make_move_iterator(decision.follow_ups.end()));
    }
    return own_needs_disk;
}

void Turn::apply(const core::Change &change) {
    changes_.add(state_, change);
    core::apply(state_, change, undo_);
}

// After a pause of our own, no host is to blame for silence.
void Turn::grace_after_pause() {
    if (promised_ == Instant::never() || now_ - promised_ < stood_still || planted("turn.no_grace")) return;
    outside_.log(Level::warning,
                 "the scheduler stood still for " + std::to_string((now_ - promised_).ns / 1'000'000'000) +
                     " s (suspended, or kept waiting by its machine, disk or backup); every host gets its full "
                     "limit from now on");
    core::Undo kept;
    for (std::size_t i = 0; i < state_.hosts.size(); ++i) {
        core::Host host = state_.hosts[i];
        host.last_contact = now_;
        host.checked = core::Checked::no;  // what a probe from before says is about that time
        core::apply(state_, core::SetHost{static_cast<core::HostId>(i), std::move(host)}, kept);
    }
    if (state_.backup.patience == Instant::never()) return;
    core::BackupLink link = state_.backup;
    link.patience = now_ + core::backup_patience;
    core::apply(state_, core::SetBackup{link}, kept);
}

// ---- commit -------------------------------------------------------------------------------

void Turn::start_commit(store::Room room) {
    const bool hosts_are_due = now_ >= hosts_not_before_ && room == store::Room::ordinary;
    DCS_REQUIRE(phase_ == Phase::open, "one commit is under way at a time");
    with_hosts_ = (hosts_stale_ && hosts_are_due) || changes_.host_settings();
    DCS_REQUIRE(with_hosts_ || !changes_.empty(), "a commit has something to save");
    for (const core::SetGrain &turned : changes_.turn_checkpoints(state_)) core::apply(state_, turned, undo_);
    record::Plan plan = changes_.plan(state_, with_hosts_, outside_.wall_ms());
    for (const core::SetSession &length : plan.lengths) core::apply(state_, length, undo_);
    if (planted("turn.effects_before_commit"))
        for (const core::Effect &effect : std::exchange(effects_, {})) perform_.perform(effect);
    phase_ = Phase::committing;
    room_ = room;
    failpoint("turn.commit.before_start");
    commit_begun_ = outside_.now();
    outside_.start_commit(std::move(plan.updates), room);
    failpoint("turn.commit.after_start");
}

void Turn::committed(const store::CommitResult &result) {
    DCS_REQUIRE(phase_ == Phase::committing, "a commit was answered that was not started");
    phase_ = Phase::open;
    now_ = outside_.now();
    failpoint("turn.commit.answered");
    switch (result.answer) {
    case store::Answer::done:
        figures_.took(Figures::Of::commit, now_ - commit_begun_);
        if (std::exchange(with_hosts_, false)) {
            hosts_stale_ = false;
            hosts_not_before_ = now_ + hosts_pause * (1 + static_cast<int>(state_.hosts.size() / 100));
        }
        return finish();
    case store::Answer::nothing: return decide_again(result.status);
    case store::Answer::unknown: break;
    }
    phase_ = Phase::dead;
    outside_.fatal("the backing store is in doubt: " + result.status.text);
}

void Turn::finish() {
    DCS_REQUIRE(phase_ == Phase::open, "effects leave when the commit is over");
    const std::vector<core::Effect> effects = std::exchange(effects_, {});
    const std::vector<Line> events = std::exchange(events_, {});
    changes_ = record::TurnChanges();
    undo_ = core::Undo();
    taken_bytes_ = taken_weight_ = answers_weight_ = 0;
    read_for_ = {};
    for (const Line &event : events) {
        const bool again = event.text.starts_with(core::server_refused) || core::is_audited_read(event.text);
        if (const auto text = again ? refused_.to_write(event.text, now_) : std::optional(event.text))
            say(Level::info, {*text, event.sender});
    }
    tell_left_out();
    if (!effects.empty()) failpoint("turn.effects.before");
    for (const core::Effect &effect : effects) {
        suspect(concerns(connections_, effect));
        perform_.perform(effect);
    }
    outside_.working_on({});
    if (!effects.empty()) failpoint("turn.effects.after");
    for (core::Input &failed : perform_.take_failed_launches())
        delayed_.emplace(now_ + relaunch_after, std::move(failed));
    for (const ConnId conn : perform_.take_closed()) hang_up(conn);
    for (const std::string &host : perform_.take_closed_hosts())
        for (const ConnId conn : connections_.programs_of(host)) hang_up(conn);
    measure_calls();
    taken_.clear();
}

// From its arrival to here a call has its answer, or is known to wait for one.
void Turn::measure_calls() {
    if (now_ >= figures_.next_look()) figures_.look(state_, now_);
    if (taken_.empty()) return;
    const Instant over = outside_.now();
    for (const Taken &t : taken_)
        if (const auto kind = t.at == Instant{} ? std::nullopt : Figures::kind_of(t.input))
            figures_.took(*kind, over - t.at);
}

// The commit left the store as it was before: so does this the State.
void Turn::decide_again(const Status &why) {
    DCS_REQUIRE(phase_ == Phase::open && !why, "a turn is decided again after a commit that failed");
    outside_.log(Level::error, "a turn could not be saved and is rolled back: " + why.text);
    if (with_hosts_) hosts_not_before_ = now_ + hosts_pause;
    if (!planted("turn.forget_roll_back")) core::roll_back(state_, undo_);
    std::vector<Taken> taken = std::exchange(taken_, {});
    changes_ = record::TurnChanges();
    effects_.clear();
    events_.clear();
    const bool reserve = why.code == Code::no_space && room_ == store::Room::ordinary;
    for (Taken &t : taken) {
        if (link_is_gone(t.input)) continue;
        const bool goes_on = reserve && t.needed_disk && may_use_reserve(t.input);
        const bool needs_disk =
            goes_on ? decide_all(t.input, DiskFor::own) : t.needed_disk || decide_all(t.input, DiskFor::none);
        if (needs_disk && !goes_on) refuse(t.input, why);
        else taken_.push_back(Taken{std::move(t.input), needs_disk, t.at});
    }
    if (changes_.empty()) return finish();
    DCS_REQUIRE(reserve, "something durable was decided without a disk");
    start_commit(store::Room::reserve);
}

// It frees space or ends work, or takes a host out: otherwise nothing could be done about a full disk.
bool Turn::may_use_reserve(const core::Input &input) {
    if (const auto *call = std::get_if<core::UserCall>(&input))
        return std::holds_alternative<wire::Gkill>(call->request) ||
               std::holds_alternative<wire::CloseSession>(call->request) ||
               std::holds_alternative<wire::CleanSession>(call->request) ||
               std::holds_alternative<wire::SetHost>(call->request) ||
               std::holds_alternative<wire::RemoveHost>(call->request);
    if (std::holds_alternative<core::RemoveOld>(input)) return true;
    if (const auto *late = std::get_if<core::ReportHandedOver>(&input)) return late->report && late->report->ended;
    const auto *report = std::get_if<core::ServerReport>(&input);
    return report && report->report->ended;
}

// The link on which a server said this was not accepted after all; it will say it again.
bool Turn::link_is_gone(const core::Input &input) const {
    const auto gone = [this](ConnId conn, core::HostId id) {
        const core::Host *host = state_.host(id);
        return !host || host->conn != conn;
    };
    if (const auto *call = std::get_if<core::ServerCallIn>(&input)) return gone(call->conn, call->host);
    if (const auto *report = std::get_if<core::ServerReport>(&input)) return gone(report->conn, report->host);
    if (const auto *late = std::get_if<core::ReportHandedOver>(&input)) return late->conn != state_.backup.conn;
    return false;
}

void Turn::refuse(const core::Input &input, const Status &why) {
    if (const auto *call = std::get_if<core::UserCall>(&input)) {
        const wire::ErrorReply reply{static_cast<std::int32_t>(why.code),
                                     "the call could not be saved, and nothing has changed: " + why.text};
        return outside_.send(call->caller.conn, reply, call->caller.request);
    }
    if (const auto *report = std::get_if<core::ServerReport>(&input)) {
        const wire::GrainReport &r = *report->report;
        if (r.ended) state_.unrecorded.note(state_, wire::key_of(r.key), r.incarnation, core::NoRoom::of_all);
        const wire::ReportAck later{r.key, r.incarnation, r.last_seq, r.ended, wire::Verdict::later};
        return outside_.send(report->conn, later, core::no_request);
    }
    const auto turn_away = [&](const auto &call) {
        outside_.send(call.conn, wire::error_reply(why), call.request);
        hang_up(call.conn);
    };
    if (const auto *call = std::get_if<core::JoinCall>(&input)) return turn_away(*call);
    if (const auto *call = std::get_if<core::BeginControl>(&input)) return turn_away(*call);
    if (const auto *call = std::get_if<core::ServerFirstCall>(&input)) return hang_up(call->conn);
    // The backup comes again, with all that was not answered.
    if (const auto *late = std::get_if<core::ReportHandedOver>(&input)) return hang_up(late->conn);
    if (std::holds_alternative<core::ServerCallIn>(input)) return;  // the next one comes by itself
    if (std::holds_alternative<core::PackGrains>(input) || std::holds_alternative<core::RemoveOld>(input)) {  // remade
        pack_not_before_ = old_not_before_ = now_ + pack_retry;
        return;
    }
    if (std::holds_alternative<core::Tick>(input)) {
        tick_not_before_ = now_ + retry_after;
        return;
    }
    delayed_.emplace(now_ + retry_after, input);
}

}  // namespace dcs::turn
