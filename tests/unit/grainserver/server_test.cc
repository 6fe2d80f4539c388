// dcs_grainserver, dcs_launcher and a real grain, with a scheduler played by the test: whatever is
// killed, the joined increments are those of an undisturbed run.
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>

#include "places.h"
#include "server_bench.h"

using namespace bench;
using wire::Verdict;

namespace {
// What the scheduler keeps of one grain: enough to start it again anywhere.
struct Lease {
    wire::WireGrain key{"ann", 3, 1};
    std::string program, input, checkpoint, out, err, message;
    std::uint32_t incarnation = 0, sequence = 0;
    std::uint64_t position = 0;
    int checkpoints = 0;
    bool ended = false;
    wire::GrainReport last;

    void launch(Scheduler &s) {
        wire::Launch m;
        m.key = key;
        m.incarnation = ++incarnation;
        m.argv = {program};
        m.env = {"PATH=/usr/bin:/bin"};
        m.input = checkpoint + input.substr(position);
        m.checkpoint_length = checkpoint.size();
        m.input_base = position;
        m.next_seq = sequence + 1;
        ended = false;
        s.send(m);
    }
    void answer(Scheduler &s, std::uint32_t last_seq, bool end, Verdict v) {
        s.send(wire::ReportAck{key, incarnation, last_seq, end, v});
    }
    // As the scheduler takes a report in.
    void take(Scheduler &s, const wire::GrainReport &r) {
        REQUIRE(r.incarnation == incarnation);
        if (r.first_seq <= sequence) return answer(s, sequence, false, Verdict::have_it);
        REQUIRE(r.first_seq == sequence + 1);
        const bool finished = r.ended && !r.innocent;
        if (r.has_checkpoint || finished) {
            out += r.out;
            err += r.err;
        }
        if (r.has_checkpoint) {
            checkpoint = r.checkpoint;
            message = r.message;
            REQUIRE(r.input_position >= position);
            position = r.input_position;
            sequence = r.last_seq;
            ++checkpoints;
        }
        if (r.ended) {
            ended = true;
            last = r;
        }
        answer(s, std::max(r.last_seq, sequence), r.ended, Verdict::taken);
    }
    // Takes reports until the grain ended, `checkpoints` have come, or the time is over.
    void serve(Scheduler &s, int until_checkpoints, int ms) {
        const Instant deadline = boot_clock() + milliseconds(ms);
        while (!ended && checkpoints < until_checkpoints && boot_clock() < deadline)
            if (std::optional<wire::AnyMessage> m = s.next(50))
                if (auto *r = std::get_if<wire::GrainReport>(&*m)) take(s, *r);
    }
};

const char *ticks_program = DCS_BINARY_DIR "/tests/ticks";
std::string ticks_output(int last) {
    std::string text;
    for (int i = 1; i <= last; ++i) text += "tick " + std::to_string(i) + "\n";
    return text;
}
}  // namespace

TEST_CASE("a grain from launch to forgotten") {
    Pool p;
    const wire::FirstCall call = p.greet();
    REQUIRE(call.host == "local1");
    REQUIRE(call.binary_class.find("linux-gnu") != std::string::npos);
    REQUIRE(call.held.empty());
    REQUIRE(p.scheduler.wait_for<wire::CallIn>().free_memory_kb > 0);
    Lease g;
    g.program = "/bin/cat";
    g.input = "hello\n";
    g.launch(p.scheduler);
    const auto started = p.scheduler.wait_for<wire::LaunchResult>();
    REQUIRE(started.ok);
    auto report = p.scheduler.wait_for<wire::GrainReport>();
    while (!report.ended) report = p.scheduler.wait_for<wire::GrainReport>();  // of call-ins, on a busy host
    REQUIRE(report.exit_code == 0);
    REQUIRE(report.out == "hello\n");
    REQUIRE(report.usage.max_rss_kb > 0);
    g.take(p.scheduler, report);
    REQUIRE(soon([&] { return ::access((p.server_dir + "/grains/local1,ann,3,1,1").c_str(), F_OK) != 0; }));
    REQUIRE_FALSE(slot_held(p.server_dir + "/slots", 0));

    g.program = "/no/such/program";
    g.launch(p.scheduler);
    const auto failed = p.scheduler.wait_for<wire::LaunchResult>();
    REQUIRE_FALSE(failed.ok);
    REQUIRE(failed.code == static_cast<int>(Code::not_found));
    REQUIRE(failed.text.find("/no/such/program") != std::string::npos);
}

TEST_CASE("one server for a directory, a refused server says so and asks again, TERM leaves grains running") {
    Pool p;
    p.greet();
    Lease g;
    g.program = "/bin/sleep";
    wire::Launch m;
    m.key = g.key;
    m.incarnation = g.incarnation = 1;
    m.argv = {"/bin/sleep", "60"};
    p.scheduler.send(m);
    REQUIRE(p.scheduler.wait_for<wire::LaunchResult>().ok);
    const std::string command = std::string(DCS_BINARY_DIR "/bin/dcs_grainserver --name two --dir ") + p.server_dir +
                                " --scheduler " + p.scheduler.path + " 2>" + p.dir.path + "/second";
    REQUIRE(WEXITSTATUS(std::system(command.c_str())) == 4);
    REQUIRE(get_file(p.dir.path + "/second").find("another grain server") != std::string::npos);

    const int status = p.stop(SIGTERM);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    REQUIRE(slot_held(p.server_dir + "/slots", 0));
    p.start();
    wire::FirstCall call = p.scheduler.accept();
    REQUIRE(call.held.size() == 1);
    REQUIRE(call.held[0].incarnation == 1);
    p.scheduler.send(wire::Refused{"not in the host table"});
    call = p.scheduler.accept();  // asks again
    REQUIRE(get_file(p.dir.path + "/log").find("not in the host table") != std::string::npos);
    p.scheduler.send(wire::Configure{p.interval, 2, 1});
    p.scheduler.send(wire::Withdraw{g.key, 1, true, "not wanted"});
    REQUIRE(soon([&] { return !slot_held(p.server_dir + "/slots", 0); }));
    REQUIRE(soon([&] { return ::access((p.server_dir + "/grains/local1,ann,3,1,1").c_str(), F_OK) != 0; }));
}

