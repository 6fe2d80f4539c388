#include "locks/supervision.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "locks/files/lock_file.h"
#include "scratch.h"
#include "stepped_world.h"
#include "victims.h"

using namespace dcs;
using namespace dcs::locks;
using scratch::hour;
using scratch::ms;

namespace {

// What a supervisor in a process of its own tells: its record when the command runs, and the end.
struct Told {
    pid_t supervisor = 0, command = 0, group = 0;
    ProcessIdentity process, beside;
    int status = -1, outcome = 0;
    bool started = false, progressing = false, over = false;
    std::int64_t cpu = 0;
    char leaf[120] = "";
};

class Supervised {
public:
    explicit Supervised(Supervision what, const std::string &lock = "") {
        told_ = static_cast<Told *>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        new (told_) Told;
        if (what.cookie == 0) what.cookie = cookie;
        pid_ = ::fork();
        if (pid_ == 0) run(std::move(what), lock);
    }
    Supervised(const Supervised &) = delete;
    ~Supervised() {
        if (pid_ > 0) kill_supervisor();
        while (victims::carriers(cookie) != 0) victims::kill_carriers(cookie);
        ::munmap(told_, 4096);
    }
    const Told &told() const { return *told_; }
    pid_t pid() const { return pid_; }
    pid_t command() const {
        victims::until([&] { return const_cast<volatile Told *>(told_)->command != 0; });
        return told_->command;
    }
    int end() {
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        return scratch::exit_code(status);
    }
    void kill_supervisor() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    Owner owner() const {
        command();
        Owner owner = victims::owner(told_->process, cookie);
        owner.supervisor = told_->beside;
        owner.group = told_->group;
        owner.cgroup = told_->leaf;
        return owner;
    }
    static inline const std::uint64_t cookie = 0x7654321000000000 + static_cast<std::uint64_t>(::getpid());

private:
    [[noreturn]] void run(Supervision what, const std::string &lock) {
        ::setsid();  // no terminal, a process that runs the tests
        LockFile file;
        if (!lock.empty()) {
            Result<LockFile> opened = LockFile::open(*place_of(lock, ""), FileKind::atom);
            const Result<bool> got = opened ? opened->hold(false, Deadline::none()) : Result<bool>(opened.status());
            if (!got || !*got) ::_exit(75);
            file = std::move(*opened);
            what.lock_fds = {file.fd()};
        }
        Told *told = told_;
        told->supervisor = ::getpid();
        what.started = [told](const Owner &owner) {
            told->process = owner.process;
            told->beside = owner.supervisor;
            told->group = owner.group;
            owner.cgroup.copy(told->leaf, sizeof told->leaf - 1);
            *const_cast<volatile pid_t *>(&told->command) = owner.process.pid;
        };
        const auto note = [told](const RunEnd &end) {
            told->status = end.status;
            told->outcome = static_cast<int>(end.outcome);
            told->started = end.started;
            told->progressing = end.progressing;
            told->cpu = end.cpu;
            told->over = true;
        };
        what.ended = note;
        const RunEnd end = supervise(this_world(), what);
        note(end);
        ::_exit(end.status);
    }
    Told *told_ = nullptr;
    pid_t pid_ = -1;
};

Supervision command(const std::string &script) {
    Supervision what;
    what.argv = {"/bin/sh", "-c", script};
    what.grace = {50 * ms, 50 * ms, hour};
    return what;
}

int ran(Supervision what, Outcome outcome) {
    Supervised run(std::move(what));
    const int status = run.end();
    CHECK(run.told().over);
    CHECK(static_cast<Outcome>(run.told().outcome) == outcome);
    CHECK(run.told().status == status);
    return status;
}

// Could a second run start now?
bool is_free(const std::string &path) {
    Result<LockFile> file = LockFile::open(*place_of(path, ""), FileKind::atom);
    REQUIRE(file);
    const Result<bool> got = file->hold(false, Deadline::none());
    REQUIRE(got);
    return *got;
}

bool runs(const ProcessIdentity &process) { return victims::survivors({process}) == 1; }

}  // namespace

