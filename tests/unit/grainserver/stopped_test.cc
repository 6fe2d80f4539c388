// A launcher that is being stopped, and a grain server whose warden was killed: what they say, and what runs on.
#include "launcher_bench.h"
#include "server_bench.h"
#include "support/about.h"

using namespace bench;

namespace {

pid_t warden_of(pid_t server) {
    for (const ProcessStat &p : all_processes())
        if (p.parent == server && get_file("/proc/" + std::to_string(p.pid) + "/comm") == "dcs_warden\n") return p.pid;
    return 0;
}

}  // namespace

TEST_CASE("a launcher that is being stopped starts nothing any more") {
    Place p;
    const std::string stubborn = p.shell("trap '' TERM; echo > " + p.dir.path + "/ready; while :; do sleep 1; done");
    const std::string first = p.make({"/bin/true"}), second = p.make({"/bin/true"});
    REQUIRE(p.start(stubborn).verb == files::Verb::started);
    REQUIRE(soon([&] { return file_exists(AT_FDCWD, p.dir.path + "/ready"); }));
    // It is stopped over all of this, so that it finds it at once.
    const pid_t launcher = p.launchers.back();
    ::kill(launcher, SIGSTOP);
    ::kill(launcher, SIGTERM);
    for (const std::string &grain : {first, second}) p.client.send({files::Verb::start, grain, 8});
    ::kill(launcher, SIGCONT);
    files::LauncherCall refused;
    REQUIRE(soon([&] {
        for (const files::LauncherCall &c : p.client.read())
            if (c.verb == files::Verb::failed) refused = c;
        return !refused.dir.empty();
    }));
    CHECK(refused.number == static_cast<int>(Code::refused));
    CHECK(refused.text == about("launcher host being stopped"));
    REQUIRE(soon([&] { return !locks::is_held(p.dir.path + "/launcher.lock"); }));
    CHECK_FALSE(file_exists(AT_FDCWD, p.path(refused.dir) + "/pid"));
    CHECK(files::unpack_exit(get_file(p.path(stubborn) + "/exit"))->innocent);
}

TEST_CASE("a grain server whose warden is killed says so and stops, and its grains run on") {
    Pool p;
    p.greet();
    wire::Launch m;
    m.key = {"ann", 3, 1};
    m.incarnation = 1;
    m.argv = {"/bin/sleep", "600"};
    p.scheduler.send(m);
    REQUIRE(p.scheduler.wait_for<wire::LaunchResult>().ok);
    const pid_t warden = warden_of(p.server);
    REQUIRE(warden > 1);
    REQUIRE(::kill(warden, SIGKILL) == 0);
    int status = 0;
    REQUIRE(soon([&] { return ::waitpid(p.server, &status, WNOHANG) == p.server; }));
    p.server = 0;
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) != 0);
    const std::string words =
        "the grain server's warden was killed by signal 9, so the grain server stops: restart "
        "it. Its grains continue to run";
    const std::string log = get_file(p.dir.path + "/log");
    INFO(log);
    CHECK(log.find(words) != std::string::npos);
    CHECK(slot_held(p.server_dir + "/slots", 0));
    p.start();
    const wire::FirstCall call = p.scheduler.accept();
    REQUIRE(call.held.size() == 1);
    CHECK(call.held[0].incarnation == 1);
    p.scheduler.send(wire::Configure{p.interval, 2, 1});
    p.scheduler.send(wire::Withdraw{m.key, 1, true, "not wanted"});
    CHECK(soon([&] { return !slot_held(p.server_dir + "/slots", 0); }));
}
