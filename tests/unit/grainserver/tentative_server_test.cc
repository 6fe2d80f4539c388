// Tentative launches and limits with real daemons and real programs; killed at every point on the way.
#include <filesystem>

#include "grainserver/files/grain_record.h"
#include "places.h"
#include "server_bench.h"
#include "support/about.h"

using namespace bench;
using wire::Verdict;

namespace {
const wire::WireGrain sleeper{"ann", 3, 1}, rival{"ann", 3, 2};

wire::Launch launch_of(const wire::WireGrain &key, std::vector<std::string> argv, bool tentative) {
    wire::Launch m;
    m.key = key;
    m.incarnation = 1;
    m.argv = std::move(argv);
    m.env = {"PATH=/usr/bin:/bin"};
    m.tentative = tentative;
    return m;
}
int runs(const std::string &file) {
    const std::string text = get_file(file);
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}
bool on_disk(const Pool &p, const char *grain) {
    return ::access((p.server_dir + "/grains/" + grain).c_str(), F_OK) == 0;
}
// Processes of this pool's grains, stopped ones too.
int grain_processes(const Pool &p) {
    int n = 0;
    for (const ProcessStat &process : all_processes())
        n += environment_of(process.pid).find("DCS_GRAIN_DIR=" + p.server_dir) != std::string::npos;
    return n;
}
}  // namespace

TEST_CASE("a tentative grain is verified while another has the slot, and runs once that is gone") {
    Pool p;
    p.slots = 1;
    p.greet();
    p.scheduler.send(launch_of(sleeper, {"/bin/sleep", "60"}, false));
    REQUIRE(p.scheduler.wait_for<wire::LaunchResult>().ok);
    const std::string trace = p.dir.path + "/trace";
    p.scheduler.send(launch_of(rival, {"/bin/sh", "-c", "echo ran | tee -a " + trace}, true));
    const auto staged = p.scheduler.wait_for<wire::LaunchResult>();
    REQUIRE(staged.staged);
    REQUIRE_FALSE(staged.ok);
    nap(100);
    REQUIRE(runs(trace) == 0);
    REQUIRE(soon([&] { return grain_processes(p) == 1; }));  // idle, it may get its environment late
    p.stop(SIGKILL);                                         // a restarted server has it still, and says so
    p.start();
    REQUIRE(p.greet().held.size() == 2);
    REQUIRE(p.scheduler.wait_for<wire::LaunchResult>().staged);
    p.scheduler.send(wire::Withdraw{sleeper, 1, false, "an older session needs the host"});
    // The launcher gives the slot on before it says that the first grain has ended.
    wire::GrainReport report;
    bool started = false;
    REQUIRE(soon([&] {
        const std::optional<wire::AnyMessage> m = p.scheduler.next(100);
        const auto *result = m ? std::get_if<wire::LaunchResult>(&*m) : nullptr;
        if (result != nullptr) started = result->ok && result->key.grain == 2;
        if (m && std::holds_alternative<wire::GrainReport>(*m)) report = std::get<wire::GrainReport>(*m);
        return report.ended;
    }));
    REQUIRE(report.innocent);
    REQUIRE(report.reason == about("older session needs"));
    p.scheduler.send(wire::ReportAck{sleeper, 1, report.last_seq, true, Verdict::taken});
    if (!started) {
        const auto result = p.scheduler.wait_for<wire::LaunchResult>();
        REQUIRE((result.ok && result.key.grain == 2));
    }
    report = p.scheduler.wait_for<wire::GrainReport>();
    while (!report.ended) report = p.scheduler.wait_for<wire::GrainReport>();
    REQUIRE(report.out == "ran\n");
    REQUIRE(runs(trace) == 1);
}

