#pragma once
// A pool without processes: control programs and grain servers are words here, the core decides.
// Every call returns the effects that it and its follow-ups had, as text, so that a test that
// compares them also asserts that nothing else left. check() runs after every single change.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/status.h"
#include "scheduler/state/decision.h"
#include "describe.h"
#include "support/catch.h"

namespace dcs::core {

using Lines = std::vector<std::string>;

inline TokenHash numbered_hash(int n) {
    TokenHash h{};
    h[0] = static_cast<std::uint8_t>(n);
    return h;
}

struct Program {  // a control program, as the scheduler sees it
    std::string user, ident;
    ConnId conn{};
    TokenHash token{};
    bool privileged = false;
};

class Pool {
public:
    State state;
    Instant now = Instant{} + seconds(1000);
    std::vector<Change> changes;  // of the last call
    std::vector<Effect> effects;
    Lines events;
    std::uint64_t request = 0;  // id of the last request; repeat() uses it again

    Pool() = default;
    // hosts "h1".."hN" of one slot and class 1, connected
    explicit Pool(int count, int slots = 1) {
        for (int i = 1; i <= count; ++i) add_host("h" + std::to_string(i), 1, slots);
        table();
        for (int i = 1; i <= count; ++i) first_call("h" + std::to_string(i));
        events.clear();
    }

    // ---- time and inputs ------------------------------------------------------------------
    Lines feed(Input input) { return feed(std::move(input), nullptr); }
    Lines feed(Input input, Undo *undo) {
        changes.clear();
        effects.clear();
        Undo own;
        std::deque<Input> work{std::move(input)};
        for (int steps = 0; !work.empty(); ++steps) {
            REQUIRE(steps < 10000);  // follow-ups that never end
            const Decision d = decide(state, now, work.front());
            work.pop_front();
            for (const Change &change : d.changes) {
                apply(state, change, undo ? *undo : own);
                changes.push_back(change);
            }
            const std::string wrong = check(state);
            if (!wrong.empty()) FAIL(wrong);
            effects.insert(effects.end(), d.effects.begin(), d.effects.end());
            events.insert(events.end(), d.events.begin(), d.events.end());
            work.insert(work.begin(), d.follow_ups.begin(), d.follow_ups.end());
        }
        Lines lines;
        for (const Effect &e : effects) lines.push_back(text(e));
        return lines;
    }
    Lines wait(Duration d) {  // with the Ticks that fall due on the way
        Lines all;
        const Instant end = now + d;
        while (next_deadline(state) <= end) {
            now = std::max(now, next_deadline(state));
            const Lines some = feed(Tick{});
            all.insert(all.end(), some.begin(), some.end());
        }
        now = end;
        return all;
    }

