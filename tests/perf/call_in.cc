// The real scheduler with the connections of many grain servers, each calling in every INTERVAL seconds:
//   perf_call_in [CONNECTIONS=2000] [SECONDS=60] [INTERVAL=10] [CALM=0]
// A call-in has no answer, so that each comes with the empty report of a running grain, which has one. Every
// tenth ends its grain as well, and gets the next: a commit and a launch. Beside it, over the same kind of
// sockets and at the same times, the round trip of a bare epoll echo server of as many connections.
// CALM: seconds before these in which no grain ends, for the cost of a call-in alone and that of an end.
// SIGUSR1: prints the answers since the last one (page_hosts.py).
#include <chrono>
#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "call_in_peers.h"
#include "process/spawn.h"
#include "dcs.h"
#include "perf/figures.h"

namespace dcs::perf {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void need_descriptors(int count) {
    rlimit l{};
    ::getrlimit(RLIMIT_NOFILE, &l);
    const auto wanted = static_cast<rlim_t>(count) * 2 + 256;
    if (l.rlim_cur >= wanted) return;
    l.rlim_cur = std::min(wanted, l.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur < wanted) give_up("too few descriptors: raise ulimit -Hn");
}

std::vector<pid_t> daemons;
std::string scratch;
void clean_up() {
    for (const pid_t pid : daemons) {
        ::kill(pid, SIGTERM);
        ::waitpid(pid, nullptr, 0);
    }
    daemons.clear();
    std::error_code ignored;
    std::filesystem::remove_all(scratch, ignored);
}

void end_early(int /*signal*/) {
    for (const pid_t pid : daemons) ::kill(pid, SIGTERM);
    ::_exit(1);
}

// SIGUSR1, blocked: it interrupts no call.
sigset_t question() {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGUSR1);
    return signals;
}

struct Server {  // a grain server that is played, with its connection to the echo server
    int fd = -1, echo = -1;
    std::string bytes;
    std::optional<wire::Launch> running;
    Clock::time_point reported{}, freed{}, echoed{};
    bool waits_for_ack = false, waits_for_launch = false;
    std::size_t echo_left = 0;
    int rounds = 0;
};

struct Trial {
    int count = 2000, seconds = 60, calm = 0;
    double interval = 10;
    bool grains_end = true;
    std::string directory;
    pid_t scheduler = 0, echo_server = 0;
    int poll = -1;
    std::vector<Server> servers;
    std::vector<double> acks, launches, echoes;
    std::size_t configured = 0, call_ins = 0, ends = 0, missed = 0, next_launches = 0, told = 0;
    std::string echo_frame;
    Clock::time_point began{};
    std::vector<std::pair<double, double>> stalls;  // when an answer took more than 0.1 s, and how long

    void start_daemons() {
        std::filesystem::create_directories(directory + "/scheduler");
        std::ofstream hosts(directory + "/scheduler/hosts");
        for (int i = 0; i < count; ++i)
            hosts << "h" << i << " slots=1 interval=" << interval << " alert=900 limit=1800 extended=7200\n";
        hosts.close();
        int ready[2];
        if (::pipe2(ready, O_CLOEXEC) != 0) give_up("no pipe");
        SpawnRequest r;
        r.program = DCS_BINARY_DIR "/bin/dcs_scheduler";
        r.arguments = {r.program, "--dir", directory + "/scheduler", "--log-level", "error", "--ready-fd", "3"};
        r.environment = current_environment();
        r.inherit = {ready[1]};
        r.err = 2;
        const Result<pid_t> pid = spawn(r);
        if (!pid) give_up(pid.status().text);
        scheduler = *pid;
        ::close(ready[1]);
        char word[8];
        if (::read(ready[0], word, sizeof word) <= 0) give_up("the scheduler did not start");
        ::close(ready[0]);
        const int listener = unix_socket(directory + "/echo.sock", true);
        echo_server = ::fork();
        if (echo_server == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            need_descriptors(count);
            serve_echo(listener);
        }
        daemons = {scheduler, echo_server};
        ::close(listener);
    }

