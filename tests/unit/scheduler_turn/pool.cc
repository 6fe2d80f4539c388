#include "pool.h"

#include <algorithm>

#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "support/catch.h"

namespace dcs::test {
namespace {

std::string at_text(std::uint64_t position) { return "at " + std::to_string(position) + ";"; }

}  // namespace

// ---- ScriptedOutside ----------------------------------------------------------------------

Token ScriptedOutside::fresh_token() {
    Token token{};
    token.fill(++tokens);
    return token;
}

void ScriptedOutside::send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) {
    const std::string frame = wire::encode(message, static_cast<std::uint64_t>(request));
    auto header =
        wire::decode_header(std::string_view(frame).substr(0, wire::header_bytes), limits::server_frame_bytes);
    REQUIRE(header);
    auto decoded = wire::decode_payload(*header, std::string_view(frame).substr(wire::header_bytes));
    REQUIRE(decoded);
    sent.push_back(Sent{conn, header->request, std::move(*decoded)});
}

void ScriptedOutside::log(turn::Level, const std::string &line) { lines.push_back(line); }

void ScriptedOutside::start_commit(std::vector<store::TreeUpdate> updates, store::Room with) {
    REQUIRE_FALSE(job);
    job = std::move(updates);
    room = with;
}

// ---- Pool ---------------------------------------------------------------------------------

core::HostConfig host(const std::string &name, int slots) {
    core::HostConfig config;
    config.name = name;
    config.slots = slots;
    config.interval = seconds(10);
    config.alert = seconds(30);
    config.limit = seconds(60);
    config.extended = seconds(120);
    return config;
}

// Small limits, so that the big paths of the store are walked with few bytes.
store::StoreOptions Pool::options() {
    store::StoreOptions o{.inline_limit = 4096, .flush_turns = 16};
    o.journal_bytes = o.behind_turns = 0;  // tests look at the files, and at how much room they need
    o.reserve_bytes = 256 * 1024;
    return o;
}

Pool::Pool(std::vector<core::HostConfig> table, SimDisk on) : disk(std::move(on)), hosts(std::move(table)) { start(); }

void Pool::start() {
    auto opened = store::Store::open(disk, record::forest(), options(), nullptr);
    INFO((opened ? "" : opened.status().text));
    REQUIRE(opened);
    store = std::move(*opened);
    const Instant now = outside ? outside->clock : ScriptedOutside().clock;
    auto rebuilt = record::rebuild(*store, now);
    INFO((rebuilt ? "" : rebuilt.status().text));
    REQUIRE(rebuilt);
    reports = rebuilt->reports;
    const std::uint8_t tokens = outside ? outside->tokens : 0;
    outside = std::make_unique<ScriptedOutside>();
    outside->clock = now, outside->tokens = tokens, outside->wall = wall_at_start;
    turn::Turn::Setup setup;
    setup.state = std::move(rebuilt->state);
    setup.state.policy.stored_share = 0;  // most tests with a full disk are about the disk, not about shares
    setup.set_aside = std::move(rebuilt->set_aside);
    auto library = library::Library::open(disk, now);
    INFO((library ? "" : library.status().text));
    REQUIRE(library);
    setup.library = std::move(*library);
    turn = std::make_unique<turn::Turn>(std::move(setup), *store, *outside);
    turn->take_host_table(hosts);
    pump();
}

void Pool::restart(std::uint64_t capacity) {
    turn.reset();
    store.reset();
    disk = disk.killed();
    disk.set_capacity(capacity);
    start();
}

ConnId Pool::open(turn::Door door, const std::string &user, bool privileged, core::Certified certified) {
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::opened;
    a.conn = ConnId{next_conn_++};
    a.door = door;
    a.user = user;
    a.privileged = privileged;
    a.certified = std::move(certified);
    turn->take(a);
    return a.conn;
}

void Pool::hang_up(ConnId conn) {
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::closed;
    a.conn = conn;
    turn->take(a);
}

std::uint64_t Pool::post(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) {
    if (request == 0) request = next_request_++;
    const std::string frame = wire::encode(message, request);
    turn::Arrival a;
    a.conn = conn;
    auto header =
        wire::decode_header(std::string_view(frame).substr(0, wire::header_bytes), limits::server_frame_bytes);
    REQUIRE(header);
    request = (a.header = *header).request;  // of a Hello: its offer
    a.payload = frame.substr(wire::header_bytes);
    turn->take(std::move(a));
    return request;
}

void Pool::do_library_jobs() {
    while (!outside->library_jobs.empty()) {
        library::Job job = std::move(outside->library_jobs.front());
        outside->library_jobs.pop_front();
        turn->take_library_job(library::work(disk, std::move(job)));
    }
    pump();
}

void Pool::pump() {
    turn->run();
    while (turn->committing() && outside->died.empty()) {
        REQUIRE(outside->job);
        const auto updates = std::move(*outside->job);
        outside->job.reset();
        const store::CommitResult result = store->commit(updates, outside->room);
        ++commits;
        turn->committed(result);
        // A refused turn may go on with a second commit, of what may use the reserve.
        if (verify_each_turn && !turn->committing()) verify();
        turn->run();
    }
}

