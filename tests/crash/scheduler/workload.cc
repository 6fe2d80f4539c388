#include <algorithm>

#include "crash/scheduler/world.h"
#include "scheduler/core/decisions.h"

namespace dcs::test {
namespace {

constexpr std::int32_t sessions_per_user = 2;
constexpr GrainNumber grains_per_session = 9;

// Bytes that tell where they come from.
std::string filled(const std::string &tag, std::size_t length) {
    std::string text;
    while (text.size() < length) text += tag;
    text.resize(length);
    return text;
}

}  // namespace

void Workload::act() {
    if (w_.forgetful_ && random_.chance(20)) return w_.forget(w_.people.servers[2]);
    const std::uint64_t what = random_.below(100);
    if (what < 40) control_acts();
    else if (what < 43) w_.turn_->tidy();  // packs closed sessions, writes statistics, scrubs
    else if (what < 93) server_acts();
    else if (what < 98) time_passes();
    else change_host_table();
}

// The same number is mostly the same grain, so that submissions are repeated by themselves.
wire::GrainSpec Workload::spec(const Control &control, std::int32_t session, GrainNumber number) {
    wire::GrainSpec spec;
    const std::string tag =
        control.user + std::to_string(session) + "." + std::to_string(number) + (random_.chance(10) ? "other " : " ");
    spec.argv = {"/bin/grain", tag};
    spec.demands.attempts = 1 + number % 3;
    spec.demands.urgent = number % 4 == 1;
    spec.demands.host_class = number % 5 == 4 ? 2 : 0;
    const std::size_t sizes[] = {0, 20, 200, 900};
    spec.input = filled(tag, sizes[number % 4]);
    if (session == 0 && number == 8) spec.input = filled(tag, 33'000);  // parameters with a file of their own
    return spec;
}

void Workload::wait(Control &control, std::int32_t session) {
    const core::Session *there = w_.turn_->state().session({control.user, session});
    if (!there) return;
    const auto open_results = static_cast<std::uint64_t>(there->info.result_count - there->info.sent);
    // Mostly the first one that was not acknowledged, again or again; or one further on.
    const auto next = there->info.sent + static_cast<std::int32_t>(random_.below(open_results + 1));
    const bool block = random_.chance(50);
    if (random_.chance(50)) return w_.call(control, wire::Gwait{session, next, block});
    w_.call(control, wire::GwaitMany{session, next, 1 + static_cast<std::int32_t>(random_.below(4)), block});
}

// One grain, or those that follow it as well.
void Workload::submit(Control &control, std::int32_t session, GrainNumber first) {
    const bool again = random_.chance(10), in_order = random_.chance(50);
    if (random_.chance(50))
        return w_.call(control, wire::Gexec{.session = session,
                                            .grain = first,
                                            .spec = spec(control, session, first),
                                            .again = again,
                                            .only_failed = again,
                                            .in_order = in_order});
    wire::GexecMany batch{.session = session, .again = again, .only_failed = again, .in_order = in_order};
    const GrainNumber end = std::min(grains_per_session, first + 1 + static_cast<GrainNumber>(random_.below(4)));
    for (GrainNumber g = first; g < end; ++g) batch.orders.push_back({g, spec(control, session, g)});
    w_.call(control, std::move(batch));
}

void Workload::control_acts() {
    auto &controls = w_.people.controls;  // the operator, who comes last, has little to do
    Control &control = random_.chance(4) ? controls.back() : controls[random_.below(controls.size() - 1)];
    if (control.conn == no_connection) return w_.connect_control(control);
    if (control.token.empty()) return;
    if (control.user == "root") return operator_acts(control);
    const auto session = static_cast<std::int32_t>(random_.below(sessions_per_user));
    const auto number = static_cast<GrainNumber>(random_.below(grains_per_session));
    const core::Session *there = w_.turn_->state().session({control.user, session});
    const bool closed = there && there->info.status == core::SessionStatus::terminated;
    const bool privileged = random_.chance(30);
    const std::string user = privileged ? control.user : "";
    const std::uint64_t what = random_.below(100);
    if (what < (there && !closed ? 10 : 35)) {
        const auto mode = static_cast<wire::OpenMode>(random_.below(3));
        w_.call(control, wire::OpenSession{session, mode, random_.chance(20)});
    } else if (closed && what < 55) {
        w_.call(control, wire::CleanSession{user, session});
    } else if (what < 58) {
        submit(control, session, number);
    } else if (what < 80) {
        wait(control, session);
    } else if (what < 88) {
        w_.call(control, wire::Gkill{user, session, number});
    } else if (what < 94) {
        w_.call(control, wire::CloseSession{user, session, static_cast<std::int32_t>(random_.below(3)) - 1});
    } else if (what < 95) {
        w_.call(control, wire::CleanSession{user, session});
    } else if (what < 98) {
        w_.hang_up(control.conn);  // it calls again and repeats
    } else {
        w_.hang_up(control.conn);  // a new run of the program
        control.token.clear();
        control.unanswered.clear();
    }
}

// Codes for hosts to join with are given out and taken back.
void Workload::operator_acts(Control &control) {
    const auto &codes = w_.turn_->state().trust.codes;
    if (random_.chance(5)) return w_.hang_up(control.conn);
    if (codes.empty() || random_.chance(50)) {
        const std::string host = random_.chance(50) ? "" : w_.people.servers[random_.below(3)].name;
        return w_.call(control, wire::CreateToken{host, 1000 + static_cast<std::int64_t>(random_.below(1000))});
    }
    auto chosen = codes.begin();
    std::advance(chosen, random_.below(codes.size()));
    w_.call(control, wire::RevokeToken{core::id_of_code(chosen->first)});
}

wire::GrainReport Workload::progress(const GrainKey &key, const Server::Held &held) {
    wire::GrainReport r;
    r.first_seq = held.sequence + 1;
    r.last_seq = held.sequence + 1 + static_cast<std::uint32_t>(random_.below(3));
    const std::string tag = to_text(key) + "#" + std::to_string(held.incarnation) + "." + std::to_string(r.last_seq);
    const std::size_t sizes[] = {0, 7, 60, 500, 1500};
    r.out = filled(tag + "out ", sizes[random_.below(5)]);
    r.err = filled(tag + "err ", sizes[random_.below(3)]);
    r.usage.user_us = 1000;
    if (random_.chance(20)) r.usage.max_rss_kb = 77;
    return r;
}

// A grain ends: well, badly, or by no fault of its own.
void Workload::end(Server &server, const GrainKey &key, Server::Held &held) {
    wire::GrainReport r = progress(key, held);
    const std::uint64_t how = random_.below(10);
    r.ended = true;
    if (how < 3) {
        r.exit_code = how == 0 ? 1 : 0;
        r.signal = how == 1 ? 9 : 0;
        r.innocent = how == 2;
        r.reason = "because";
        if (how == 2) {
            r.last_seq = held.sequence;
            r.out.clear();
            r.err.clear();
        } else if (random_.chance(30)) {
            r.has_checkpoint = true;
            r.checkpoint = "last words";
            r.input_position = held.position;
        }
    } else if (random_.chance(4)) {
        r.out.resize(33'000, 'L');  // a result with files of its own
    }
    w_.report(server, key, held, std::move(r));
}

void Workload::server_acts() {
    Server &server = w_.people.servers[random_.below(w_.people.servers.size())];
    const std::uint64_t what = random_.below(100);
    if (server.conn == no_connection) {
        if (what < 50) return w_.connect_server(server);
        const auto has_report = [](const auto &h) { return h.second.report.has_value(); };
        const auto held = std::find_if(server.held.begin(), server.held.end(), has_report);
        if (held != server.held.end()) w_.hand_over(server, held->second);
        return;
    }
    if (what < 4) return w_.hang_up(server.conn);
    if (what < 16) return w_.post(server.conn, server.name, wire::CallIn{0.5, 1 << 20}, 0);
    if (server.held.empty()) return;
    auto chosen = server.held.begin();
    std::advance(chosen, random_.below(server.held.size()));
    auto &[key, held] = *chosen;
    if (what < 20) {  // the host was restarted: nothing is left of its grains
        w_.hang_up(server.conn);
        server.held.clear();
    } else if (held.report) {
        if (what < 30) w_.post(server.conn, server.name, *held.report, 0);
        else if (what < 45) w_.hand_over(server, held);
    } else if (what < 60) {
        wire::GrainReport r = progress(key, held);
        r.has_checkpoint = true;
        r.input_position = held.position + random_.below(held.end - held.position + 1);
        r.checkpoint = filled("at " + std::to_string(r.input_position) + r.out.substr(0, 20) + ";",
                              random_.chance(20) ? 1500 : 5 + random_.below(60));
        if (random_.chance(40)) r.message = "message of " + to_text(key);
        w_.report(server, key, held, std::move(r));
    } else if (what < 64) {  // alive and nothing new
        wire::GrainReport r;
        r.first_seq = held.sequence + 1;
        r.last_seq = held.sequence;
        r.usage.user_us = 5000;
        w_.report(server, key, held, std::move(r));
    } else if (what < 90) {
        end(server, key, held);
    }
}

// Mostly a little; sometimes until something is overdue, hosts that keep silent die of it.
void Workload::time_passes() {
    Instant &clock = w_.people.clock;
    const Instant next = w_.turn_->next_wakeup();
    if (random_.chance(40) && next != Instant::never() && !w_.turn_->committing()) clock = std::max(clock, next);
    else clock = clock + milliseconds(static_cast<std::int64_t>(random_.below(1500)));
}

void Workload::change_host_table() {
    auto &unlisted = w_.people.unlisted;
    if (!unlisted.empty() && random_.chance(70)) unlisted.clear();
    else unlisted.insert(w_.people.servers[random_.below(3)].name);
    w_.turn_->take_host_table(w_.host_table());
}

}  // namespace dcs::test
