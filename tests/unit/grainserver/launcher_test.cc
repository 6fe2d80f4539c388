// The launcher with real processes (W2, W6, W9).
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/files/process_identity.h"
#include "grainserver/shell/launcher_client.h"
#include "locks/kernel_lock.h"
#include "locks/slots.h"
#include "scratch_dir.h"

using namespace bench;
using namespace dcs;
namespace files = dcs::files;

namespace {
void nap(int ms) {
    const timespec t{ms / 1000, ms % 1000 * 1'000'000L};
    ::nanosleep(&t, nullptr);
}
template <class F> bool soon(F condition, int ms = 10'000) {
    for (int waited = 0; waited < ms; waited += 10) {
        if (condition()) return true;
        nap(10);
    }
    return condition();
}

// A launcher in a directory of its own, spoken to as the server does.
struct Place {
    ScratchDir dir;
    std::vector<pid_t> launchers;
    server::LauncherClient client;
    std::vector<std::string> exited;
    int next_grain = 1;

    Place() {
        REQUIRE(files::make_directories(dir.path + "/grains"));
        client.open(dir.path, "local1", DCS_BINARY_DIR "/bin/dcs_launcher");
        connect();
    }
    ~Place() {
        for (const pid_t pid : launchers) ::kill(pid, SIGTERM);
        for (const pid_t pid : launchers)
            soon([&] { return ::waitpid(pid, nullptr, WNOHANG) != 0 && ::kill(pid, 0) != 0; });
    }
    void connect() {
        client.close();
        std::string why;
        REQUIRE(soon([&] { return client.maintain(boot_clock(), why); }));
        const pid_t pid = std::atoi(locks::note_of(dir.path + "/launcher.lock").c_str());
        REQUIRE(pid > 1);
        if (launchers.empty() || launchers.back() != pid) launchers.push_back(pid);
        REQUIRE(ask({files::Verb::list}).verb == files::Verb::end);  // from now on we hear of ends
    }
    std::string path(const std::string &grain) { return dir.path + "/grains/" + grain; }

    std::string make(std::vector<std::string> argv, const std::string &input = "", std::vector<std::string> env = {},
                     const std::string &directory = "") {
        files::LaunchRecord r;
        r.boot_id = files::boot_id();
        r.program = argv.at(0);
        argv[0] = argv[0].substr(argv[0].rfind('/') + 1);
        r.argv = std::move(argv);
        r.env = std::move(env);
        r.directory = directory;
        r.next_seq = 3;
        const std::string grain = "ann,1," + std::to_string(next_grain++) + ",1";
        REQUIRE(files::make_directories(path(grain)));
        put_file(path(grain) + "/input", input);
        put_file(path(grain) + "/launch", files::pack(r));
        return grain;
    }
    // Sends and waits for the next answer that is no event.
    files::LauncherCall ask(const files::LauncherCall &call) {
        client.send(call);
        files::LauncherCall answer;
        REQUIRE(soon([&] {
            for (const files::LauncherCall &c : client.read())
                if (c.verb == files::Verb::exited) exited.push_back(c.dir);
                else if (c.verb != files::Verb::running) answer = c;
            return answer.verb != files::Verb::none;
        }));
        return answer;
    }
    files::LauncherCall start(const std::string &grain, int limit = 8) {
        return ask({files::Verb::start, grain, limit});
    }
    bool heard_exit(const std::string &grain) {
        for (const files::LauncherCall &c : client.read())
            if (c.verb == files::Verb::exited) exited.push_back(c.dir);
        for (const std::string &e : exited)
            if (e == grain) return true;
        return false;
    }
    files::ExitRecord exit_of(const std::string &grain) {
        REQUIRE(soon([&] { return heard_exit(grain); }));
        const Result<files::ExitRecord> r = files::unpack_exit(get_file(path(grain) + "/exit"));
        REQUIRE(r);
        return *r;
    }
    pid_t pid_of(const std::string &grain) {
        const Result<files::PidRecord> r = files::parse_pid(get_file(path(grain) + "/pid"));
        REQUIRE(r);
        return r->pid;
    }
    // Reads a number that a grain wrote to a file.
    pid_t number_in(const std::string &file) {
        REQUIRE(soon([&] { return get_file(file).find('\n') != std::string::npos; }));
        return std::atoi(get_file(file).c_str());
    }
};
bool gone(pid_t pid) {
    files::ProcessStat s;
    return !files::read_stat(pid, s) || s.state == 'Z' || s.state == 'X';
}
bool alive(pid_t pid) { return !gone(pid); }
}  // namespace