    // ---- hosts ----------------------------------------------------------------------------
    std::vector<HostConfig> hosts;
    HostConfig &add_host(const std::string &name, std::uint32_t host_class = 1, int slots = 1) {
        HostConfig c;
        c.name = name;
        c.host_class = host_class;
        c.slots = slots;
        c.interval = seconds(10);
        c.alert = seconds(30);
        c.limit = seconds(60);
        c.extended = seconds(120);
        hosts.push_back(c);
        return hosts.back();
    }
    Lines table() { return feed(HostTable{hosts}); }
    HostId id(const std::string &host) const { return state.host_id(host); }
    struct Held {
        std::string grain;
        Incarnation incarnation;
        std::int64_t cpu_us = 0;
    };
    Lines first_call(const std::string &host, const std::vector<Held> &held = {}) {
        auto call = std::make_shared<wire::FirstCall>();
        call->host = host;
        if (instances.contains(host)) call->instance = instances.at(host);
        if (boots.contains(host)) call->boot_id = boots.at(host);
        for (const Held &h : held) call->held.push_back({wire::wire_of(key(h.grain)), h.incarnation, h.cpu_us});
        const ConnId conn = ConnId{next_server_++};
        names_[conn] = host;
        const wire::Form form = forms.contains(host) ? forms.at(host) : wire::newest_form;
        return feed(ServerFirstCall{conn, call, {}, {}, false, form});
    }
    std::map<std::string, std::uint64_t> instances;  // of servers: which process calls
    std::map<std::string, std::string> boots;        // of their machines
    std::map<std::string, wire::Form> forms;         // of servers that are of other releases
    ConnId conn(const std::string &host) const { return state.host(id(host))->conn; }
    Lines call_in(const std::string &host, std::int64_t free_memory_kb = 1 << 20, bool boundary = false) {
        return feed(ServerCallIn{conn(host), id(host), wire::CallIn{0.5, free_memory_kb, boundary}});
    }
    Lines limits(const std::string &host, const wire::GrainLimits &most) {  // a call-in that states them
        return feed(ServerCallIn{conn(host), id(host), wire::CallIn{0.5, 1 << 20, false, "", 0, "", "", most}});
    }
    // with it a time slice ends
    Lines boundary(const std::string &host) { return call_in(host, 1 << 20, true); }
    Lines probed(const std::string &host, std::optional<bool> check, std::optional<bool> file_server = {},
                 std::optional<bool> gateway = {}) {
        return feed(ProbeResult{id(host), state.host(id(host))->probe, check, file_server, gateway});
    }
    Lines rules(const Policy &policy) { return feed(PolicyTable{policy}); }
    Lines hang_up(const std::string &host) { return feed(ConnectionClosed{conn(host)}); }
    wire::GrainReport report(const std::string &grain) const {
        wire::GrainReport r;
        r.key = wire::wire_of(key(grain));
        const Grain *g = state.grain(key(grain));
        r.incarnation = g ? g->lease : 1;
        r.first_seq = g ? g->course->sequence + 1 : 1;
        r.last_seq = g ? g->course->sequence : 0;
        return r;
    }
    Lines send(const std::string &host, const wire::GrainReport &r) {
        return feed(ServerReport{conn(host), id(host), std::make_shared<const wire::GrainReport>(r)});
    }
    Lines checkpoint(const std::string &host, const std::string &grain, const std::string &out = "out",
                     const std::string &ckpt = "state") {
        wire::GrainReport r = report(grain);
        r.last_seq = r.first_seq;
        r.has_checkpoint = true;
        r.checkpoint = ckpt;
        r.message = "on the way";
        r.input_position = state.grain(key(grain)) ? state.grain(key(grain))->course->input_position : 0;
        r.out = out;
        return send(host, r);
    }
    wire::GrainReport end_report(const std::string &grain, int code = 0, int signal = 0, bool innocent = false) const {
        wire::GrainReport r = report(grain);
        r.last_seq = r.first_seq;
        r.out = "result";
        r.ended = true;
        r.exit_code = code;
        r.signal = signal;
        r.innocent = innocent;
        r.usage.user_us = 1000;
        return r;
    }
    Lines end(const std::string &host, const std::string &grain, int code = 0, int signal = 0, bool innocent = false) {
        return send(host, end_report(grain, code, signal, innocent));
    }
    Lines launched(const std::string &host, const std::string &grain, Code code = Code::ok,
                   const std::string &text = "because") {
        wire::LaunchResult r;
        r.key = wire::wire_of(key(grain));
        r.incarnation = state.grain(key(grain)) ? state.grain(key(grain))->lease : 1;
        r.ok = code == Code::ok;
        r.code = static_cast<std::int32_t>(code);
        r.text = text;
        return feed(ServerLaunchResult{conn(host), id(host), r});
    }

    // It runs for 20 s, of which it gets so much; the host's load is that.
    void used(const std::string &host, const std::string &grain, double cpu_s, double load) {
        if (!at(grain).launched) launched(host, grain);
        now = now + seconds(20);
        wire::GrainReport r = report(grain);
        r.usage.user_us = static_cast<std::int64_t>(cpu_s * 1e6);
        send(host, r);
        feed(ServerCallIn{conn(host), id(host), wire::CallIn{load, 1 << 20}});
    }

    // Its end was reported, and there was no room for it.
    void unrecorded(const std::string &grain, NoRoom why) {
        state.unrecorded.note(state, key(grain), state.grain(key(grain))->lease, why);
    }

    Lines staged(const std::string &host, const std::string &grain) {
        wire::LaunchResult r;
        r.key = wire::wire_of(key(grain));
        r.incarnation = state.grain(key(grain)) ? state.grain(key(grain))->lease : 1;
        r.staged = true;
        return feed(ServerLaunchResult{conn(host), id(host), r});
    }

