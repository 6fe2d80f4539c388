// What arrives: taken, chosen, decoded. turn.cc decides it.
#include <algorithm>
#include <new>

#include "base/planted.h"
#include "scheduler/turn/turn.h"
#include "scheduler/turn/weight.h"
#include "wire/checks.h"

namespace dcs::turn {
namespace {

// The wall clock has just judged the certificate. From here on its time is counted by the boot clock: a wall clock that
// is set ends no open connection.
void remember_end(Connection &who, Outside &outside) {
    const std::int64_t end = who.certified.not_after_s;
    if (end != 0 && !is_link(who.door)) who.ends = outside.now() + seconds(end - outside.wall_s());
}

}  // namespace

void Turn::take(Arrival arrival) {
    if (phase_ == Phase::dead) return;
    const ConnId conn = arrival.conn;
    if (arrival.kind == Arrival::Kind::opened) {
        Status s = connections_.add(conn, arrival);
        if (s) return remember_end(*connections_.find(conn), outside_);
        outside_.log(Level::warning, s.text);
        if (arrival.door == Door::user) outside_.send(conn, wire::error_reply(s), core::no_request);
        outside_.close(conn);
        return;
    }
    const Connection *who = connections_.find(conn);
    if (!who) return;
    if (Status s = who->privileged ? Status::ok() : intake_.room_for(who->door, who->user, arrival); !s)
        return outside_.send(conn, wire::error_reply(s), core::RequestId{arrival.header.request});
    arrival.at = outside_.now();
    intake_.put(who->door, who->user, std::move(arrival), who->privileged);
}

void Turn::take_limits(const UserLimits &limits) {
    connections_.set_limits(limits);
    intake_.set_limits(limits);
}

void Turn::take_host_table(std::vector<core::HostConfig> hosts) {
    delayed_.emplace(Instant{}, core::HostTable{std::move(hosts)});
}

void Turn::take_policy(core::Policy policy) {
    const std::int32_t age_s = policy.session_age_s, before_s = std::exchange(session_age_s_, age_s);
    if (age_s > 0 && (before_s == 0 || age_s < before_s)) {
        age_clock_.shortened(outside_.now(), outside_.wall_ms());
        old_not_before_ = Instant{};
    }
    delayed_.emplace(Instant{}, core::PolicyTable{std::move(policy)});
}

void Turn::take_probe_result(core::ProbeResult result) { delayed_.emplace(Instant{}, result); }

void Turn::take_refusal(core::ServerRefused refusal) {
    if (state_.host_id(refusal.host) != core::no_host) delayed_.emplace(Instant{}, std::move(refusal));
}

void Turn::take_library_job(const library::JobDone &done) {
    if (phase_ == Phase::dead) return;
    if (const auto line = contents_.done(done, state_)) say(Level::warning, *line);
}

bool Turn::full() const {
    return intake_.count() >= 2 * limits::inputs_per_turn || intake_.bytes() >= limits::bytes_per_turn;
}

void Turn::take_one(Arrival arrival) {
    if (!connections_.find(arrival.conn)) return;  // we hung up in the meantime
    if (arrival.kind == Arrival::Kind::closed) {
        connections_.erase(arrival.conn);
        uploads_.drop(arrival.conn);
        imports_.drop(arrival.conn);
        contents_.drop(arrival.conn);
        live_.drop(arrival.conn);
        decide_new(core::ConnectionClosed{arrival.conn});
        return;
    }
    Decoded decoded = decode_one(arrival);
    if (!decoded.note.empty())
        say(Level::warning,
            {"connection " + to_text(arrival.conn) + ": " + decoded.note, sender_of(*connections_.find(arrival.conn))});
    if (decoded.reply) outside_.send(arrival.conn, *decoded.reply, core::RequestId{arrival.header.request});
    if (decoded.close) hang_up(arrival.conn);
    if (const auto &ended = decoded.unrecorded)
        state_.unrecorded.note(state_, ended->first, ended->second, core::NoRoom::of_user);
    intake_.charge(decoded.weight);
    if (!decoded.input) return;
    taken_bytes_ += arrival.payload.size();  // what was answered on the spot is not of this turn
    const bool of_user = std::holds_alternative<core::UserCall>(*decoded.input);
    const std::size_t weight = weight_of(*decoded.input), before = effects_.size(), followed = followed_;
    intake_.charge(weight);
    decide_new(std::move(*decoded.input), arrival.at);
    std::size_t more = 0;
    for (std::size_t i = before; i < effects_.size(); ++i) more += weight_of(state_, effects_[i], perform_.verified());
    answers_weight_ += more;
    // A call that makes many grains look for a host counts as many.
    if (of_user && !planted("turn.follow_ups_are_free")) more += std::max(weight, followed_ - followed) - weight;
    taken_weight_ += more;
    intake_.charge(1 + more);
}

// Whatever it does to the process is the sender's doing.
Decoded Turn::decode_one(const Arrival &arrival) {
    suspect(concerns(*connections_.find(arrival.conn)));
    DecodeContext context{connections_, state_, store_, outside_, uploads_, imports_, contents_, live_, renewals_};
    try {
        return decode(context, arrival);
    } catch (const std::bad_alloc &) {
        Decoded refused;
        refused.note = "no memory is left for a message of " + std::to_string(arrival.payload.size()) + " bytes";
        refused.close = is_link(connections_.find(arrival.conn)->door);  // a server says it again
        if (!refused.close)
            refused.reply = wire::error_reply(
                fail(Code::limit, "the scheduler has no memory for this call: repeat it later, or make it smaller"));
        return refused;
    }
}

void Turn::take_import(std::uint64_t id, Result<std::string> rows) {
    if (phase_ != Phase::dead) imports_.came(id, std::move(rows));
}

void Turn::read_imports() {
    if (imports_.idle()) return;
    imports_.send_out(outside_);
    const std::string &whose = imports_.whose();
    if (whose.empty()) return;
    suspect({{}, whose});
    auto read = imports_.next(state_, contents_);
    if (!read) return;
    if (read->status) decide_new(std::move(read->call));
    else outside_.send(read->call.caller.conn, wire::error_reply(read->status), read->call.caller.request);
}

void Turn::suspect(const Concern &concern) {
    if (concern.sender.empty()) outside_.working_on(concern.session);
    else outside_.working_for(concern.sender);
}

void Turn::say(Level level, const Line &line) {
    if (lines_.allow(line.sender, now_)) outside_.log(level, line.text);
}

void Turn::tell_left_out() {
    (void)renewals_.left_out(now_);  // each refused one got an answer
    for (const auto &[sender, count] : lines_.left_out(now_))
        outside_.log(Level::warning, "audit: " + std::to_string(count) + " more lines about " + sender +
                                         " were suppressed in the last minute");
}

// No Arrival follows our own close, so the core learns of it here.
void Turn::hang_up(ConnId conn) {
    outside_.close(conn);
    uploads_.drop(conn);
    imports_.drop(conn);
    contents_.drop(conn);
    live_.drop(conn);
    if (connections_.erase(conn)) delayed_.emplace(now_, core::ConnectionClosed{conn});
}

}  // namespace dcs::turn