TEST_CASE("a tentative grain that cannot run here is told at once and leaves nothing") {
    Pool p;
    p.slots = 1;
    p.greet();
    p.scheduler.send(launch_of(sleeper, {"/bin/sleep", "60"}, false));
    REQUIRE(p.scheduler.wait_for<wire::LaunchResult>().ok);
    wire::Launch m = launch_of(rival, {"/no/such/program"}, true);
    std::string words = "/no/such/program";
    SECTION("no program") {}
    SECTION("no working directory") {
        m.argv = {"/bin/true"};
        m.directory = "/no/such/directory";
        words = "/no/such/directory";
    }
    SECTION("a file of no format") {
        const std::string file = words = p.dir.path + "/text";
        put_file(file, "just text\n", 0755);
        m.argv = {file};
    }
    p.scheduler.send(m);
    const auto r = p.scheduler.wait_for<wire::LaunchResult>();
    REQUIRE_FALSE(r.ok);
    REQUIRE_FALSE(r.staged);
    REQUIRE(r.code == static_cast<int>(m.directory.empty() ? Code::not_found : Code::invalid));
    REQUIRE(r.text.find(words) != std::string::npos);
    REQUIRE(soon([&] { return !on_disk(p, "local1,ann,3,2,1"); }));
    REQUIRE(soon([&] { return grain_processes(p) == 1; }));  // idle, it may get its environment late
}

TEST_CASE("a grain runs no longer than it may, also when its server was away meanwhile") {
    Pool p;
    p.greet();
    wire::Launch m = launch_of(rival, {"/bin/sh", "-c", "echo begun; exec sleep 60"}, false);
    m.demands.wall_s = 8;
    const Instant sent = boot_clock();
    p.scheduler.send(m);
    REQUIRE(p.scheduler.wait_for<wire::LaunchResult>().ok);
    const Instant began = boot_clock();
    nap(300);
    p.stop(SIGKILL);
    nap(7000);
    p.start();
    REQUIRE(p.greet().held.size() == 1);
    auto report = p.scheduler.wait_for<wire::GrainReport>();
    while (!report.ended) report = p.scheduler.wait_for<wire::GrainReport>();
    const Duration took = boot_clock() - began;
    INFO(took.seconds());
    REQUIRE(boot_clock() - sent > seconds_of(7.8));  // the process begins before its start is answered
    REQUIRE(took < seconds_of(14.8));                // counted from the start, not from the server's
    REQUIRE(report.signal == SIGXCPU);
    REQUIRE(report.limit);
    REQUIRE_FALSE(report.innocent);
    REQUIRE(report.reason == about("grain longer 8"));
    REQUIRE(report.out == "begun\n");
}