wire::AnyMessage Pool::call(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) {
    request = post(conn, message, request);
    pump();
    INFO("no reply to " << wire::kind_name(message));
    return reply(conn, request);
}

wire::AnyMessage Pool::reply(ConnId conn, std::uint64_t request) {
    auto &sent = outside->sent;
    const auto found =
        std::find_if(sent.begin(), sent.end(), [&](const Sent &s) { return s.conn == conn && s.request == request; });
    REQUIRE(found != sent.end());
    wire::AnyMessage answer = std::move(found->message);
    sent.erase(found);
    return answer;
}

void Pool::unexpected([[maybe_unused]] const wire::AnyMessage &message,
                      [[maybe_unused]] const wire::ErrorReply &error) {
    INFO(wire::kind_name(message) << ": " << code_name(static_cast<Code>(error.code)) << " " << error.text);
    REQUIRE(false);
    std::abort();
}

Code Pool::refusal(ConnId conn, const wire::AnyMessage &message, std::uint64_t request) {
    const wire::AnyMessage reply = call(conn, message, request);
    const auto *error = std::get_if<wire::ErrorReply>(&reply);
    return error ? static_cast<Code>(error->code) : Code::ok;
}

ConnId Pool::control(const std::string &user, const std::string &ident) {
    const ConnId conn = open(turn::Door::user, user);
    CHECK(ask<wire::Welcome>(conn, wire::Hello{}).user == user);
    const auto auth = ask<wire::AuthReply>(conn, wire::GetAuth{ident});
    ask<wire::Welcome>(conn, wire::Hello{wire::opening_form, auth.token});
    return conn;
}

std::vector<wire::AnyMessage> Pool::take_sent(ConnId conn) {
    std::vector<wire::AnyMessage> mine;
    std::deque<Sent> others;
    for (Sent &s : outside->sent) {
        if (s.conn == conn) mine.push_back(std::move(s.message));
        else others.push_back(std::move(s));
    }
    outside->sent = std::move(others);
    return mine;
}

std::string Pool::durable_text(const core::State &state) {
    std::string text = "next " + std::to_string(state.next_seniority) + "\n";
    for (const auto &[key, session] : state.sessions) {
        text += to_text(key) + " " + record::encode_session(session.info) + "\n";
        for (auto [number, grain] : session.grains) {
            // The usage of a running incarnation is only recorded together with something else.
            if (grain.status() == core::GrainStatus::running) grain.course.edit().current = wire::Usage();
            text += to_text(GrainKey{key, number}) + " " + record::encode_grain(state, number, grain) + "\n";
        }
        for (const auto &[shape, queue] : session.ready)
            for (const auto &[position, number] : queue.grains)
                text += std::to_string(position) + ":" + std::to_string(number) + " ";
        for (const GrainNumber number : session.results.grains()) text += std::to_string(number) + " ";
    }
    return text + "\nauth " + record::encode_auth({state.auth, state.last_numbers, state.last_leases}) + "\ntrust " +
           record::encode_trust(state.trust);
}

void Pool::verify() {
    REQUIRE(core::check(turn->state()) == "");
    SimDisk copy = disk.killed();
    auto other = store::Store::open(copy, record::forest(), options(), nullptr);
    REQUIRE(other);
    auto rebuilt = record::rebuild(**other, outside->clock);
    INFO((rebuilt ? "" : rebuilt.status().text));
    REQUIRE(rebuilt);
    REQUIRE(rebuilt->reports.empty());
    REQUIRE(core::check(rebuilt->state) == "");
    // The counter is not recorded by itself: that of a session that was cleaned is used again.
    REQUIRE(rebuilt->state.next_seniority <= turn->state().next_seniority);
    rebuilt->state.next_seniority = turn->state().next_seniority;
    const bool same = durable_text(rebuilt->state) == durable_text(turn->state());
    REQUIRE(same);
}

std::string shifted(std::string text) {
    for (char &c : text) ++c;
    return text;
}

// ---- ModelServer --------------------------------------------------------------------------

void ModelServer::connect() {
    conn_ = pool_.open(turn::Door::server, "root");
    wire::FirstCall call;
    call.host = name_;
    for (const auto &[key, grain] : held) call.held.push_back(wire::HeldGrain{wire::wire_of(key), grain.incarnation});
    pool_.post(conn_, call);
    pool_.pump();
}

void ModelServer::disconnect() {
    if (conn_ != no_connection) pool_.hang_up(conn_);
    conn_ = ConnId{0};
}

void ModelServer::call_in() {
    pool_.post(conn_, wire::CallIn{0.5, 1 << 20});
    pool_.pump();
}