TEST_CASE("a grain reads its input and writes its increments") {
    Place p;
    const std::string g = p.make({"/bin/cat"}, "hello\n");
    REQUIRE(p.start(g).verb == files::Verb::started);
    const files::ExitRecord e = p.exit_of(g);
    REQUIRE(e.known);
    REQUIRE(e.status == 0);
    REQUIRE(e.max_rss_kb > 0);
    REQUIRE(get_file(p.path(g) + "/out.3") == "hello\n");
    REQUIRE(get_file(p.path(g) + "/err.3").empty());
    REQUIRE(p.start(g).verb == files::Verb::have);  // never a second time
}

TEST_CASE("environment, arguments, streams, directory and courtesy of a grain") {
    Place p;
    const std::string script =
        "env; echo \"zero=$0 one=$1\"; pwd; ls -l /proc/self/fd | grep -c slots; cat /proc/self/stat; "
        "ulimit -c; cat /proc/self/autogroup 2>/dev/null; grep -E 'Sig(Blk|Ign)' /proc/self/status; echo wrong >&2; exit 5";
    const std::string g = p.make({"/bin/sh", "-c", script, "name", "first"}, "",
                                 {"A=b c", "DCS_GRAIN_DIR=wrong", "PATH=/usr/bin:/bin"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    const files::ExitRecord e = p.exit_of(g);
    REQUIRE(WEXITSTATUS(e.status) == 5);
    const std::string out = get_file(p.path(g) + "/out.3");
    INFO(out);
    const auto has = [&](const std::string &text) { return ("\n" + out).find("\n" + text + "\n") != std::string::npos; };
    char *real = ::realpath(p.dir.path.c_str(), nullptr);
    const std::string grain_dir = std::string(real) + "/grains/" + g;
    ::free(real);
    REQUIRE(has("A=b c"));
    REQUIRE(has("DCS_GRAIN_DIR=" + grain_dir));
    REQUIRE(has("DCS_GRAIN_SEQUENCE=3"));
    REQUIRE_FALSE(has("DCS_GRAIN_DIR=wrong"));
    REQUIRE(has("zero=name one=first"));
    REQUIRE(has(grain_dir + "/work"));
    REQUIRE(has("1"));  // one descriptor of a slot
    REQUIRE(has("0"));  // no core files
    REQUIRE(has("SigBlk:\t0000000000000000"));
    REQUIRE(has("SigIgn:\t0000000000000000"));
    if (::access("/proc/self/autogroup", F_OK) == 0) REQUIRE(out.find(" nice 19\n") != std::string::npos);
    REQUIRE(get_file(p.path(g) + "/err.3") == "wrong\n");
}

TEST_CASE("a grain is a modest leader of its own session") {
    Place p;
    const std::string g = p.make({"/bin/sleep", "60"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    const pid_t pid = p.pid_of(g);
    REQUIRE(::getsid(pid) == pid);
    REQUIRE(::getpgid(pid) == pid);
    REQUIRE(::getpriority(PRIO_PROCESS, static_cast<id_t>(pid)) == 19);
    REQUIRE(::sched_getscheduler(pid) == SCHED_IDLE);
    p.client.send({files::Verb::kill, g});
    REQUIRE(WTERMSIG(p.exit_of(g).status) == SIGKILL);
    REQUIRE(gone(pid));
}

TEST_CASE("programs that cannot run are told in words, and leave neither process nor slot") {
    Place p;
    const auto refused = [&](std::vector<std::string> argv, const std::string &directory = "") {
        const std::string g = p.make(std::move(argv), "", {}, directory);
        const files::LauncherCall answer = p.start(g, 1);
        REQUIRE(answer.verb == files::Verb::failed);
        REQUIRE_FALSE(answer.again);
        REQUIRE(answer.number == static_cast<int>(Code::not_found));
        REQUIRE_FALSE(files::exists(AT_FDCWD, p.path(g) + "/pid"));
        REQUIRE_FALSE(locks::is_held(p.dir.path + "/slots/0"));
        return answer.text;
    };
    const std::string d = p.dir.path;
    REQUIRE(refused({d + "/missing"}).find("No such file") != std::string::npos);
    REQUIRE(refused({"/usr/bin"}).find("is a directory") != std::string::npos);
    REQUIRE(refused({"/etc/passwd/x"}).find("Not a directory") != std::string::npos);
    put_file(d + "/plain", "just text\n", 0644);
    REQUIRE(refused({d + "/plain"}).find("not executable") != std::string::npos);
    put_file(d + "/text", "just text\n", 0755);
    REQUIRE(refused({d + "/text"}).find("#! line") != std::string::npos);
    put_file(d + "/script", "#!/no/such/interpreter\n", 0755);
    REQUIRE(refused({d + "/script"}).find("interpreter") != std::string::npos);
    REQUIRE(refused({"/bin/true"}, d + "/nowhere").find("working directory") != std::string::npos);
    REQUIRE(refused({"/bin/true"}, "/etc/passwd").find("Not a directory") != std::string::npos);
    const std::string g = p.make({"/bin/true"});
    REQUIRE(p.start(g, 1).verb == files::Verb::started);
}

TEST_CASE("no more grains than slots; a slot is free again with the end of its grain") {
    Place p;
    const std::string a = p.make({"/bin/sleep", "60"}), b = p.make({"/bin/sleep", "60"}), c = p.make({"/bin/true"});
    REQUIRE(p.start(a, 2).verb == files::Verb::started);
    REQUIRE(p.start(b, 2).verb == files::Verb::started);
    const files::LauncherCall no = p.start(c, 2);
    REQUIRE(no.verb == files::Verb::failed);
    REQUIRE(no.again);
    REQUIRE(no.number == static_cast<int>(Code::limit));
    p.client.send({files::Verb::term, a});
    REQUIRE(WTERMSIG(p.exit_of(a).status) == SIGTERM);
    REQUIRE(p.start(c, 2).verb == files::Verb::started);
    p.client.send({files::Verb::kill, b});
    p.exit_of(b);
}

TEST_CASE("TERM reaches a stopped grain") {
    Place p;
    const std::string g = p.make({"/bin/sleep", "60"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    ::kill(p.pid_of(g), SIGSTOP);
    p.client.send({files::Verb::term, g});
    REQUIRE(WTERMSIG(p.exit_of(g).status) == SIGTERM);
}

TEST_CASE("SIGNAL reaches the first process only") {
    Place p;
    const std::string d = p.dir.path;
    const std::string g = p.make({"/bin/sh", "-c", "trap 'echo got; exit 7' USR1; sleep 60 & echo $! > " + d +
                                  "/child; echo > " + d + "/ready; while :; do wait $!; done"}, "", {"PATH=/bin:/usr/bin"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(soon([&] { return files::exists(AT_FDCWD, d + "/ready"); }));
    const pid_t child = p.number_in(d + "/child");
    p.client.send({files::Verb::signal, g, SIGUSR1});
    REQUIRE(WEXITSTATUS(p.exit_of(g).status) == 7);
    REQUIRE(get_file(p.path(g) + "/out.3") == "got\n");
    REQUIRE(gone(child));  // not by USR1: because the grain ended
}

TEST_CASE("with the grain goes everything that it started, and only that") {
    Place p;
    const std::string d = p.dir.path;
    const std::string other = p.make({"/bin/sh", "-c", "setsid sleep 60 & echo $! > " + d + "/other; wait"}, "", {"PATH=/bin:/usr/bin"});
    REQUIRE(p.start(other).verb == files::Verb::started);
    const pid_t other_child = p.number_in(d + "/other");
    // a background process, a daemon of another session, and one that left both session and parent
    const std::string g = p.make({"/bin/sh", "-c",
                                  "sleep 60 & echo $! > " + d + "/one; setsid sleep 60 & echo $! > " + d + "/two; "
                                  "(setsid sh -c 'sleep 60 & echo $! > " + d + "/three' &) ; sleep 0.2; exit 3"}, "",
                                 {"PATH=/bin:/usr/bin"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    const pid_t one = p.number_in(d + "/one"), two = p.number_in(d + "/two"), three = p.number_in(d + "/three");
    const files::ExitRecord e = p.exit_of(g);
    REQUIRE(WEXITSTATUS(e.status) == 3);
    REQUIRE(gone(one));
    REQUIRE(gone(two));
    REQUIRE(gone(three));
    REQUIRE(alive(other_child));
    p.client.send({files::Verb::kill, other});
    p.exit_of(other);
    REQUIRE(gone(other_child));
}

TEST_CASE("a stray that cleared its environment goes with the last grain at the latest") {
    Place p;
    const std::string d = p.dir.path;
    const std::string g = p.make({"/bin/sh", "-c", "env -i setsid sleep 60 & echo $! > " + d + "/pid; sleep 0.2"}, "", {"PATH=/bin:/usr/bin"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    const pid_t stray = p.number_in(d + "/pid");
    p.exit_of(g);
    REQUIRE(gone(stray));
}

TEST_CASE("the launcher is killed: the next one ends its grains and says that nobody knows how they ended") {
    Place p;
    const std::string d = p.dir.path;
    const std::string g = p.make({"/bin/sh", "-c", "setsid sleep 60 & echo $! > " + d + "/child; sleep 60"}, "", {"PATH=/bin:/usr/bin"});
    const std::string done = p.make({"/bin/true"});
    REQUIRE(p.start(g, 2).verb == files::Verb::started);
    REQUIRE(p.start(done, 2).verb == files::Verb::started);
    REQUIRE(WEXITSTATUS(p.exit_of(done).status) == 0);
    const pid_t leader = p.pid_of(g), child = p.number_in(d + "/child");
    const std::string never = p.make({"/bin/true"});
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] { p.client.read(); return p.client.broken(); }));
    REQUIRE(alive(leader));
    REQUIRE(locks::is_held(d + "/slots/0"));  // by the grain itself
    p.connect();
    REQUIRE(p.launchers.size() == 2);
    const Result<files::ExitRecord> e = files::unpack_exit(get_file(p.path(g) + "/exit"));  // there before it listens
    REQUIRE(e);
    REQUIRE_FALSE(e->known);
    REQUIRE(e->innocent);
    REQUIRE(gone(leader));
    REQUIRE(gone(child));
    REQUIRE(soon([&] { return !locks::is_held(d + "/slots/0"); }));
    const Result<files::ExitRecord> old = files::unpack_exit(get_file(p.path(done) + "/exit"));
    REQUIRE(old);
    REQUIRE(old->known);
    REQUIRE_FALSE(files::exists(AT_FDCWD, p.path(never) + "/exit"));  // it was not started
    REQUIRE(p.start(never, 1).verb == files::Verb::started);
}

TEST_CASE("a pid that belongs to somebody else now is left alone") {
    Place p;
    const std::string g = p.make({"/bin/true"});
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] { p.client.read(); return p.client.broken(); }));
    const pid_t innocent = ::fork();
    if (innocent == 0) {
        ::setsid();
        ::pause();
        ::_exit(0);
    }
    REQUIRE(soon([&] { return ::getsid(innocent) == innocent; }));
    put_file(p.path(g) + "/pid", std::to_string(innocent) + " 12345 " + files::boot_id() + "\n");
    const std::string other_boot = p.make({"/bin/true"});
    files::ProcessStat stat;
    REQUIRE(files::read_stat(innocent, stat));
    put_file(p.path(other_boot) + "/pid", std::to_string(innocent) + " " + std::to_string(stat.start_time) + " other-boot\n");
    p.connect();
    REQUIRE(files::exists(AT_FDCWD, p.path(g) + "/exit"));
    REQUIRE(files::exists(AT_FDCWD, p.path(other_boot) + "/exit"));
    REQUIRE(alive(innocent));
    ::kill(innocent, SIGKILL);
    ::waitpid(innocent, nullptr, 0);
}

TEST_CASE("SIGTERM: the launcher ends its grains, without blame, also those that ignore TERM") {
    Place p;
    const std::string d = p.dir.path;
    const std::string stubborn = p.make({"/bin/sh", "-c", "trap '' TERM; echo > " + d + "/ready; while :; do sleep 1; done"}, "", {"PATH=/bin:/usr/bin"});
    const std::string meek = p.make({"/bin/sleep", "60"}), finished = p.make({"/bin/sh", "-c", "exit 4"});
    REQUIRE(p.start(stubborn).verb == files::Verb::started);
    REQUIRE(p.start(meek).verb == files::Verb::started);
    REQUIRE(p.start(finished).verb == files::Verb::started);
    p.exit_of(finished);
    REQUIRE(soon([&] { return files::exists(AT_FDCWD, d + "/ready"); }));
    const pid_t pid = p.pid_of(stubborn);
    const Instant before = boot_clock();
    ::kill(p.launchers.back(), SIGTERM);
    REQUIRE(soon([&] { return !locks::is_held(d + "/launcher.lock"); }));
    const double took = (boot_clock() - before).seconds();
    REQUIRE(took > 1.5);
    REQUIRE(took < 6);
    REQUIRE(gone(pid));
    for (const std::string &g : {stubborn, meek}) {
        const Result<files::ExitRecord> e = files::unpack_exit(get_file(p.path(g) + "/exit"));
        REQUIRE(e);
        REQUIRE(e->known);
        REQUIRE(e->innocent);
    }
    REQUIRE_FALSE(files::unpack_exit(get_file(p.path(finished) + "/exit"))->innocent);
}

TEST_CASE("one launcher for a directory; QUIT ends an idle one, not a busy one") {
    Place p;
    const std::string g = p.make({"/bin/sleep", "60"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    const std::string command = DCS_BINARY_DIR "/bin/dcs_launcher --dir " + p.dir.path + " --name two 2>/dev/null";
    REQUIRE(WEXITSTATUS(std::system(command.c_str())) == 4);
    REQUIRE(p.ask({files::Verb::quit}).verb == files::Verb::busy);
    p.client.send({files::Verb::kill, g});
    p.exit_of(g);
    REQUIRE(p.ask({files::Verb::quit}).verb == files::Verb::end);
    REQUIRE(soon([&] { return !locks::is_held(p.dir.path + "/launcher.lock"); }));
}

TEST_CASE("a long path to the socket, and packets that are nonsense") {
    ScratchDir dir;
    std::string deep = dir.path;
    for (int i = 0; i < 8; ++i) deep += "/a-directory-with-a-long-name";
    REQUIRE(files::make_directories(deep));
    server::LauncherClient client;
    client.open(deep, "deep", DCS_BINARY_DIR "/bin/dcs_launcher");
    std::string why;
    REQUIRE(soon([&] { return client.maintain(boot_clock(), why); }));
    const pid_t pid = std::atoi(locks::note_of(deep + "/launcher.lock").c_str());
    REQUIRE(::send(client.fd(), "NONSENSE", 8, MSG_NOSIGNAL) == 8);
    REQUIRE(soon([&] { client.read(); return client.broken(); }));  // cut off, and nothing else happens
    client.close();
    REQUIRE(soon([&] { return client.maintain(boot_clock(), why); }));
    REQUIRE(std::atoi(locks::note_of(deep + "/launcher.lock").c_str()) == pid);
    ::kill(pid, SIGTERM);
    REQUIRE(soon([&] { return !locks::is_held(deep + "/launcher.lock"); }));
    ::waitpid(pid, nullptr, 0);
}
