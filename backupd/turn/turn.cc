#include "backupd/turn/turn.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/failpoint.h"
#include "base/limits.h"
#include "base/require.h"

namespace dcs::backup {
namespace {

constexpr std::size_t inputs_per_turn = limits::inputs_per_turn;

std::shared_ptr<const Members> members_of(const wire::MemberKeys &told) {
    auto members = std::make_shared<Members>();
    for (const wire::MemberKey &member : told.members) {
        TokenHash &key = (*members)[member.host];
        if (member.key.size() == key.size()) std::copy(member.key.begin(), member.key.end(), key.begin());
    }
    return members;
}

}  // namespace

Turn::Turn(State state, store::Store &store, Outside &outside)
    : state_(std::move(state)), store_(store), outside_(outside) {}

void Turn::take(Arrival arrival) {
    if (phase_ == Phase::dead) return;
    waiting_bytes_ += arrival.payload.size();
    waiting_.push_back(std::move(arrival));
}

void Turn::run() {
    while (phase_ == Phase::open && gather()) {
        if (changes_.empty()) finish();
        else start_commit(store::Room::ordinary);
    }
}

bool Turn::gather() {
    while (taken_.size() < inputs_per_turn && changes_.bytes() < limits::bytes_per_turn) {
        if (!again_.empty()) {
            const Input input = std::move(again_.front());
            again_.pop_front();
            taken_.push_back(input);
            decide_all(input, true);
        } else if (!waiting_.empty()) {
            Arrival arrival = std::move(waiting_.front());
            waiting_.pop_front();
            DCS_REQUIRE(waiting_bytes_ >= arrival.payload.size(), "the sum covers all waiting arrivals");
            waiting_bytes_ -= arrival.payload.size();
            take_one(std::move(arrival));
        } else {
            break;
        }
    }
    if (next_deadline(state_) <= outside_.now()) {
        taken_.emplace_back(Tick{});
        decide_all(Tick{}, true);
    }
    return !taken_.empty();
}

// ---- what arrives -------------------------------------------------------------------------

void Turn::take_one(Arrival arrival) {
    const bool ours = arrival.conn == link_ && link_ != no_connection;
    if (arrival.kind == Arrival::Kind::frame) return ours ? of_scheduler(arrival) : of_peer(arrival);
    Input input = ConnectionClosed{arrival.conn};
    if (ours && arrival.kind == Arrival::Kind::opened) {
        input = LinkOpened{};
    } else if (ours) {
        link_ = no_connection;
        input = LinkClosed{arrival.why};
    } else if (arrival.kind == Arrival::Kind::opened) {
        return;
    }
    taken_.push_back(input);
    decide_all(input, true);
}

void Turn::of_scheduler(const Arrival &arrival) {
    DCS_REQUIRE(link_ != no_connection && arrival.conn == link_, "the message came over the scheduler's link");
    const auto message = wire::decode_payload(arrival.header, arrival.payload);
    Input input = SchedulerKnows{};
    if (const auto *taken = message ? std::get_if<wire::HandOverTaken>(&*message) : nullptr) {
        input = Taken{taken->host, taken->number};
    } else if (const auto *told = message ? std::get_if<wire::MemberKeys>(&*message) : nullptr) {
        input = MembersTold{members_of(*told)};
    } else if (const auto *renewed = message ? std::get_if<wire::Renewed>(&*message) : nullptr) {
        return outside_.renewed(*renewed);
    } else if (const auto *no = message ? wire::refusal(*message) : nullptr) {
        outside_.close(std::exchange(link_, no_connection));
        input = LinkClosed{"it refuses this backup: " + *no};
    } else if (!message || !std::holds_alternative<wire::BackupKnown>(*message)) {
        outside_.close(std::exchange(link_, no_connection));
        input = LinkClosed{message ? "it sent a message that is not for a backup" : message.status().text};
    }
    taken_.push_back(input);
    decide_all(input, true);
}

// The certificate of a server on another host identifies it.
void Turn::server_calls(const Arrival &arrival, const wire::FirstCall &call) {
    const ConnId conn = arrival.conn;
    if (call.host.empty()) return hang_up(conn, "a server without a name");
    const Guest &shown = arrival.guest;
    if (!shown.host.empty() && shown.host != call.host)
        return hang_up(conn, "the certificate is of host " + shown.host + ", but the server reports as " + call.host);
    taken_.emplace_back(ServerCame{conn, shown.host.empty() ? Guest{call.host, std::nullopt} : shown});
    decide_all(taken_.back(), true);
}

void Turn::hang_up(ConnId conn, const std::string &why) {
    outside_.log(Level::warning, "connection " + to_text(conn) + ": " + why);
    outside_.close(conn);
    taken_.emplace_back(ConnectionClosed{conn});
    decide_all(taken_.back(), true);
}

void Turn::of_peer(const Arrival &arrival) {
    const ConnId conn = arrival.conn;
    auto message = wire::decode_payload(arrival.header, arrival.payload);
    if (!message) return hang_up(conn, message.status().text);
    Input input = Asked{conn, arrival.header.request};
    if (std::holds_alternative<wire::AskBackup>(*message)) {
        if (!arrival.guest.host.empty()) return hang_up(conn, "this query is permitted only on this host");
    } else if (const auto *call = std::get_if<wire::FirstCall>(&*message)) {
        return server_calls(arrival, *call);
    } else if (auto *report = std::get_if<wire::GrainReport>(&*message)) {
        if (report->last_seq == UINT32_MAX) return hang_up(conn, "a report whose number leaves no room for a next one");
        auto shared = std::make_shared<const wire::GrainReport>(std::move(*report));
        input = ReportCame{conn, shared, record::pack(*shared)};
    } else if (std::holds_alternative<wire::CallIn>(*message) || std::holds_alternative<wire::LaunchResult>(*message)) {
        return;  // for the scheduler only, and soon outdated
    } else {
        return hang_up(conn, std::string(wire::kind_name(*message)) + " is not for a backup");
    }
    taken_.push_back(input);
    decide_all(input, true);
}

// ---- decide, apply, commit ----------------------------------------------------------------

void Turn::decide_all(const Input &input, bool may_hold) {
    failpoint("backup.decide.before");
    std::deque<Input> work{input};
    while (!work.empty()) {
        Decision decision = decide(state_, Moment{outside_.now(), outside_.jitter(), may_hold}, work.front());
        work.pop_front();
        for (const Change &change : decision.changes) {
            changes_.add(state_, change);
            apply(state_, change, undo_);
        }
        std::move(decision.effects.begin(), decision.effects.end(), std::back_inserter(effects_));
        std::move(decision.events.begin(), decision.events.end(), std::back_inserter(events_));
        work.insert(work.end(), decision.follow_ups.begin(), decision.follow_ups.end());
    }
}

void Turn::start_commit(store::Room room) {
    DCS_REQUIRE(phase_ == Phase::open && !changes_.empty(), "there is one commit at a time, with changes");
    phase_ = Phase::committing;
    room_ = room;
    failpoint("backup.commit.before_start");
    outside_.start_commit(changes_.plan(state_), room);
    failpoint("backup.commit.after_start");
}

void Turn::committed(const store::CommitResult &result) {
    DCS_REQUIRE(phase_ == Phase::committing, "only a started commit is answered");
    phase_ = Phase::open;
    failpoint("backup.commit.answered");
    if (result.answer == store::Answer::done) return finish();
    if (result.answer == store::Answer::nothing) return decide_again(result.status);
    phase_ = Phase::dead;
    outside_.fatal("the backup's store is in doubt: " + result.status.text);
}

// Reports are refused. What the scheduler has is forgotten if the reserve suffices, else handed over again.
void Turn::decide_again(const Status &why) {
    outside_.log(Level::error, "a turn could not be saved and is reverted: " + why.text);
    roll_back(state_, undo_);
    changes_ = record::TurnChanges();
    effects_.clear();
    events_.clear();
    DCS_REQUIRE(taken_.size() <= inputs_per_turn + 1, "a turn takes a bounded number of inputs, and a tick");
    const bool reserve = why.code == Code::no_space && room_ == store::Room::ordinary;
    for (const Input &input : taken_) {
        if (!std::holds_alternative<Taken>(input) || reserve) decide_all(input, false);
        else if (state_.link == Link::ready)
            again_.emplace_back(LinkClosed{"reports that it has accepted could not be forgotten"});
    }
    if (!again_.empty() && link_ != no_connection) outside_.close(std::exchange(link_, no_connection));
    if (changes_.empty()) return finish();
    start_commit(store::Room::reserve);
}

// ---- effects ------------------------------------------------------------------------------

struct Turn::Performer {
    Turn &t;