TEST_CASE("The command's own status is passed on, and why it could not run") {
    CHECK(ran(command("exit 0"), Outcome::done) == 0);
    CHECK(ran(command("exit 7"), Outcome::failed) == 7);
    CHECK(ran(command("exit 124"), Outcome::failed) == 124);
    CHECK(ran(command("kill -9 $$"), Outcome::failed) == 137);
    const std::pair<const char *, int> unusable[] = {{"/nowhere/at-all", 127}, {"no-such-command", 127}, {"/tmp", 126}};
    for (const auto &[program, status] : unusable) {
        Supervision what;
        what.argv = {program};
        const pid_t shell = ::fork();  // its signals stay blocked, which those of other tests must not be
        if (shell == 0) {
            const RunEnd end = supervise(this_world(), what);
            ::_exit(!end.started && end.text.find(program) != std::string::npos ? end.status : 18);
        }
        int told = 0;
        ::waitpid(shell, &told, 0);
        CHECK(scratch::exit_code(told) == status);
    }
}

TEST_CASE("The command has what a shell would give it, and the lock") {
    const scratch::Directory dir;
    std::signal(SIGUSR1, SIG_IGN);  // as after nohup
    Supervised run(
        command("ls /proc/self/fd | tr '\\n' ' ' > " + (dir / "fds") + "; grep -E 'Sig(Blk|Ign)' /proc/self/status > " +
                (dir / "signals") + "; env | grep DCS_LOCK > " + (dir / "env")),
        dir / "lock");
    CHECK(run.end() == 0);
    std::signal(SIGUSR1, SIG_DFL);
    std::ifstream fds(dir / "fds"), signals(dir / "signals"), env(dir / "env");
    std::string line;
    std::getline(fds, line);
    std::vector<int> seen;
    for (std::istringstream in(line); in >> line;) seen.push_back(std::stoi(line));
    int low = 0, high = 0;
    for (const int fd : seen)
        if (fd < 3) ++low;
        else if (fd >= 500) ++high;  // what the test itself inherited may lie between
    CHECK(low == 3);
    CHECK(high == 1);
    std::getline(signals, line);
    CHECK(line == "SigBlk:\t0000000000000000");
    std::getline(signals, line);
    CHECK(line == "SigIgn:\t0000000000000200");
    std::getline(env, line);
    CHECK(line == cookie_variable(Supervised::cookie));
}

TEST_CASE("P34 the supervisor ends its command's whole tree at the limit, by itself") {
    const scratch::Directory dir;
    Supervision what = command(victims::crowd_script(dir / "pids"));
    what.soft = what.hard = 300 * ms;
    Supervised run(what, dir / "lock");
    CHECK(run.end() == 124);
    CHECK(static_cast<Outcome>(run.told().outcome) == Outcome::expired);
    CHECK(victims::carriers(Supervised::cookie) == 0);
    CHECK(is_free(dir / "lock"));
    struct stat st = {};
    CHECK((run.told().leaf[0] == 0 || ::stat(run.told().leaf, &st) != 0));  // its control group is gone
}

TEST_CASE("A tree that makes progress lives on to the hard limit, one that sleeps ends at the soft one") {
    Supervision busy = command("while :; do :; done"), idle = command("exec sleep 1000");
    // The start of a shell on a busy machine shall not lie in the last third, where it would be progress.
    busy.soft = idle.soft = 1500 * ms;
    busy.hard = 2500 * ms;
    idle.hard = hour;
    busy.cookie = Supervised::cookie + (std::uint64_t{1} << 40);  // two runs at a time
    Supervised lives(busy), ends(idle);
    CHECK(ends.end() == 124);
    CHECK_FALSE(ends.told().progressing);
    CHECK(lives.end() == 124);
    CHECK(lives.told().progressing);
    CHECK(lives.told().cpu > 0);
}

