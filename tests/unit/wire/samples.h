#pragma once
// One message of every kind, with every field set to something that is not its default.
#include <vector>

#include "wire/message.h"

namespace dcs::wire::samples {

inline Demands demands() { return {0x80000001u, 64, true, 5, 7, 2, 512, 3600}; }

inline GrainSpec spec() {
    GrainSpec s;
    s.argv = {"bin/ecm", "-n", "1234567", ""};
    s.env = {"A=1", "EMPTY="};
    s.input = std::string("line\n\0\xff tail", 12);
    s.demands = demands();
    s.directory = "work/dir";
    s.label = "a label";
    s.files = {{FileRole::program, "", std::string(32, 'p'), 9000, "x86_64-linux-gnu"},
               {FileRole::data, "in/table", std::string(32, '\0'), 0, ""},
               {FileRole::output, "out/result", "", 0, ""}};
    return s;
}

inline Usage usage() { return {1, -2, 3, 4, 5, 6, INT64_MAX}; }

inline GrainRow grain_row() {
    GrainRow r;
    r.session = 3, r.grain = 17;
    r.user = "ann", r.state = "running", r.host = "local1", r.label = "x";
    r.incarnation = 4;
    r.starts = 3, r.restarts = 2, r.failures = 1, r.exit_code = -1, r.signal = 9, r.result_index = 5;
    r.cpu_s = 1.5, r.run_cpu_s = 0.5, r.saved_cpu_s = 7200.25, r.last_contact_s = 0.25, r.checkpoint_age_s = 1e9;
    r.out_length = 1ull << 40, r.err_length = 2, r.checkpoint_length = 3;
    r.demands = demands();
    r.message = "half way";
    r.argv = {"bin/ecm", "12"};
    r.nogo = {"local2", "local3"};
    r.moves = {{"usurped", "local2", "for ann/2:1", 3, 12.5}, {"host_dead", "local3", "", 2, -1}};
    r.user_s = 1.25, r.system_s = 0.25, r.max_rss_kb = 2048, r.minor_faults = 11, r.major_faults = 12;
    r.in_blocks = 13, r.out_blocks = 14;
    r.class_names = "gpu,0x1", r.directory = "/home/ann", r.env = {"A=1", "EMPTY="};
    r.note = "it has ended";
    return r;
}
inline MemberRow member_row() { return {"vault", "backup", "vault:7003", true, true, 5, 6, {"ann", "bob"}}; }
inline HostRow host_row() {
    HostRow r;
    r.name = "local1", r.state = "active", r.binary_class = "x86_64-linux-gnu";
    r.host_class = 3, r.slots = 2, r.running = 1;
    r.last_call_in_s = 0.5, r.interval_s = 10, r.alert_s = 30, r.limit_s = 60, r.extended_s = 120, r.load = 0.75;
    r.free_memory_kb = 123456, r.cores = 4, r.cores_used = 3, r.memory_mb = 2048, r.memory_used_mb = 512;
    r.connected = true, r.drained = true, r.settings = "slots=0", r.note = "on probation", r.users = {"ann", "bob"};
    r.blamed = 6, r.blamed_lately = 2;
    r.launched = 9, r.finished = 7, r.failed = 1, r.given_back = 1, r.cpu_s = 2.5;
    r.confinement = "accounts,filter", r.class_names = "gpu,fast";
    r.time_zone_offset = -330;
    r.resources = "gpu=[0,1]", r.resources_used = "gpu=1", r.expires_s = 1'800'000'000;
    r.version = "0.2.0", r.address = "10.0.0.7";
    r.limits = "memory_mb=64", r.drain_reason = "new disk", r.ending = 2;
    return r;
}
inline SessionRow session_row() {
    return {"ann", 3, "factor", "active", 1, 2, 3, 4, 5, 0.25, "dcs map -- a", "night", 5, 6, 7.5, 8.5, 1, 4096};
}
inline SystemRow system_row() {
    return {1,
            2,
            3,
            4,
            5,
            6,
            7,
            8,
            9,
            "0.1.0",
            {{"gpu", 2}, {"fast", 0x80000000}},
            {1000, 10000},
            {{"commit", {3, 2, 1}, 77}},
            12.5,
            {{"vault", "connected", "sync", "behind", 0.5}}};
}

inline ExportedSession exported_session() { return {"ann", 3, "factor", "active", 9, 7, 8, 12, "log"}; }
inline ExportedGrain exported_grain() {
    ExportedGrain g;
    g.grain = 17, g.spec = spec(), g.state = "ready", g.host = "local1", g.nogo = {"h1", "h2"};
    g.spec.input.clear();
    g.incarnation = 4, g.sequence = 3, g.failures = 1, g.exit_code = -1, g.signal = 9;
    g.result_index = 5, g.queued = true, g.queue = -8, g.input_position = 6;
    g.usage = usage();
    g.input = {12, true, std::string("line\n\0\xff tail", 12)};
    g.out = {1ull << 40, false, ""}, g.err = {3, true, "err"};
    g.checkpoint = {4, true, "ckpt"}, g.message = {3, true, "msg"};
    return g;
}
inline Explanation explanation() {
    return {"ready",
            "waits for a slot",
            false,
            7,
            {{"busy", "All slots are busy.", "", 3, {"h1", "h2"}},
             {"other_class", "Of another class.", "dcs host ls", 1, {}}}};
}
inline SetHost set_host() {
    return {"local1", 3, 1.5, 4.5, 9, 18, 0x80000001u, 1, true, true, "ann", 3, 17, "new disk"};
}

inline ProblemRow problem() { return {"session ann/3", "a/b", "short", "it", "restore it"}; }

inline std::vector<AnyMessage> all() {
    const WireGrain key{"ann", 3, 17};
    const std::string digest(32, 'd');
    GrainReport report;
    report.key = key, report.incarnation = 2, report.first_seq = 3, report.last_seq = 4;
    report.has_checkpoint = true, report.checkpoint = "ckpt", report.message = "msg";
    report.input_position = 99, report.out = "out", report.err = "err", report.usage = usage();
    report.ended = true, report.exit_code = 1, report.signal = 6, report.innocent = true;
    report.reason = "because", report.limit = report.limit_of_host = true, report.given_back = GivenBack::thrashing;
    report.files = spec().files;
    Launch launch;
    launch.key = key, launch.incarnation = 2, launch.argv = {"a", "b"}, launch.env = {"C=d"};
    launch.directory = "dir", launch.input = "input", launch.checkpoint_length = 2;
    launch.input_base = 77, launch.next_seq = 5, launch.demands = demands();
    launch.account = true, launch.tentative = true;
    launch.files = spec().files;
    return {
        Hello{opening_form, std::string(32, 't')},
        Welcome{7, "ann"},
        GetAuth{"factor"},
        AuthReply{std::string(32, 'u')},
        OpenSession{3, OpenMode::reopen, true, "dcs map -- a", "night", 5, "process 7 on h"},
        OpenReply{OpenedAs::replay, 4, 5},
        CloseSession{"ann", 3, 9},
        CleanSession{"ann", 3},
        Gexec{3, 17, spec()},
        Gkill{"ann", 3, 17},
        Done{},
        Gwait{3, 8, true},
        GrainResult{17, 1, 2, 3, 4, usage(), 5, 6, "out", "err", 1},
        Fetch{"ann", 3, 17, Stream::file, 1ull << 33, 4096, "out/result", true},
        Piece{100, "bytes", 95, 2},
        Query{QueryType::grain, "ann", 3, 17, 16, "running", "bob", {18, 20}},
        QueryReply{system_row(),
                   {host_row()},
                   {session_row()},
                   {grain_row(), grain_row()},
                   true,
                   {member_row()},
                   7,
                   {{"ann", 4096, 8192}}},
        ErrorReply{11, "differs", 17},
        FirstCall{opening_form, "local1", "x86_64-linux-gnu", "boot", 42, {{key, 2, 1000}, {key, 3, -1}}, 3},
        CallIn{0.5, 1000, true, "the owner works", 5000, "gpu=[0]", "0.2.0", {64, 512, 60, 10, 20}, "no groups", 3},
        report,
        LaunchResult{key, 2, true, true, 21, "gone"},
        Configure{2.5, 3, 4},
        Refused{"not in the table"},
        launch,
        ReportAck{key, 2, 4, true, Verdict::later},
        Withdraw{key, 2, true, "killed"},
        ExportPage{"ann", 3, 16, 2},
        ExportReply{exported_session(), {exported_grain(), exported_grain()}, true},
        ImportPiece{1ull << 20, 1ull << 29, "bytes"},
        ImportSession{3, true, 1ull << 29, 0x12345678u},
        Doctor{},
        DoctorReply{{problem(), problem()}},
        Explain{"ann", 3, 17},
        explanation(),
        set_host(),
        RestartGrain{"ann", 3, 17, true, 5},
        Reload{},
        SetLogLevel{"local1", "debug"},
        LogLevel{"off"},
        AskContents{{digest, digest}},
        MissingContents{{digest}},
        PutContent{digest, 1ull << 33, 3, "bytes"},
        ContentTaken{digest, 8, 16, "full"},
        WantContent{digest, 7, 4096},
        ContentPiece{digest, 1ull << 33, 3, "bytes", 21, "gone"},
        GexecMany{3, {{17, spec()}, {18, {}}}},
        GwaitMany{3, 8, 256, true},
        GrainResults{{{17, 1, 2, 3, 4, usage(), 5, 6, "out", "err", 1}, {18, 2, 3, 0, 0, usage(), 0, 0, "", "", 2}}},
        CreateToken{"h1", 3600, 1},
        TokenCreated{std::string(32, 't'), "0a1b", "pool:7001", digest, 1ll << 33},
        ListTokens{},
        TokenList{{{"0a1b", "h1", "ann", -5, digest}}, {{"h2", "192.0.2.1", digest, 1.5}}, "p:1", digest},
        RevokeToken{"0a1b"},
        ApproveHost{"h1", "lusab-babad", 1},
        RemoveHost{"h1"},
        JoinHost{opening_form, "h1", "box", digest, "request", 1},
        Joined{"h1", "certificate", "authority"},
        JoinPending{"h1"},
        RenewCertificate{"request"},
        Renewed{"certificate"},
        BeginControl{opening_form, "ann", "find_factor", "key"},
        Begun{"token", "certificate", "authority"},
        HeldByBackup{1ull << 40, 5},
        BackupReady{2, 3},
        BackupHas{2, 3, ReportAck{key, 2, 4, true, Verdict::have_it}},
        BackupCall{opening_form, 7},
        BackupKnown{9},
        HandOver{"h1", 11, report},
        HandOverTaken{"h1", 11},
        AskBackup{opening_form},
        BackupStatus{1, 2, 3, 4, 5, 6, 7, 8, 9, true, 1.5},
        BackupPlace{"bk", "bk:7002", std::string(32, 'k')},
        MemberKeys{{{"h1", std::string(32, 'k')}}},
        MirrorCall{opening_form, 4, 5, 6, 7, 8},
        MirrorContents{std::string(64, 'd'), true},
        MirrorPage{1, MirrorStep::content, 2, 3, 4, "sessions/ann/3/status", std::string(32, 'k'), 5, 6, "bytes"},
        MirrorHas{7, true, 8, 9},
        AskMirror{opening_form, true},
        MirrorStatus{"sync", "behind", 1, 2, 3, 4, 5, 6, 1.5, true, true, 2.5, "why"},
        Peek{key, 2, 4, Stream::err, 1ull << 33, 4096, 7},
        Peeked{7, 1ull << 33, "bytes"},
        SetSession{"ann", 3, 5, true, "night"}};
}

}  // namespace dcs::wire::samples
