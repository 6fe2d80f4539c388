// The launcher ends grains, whole trees of them, and ends itself.
#include "locks/files/lock_search.h"
#include "launcher_bench.h"
#include "places.h"

using namespace bench;

TEST_CASE("TERM reaches a stopped grain, and it may still answer") {
    Place p;
    const std::string d = p.dir.path;
    const std::string g = p.shell("trap 'exit 9' TERM; echo > " + d + "/ready; while :; do sleep 0.05; done");
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(soon([&] { return file_exists(AT_FDCWD, d + "/ready"); }));
    ::kill(p.pid_of(g), SIGSTOP);
    p.client.send({files::Verb::term, g});
    REQUIRE(WEXITSTATUS(p.exit_of(g).status) == 9);
}

TEST_CASE("SIGNAL reaches the first process only") {
    Place p;
    const std::string d = p.dir.path;
    const std::string g = p.shell("trap 'echo got; exit 7' USR1; sleep 60 & echo $! > " + d + "/child; echo > " + d +
                                  "/ready; while :; do wait $!; done");
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(soon([&] { return file_exists(AT_FDCWD, d + "/ready"); }));
    const pid_t child = p.number_in(d + "/child");
    p.client.send({files::Verb::signal, g, SIGUSR1});
    REQUIRE(WEXITSTATUS(p.exit_of(g).status) == 7);
    REQUIRE(get_file(p.room(g) + "/out.3") == "got\n");
    REQUIRE(gone(child));  // not by USR1: because the grain ended
}

TEST_CASE("with the grain goes everything that it started, and only that") {
    Place p;
    const std::string d = p.dir.path;
    // its parent is gone, so that it is a child of the launcher
    const std::string other = p.shell("(setsid sleep 60 & echo $! > " + d + "/other); sleep 60");
    REQUIRE(p.start(other).verb == files::Verb::started);
    const pid_t other_child = p.number_in(d + "/other");
    // a background process, a daemon of another session, and one that left both session and parent
    const std::string g = p.shell("sleep 60 & echo $! > " + d + "/one; setsid sleep 60 & echo $! > " + d +
                                  "/two; "
                                  "(setsid sh -c 'sleep 60 & echo $! > " +
                                  d +
                                  "/three' &) ; "
                                  "until [ -s " +
                                  d + "/one ] && [ -s " + d + "/two ] && [ -s " + d +
                                  "/three ]; "
                                  "do sleep 0.02; done; exit 3");
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
    const std::string g = p.shell("env -i setsid sleep 60 & echo $! > " + d +
                                  "/pid; "
                                  "until grep -q sleep /proc/$!/comm; do sleep 0.02; done");
    REQUIRE(p.start(g).verb == files::Verb::started);
    const pid_t stray = p.number_in(d + "/pid");
    p.exit_of(g);
    REQUIRE(gone(stray));
}

TEST_CASE("the launcher is killed: the next one ends its grains and says that no process knows how they ended") {
    Place p;
    const std::string d = p.dir.path;
    const std::string g = p.shell("setsid sleep 60 & echo $! > " + d + "/child; sleep 60");
    const std::string done = p.make({"/bin/true"});
    REQUIRE(p.start(g, 2).verb == files::Verb::started);
    REQUIRE(p.start(done, 2).verb == files::Verb::started);
    REQUIRE(WEXITSTATUS(p.exit_of(done).status) == 0);
    const pid_t leader = p.pid_of(g), child = p.number_in(d + "/child");
    const std::string never = p.make({"/bin/true"});
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] {
        p.client.read();
        return p.client.broken();
    }));
    REQUIRE(alive(leader));
    REQUIRE(slot_held(d + "/slots", 0));  // by the keeper
    p.connect();
    REQUIRE(p.launchers.size() == 2);
    const Result<files::ExitRecord> e = files::unpack_exit(get_file(p.path(g) + "/exit"));  // there before it listens
    REQUIRE(e);
    REQUIRE_FALSE(e->known);
    REQUIRE(e->innocent);
    REQUIRE(gone(leader));
    REQUIRE(gone(child));
    REQUIRE(soon([&] { return !slot_held(d + "/slots", 0); }));
    const Result<files::ExitRecord> old = files::unpack_exit(get_file(p.path(done) + "/exit"));
    REQUIRE(old);
    REQUIRE(old->known);
    REQUIRE_FALSE(file_exists(AT_FDCWD, p.path(never) + "/exit"));  // it was not started
    REQUIRE(p.start(never, 1).verb == files::Verb::started);
}