    void watch(int fd, std::size_t index, bool echo) {
        epoll_event e{};
        e.events = EPOLLIN;
        e.data.u64 = index * 2 + echo;
        if (::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e) != 0) give_up("epoll");
    }
    void connect() {
        poll = ::epoll_create1(EPOLL_CLOEXEC);
        servers.resize(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < servers.size(); ++i) {
            servers[i].fd = unix_socket(directory + "/scheduler/server.sock", false);
            servers[i].echo = unix_socket(directory + "/echo.sock", false);
            watch(servers[i].fd, i, false);
            watch(servers[i].echo, i, true);
            wire::FirstCall call;
            call.host = "h" + std::to_string(i);
            call.binary_class = "x86_64-linux-gnu";
            call.boot_id = "boot";
            call.instance = i + 1;
            send_all(servers[i].fd, wire::encode(std::move(call), 0));
            pump(0);
        }
        wait_for("the answers to the first calls", [&] { return configured == servers.size(); });
    }

    template <class F> void wait_for(const char *what, F done) {
        const auto start = Clock::now();
        while (!done()) {
            pump(100);
            if (since(start) > 300) give_up(std::string("waited too long for ") + what);
        }
    }

    // One round of reading; `ms` as for epoll_wait.
    void pump(int ms) {
        epoll_event events[256];
        const int n = ::epoll_wait(poll, events, 256, ms);
        for (int i = 0; i < n; ++i) {
            Server &s = servers[events[i].data.u64 / 2];
            if (events[i].data.u64 % 2 != 0) {
                read_echo(s);
                continue;
            }
            if (!receive(s.fd, s.bytes)) give_up("the scheduler closed a connection");
            while (std::optional<wire::AnyMessage> m = next_message(s.bytes)) take(s, std::move(*m));
        }
    }
    void read_echo(Server &s) {
        std::string bytes;
        if (!receive(s.echo, bytes)) give_up("the echo server closed a connection");
        s.echo_left -= std::min(s.echo_left, bytes.size());
        if (s.echo_left == 0) echoes.push_back(since(s.echoed));
    }
    void take(Server &s, wire::AnyMessage message) {
        if (std::get_if<wire::Configure>(&message)) ++configured;
        if (const auto *no = std::get_if<wire::Refused>(&message)) give_up("refused: " + no->text);
        if (auto *launch = std::get_if<wire::Launch>(&message)) {
            if (s.waits_for_launch) launches.push_back(since(s.freed));
            s.waits_for_launch = false;
            ++next_launches;
            send_all(s.fd, wire::encode(wire::LaunchResult{launch->key, launch->incarnation, true, false, 0, ""}, 0));
            s.running = std::move(*launch);
        }
        if (const auto *ack = std::get_if<wire::ReportAck>(&message); ack && s.waits_for_ack && !ack->ended) {
            acks.push_back(since(s.reported));
            const double at = std::chrono::duration<double>(s.reported - began).count();
            if (acks.back() > 0.1 && (stalls.empty() || at > stalls.back().first + stalls.back().second))
                stalls.emplace_back(at, acks.back());
            s.waits_for_ack = false;
        }
    }

    wire::GrainReport report_of(const Server &s) {
        wire::GrainReport r;
        r.key = s.running->key;
        r.incarnation = s.running->incarnation;
        r.first_seq = s.running->next_seq;
        r.last_seq = s.running->next_seq - 1;
        r.usage.user_us = s.rounds * 1000;
        return r;
    }
    void call_in(std::size_t i) {
        Server &s = servers[i];
        missed += s.waits_for_ack || s.waits_for_launch || !s.running;
        ++s.rounds;
        ++call_ins;
        std::string frames;
        if (s.running && !s.waits_for_ack) {
            frames = wire::encode(report_of(s), 0);
            s.waits_for_ack = true;
            s.reported = Clock::now();
        }
        frames += wire::encode(wire::CallIn{0.5, 1 << 20, true}, 0);
        echo_frame.assign(frames.size(), 'x');
        send_all(s.fd, frames);
        if (!grains_end || (i + static_cast<std::size_t>(s.rounds)) % 10 != 0 || !s.running) return;
        ++ends;
        wire::GrainReport end = report_of(s);
        end.last_seq = end.first_seq;
        end.ended = true;
        s.running.reset();
        s.waits_for_launch = true;
        s.freed = Clock::now();
        send_all(s.fd, wire::encode(std::move(end), 0) + wire::encode(wire::CallIn{0.5, 1 << 20, false}, 0));
    }
    void ask_echo(Server &s) {
        if (s.echo_left != 0) return;
        s.echo_left = echo_frame.size();
        s.echoed = Clock::now();
        send_all(s.echo, echo_frame);
    }

    // By a process of its own, so that the control program's waits are not ours.
    void submit(int grains) {
        ::setenv("DCS_DIR", directory.c_str(), 1);
        const auto must = [](int code, const char *what) {
            if (code != 0) give_up(std::string(what) + ": " + d_strerror(code));
        };
        must(d_get_auth("perf"), "d_get_auth");
        must(d_open_ses(1), "d_open_ses");
        char program[] = "/bin/true";
        char *argv[] = {program, nullptr};
        char *env[] = {nullptr};
        for (int i = 1; i <= grains; ++i) must(d_gexec(1, i, argv, env, "", 0, 0, 0, 0), "d_gexec");
    }

    void run(int length) {
        const sigset_t signals = question();
        const timespec at_once = {};
        const auto pace = std::chrono::duration<double>(interval / count);
        const auto start = began = Clock::now();
        for (std::size_t n = 0; since(start) < length; ++n) {
            const auto due = start + std::chrono::duration_cast<Clock::duration>(pace * static_cast<double>(n));
            for (;;) {
                const double left = std::chrono::duration<double>(due - Clock::now()).count();
                if (left <= 0) break;
                pump(left > 0.002 ? static_cast<int>(left * 1e3) : 0);
            }
            call_in(n % servers.size());
            ask_echo(servers[(n + servers.size() / 2) % servers.size()]);
            pump(0);
            if (::sigtimedwait(&signals, nullptr, &at_once) != SIGUSR1) continue;
            std::printf("%s\n", spread({acks.begin() + static_cast<std::ptrdiff_t>(told), acks.end()}).c_str());
            std::fflush(stdout);
            told = acks.size();
        }
        const auto end = Clock::now();
        while (since(end) < 1) pump(50);
    }

    // Seconds of the scheduler for a call-in while no grain ends; what was counted is forgotten.
    double calm_cost() {
        if (calm == 0) return 0;
        grains_end = false;
        const double before = figures_of(scheduler).cpu_s;
        run(calm);
        const double cost = (figures_of(scheduler).cpu_s - before) / static_cast<double>(call_ins);
        grains_end = true;
        call_ins = ends = missed = told = 0;
        acks.clear();
        launches.clear();
        echoes.clear();
        stalls.clear();
        return cost;
    }
    void tell_costs(double one_call_in, double cpu_s, double echo_us) const {
        const double of_ends = cpu_s - one_call_in * static_cast<double>(call_ins);
        const double one_end = ends == 0 ? 0 : of_ends / static_cast<double>(ends) * 1e6;
        const std::string of = std::to_string(count) + " servers: processor time of the scheduler for a ";
        std::printf("                         %.1f us per call-in alone, %.1f us per grain that ends\n",
                    one_call_in * 1e6, one_end);
        figure(of + "call-in, of an echo", one_call_in * 1e6, echo_us, "us");
        if (ends > 0) figure(of + "grain's end and launch, of an echo", one_end, echo_us, "us");
    }
};