TEST_CASE("a lock that a dead server's child holds for a moment does not stop the next server") {
    Pool p(false);
    REQUIRE(make_directories(p.server_dir));
    const pid_t dead = ::fork();
    if (dead == 0) {
        const auto lock = locks::take_dcs_atom(locks::DcsAtom::grain_server, p.server_dir + "/lock");
        if (lock && ::fork() == 0) nap(500);
        ::_exit(lock ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(dead, &status, 0) == dead);
    REQUIRE(status == 0);
    REQUIRE(locks::is_held(p.server_dir + "/lock"));
    p.start();
    p.greet();
}

TEST_CASE("checkpoints arrive each slice, and a withdrawn grain goes on elsewhere where it was") {
    Pool p;
    p.greet();
    Lease g;
    g.program = ticks_program;
    g.input = "1 60 30\n";
    g.launch(p.scheduler);
    g.serve(p.scheduler, 1, 10'000);
    REQUIRE(g.checkpoints == 1);
    REQUIRE(g.message.find("of 60") != std::string::npos);
    p.scheduler.send(wire::Withdraw{g.key, g.incarnation, false, "wanted elsewhere"});
    g.serve(p.scheduler, 1000, 5'000);
    REQUIRE(g.ended);
    REQUIRE(g.last.innocent);
    REQUIRE(g.last.reason == "wanted elsewhere");
    REQUIRE(g.out.size() < ticks_output(60).size());
    g.launch(p.scheduler);
    g.serve(p.scheduler, 1000, 20'000);
    REQUIRE(g.ended);
    REQUIRE(g.last.exit_code == 0);
    REQUIRE(g.out == ticks_output(60));
}

TEST_CASE("server, launcher and grain are killed, the scheduler goes away: the output is undisturbed") {
    Pool p;
    p.greet();
    Lease g;
    g.program = ticks_program;
    g.input = "1 150 20\n";
    g.launch(p.scheduler);
    int round = 0;
    int pause_ms = 150;
    while (!(g.ended && !g.last.innocent && g.last.signal == 0)) {
        REQUIRE(++round < 1000);
        pause_ms = pause_ms * 7 % 1511 + 200;
        g.serve(p.scheduler, 1000, pause_ms);
        if (g.ended) {
            if (!g.last.innocent && g.last.signal == 0) break;
            g.launch(p.scheduler);
            continue;
        }
        if (round > 30) continue;  // on a loaded machine it would not end between kills
        switch (round % 4) {
        case 0:  // the scheduler's connection
            p.scheduler.conn = Fd();
            break;
        case 1:
            p.stop(SIGKILL);
            p.start();
            break;
        case 2: {
            const pid_t launcher = p.launcher_pid();
            if (launcher > 1) ::kill(launcher, SIGKILL);
            continue;
        }
        case 3: {
            const std::string grain = "/grains/local1,ann,3,1," + std::to_string(g.incarnation);
            const std::string pid = get_file(p.server_dir + grain + "/pid");
            if (std::atoi(pid.c_str()) > 1) ::kill(std::atoi(pid.c_str()), SIGKILL);
            continue;
        }
        }
        const wire::FirstCall call = p.greet();
        if (call.held.empty() && !g.ended) g.launch(p.scheduler);  // lost: lease it again
    }
    REQUIRE(g.last.exit_code == 0);
    REQUIRE(g.out == ticks_output(150));
    REQUIRE(round > 4);
}

// Its file `pid` is there before its exec, which another process holds up by a lease on the program.
TEST_CASE("a grain whose start fails while its server is replaced does not count as running") {
    Pool p;
    p.greet();
    Lease g;
    g.program = p.dir.path + "/program";
    put_file(g.program, get_file("/bin/true"));
    REQUIRE(::chmod(g.program.c_str(), 0755) == 0);
    ::signal(SIGIO, SIG_IGN);
    const Fd lease(::open(g.program.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE((lease && ::fcntl(lease.get(), F_SETLEASE, F_WRLCK) == 0));
    g.launch(p.scheduler);
    const std::string pid = p.server_dir + "/grains/local1,ann,3,1,1/pid";
    REQUIRE(soon([&] { return std::atoi(get_file(pid).c_str()) > 1; }));
    p.stop(SIGKILL);
    p.start();
    p.greet();
    bool told = false;  // on a very slow machine as a start that failed
    for (const Instant until = boot_clock() + seconds(60); !told && boot_clock() < until;) {
        const std::optional<wire::AnyMessage> m = p.scheduler.next(100);
        const auto *report = m ? std::get_if<wire::GrainReport>(&*m) : nullptr;
        const auto *result = m ? std::get_if<wire::LaunchResult>(&*m) : nullptr;
        if (report != nullptr && report->ended) REQUIRE(report->innocent);
        told = (report != nullptr && report->ended) || (result != nullptr && !result->ok);
    }
    REQUIRE(told);
}