TEST_CASE("a pid that belongs to another process now is left alone") {
    Place p;
    const std::string g = p.make({"/bin/true"});
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] {
        p.client.read();
        return p.client.broken();
    }));
    const pid_t innocent = ::fork();
    if (innocent == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::setsid();
        ::pause();
        ::_exit(0);
    }
    REQUIRE(soon([&] { return ::getsid(innocent) == innocent; }));
    put_file(p.path(g) + "/pid", std::to_string(innocent) + " 12345 " + boot_id() + "\n");
    const std::string other_boot = p.make({"/bin/true"});
    ProcessStat stat;
    REQUIRE(read_stat(innocent, stat));
    const std::string started = std::to_string(stat.start_time);
    put_file(p.path(other_boot) + "/pid", std::to_string(innocent) + " " + started + " other-boot\n");
    p.connect();
    REQUIRE(file_exists(AT_FDCWD, p.path(g) + "/exit"));
    REQUIRE(file_exists(AT_FDCWD, p.path(other_boot) + "/exit"));
    REQUIRE(alive(innocent));
    ::kill(innocent, SIGKILL);
    ::waitpid(innocent, nullptr, 0);
}

TEST_CASE("SIGTERM: the launcher ends its grains, without blame, also those that ignore TERM") {
    Place p;
    const std::string d = p.dir.path;
    const std::string stubborn = p.shell("trap '' TERM; echo > " + d + "/ready; while :; do sleep 1; done");
    const std::string meek = p.make({"/bin/sleep", "60"}), finished = p.make({"/bin/sh", "-c", "exit 4"});
    REQUIRE(p.start(stubborn).verb == files::Verb::started);
    REQUIRE(p.start(meek).verb == files::Verb::started);
    REQUIRE(p.start(finished).verb == files::Verb::started);
    p.exit_of(finished);
    REQUIRE(soon([&] { return file_exists(AT_FDCWD, d + "/ready"); }));
    const pid_t pid = p.pid_of(stubborn);
    const Instant before = boot_clock();
    ::kill(p.launchers.back(), SIGTERM);
    REQUIRE(soon([&] { return !locks::is_held(d + "/launcher.lock"); }));
    const double took = (boot_clock() - before).seconds();
    REQUIRE(took > 1.5);
    REQUIRE(took < 50);  // they would sleep for a minute and for ever
    REQUIRE(gone(pid));
    for (const std::string &g : {stubborn, meek}) {
        const Result<files::ExitRecord> e = files::unpack_exit(get_file(p.path(g) + "/exit"));
        REQUIRE(e);
        REQUIRE(e->known);
        REQUIRE(e->innocent);
    }
    REQUIRE_FALSE(files::unpack_exit(get_file(p.path(finished) + "/exit"))->innocent);
}

TEST_CASE("the end of a grain whose launcher died is recorded where no file can be made, too") {
    Place p;
    const std::string g = p.make({"/bin/sleep", "60"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(make_directories(p.path(g) + "/exit.tmp"));
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] {
        p.client.read();
        return p.client.broken();
    }));
    p.connect();
    const Result<files::ExitRecord> exit = files::unpack_exit(get_file(p.path(g) + "/exit"));
    REQUIRE(exit);
    REQUIRE((exit->innocent && !exit->known));
}

TEST_CASE("one launcher for a directory, QUIT ends an idle one, not a busy one") {
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
    REQUIRE(make_directories(deep));
    server::LauncherClient client;
    client.open(deep, starts(deep, "deep"));
    std::string why;
    REQUIRE(soon([&] { return client.maintain(boot_clock(), why); }));
    const pid_t pid = locks::holder_of(deep + "/launcher.lock");
    REQUIRE(::send(client.fd(), "NONSENSE", 8, MSG_NOSIGNAL) == 8);
    REQUIRE(soon([&] {
        client.read();
        return client.broken();
    }));  // cut off, and nothing else happens
    client.close();
    REQUIRE(soon([&] { return client.maintain(boot_clock(), why); }));
    REQUIRE(locks::holder_of(deep + "/launcher.lock") == pid);
    ::kill(pid, SIGTERM);
    REQUIRE(soon([&] { return !locks::is_held(deep + "/launcher.lock"); }));
    ::waitpid(pid, nullptr, 0);
}