TEST_CASE("P8 the next requester asks the supervisor, which ends its whole tree") {
    const scratch::Directory dir;
    Supervised run(command(victims::crowd_script(dir / "pids")), dir / "lock");
    const auto crowd = victims::crowd_in(dir / "pids");
    REQUIRE(crowd.size() == victims::crowd_size);
    const KillReport report = kill_carefully(this_world(), run.owner(), {50 * ms, 50 * ms, hour});
    CHECK(report.result == Killed::gone);
    CHECK(report.signalled == 1);  // the supervisor alone, which did the rest
    CHECK(victims::survivors(crowd) == 0);
    CHECK(is_free(dir / "lock"));
    CHECK(run.end() == 124);
}

TEST_CASE("P8 a stopped supervisor is no shelter") {
    const scratch::Directory dir;
    Supervised run(command(victims::crowd_script(dir / "pids")), dir / "lock");
    const auto crowd = victims::crowd_in(dir / "pids");
    const Owner owner = run.owner();
    ::kill(run.pid(), SIGSTOP);
    CHECK(kill_carefully(this_world(), owner, {50 * ms, 50 * ms, hour}).result == Killed::gone);
    CHECK(victims::survivors(crowd) == 0);
    CHECK(is_free(dir / "lock"));
}

TEST_CASE("P36 the lock outlives its supervisor as long as the command lives") {
    const scratch::Directory dir;
    Supervised run(command("exec sleep 1000"), dir / "lock");
    const ProcessIdentity process = run.owner().process;
    run.kill_supervisor();
    CHECK(runs(process));
    CHECK_FALSE(is_free(dir / "lock"));
    ::kill(process.pid, SIGKILL);
    victims::until([&] { return !runs(process); });
    victims::until([&] { return is_free(dir / "lock"); });
}

TEST_CASE("P36 a command whose lock is its supervisor's alone dies with it") {
    const scratch::Directory dir;
    Supervision what = command("exec sleep 1000");
    what.keep = Keep::leader;
    Supervised run(what, dir / "lock");
    const ProcessIdentity process = run.owner().process;
    run.kill_supervisor();
    victims::until([&] { return !runs(process); });
    victims::until([&] { return is_free(dir / "lock"); });
}

TEST_CASE("C4 strays keep the lock where the whole tree counts, and not where the leader does") {
    const scratch::Directory dir;
    Supervision what = command("setsid -f sh -c 'echo $$ > " + (dir / "pids") + "; exec sleep 1000'");
    what.keep = Keep::leader;
    {
        Supervised run(what, dir / "leader");
        CHECK(run.end() == 0);
        CHECK(is_free(dir / "leader"));
        victims::until([&] { return victims::pids_in(dir / "pids").size() == 1; });
    }
    ::unlink((dir / "pids").c_str());
    what.keep = Keep::tree;
    Supervised run(what, dir / "tree");
    victims::until([&] { return victims::pids_in(dir / "pids").size() == 1; });
    const auto stray = identify(victims::pids_in(dir / "pids")[0]);
    REQUIRE(stray);
    victims::until([&] { return !runs(run.owner().process); });
    CHECK(runs(*stray));
    CHECK_FALSE(is_free(dir / "tree"));
    CHECK_FALSE(run.told().over);
    ::kill(stray->pid, SIGKILL);
    CHECK(run.end() == 0);
    CHECK(is_free(dir / "tree"));
}

TEST_CASE("P30 the record names the process that runs, beside the one that stands by it") {
    Supervised run(command("exec sleep 1000"));
    const Owner owner = run.owner();
    CHECK(owner.process.pid != run.pid());
    CHECK(owner.supervisor.pid == run.pid());
    ProcessStat stat;
    REQUIRE(read_stat(owner.process.pid, stat));
    CHECK(stat.parent == run.pid());
    CHECK(stat.group == owner.process.pid);  // a group of its own, as there is no terminal
    CHECK(owner.group == owner.process.pid);
}

