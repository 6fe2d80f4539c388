// What reaches the scheduler, as one line of text each.
#include "describe.h"
#include "describe_line.h"

namespace dcs::core {
namespace {

const char *name_of(wire::OpenMode m) {
    constexpr const char *names[] = {"open", "resume", "reopen"};
    return names[static_cast<int>(m)];
}
const char *name_of(wire::QueryType t) {
    constexpr const char *names[] = {"system", "hosts", "sessions", "grains", "grain"};
    return names[static_cast<int>(t)];
}

struct CallText {
    std::string user;
    std::string operator()(const GetAuth &c) const { return "get_auth " + user + " " + c.ident; }
    std::string operator()(const RenewProgram &) const { return "renew certificate of " + user; }
    std::string operator()(const wire::OpenSession &c) const {
        return Line(std::string(name_of(c.mode)) + " " + user + "/" + std::to_string(c.number))
            .flag("sent_reset", c.sent_reset);
    }
    std::string operator()(const wire::CloseSession &c) const {
        return "close " + of(c.user) + "/" + std::to_string(c.number);
    }
    std::string operator()(const wire::CleanSession &c) const {
        return "clean " + of(c.user) + "/" + std::to_string(c.number);
    }
    std::string operator()(const SubmitGrain &c) const {
        return Line("gexec " + user + "/" + std::to_string(c.session) + ":" + std::to_string(c.grain))
            .add("class", hex(c.demands.host_class))
            .add("thrash", c.demands.thrash)
            .flag("urgent", c.demands.urgent)
            .add("notice", c.demands.notice);
    }
    std::string operator()(const SubmitGrains &c) const {
        std::string numbers;
        for (const SubmitGrain &g : *c.grains) numbers += (numbers.empty() ? "" : ",") + std::to_string(g.grain);
        return "gexec many " + user + "/" + std::to_string(c.session) + ":" + numbers;
    }
    std::string operator()(const wire::Gkill &c) const {
        return "gkill " + of(c.user) + "/" + std::to_string(c.session) + ":" + std::to_string(c.grain);
    }
    std::string operator()(const wire::Gwait &c) const {
        return Line("gwait " + user + "/" + std::to_string(c.session) + " next " + std::to_string(c.next))
            .flag("block", c.block);
    }
    std::string operator()(const wire::GwaitMany &c) const {
        return Line("gwait many " + user + "/" + std::to_string(c.session) + " next " + std::to_string(c.next))
            .add("most", c.most)
            .flag("block", c.block);
    }
    std::string operator()(const wire::Fetch &c) const {
        return "fetch " + of(c.user) + "/" + std::to_string(c.session) + ":" + std::to_string(c.grain);
    }
    std::string operator()(const wire::SetSession &c) const {
        return Line("set " + of(c.user) + "/" + std::to_string(c.number))
            .add("nice", c.nice)
            .flag("label", c.set_label);
    }
    std::string operator()(const wire::ExportPage &c) const {
        return "export " + of(c.user) + "/" + std::to_string(c.session) + " after " + std::to_string(c.after);
    }
    std::string operator()(const ImportSession &c) const {
        return Line("import " + user + "/" + std::to_string(c.number))
            .flag("replace", c.replace)
            .flag("lost", !c.content);
    }
    std::string operator()(const wire::Doctor &) const { return "doctor"; }
    std::string operator()(const wire::Explain &c) const {
        return "explain " + of(c.user) + "/" + std::to_string(c.session) + ":" + std::to_string(c.grain);
    }
    std::string operator()(const wire::SetHost &c) const { return "set host " + c.host; }
    std::string operator()(const wire::Reload &) const { return "reload"; }
    std::string operator()(const wire::SetLogLevel &c) const { return "log level " + c.host + " " + c.level; }
    std::string operator()(const wire::RestartGrain &c) const {
        return "restart " + of(c.user) + "/" + std::to_string(c.session) + ":" + std::to_string(c.grain);
    }
    std::string operator()(const wire::Query &c) const { return std::string("query ") + name_of(c.type); }
    std::string operator()(const CreateCode &c) const { return "create code " + c.host; }
    std::string operator()(const ListCodes &) const { return "list codes"; }
    std::string operator()(const wire::RevokeToken &c) const { return "revoke code " + c.id; }
    std::string operator()(const ApproveHost &c) const { return "approve host " + c.host; }
    std::string operator()(const wire::RemoveHost &c) const { return "remove host " + c.host; }
    const std::string &of(const std::string &other) const { return other.empty() ? user : other; }
};

struct InputText {
    const State &state;
    std::string operator()(const UserCall &in) const { return std::visit(CallText{in.caller.user}, in.request); }
    std::string operator()(const JoinCall &in) const {
        return Line("join " + (in.host.empty() ? in.own_name : in.host)).flag("code", in.has_code);
    }
    std::string operator()(const BeginControl &in) const {
        return "begin program " + in.user + " " + in.ident + " on " + in.from.host;
    }
    std::string operator()(const ServerFirstCall &in) const {
        return Line("first call " + in.call->host)
            .number("held", in.call->held.size())
            .number("promised", in.promised.number)
            .flag("waited", in.waited);
    }
    std::string operator()(const BackupCame &in) const { return Line("backup").number("store", in.store); }
    std::string operator()(const TellOfBackup &in) const { return Line("tell of the backup").flag("place", in.place); }
    std::string operator()(const ReportHandedOver &in) const {
        const std::string what = in.report ? " " + text_of(in.report->key) : " useless";
        return Line("handed over " + in.host + what).number("number", in.number);
    }
    std::string operator()(const ServerCallIn &in) const {
        return Line("call-in " + host_name(state, in.host)).flag("boundary", in.call.boundary);
    }
    std::string operator()(const ServerReport &in) const {
        const wire::GrainReport &r = *in.report;
        return Line("report " + host_name(state, in.host) + " " + text_of(r.key))
            .number("inc", r.incarnation)
            .number("first", r.first_seq)
            .number("last", r.last_seq)
            .flag("checkpoint", r.has_checkpoint)
            .flag("ended", r.ended)
            .flag("innocent", r.innocent)
            .add("code", r.exit_code)
            .add("signal", r.signal);
    }
    std::string operator()(const ServerLaunchResult &in) const {
        return Line("launch result " + host_name(state, in.host) + " " + text_of(in.result.key))
            .number("inc", in.result.incarnation)
            .flag("ok", in.result.ok)
            .flag("staged", in.result.staged)
            .add("code", in.result.code);
    }
    std::string operator()(const ConnectionClosed &in) const { return "connection closed " + to_text(in.conn); }
    std::string operator()(const ServerEnded &in) const {
        return "server ended that had connection " + to_text(in.conn);
    }
    std::string operator()(const ServerRefused &in) const { return "refused " + in.host + " at the door: " + in.why; }
    std::string operator()(const Tick &) const { return "tick"; }
    std::string operator()(const HostTable &in) const { return "host table of " + std::to_string(in.hosts.size()); }
    std::string operator()(const PolicyTable &) const { return "policy"; }
    std::string operator()(const ProbeResult &in) const { return "probed " + host_name(state, in.host); }
    std::string operator()(const Usurp &in) const { return "usurp on " + host_name(state, in.host); }
    std::string operator()(const PackGrains &in) const {
        return "pack " + std::to_string(in.grains.size()) + " grains of " + to_text(in.session);
    }
    std::string operator()(const CertificateRenewed &in) const { return "certificate of " + in.who.host + " renewed"; }
    std::string operator()(const RemoveOld &in) const { return "remove " + to_text(in.session) + " if it is old"; }
    std::string operator()(const FillHost &in) const { return "fill " + host_name(state, in.host); }
    std::string operator()(const PlaceGrain &in) const { return "place " + to_text(in.key); }
    std::string operator()(const AnswerWaiters &in) const { return "answer waiters of " + to_text(in.session); }
};

}  // namespace

std::string describe(const State &state, const Input &input) { return std::visit(InputText{state}, input); }

}  // namespace dcs::core