// What one sync of a small file takes meanwhile: a caller that waits for a commit waits for several of these.
[[noreturn]] void sync_for(int seconds, const std::string &path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const char block[4096] = {};
    std::vector<double> times;
    for (const auto start = Clock::now(); since(start) < seconds; ::usleep(200'000)) {
        const auto one = Clock::now();
        if (::pwrite(fd, block, sizeof block, 0) != sizeof block || ::fdatasync(fd) != 0) ::_exit(1);
        times.push_back(since(one));
    }
    std::printf("one fdatasync (yardstick)%s\n", spread(times).c_str());
    std::fflush(stdout);
    ::_exit(0);
}

int run(int argc, char **argv) {
    const sigset_t signals = question();
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    Trial t;
    if (argc > 1) t.count = std::atoi(argv[1]);
    if (argc > 2) t.seconds = std::atoi(argv[2]);
    if (argc > 3) t.interval = std::atof(argv[3]);
    if (argc > 4) t.calm = std::atoi(argv[4]);
    if (t.count < 1 || t.seconds < 1 || !(t.interval > 0)) give_up("CONNECTIONS, SECONDS and INTERVAL are positive");
    rlimit low{256, 0};  // as many systems start daemons: the scheduler must raise it
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    low.rlim_max = before.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &low);
    const char *place = std::getenv("TMPDIR");
    std::string pattern = std::string(place ? place : "/var/tmp") + "/dcs-perf-XXXXXX";
    if (!::mkdtemp(pattern.data())) give_up(pattern + ": " + std::strerror(errno));
    t.directory = scratch = pattern;
    std::atexit(clean_up);
    for (const int early : {SIGINT, SIGTERM}) std::signal(early, end_early);
    t.start_daemons();
    need_descriptors(t.count);
    const Figures idle = figures_of(t.scheduler);
    t.connect();
    const Figures connected = figures_of(t.scheduler);
    const int grains = t.count + static_cast<int>(t.count / t.interval * t.seconds / 10) + 10;
    const pid_t control = ::fork();
    if (control == 0) {
        t.submit(grains);
        std::fflush(nullptr);
        ::_exit(0);
    }
    t.wait_for("the launches", [&] { return t.next_launches >= t.servers.size(); });
    int status = -1;
    t.wait_for("the submissions", [&] { return ::waitpid(control, &status, WNOHANG) == control; });
    if (status != 0) give_up("the submissions failed");
    std::printf("the pool is in %s\n", t.directory.c_str());
    std::fflush(stdout);
    const double one_call_in = t.calm_cost();
    const Figures loaded = figures_of(t.scheduler), echo_before = figures_of(t.echo_server);
    const pid_t disk = ::fork();
    if (disk == 0) sync_for(t.seconds, t.directory + "/sync");
    t.run(t.seconds);
    const Figures after = figures_of(t.scheduler), echo_after = figures_of(t.echo_server);
    const auto per = [](double s, std::size_t n) { return n == 0 ? 0 : s / static_cast<double>(n) * 1e6; };
    std::printf("%d connections, a call-in of each every %g s, for %d s: %zu call-ins, %zu while the last was open\n",
                t.count, t.interval, t.seconds, t.call_ins, t.missed);
    std::printf("report to its answer     %s\n", spread(t.acks).c_str());
    std::printf("stalls above 0.1 s       %zu:", t.stalls.size());
    for (const auto &[at, length] : t.stalls) std::printf(" %.2f s at %.1f s", length, at);
    std::printf("\nend to the next launch   %s\n", spread(t.launches).c_str());
    std::printf("bare echo (yardstick)    %s\n", spread(t.echoes).c_str());
    std::fflush(stdout);
    ::waitpid(disk, nullptr, 0);  // prints its line
    std::printf("answer / echo, medians   %.1f\n", median(t.acks) / std::max(median(t.echoes), 1e-9));
    std::printf("CPU of the scheduler     %.1f us per call-in; of the echo server %.1f us per echo\n",
                per(after.cpu_s - loaded.cpu_s, t.call_ins),
                per(echo_after.cpu_s - echo_before.cpu_s, t.echoes.size()));
    if (t.calm > 0)
        t.tell_costs(one_call_in, after.cpu_s - loaded.cpu_s,
                     per(echo_after.cpu_s - echo_before.cpu_s, t.echoes.size()));
    std::printf("memory of the scheduler  %.0f KiB, %+.2f KiB per connection (and host), %.0f KiB at the end\n",
                idle.resident_kb, (connected.resident_kb - idle.resident_kb) / t.count, after.resident_kb);
    std::printf("descriptors              %ld of %ld (it began with 256)\n", after.descriptors, after.soft_limit);
    return 0;
}

}  // namespace
}  // namespace dcs::perf

int main(int argc, char **argv) { return dcs::perf::run(argc, argv); }