TEST_CASE("a restarted server's first call says how long a grain has run") {
    Pool p;
    p.greet();
    p.scheduler.send(launch_of(rival, {"/bin/sh", "-c", "while :; do :; done"}, false));
    REQUIRE(p.scheduler.wait_for<wire::LaunchResult>().ok);
    const auto pid = files::parse_pid(get_file(p.server_dir + "/grains/local1,ann,3,2,1/pid"));
    REQUIRE(pid);
    ProcessStat stat;  // it is a modest process, and others may keep it waiting
    REQUIRE(soon([&] { return read_stat(pid->pid, stat) && stat.user_ticks >= 5; }));
    p.stop(SIGKILL);
    p.start();
    const wire::FirstCall call = p.greet();
    REQUIRE(call.held.size() == 1);
    REQUIRE(call.held[0].cpu_us >= 50'000);
}

namespace {
// A pool whose daemons are the test builds, one of which will be killed at a point.
struct KilledPool : Pool {
    std::string log = dir.path + "/points", point, trace = dir.path + "/trace";
    bool killed = false, sleeper_lives = false;
    std::optional<wire::LaunchResult> answer;
    std::optional<wire::GrainReport> report;  // of the tentative grain

    explicit KilledPool(const std::string &point_and_visit) : Pool(false), point(point_and_visit) {
        const std::string builds = DCS_BINARY_DIR "/tests/";
        programs = dir.path + "/bin";
        REQUIRE(std::filesystem::create_directory(programs));
        std::filesystem::copy_file(builds + "dcs_grainserver_test", programs + "/dcs_grainserver");
        std::filesystem::copy_file(builds + "dcs_launcher_test", programs + "/dcs_launcher");
        slots = 1;
        environment.push_back("DCS_FAILPOINT_LOG=" + log);
        environment.push_back("DCS_FAILPOINTS=" + point);
        start();
        greet();
        scheduler.send(launch_of(sleeper, {"/bin/sleep", "60"}, false));
        REQUIRE(scheduler.wait_for<wire::LaunchResult>().ok);
        sleeper_lives = true;
    }
    wire::Launch tentative() const {
        return launch_of(rival, {"/bin/sh", "-c", "echo ran >> " + trace + "; echo done"}, true);
    }
    void take(const wire::AnyMessage &m) {
        if (const auto *r = std::get_if<wire::LaunchResult>(&m); r && r->key.grain == 2) answer = *r;
        const auto *r = std::get_if<wire::GrainReport>(&m);
        if (r == nullptr) return;
        if (r->ended) scheduler.send(wire::ReportAck{r->key, r->incarnation, r->last_seq, true, Verdict::taken});
        if (r->ended && r->key.grain == 2) report = *r;
        if (r->ended && r->key.grain == 1) sleeper_lives = false;
    }
    // Everything again but what lies on disk, and nothing armed any more.
    void come_back() {
        killed = true;
        stop(SIGKILL);
        environment = current_environment();
        answer.reset();
        start();
        bool has_it = false, has_sleeper = false;
        for (const wire::HeldGrain &held : greet().held) {
            has_it = has_it || held.key.grain == 2;
            has_sleeper = has_sleeper || held.key.grain == 1;
        }
        if (!has_sleeper) sleeper_lives = false;
        if (!has_it && !report) scheduler.send(tentative());
    }
    template <class F> bool serve(F until) {
        const Instant deadline = boot_clock() + seconds(60);
        while (!until() && boot_clock() < deadline) {
            if (const std::optional<wire::AnyMessage> m = scheduler.next(20)) take(*m);
            else nap(5);
            if (!killed && get_file(log).find(" kill ") != std::string::npos) come_back();
        }
        return until();
    }
};
}  // namespace

TEST_CASE("killed at any point, server or launcher: a tentative grain runs once, after its time, and leaves nothing") {
    const std::string point = GENERATE(
        as<std::string>{}, "server.launch_record.before_write=kill@2", "server.launch_record.after_write=kill@2",
        "server.calls.before_send=kill@3", "server.calls.after_send=kill@3", "launcher.prove.before_kill=kill@1",
        "launcher.prove.before_answer=kill@1", "launcher.answers.before_send=kill@2",
        "launcher.answers.after_send=kill@2", "server.calls.before_send=kill@4", "server.calls.after_send=kill@4",
        "launcher.slot.before_hold=kill@2", "launcher.slot.after_hold=kill@2", "launcher.start.before_fork=kill@3",
        "launcher.start.after_exec=kill@2", "launcher.start.before_answer=kill@2",
        "server.directory.before_remove=kill@1", "server.directory.after_remove=kill@1");
    INFO(point);
    KilledPool p(point);
    p.scheduler.send(p.tentative());
    REQUIRE(p.serve([&] { return p.answer || p.report; }));
    if (p.sleeper_lives) {
        REQUIRE(p.answer->staged);
        REQUIRE(runs(p.trace) == 0);
        p.scheduler.send(wire::Withdraw{sleeper, 1, true, "for an older session"});
    }
    REQUIRE(p.serve([&] { return p.report.has_value(); }));
    REQUIRE(p.killed);
    REQUIRE(soon([&] { return !on_disk(p, "local1,ann,3,2,1") && !on_disk(p, "local1,ann,3,1,1"); }));
    REQUIRE(soon([&] { return grain_processes(p) == 0; }));
    if (p.report->innocent) return;  // its launcher died while it ran: it may begin again elsewhere
    REQUIRE(p.report->out == "done\n");
    REQUIRE(runs(p.trace) == 1);
}