TEST_CASE("C3 a command that closes everything keeps the lock by its keeper") {
    const scratch::Directory dir;
    Supervision what;
    what.argv = {"/usr/bin/python3", "-c",
                 "import os, time; os.closerange(3, 65536); open('" + (dir / "ready") + "', 'w'); time.sleep(1000)"};
    what.keep = Keep::exec;
    Supervised run(what, dir / "lock");
    CHECK(run.command() == run.pid());  // it took over the process, pid and all
    victims::until([&] { return ::access((dir / "ready").c_str(), F_OK) == 0; });
    CHECK(victims::pids_in("/proc/" + std::to_string(run.pid()) + "/task/" + std::to_string(run.pid()) + "/children")
              .empty());
    CHECK_FALSE(is_free(dir / "lock"));
    run.kill_supervisor();
    victims::until([&] { return is_free(dir / "lock"); });
    victims::until([&] { return const_cast<volatile bool &>(run.told().over); });
    CHECK(static_cast<Outcome>(run.told().outcome) == Outcome::done);
}

TEST_CASE("The keeper ends the command at its limit, and when it is asked to") {
    const scratch::Directory dir;
    Supervision what = command(victims::crowd_script(dir / "pids"));
    what.keep = Keep::exec;
    what.soft = what.hard = 300 * ms;
    for (const bool asked : {false, true}) {
        if (asked) what.soft = what.hard = hour;
        ::unlink((dir / "pids").c_str());
        Supervised run(what, dir / "lock");
        if (asked) {
            victims::crowd_in(dir / "pids");
            CHECK(kill_carefully(this_world(), run.owner(), what.grace).result == Killed::gone);
        }
        run.end();
        victims::until([&] { return const_cast<volatile bool &>(run.told().over); });
        CHECK(run.told().status == 124);
        CHECK(static_cast<Outcome>(run.told().outcome) == Outcome::expired);
        CHECK(victims::carriers(Supervised::cookie) == 0);
        victims::until([&] { return is_free(dir / "lock"); });
    }
}

TEST_CASE("A command that cannot take over the process leaves no keeper, and the lock is ours") {
    const scratch::Directory dir;
    Supervision what;
    what.argv = {"/nowhere/at-all"};
    for (const Keep keep : {Keep::exec, Keep::fd}) {
        what.keep = keep;
        Supervised run(what, dir / "lock");
        CHECK(run.end() == 127);
        CHECK_FALSE(run.told().started);
        victims::until([&] { return is_free(dir / "lock"); });
    }
}

TEST_CASE("Signals are passed on to the command") {
    const scratch::Directory dir;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
        Supervised run(command("trap 'exit 42' INT TERM HUP QUIT USR1 USR2; touch " + (dir / std::to_string(number)) +
                               "; while :; do sleep 0.01; done"));
        victims::until([&] { return ::access((dir / std::to_string(number)).c_str(), F_OK) == 0; });
        ::kill(run.pid(), number);
        CHECK(run.end() == 42);
    }
}

TEST_CASE("Children from before the run are none of its business") {
    const scratch::Directory dir;
    Supervision what = command("exec sleep 1000");
    what.keep = Keep::tree;
    what.soft = what.hard = 100 * ms;
    const pid_t shell = ::fork();
    if (shell == 0) {
        victims::Counter before;
        const RunEnd end = supervise(this_world(), what);
        ::_exit(end.status == 124 && before.signals() == 0 && before.lives() ? 17 : 18);
    }
    int status = 0;
    ::waitpid(shell, &status, 0);
    CHECK(scratch::exit_code(status) == 17);
}

TEST_CASE("P8 a run inside a run belongs to both") {
    ::setenv("DCS_LOCK_ID", "00000000000000aa", 1);
    ::setenv("DCS_LOCK_OUTER", "00000000000000bb", 1);
    const std::vector<std::string> inner = cookie_variables(0xcc);
    ::unsetenv("DCS_LOCK_ID");
    ::unsetenv("DCS_LOCK_OUTER");
    std::string environment = "PATH=/bin";
    for (const std::string &variable : inner) environment += '\0' + variable;
    for (const std::uint64_t cookie : {0xaa, 0xbb, 0xcc}) CHECK(carries_cookie(environment, cookie));
    CHECK_FALSE(carries_cookie(environment, 0xdd));
}
