#include "scheduler/core/decisions.h"

namespace dcs::core {
namespace {

struct UserDispatch {
    Draft &d;
    const Caller &caller;
    void operator()(const GetAuth &call) { get_auth(d, caller, call); }
    void operator()(const RenewProgram &call) { renew_program(d, caller, call); }
    void operator()(const wire::OpenSession &call) { open_session(d, caller, call); }
    void operator()(const wire::CloseSession &call) { close_session(d, caller, call); }
    void operator()(const wire::CleanSession &call) { clean_session(d, caller, call); }
    void operator()(const SubmitGrain &call) { submit_grain(d, caller, call); }
    void operator()(const SubmitGrains &call) { submit_grains(d, caller, call); }
    void operator()(const wire::Gkill &call) { kill_grain(d, caller, call); }
    void operator()(const wire::Gwait &call) { wait_grain(d, caller, call); }
    void operator()(const wire::GwaitMany &call) { wait_grains(d, caller, call); }
    void operator()(const wire::Fetch &call) { fetch_stream(d, caller, call); }
    void operator()(const wire::Query &call) { query(d, caller, call); }
    void operator()(const wire::ExportPage &call) { export_session(d, caller, call); }
    void operator()(const ImportSession &call) { import_session(d, caller, call); }
    void operator()(const wire::Doctor &call) { doctor(d, caller, call); }
    void operator()(const wire::Explain &call) { explain(d, caller, call); }
    void operator()(const wire::SetHost &call) { set_host(d, caller, call); }
    void operator()(const wire::RestartGrain &call) { restart_grain(d, caller, call); }
    void operator()(const wire::Reload &call) { reload(d, caller, call); }
    void operator()(const wire::SetLogLevel &call) { set_log_level(d, caller, call); }
    void operator()(const CreateCode &call) { create_code(d, caller, call); }
    void operator()(const ListCodes &call) { list_codes(d, caller, call); }
    void operator()(const wire::RevokeToken &call) { revoke_code(d, caller, call); }
    void operator()(const ApproveHost &call) { approve_host(d, caller, call); }
    void operator()(const wire::SetSession &call) { set_session(d, caller, call); }
    void operator()(const wire::RemoveHost &call) { remove_host(d, caller, call); }
};

struct Dispatch {
    Draft &d;
    void operator()(const UserCall &in) {
        if (Status s = authorise(d.state, in.caller, in.request); !s) d.refuse(in.caller, s);
        else std::visit(UserDispatch{d, in.caller}, in.request);
        if (const std::string what = secure_command(in.caller, in.request); !what.empty()) d.audit(in.caller, what);
    }
    void operator()(const JoinCall &in) { join_host(d, in); }
    void operator()(const CertificateRenewed &in) { certificate_renewed(d, in); }
    void operator()(const BeginControl &in) { begin_control(d, in); }
    void operator()(const ServerFirstCall &in) { first_call(d, in); }
    void operator()(const ServerCallIn &in) { call_in(d, in); }
    void operator()(const ServerReport &in) { take_report(d, in); }
    void operator()(const ServerLaunchResult &in) { launch_result(d, in); }
    void operator()(const ConnectionClosed &in) { connection_closed(d, in); }
    void operator()(const ServerEnded &in) { server_ended(d, in); }
    void operator()(const BackupCame &in) { backup_came(d, in); }
    void operator()(const ReportHandedOver &in) { hand_over(d, in); }
    void operator()(const TellOfBackup &in) { tell_of_backup(d, in); }
    void operator()(const Tick &) {
        lose_hosts(d);
        wait_no_longer(d);
        let_lapse(d);
    }
    void operator()(const HostTable &in) { take_host_table(d, in); }
    void operator()(const PolicyTable &in) { take_policy(d, in); }
    void operator()(const ProbeResult &in) { probe_result(d, in); }
    void operator()(const ServerRefused &in) { server_refused_at_door(d, in); }
    void operator()(const Usurp &in) { usurp(d, in); }
    void operator()(const PackGrains &in) { pack_grains(d, in); }
    void operator()(const RemoveOld &in) { remove_old(d, in); }
    void operator()(const FillHost &in) { fill_host(d, in); }
    void operator()(const PlaceGrain &in) { place_grain(d, in); }
    void operator()(const AnswerWaiters &in) { answer_waiters(d, in); }
};

}  // namespace

Decision decide(const State &state, Instant now, const Input &input) {
    Draft draft(state, now);
    std::visit(Dispatch{draft}, input);
    return draft.finish();
}

}  // namespace dcs::core
