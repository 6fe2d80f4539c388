#include "describe.h"

#include "base/status.h"
#include "describe_line.h"

namespace dcs::core {
namespace {

std::string in_ms(Duration d) { return std::to_string(d.ns / 1'000'000) + "ms"; }

const char *name_of(File file) {
    constexpr const char *names[] = {"session_inputs",   "session_results", "session_events", "grain_params",
                                     "grain_checkpoint", "grain_message",   "grain_out",      "grain_err"};
    return names[static_cast<int>(file)];
}
const char *name_of(wire::Verdict v) {
    constexpr const char *names[] = {"taken", "have_it", "stale", "later"};
    return names[static_cast<int>(v)];
}
const char *name_of(wire::OpenedAs as) {
    constexpr const char *names[] = {"fresh", "resumed", "replay"};
    return names[static_cast<int>(as)];
}
std::string to(ConnId conn, RequestId request) {
    return "to " + to_text(conn) + "#" + std::to_string(static_cast<std::uint64_t>(request)) + ": ";
}

struct MessageText {
    std::string operator()(const wire::ErrorReply &m) const {
        return std::string("error ") + code_name(static_cast<Code>(m.code)) + ": " + m.text;
    }
    std::string operator()(const wire::Done &d) const {
        if (d.killed == 0) return "done";
        return "done repeated " + std::to_string(d.repeated) + " killed " + std::to_string(d.killed);
    }
    std::string operator()(const wire::AuthReply &) const { return "token"; }
    std::string operator()(const wire::OpenReply &m) const {
        return Line(std::string("opened ") + name_of(m.as)).add("sent", m.sent).add("completed", m.completed);
    }
    std::string operator()(const wire::Refused &m) const { return "refused: " + m.text; }
    std::string operator()(const wire::Configure &m) const {
        return "configure interval " + in_ms(seconds_of(m.interval_s)) + " slots " + std::to_string(m.slots);
    }
    std::string operator()(const wire::Withdraw &m) const {
        return Line("withdraw " + text_of(m.key))
            .number("inc", m.incarnation)
            .flag("discard", m.discard)
            .add("because", m.reason);
    }
    std::string operator()(const wire::ReportAck &m) const {
        return Line("ack " + text_of(m.key))
            .number("inc", m.incarnation)
            .number("last", m.last_seq)
            .flag("ended", m.ended)
            .flag(name_of(m.verdict), true);
    }
    std::string operator()(const wire::QueryReply &m) const {
        std::string text = Line("rows")
                               .number("hosts", m.hosts.size())
                               .number("sessions", m.sessions.size())
                               .number("grains", m.grains.size())
                               .flag("more", m.more);
        for (const auto &h : m.hosts)
            text += "; " + std::string(Line(h.name + " " + h.state).add("slots", h.slots).add("running", h.running));
        for (const auto &s : m.sessions)
            text += "; " + std::string(Line(s.user + "/" + std::to_string(s.session) + " " + s.state)
                                           .add("ready", s.ready)
                                           .add("running", s.running)
                                           .add("finished", s.finished)
                                           .add("killed", s.killed)
                                           .add("sent", s.sent));
        for (const auto &g : m.grains)
            text += "; " +
                    std::string(
                        Line(std::to_string(g.grain) + " " + g.state).add("on", g.host).number("inc", g.incarnation));
        return text;
    }
    template <class Other> std::string operator()(const Other &m) const { return wire::kind_name(wire::AnyMessage(m)); }
};

struct ChangeText {
    const State &state;
    std::string operator()(const SetAuth &c) const {
        return Line("auth " + c.entry.user + " " + c.entry.ident).add("stamp", c.entry.stamp_s);
    }
    std::string operator()(const EraseAuth &) const { return "auth erased"; }
    std::string operator()(const SetSession &c) const { return "session " + to_text(c.key) + " " + describe(c.info); }
    std::string operator()(const EraseSession &c) const { return "session " + to_text(c.key) + " erased"; }
    std::string operator()(const EraseDamaged &c) const { return "damaged session " + to_text(c.key) + " erased"; }
    std::string operator()(const AddGrains &c) const {
        return "session " + to_text(c.key) + " gets " + std::to_string(c.grains->size()) + " grains";
    }
    std::string operator()(const EraseGrain &c) const { return "grain " + to_text(c.key) + " erased"; }
    std::string operator()(const SetGrain &c) const {
        return Line("grain " + to_text(c.key) + " " + describe(state, c.grain)).flag("(volatile)", c.volatile_only);
    }
    std::string operator()(const SetHost &c) const {
        return Line("host " + describe(c.host)).flag("(durable)", c.durable);
    }
    std::string operator()(const SetPolicy &c) const {
        return Line("policy")
            .flag("fair_share", c.policy.fair_share)
            .add("sessions", c.policy.sessions_per_user)
            .add("grains", c.policy.grains_per_user)
            .add("running", c.policy.running_per_user)
            .add("stored_mb", c.policy.stored_mb_per_user)
            .number("stored_share", static_cast<std::size_t>(c.policy.stored_share))
            .add("probation", c.policy.probation)
            .number("users", c.policy.users.size());
    }
    std::string operator()(const SetTrust &c) const {
        return Line("trust").number("codes", c.trust.codes.size()).number("keys", c.trust.keys.size());
    }
    std::string operator()(const SetClasses &c) const { return Line("classes").number("names", c.classes.size()); }
    std::string operator()(const SetSources &c) const { return Line("sources").number("hosts", c.sources.size()); }
    std::string operator()(const SetBackupHost &c) const { return "backup host " + c.host.name; }
    std::string operator()(const SetPending &c) const { return Line("pending").number("hosts", c.pending.size()); }
    std::string operator()(const SetHandedOver &c) const {
        return Line("handed over " + c.host).number("store", c.up_to.store).number("up to", c.up_to.number);
    }
    std::string operator()(const SetLastNumber &c) const {
        return "last number of " + c.user + " " + std::to_string(c.number) + ", lease " + std::to_string(c.lease);
    }
    std::string operator()(const SetBackup &c) const {
        return Line("backup")
            .number("conn", static_cast<std::uint64_t>(c.link.conn))
            .flag("waited for", c.link.patience != Instant::never());
    }
    std::string operator()(const SetWaitingCall &c) const {
        return "host " + c.host + (c.call ? " waits for the backup" : " waits no more for the backup");
    }
    std::string operator()(const SetWaiters &c) const {
        std::string text = "waiters " + to_text(c.key);
        for (const Waiter &w : c.waiters)
            text += " " + to_text(w.conn) + "#" + std::to_string(static_cast<std::uint64_t>(w.request)) + " for " +
                    std::to_string(w.next) + (w.most > 0 ? " most " + std::to_string(w.most) : "");
        return text;
    }
    std::string operator()(const WriteFile &c) const {
        return Line("write " + to_text(c.key) + " " + name_of(c.file))
            .number("at", c.old_length)
            .add("bytes", std::to_string(c.bytes.size()));
    }
};

struct EffectText {
    const State &state;
    std::string operator()(const Reply &e) const { return to(e.conn, e.request) + describe(e.message); }
    std::string operator()(const ReplyResult &e) const {
        return Line(to(e.conn, e.request) + "result " + to_text(e.key))
            .add("completed", e.head.completed)
            .add("sent", e.head.sent)
            .add("returned", e.head.returned == e.head.sent ? 0 : e.head.returned)
            .add("signal", e.head.signal)
            .add("code", e.head.code)
            .number("out", e.head.out_length)
            .number("err", e.head.err_length);
    }
    std::string operator()(const ReplyResults &e) const {
        std::string text = to(e.conn, e.request) + "results of " + to_text(e.session) + ":";
        for (const wire::GrainResult &head : e.heads)
            text += " " + std::to_string(head.grain) + " sent " + std::to_string(head.sent) +
                    (head.returned == head.sent ? "" : " returned " + std::to_string(head.returned));
        return text;
    }
    std::string operator()(const ReplyLive &e) const {
        return to(e.conn, e.request) + "live piece of " + to_text(e.key);
    }
    std::string operator()(const ReplyPiece &e) const {
        return Line(to(e.conn, e.request) + "piece of " + to_text(e.key))
            .number("at", e.fetch.offset)
            .number("max", e.fetch.max);
    }
    std::string operator()(const ReplyDifference &e) const {
        return to(e.conn, e.request) + "difference from " + to_text(e.key);
    }
    std::string operator()(const ReplyGrainDetail &e) const {
        std::string text = to(e.conn, e.request) + "detail of " + to_text(e.key) + " " + e.rows.at(0).state;
        for (std::size_t i = 1; i < e.rows.size(); ++i)
            text += ", " + std::to_string(e.rows[i].grain) + " " + e.rows[i].state;
        return text;
    }
    std::string operator()(const ReplyExport &e) const {
        return to(e.conn, e.request) + "export of " + to_text(e.key) + " after " + std::to_string(e.after);
    }
    std::string operator()(const ReplyDoctor &e) const {
        return to(e.conn, e.request) + std::to_string(e.problems.size()) + " problems";
    }
    std::string operator()(const SendServer &e) const {
        return "to server " + to_text(e.conn) + ": " + describe(e.message);
    }
    std::string operator()(const SendLaunch &e) const {
        return Line("to server " + to_text(e.conn) + ": launch " + to_text(e.key))
            .number("inc", e.head.incarnation)
            .number("checkpoint", e.head.checkpoint_length)
            .number("input_from", e.head.input_base)
            .number("next", e.head.next_seq)
            .add("notice", e.head.demands.notice)
            .add("wall", e.head.demands.wall_s)
            .flag("tentative", e.head.tentative);
    }
    std::string operator()(const Reread &e) const { return to(e.conn, e.request) + "settings read again"; }
    std::string operator()(const SendProgram &e) const {
        return Line(to(e.conn, e.request) + "certificate for program " + e.user + "/" + e.host + "/" + e.ident)
            .flag("token", !e.token.empty());
    }
    std::string operator()(const ClosePrograms &e) const { return "close programs of " + e.host; }
    std::string operator()(const SendCertificate &e) const {
        return to(e.conn, e.request) + "certificate of " + e.host;
    }
    std::string operator()(const RemoveHostLine &e) const {
        return to(e.conn, e.request) + "line of " + e.host + " removed";
    }
    std::string operator()(const SetOwnLogLevel &e) const { return "log level " + e.level; }
    std::string operator()(const ProbeHost &e) const { return "probe " + host_name(state, e.host); }
    std::string operator()(const CloseConnection &e) const { return "close " + to_text(e.conn); }
};

}  // namespace

std::string describe(const State &state, const Grain &g) {
    Line line(core::name_of(g.status()));
    line.add(g.status() == GrainStatus::running ? "on" : "last", host_name(state, g.lessee))
        .number("inc", g.incarnation);
    if (g.lease != g.incarnation) line.number("lease", g.lease);
    if (g.status() == GrainStatus::ready) line.add("at", std::to_string(g.as<Ready>().queue_position));
    line.add("class", hex(g.demands->host_class))
        .flag("urgent", g.demands->urgent)
        .add("failures", g.course->failures)
        .number("seq", g.course->sequence)
        .number("input_from", g.course->input_position)
        .number("checkpoint", g.course->checkpoint_length)
        .number("out", g.course->out_length)
        .number("err", g.course->err_length);
    const Finished end = g.status() == GrainStatus::finished ? g.as<Finished>() : Finished{};
    if (g.status() == GrainStatus::finished) line.add("index", std::to_string(end.result_index));
    line.add("signal", end.signal).add("code", end.exit_code);
    if (g.course->kept->held > 0 || g.course->kept->saved > 0)
        line.add("held", std::to_string(g.course->kept->held)).add("saved", std::to_string(g.course->kept->saved));
    for (const HostId id : g.course->nogo.get()) line.add("nogo", host_name(state, id));
    return line;
}

std::string describe(const SessionInfo &info) {
    return Line(core::name_of(info.status))
        .number("seniority", info.seniority)
        .add("ident", info.ident)
        .add("sent", info.sent)
        .add("shown", info.shown)
        .add("results", info.result_count)
        .flag("resumable", info.resumable);
}

std::string describe(const Host &host) {
    return Line(host.config->name + " " + core::name_of(host.status))
        .number("conn", static_cast<std::uint64_t>(host.conn))
        .flag("not configured", !host.configured)
        .add("class", hex(host.config->host_class))
        .add("slots", host.config->slots)
        .flag("drained", host.setting.drained)
        .flag("shut", !host.shut.empty())
        .flag("too open", too_open(host))
        .flag("checked", host.checked != Checked::no)
        .number("usurping", host.usurping.size())
        .add("blamed", host.blamed_lately)
        .number("held_back", host.held_back.size());
}

std::string describe(const wire::AnyMessage &message) { return std::visit(MessageText{}, message); }
std::string describe(const State &state, const Change &change) { return std::visit(ChangeText{state}, change); }
std::string describe(const State &state, const Effect &effect) { return std::visit(EffectText{state}, effect); }

}  // namespace dcs::core