    // ---- control programs -----------------------------------------------------------------
    Program begin(const std::string &user, const std::string &ident, std::int64_t wall_s = 1000) {
        Program p{user, ident, ConnId{next_program_++}, {}, false};
        p.token[0] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(p.conn));
        p.token[1] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(p.conn) >> 8);
        p.token[31] = 1;
        names_[p.conn] = user;
        call(p, GetAuth{ident, {}, p.token, wall_s});
        return p;
    }
    Program stranger(const std::string &user, bool privileged = false) {  // without a token
        Program p{user, "", ConnId{next_program_++}, {}, privileged};
        names_[p.conn] = user;
        return p;
    }
    Caller caller(const Program &p) {
        return Caller{p.conn, RequestId{++request}, p.user, p.privileged, p.token != TokenHash{}, p.token};
    }
    Lines call(const Program &p, UserRequest r) { return feed(UserCall{caller(p), std::move(r)}); }
    Lines repeat(const Program &p, UserRequest r) {
        --request;
        return call(p, std::move(r));
    }
    Lines open(const Program &p, int n, wire::OpenMode mode = wire::OpenMode::open, bool sent_reset = false) {
        return call(p, wire::OpenSession{n, mode, sent_reset});
    }
    static SubmitGrain grain(int session, int number, std::uint32_t host_class = 0, const std::string &spec = "spec") {
        SubmitGrain s;
        s.session = session;
        s.grain = number;
        s.demands.host_class = host_class;
        s.input_length = 100;
        s.params.bytes = std::make_shared<const std::string>(spec);
        std::uint32_t h = host_class + 7;
        for (const char c : spec) h = h * 31 + static_cast<unsigned char>(c);
        for (int i = 0; i < 4; ++i)
            s.fingerprint[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(h >> (8 * i));
        return s;
    }
    static SubmitGrain wants(int session, int number, const std::string &resources) {
        SubmitGrain s = grain(session, number);
        s.demands.resources = resources;
        return s;
    }
    Lines gexec(const Program &p, int session, int number, std::uint32_t host_class = 0) {
        return call(p, grain(session, number, host_class));
    }
    Lines gwait(const Program &p, int session, int next, bool block = false) {
        return call(p, wire::Gwait{session, next, block});
    }
    Lines gkill(const Program &p, int session, int number) { return call(p, wire::Gkill{"", session, number}); }
    Lines close(const Program &p, int session) { return call(p, wire::CloseSession{"", session, -1}); }

    Lines set(const Program &p, const wire::SetHost &change) { return call(p, change); }
    Lines restart(const Program &p, const std::string &grain) {
        const GrainKey k = key(grain);
        return call(p, wire::RestartGrain{k.session.user, k.session.number, k.grain});
    }
    // The answer to a call that has one message.
    template <class Message> Message answer(const Program &p, UserRequest r) {
        call(p, std::move(r));
        for (const Effect &e : effects)
            if (const auto *reply = std::get_if<Reply>(&e))
                if (const auto *message = std::get_if<Message>(&reply->message)) return *message;
        FAIL("no such answer");
        return {};
    }
    wire::Explanation explain(const std::string &grain, bool as_root = false) {
        const GrainKey k = key(grain);
        return answer<wire::Explanation>(as_root ? stranger("root", true) : stranger(k.session.user),
                                         wire::Explain{k.session.user, k.session.number, k.grain});
    }

    // ---- looking --------------------------------------------------------------------------
    static GrainKey key(const std::string &name) {  // "ann/3:17"
        const auto slash = name.find('/'), colon = name.find(':');
        return {{name.substr(0, slash), std::stoi(name.substr(slash + 1, colon - slash - 1))},
                std::stoi(name.substr(colon + 1))};
    }
    const Grain &at(const std::string &name) const {
        const Grain *g = state.grain(key(name));
        REQUIRE(g);
        return *g;
    }
    const Session &session(const std::string &name) const {
        const Session *s = state.session(key(name + ":0").session);
        REQUIRE(s);
        return *s;
    }
    // The session's ready grains, in their order.
    std::vector<GrainNumber> queue(const std::string &name) const {
        std::map<std::int64_t, GrainNumber> all;
        for (const auto &[shape, queue] : session(name).ready)
            for (const auto &[position, number] : queue.grains) all.emplace(position, number);
        std::vector<GrainNumber> numbers;
        for (const auto &[position, number] : all) numbers.push_back(number);
        return numbers;
    }
    std::string status(const std::string &name) const { return name_of(at(name).status()); }
    bool silent() const { return effects.empty(); }
    bool touched_disk() const {
        for (const Change &c : changes)
            if (durable(c)) return true;
        return false;
    }

private:
    // "to 7#3: done" -> "ann: done"; "to server 900: launch ..." -> "h1: launch ..."
    std::string text(const Effect &e) const {
        const std::string line = describe(state, e);
        if (const auto *close = std::get_if<CloseConnection>(&e)) {
            const auto known = names_.find(close->conn);
            return known == names_.end() ? line : "close " + known->second;
        }
        if (std::holds_alternative<ProbeHost>(e) || std::holds_alternative<SetOwnLogLevel>(e) ||
            std::holds_alternative<ClosePrograms>(e))
            return line;
        ConnId conn{};
        if (const auto *s = std::get_if<SendServer>(&e)) conn = s->conn;
        else if (const auto *l = std::get_if<SendLaunch>(&e)) conn = l->conn;
        else
            conn = std::visit(
                [](const auto &x) {
                    if constexpr (requires { x.conn; }) return x.conn;
                    else return ConnId{0};
                },
                e);
        const auto name = names_.find(conn);
        return (name == names_.end() ? to_text(conn) : name->second) + line.substr(line.find(": "));
    }
    std::map<ConnId, std::string> names_;
    std::uint64_t next_program_ = 1, next_server_ = 900;
};

}  // namespace dcs::core
