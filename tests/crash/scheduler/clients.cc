// The people of the world: how they call, and how they take what the scheduler says.
#include <algorithm>

#include "crash/scheduler/world.h"

namespace dcs::test {

std::vector<core::HostConfig> World::host_table() const {
    std::vector<core::HostConfig> table;
    for (const auto &[name, slots] : {std::pair{"h1", 2}, {"h2", 1}, {"h3", 6}}) {
        if (people.unlisted.count(name) != 0) continue;
        core::HostConfig config;
        config.name = name;
        config.slots = slots;
        config.host_class = slots == 1 ? 2 : 1;
        config.interval = seconds(10);
        config.alert = seconds(30);
        config.limit = seconds(60);
        config.extended = seconds(120);
        table.push_back(config);
    }
    return table;
}

ConnId World::connect(turn::Door door, const std::string &user) {
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::opened;
    a.conn = ConnId{people.next_conn++};
    a.door = door;
    a.user = user;
    a.privileged = user == "root";
    turn_->take(a);
    return a.conn;
}

void World::hang_up(ConnId &conn) {
    if (conn == no_connection) return;
    turn::Arrival a;
    a.kind = turn::Arrival::Kind::closed;
    a.conn = conn;
    turn_->take(a);
    conn = no_connection;
}

void World::post(ConnId conn, const std::string &who, const wire::AnyMessage &message, std::uint64_t request) {
    people.ledger.asked(conn, who, request, message);
    std::string frame = wire::encode(message, request);
    const auto header =
        wire::decode_header(std::string_view(frame).substr(0, wire::header_bytes), limits::server_frame_bytes);
    DCS_REQUIRE(header, "a frame of ours has no header");
    turn::Arrival a;
    a.conn = conn;
    a.header = *header;
    a.payload = frame.substr(wire::header_bytes);
    turn_->take(std::move(a));
}

void World::connect_control(Control &control) {
    control.conn = connect(turn::Door::user, control.user);
    post(control.conn, control.user, wire::Hello{wire::opening_form, control.token}, 0);
    if (control.token.empty()) {
        post(control.conn, control.user, wire::GetAuth{control.ident}, people.next_request++);
        return;
    }
    for (const auto &[request, message] : control.unanswered) post(control.conn, control.user, message, request);
}

void World::connect_server(Server &server) {
    server.conn = connect(turn::Door::server, "root");
    wire::FirstCall first;
    first.host = server.name;
    for (const auto &[key, held] : server.held)
        first.held.push_back(wire::HeldGrain{wire::wire_of(key), held.incarnation});
    post(server.conn, server.name, first, 0);
    for (const auto &[key, held] : server.held)
        if (held.report) post(server.conn, server.name, *held.report, 0);
}

void World::call(Control &control, const wire::AnyMessage &message) {
    const std::uint64_t request = people.next_request++;
    control.unanswered[request] = message;
    post(control.conn, control.user, message, request);
}

void World::report(Server &server, const GrainKey &key, Server::Held &held, wire::GrainReport report) {
    report.key = wire::wire_of(key);
    report.incarnation = held.incarnation;
    held.report = std::move(report);
    if (server.conn != no_connection) post(server.conn, server.name, *held.report, 0);
}

void World::hand_over(Server &server, const Server::Held &held) {
    Backup &backup = people.backup;
    if (backup.conn == no_connection) {
        backup.conn = connect(turn::Door::server, "root");
        post(backup.conn, "backup", wire::BackupCall{wire::opening_form, 7}, 0);
    }
    if (!backup.unanswered)
        backup.unanswered = wire::HandOver{server.name, ++backup.numbers[server.name], *held.report};
    post(backup.conn, backup.unanswered->host, *backup.unanswered, 0);
}

// Of its last word a server hears from the backup, not from the scheduler.
void World::read_taken(const wire::HandOverTaken &taken) {
    std::optional<wire::HandOver> &sent = people.backup.unanswered;
    if (!sent || taken.host != sent->host || taken.number != sent->number) return;
    ++counts.handed_over;
    const wire::GrainReport &r = sent->report;
    for (Server &server : people.servers)
        if (server.name == sent->host)
            read_ack(server, wire::ReportAck{r.key, r.incarnation, r.last_seq, r.ended, wire::Verdict::taken});
    sent.reset();
}

// What was sent reaches those who are still connected.
void World::deliver() {
    while (!sent_.empty()) {
        const Sent sent = std::move(sent_.front());
        sent_.pop_front();
        for (Control &control : people.controls)
            if (control.conn == sent.conn) read_reply(control, sent.request, sent.message);
        for (Server &server : people.servers)
            if (server.conn == sent.conn) read_message(server, sent.message);
        const auto *taken = std::get_if<wire::HandOverTaken>(&sent.message);
        if (taken && people.backup.conn == sent.conn) read_taken(*taken);
    }
}

void World::read_reply(Control &control, std::uint64_t request, const wire::AnyMessage &message) {
    control.unanswered.erase(request);
    const auto *auth = std::get_if<wire::AuthReply>(&message);
    if (!auth) return;
    control.token = auth->token;
    post(control.conn, control.user, wire::Hello{wire::opening_form, control.token}, 0);
}

void World::read_launch(Server &server, const wire::Launch &launch) {
    if (!quiet_ && random_.chance(5)) {
        const Code code = random_.chance(30) ? Code::not_found : Code::limit;
        post(server.conn, server.name,
             wire::LaunchResult{launch.key, launch.incarnation, false, false, static_cast<int>(code), "refused"}, 0);
        return;
    }
    Server::Held held;
    held.incarnation = launch.incarnation;
    held.sequence = launch.next_seq - 1;
    held.position = launch.input_base;
    held.end = launch.input_base + launch.input.size() - launch.checkpoint_length;
    server.held[wire::key_of(launch.key)] = std::move(held);
    post(server.conn, server.name, wire::LaunchResult{launch.key, launch.incarnation, true, false, 0, ""}, 0);
}

void World::read_ack(Server &server, const wire::ReportAck &ack) {
    const auto found = server.held.find(wire::key_of(ack.key));
    if (found == server.held.end() || found->second.incarnation != ack.incarnation) return;
    Server::Held &held = found->second;
    if (ack.verdict == wire::Verdict::later) return;
    if (ack.verdict == wire::Verdict::stale || ack.ended) {
        server.held.erase(found);
        return;
    }
    if (!held.report || held.report->ended || ack.last_seq < held.report->last_seq) return;
    if (held.report->has_checkpoint) {
        held.sequence = held.report->last_seq;
        held.position = held.report->input_position;
    }
    held.report.reset();
}

void World::read_message(Server &server, const wire::AnyMessage &message) {
    if (const auto *launch = std::get_if<wire::Launch>(&message)) return read_launch(server, *launch);
    if (const auto *ack = std::get_if<wire::ReportAck>(&message)) return read_ack(server, *ack);
    const auto *withdraw = std::get_if<wire::Withdraw>(&message);
    if (!withdraw) return;
    const auto found = server.held.find(wire::key_of(withdraw->key));
    if (found == server.held.end() || found->second.incarnation != withdraw->incarnation) return;
    if (withdraw->discard) {
        server.held.erase(found);
    } else if (!found->second.report) {
        wire::GrainReport given_back;
        given_back.first_seq = found->second.sequence + 1;
        given_back.last_seq = found->second.sequence;
        given_back.ended = given_back.innocent = true;
        given_back.reason = "withdrawn";
        report(server, found->first, found->second, std::move(given_back));
    }
}

}  // namespace dcs::test