    void operator()(const Reply &e) {
        failpoint("backup.reply.before_send");
        t.outside_.send(e.conn, e.message, e.request);
        failpoint("backup.reply.after_send");
    }
    void operator()(const CloseConnection &e) { t.outside_.close(e.conn); }
    void operator()(const Connect &) {
        if (const auto conn = t.outside_.connect()) t.link_ = *conn;
        else t.again_.emplace_back(LinkClosed{conn.status().text});
    }
    void operator()(const Disconnect &) {
        if (t.link_ != no_connection) t.outside_.close(std::exchange(t.link_, no_connection));
    }
    void operator()(const SaveMembers &) { t.outside_.save(t.state_.members); }
    void operator()(const ToScheduler &e) { t.outside_.send(t.link_, e.message, 0); }
    void operator()(const HandOver &e) { t.hand_over(e); }
};

// An unreadable report is sent as a report of no grain, because its number must not be missing.
void Turn::hand_over(const HandOver &order) {
    if (link_ == no_connection) return;
    auto report = record::read_report(store_, order.host, order.report);
    if (!report && report.status().code == Code::limit) {  // it is whole: again on the next connection
        outside_.close(std::exchange(link_, no_connection));
        again_.emplace_back(LinkClosed{"a report cannot be read now: " + report.status().text});
        return;
    }
    if (!report)
        outside_.log(Level::error, "report " + std::to_string(order.report.number) + " of " + order.host + " on " +
                                       to_text(order.report.key) + " is lost: " + report.status().text +
                                       "; the grain runs again from the scheduler's state");
    wire::HandOver message{order.host, order.report.number, {}};
    if (report) message.report = std::move(*report);
    failpoint("backup.hand_over.before_send");
    outside_.send(link_, message, 0);
    failpoint("backup.hand_over.after_send");
}

void Turn::finish() {
    DCS_REQUIRE(phase_ == Phase::open, "effects are performed after the commit");
    const std::vector<Effect> effects = std::exchange(effects_, {});
    for (const std::string &event : std::exchange(events_, {})) outside_.log(Level::info, event);
    changes_ = record::TurnChanges();
    undo_ = Undo();
    taken_.clear();
    for (const Effect &effect : effects) std::visit(Performer{*this}, effect);
}

}  // namespace dcs::backup