void ModelServer::launch(const wire::Launch &launch, bool can_start) {
    const GrainKey key = wire::key_of(launch.key);
    if (!can_start) {
        pool_.post(conn_, wire::LaunchResult{launch.key, launch.incarnation, false, false,
                                             static_cast<int>(Code::not_found), "no program"});
        return;
    }
    REQUIRE(launch.checkpoint_length <= launch.input.size());
    const std::string checkpoint = launch.input.substr(0, launch.checkpoint_length);
    if (!strangers) CHECK(checkpoint == (launch.next_seq == 1 ? "" : at_text(launch.input_base)));
    Held grain;
    grain.incarnation = launch.incarnation;
    grain.input = launch.input.substr(launch.checkpoint_length);
    grain.base = launch.input_base;
    grain.sequence = launch.next_seq - 1;
    held[key] = std::move(grain);
    pool_.post(conn_, wire::LaunchResult{launch.key, launch.incarnation, true, false, 0, ""});
}

void ModelServer::acknowledged(const wire::ReportAck &ack) {
    const auto found = held.find(wire::key_of(ack.key));
    if (found == held.end() || found->second.incarnation != ack.incarnation) return;
    Held &grain = found->second;
    if (ack.verdict == wire::Verdict::stale || (ack.ended && ack.verdict != wire::Verdict::later)) {
        held.erase(found);
        return;
    }
    if (ack.verdict == wire::Verdict::later || !grain.unacknowledged) return;
    const wire::GrainReport &report = *grain.unacknowledged;
    if (report.ended || ack.last_seq < report.last_seq) return;
    grain.input.erase(0, report.input_position - grain.base);
    grain.base = report.input_position;
    grain.sequence = report.last_seq;
    grain.unacknowledged.reset();
}

void ModelServer::read(bool can_start) {
    if (conn_ == no_connection) return;
    if (std::count(pool_.outside->closed.begin(), pool_.outside->closed.end(), conn_)) {
        conn_ = ConnId{0};
        return;
    }
    for (const wire::AnyMessage &message : pool_.take_sent(conn_)) {
        if (const auto *l = std::get_if<wire::Launch>(&message)) launch(*l, can_start);
        if (const auto *ack = std::get_if<wire::ReportAck>(&message)) acknowledged(*ack);
        if (const auto *withdraw = std::get_if<wire::Withdraw>(&message)) {
            const GrainKey key = wire::key_of(withdraw->key);
            const auto found = held.find(key);
            if (found == held.end() || found->second.incarnation != withdraw->incarnation) continue;
            if (withdraw->discard) held.erase(found);
            else finish(key, 0, true);
        }
    }
    pool_.pump();
}

void ModelServer::checkpoint(const GrainKey &key, std::size_t bytes) {
    Held &grain = held.at(key);
    if (grain.unacknowledged) return;
    bytes = std::min(bytes, grain.input.size());
    wire::GrainReport report;
    report.key = wire::wire_of(key);
    report.incarnation = grain.incarnation;
    report.first_seq = report.last_seq = grain.sequence + 1;
    report.has_checkpoint = true;
    report.input_position = grain.base + bytes;
    report.checkpoint = at_text(report.input_position);
    report.message = "copied " + std::to_string(report.input_position);
    report.out = grain.input.substr(0, bytes);
    report.err = shifted(report.out);
    report.usage.user_us = 1000 + static_cast<std::int64_t>(bytes);
    grain.unacknowledged = report;
    if (conn_ == no_connection) return;
    pool_.post(conn_, report);
    pool_.pump();
}

void ModelServer::finish(const GrainKey &key, int code, bool innocent) {
    Held &grain = held.at(key);
    if (grain.unacknowledged) return;
    wire::GrainReport report;
    report.key = wire::wire_of(key);
    report.incarnation = grain.incarnation;
    report.first_seq = report.last_seq = grain.sequence + 1;
    if (innocent) report.last_seq = grain.sequence;
    report.out = innocent ? "" : grain.input;
    report.err = shifted(report.out);
    report.ended = true;
    report.exit_code = code;
    report.innocent = innocent;
    grain.unacknowledged = report;
    if (conn_ == no_connection) return;
    pool_.post(conn_, report);
    pool_.pump();
}

void ModelServer::repeat() {
    if (conn_ == no_connection) return;
    for (const auto &[key, grain] : held)
        if (grain.unacknowledged) pool_.post(conn_, *grain.unacknowledged);
    pool_.pump();
}

wire::GrainSpec copying_grain(std::string input) {
    wire::GrainSpec spec;
    spec.argv = {"/bin/copy", "-"};
    spec.env = {"A=1"};
    spec.input = std::move(input);
    return spec;
}

ConnId three_grains(Pool &pool, ModelServer &server, std::int32_t number) {
    const ConnId control = pool.control("ann", "prog");
    pool.ask<wire::OpenReply>(control, wire::OpenSession{number, wire::OpenMode::open, false});
    server.connect();
    for (int g = 0; g < 3; ++g) pool.ask<wire::Done>(control, wire::Gexec{number, g, copying_grain("some input")});
    server.read();
    server.finish({{"ann", number}, 0});
    server.read();
    server.checkpoint({{"ann", number}, 1}, 4);
    server.read();
    return control;
}

}  // namespace dcs::test
