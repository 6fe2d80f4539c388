// The launcher starts grains.
#include <regex>

#include "launcher_bench.h"

using namespace bench;

TEST_CASE("a grain reads its input and writes its increments") {
    Place p;
    const std::string g = p.make({"/bin/cat"}, "hello\n");
    REQUIRE(p.start(g).verb == files::Verb::started);
    const files::ExitRecord e = p.exit_of(g);
    REQUIRE(e.known);
    REQUIRE(e.status == 0);
    REQUIRE(e.max_rss_kb > 0);
    REQUIRE(get_file(p.room(g) + "/out.3") == "hello\n");
    REQUIRE(get_file(p.room(g) + "/err.3").empty());
    REQUIRE(p.start(g).verb == files::Verb::have);  // never a second time
}

TEST_CASE("environment, arguments, streams, directory and courtesy of a grain") {
    Place p;
    const std::string script =
        "env; echo \"zero=$0 one=$1\"; pwd; echo slots=$(ls -l /proc/$$/fd | grep -c slots); cat /proc/self/stat; "
        "ulimit -c; cat /proc/self/autogroup 2>/dev/null; cat /proc/self/cgroup; "
        "grep -E 'Sig(Blk|Ign)|NoNewPrivs' /proc/self/status; "
        "echo wrong >&2; exit 5";
    const std::string g =
        p.make({"/bin/sh", "-c", script, "name", "first"}, "", {"A=b c", "DCS_GRAIN_DIR=wrong", "PATH=/usr/bin:/bin"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    const files::ExitRecord e = p.exit_of(g);
    REQUIRE(WEXITSTATUS(e.status) == 5);
    const std::string out = get_file(p.room(g) + "/out.3");
    INFO(out);
    const auto has = [&](const std::string &text) {
        return ("\n" + out).find("\n" + text + "\n") != std::string::npos;
    };
    char *real = ::realpath(p.dir.path.c_str(), nullptr);
    const std::string grain_dir = std::string(real) + "/grains/" + g + "/room";
    ::free(real);
    REQUIRE(has("A=b c"));
    REQUIRE(has("DCS_GRAIN_DIR=" + grain_dir));
    REQUIRE(has("DCS_GRAIN_SEQUENCE=3"));
    REQUIRE_FALSE(has("DCS_GRAIN_DIR=wrong"));
    REQUIRE(has("zero=name one=first"));
    REQUIRE(has(grain_dir + "/work"));
    REQUIRE(has("slots=0"));  // it could drop one
    REQUIRE(has("0"));        // no core files
    REQUIRE(has("NoNewPrivs:\t1"));
    REQUIRE(has("SigBlk:\t0000000000000000"));
    REQUIRE(has("SigIgn:\t0000000000000000"));
    // Sessions have a weight only outside of control groups for processor time.
    const std::regex group("\n[0-9]+:(cpu|cpu,cpuacct|cpuacct,cpu)?:[^\n]*/dcs-[0-9]");
    const bool weighed = std::regex_search(out, group);
    if (::access("/proc/self/autogroup", F_OK) == 0 && !weighed) REQUIRE(out.find(" nice 19\n") != std::string::npos);
    REQUIRE(get_file(p.room(g) + "/err.3") == "wrong\n");
}

TEST_CASE("a grain is a modest leader of its own session") {
    Place p;
    const std::string g = p.make({"/bin/sleep", "60"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    REQUIRE(p.start(g).verb == files::Verb::have);  // one process, however often it is asked for
    const pid_t pid = p.pid_of(g);
    REQUIRE(::getsid(pid) == pid);
    REQUIRE(::getpgid(pid) == pid);
    REQUIRE(::getpriority(PRIO_PROCESS, static_cast<id_t>(pid)) == 19);
    REQUIRE(::sched_getscheduler(pid) == SCHED_IDLE);
    p.client.send({files::Verb::kill, g});
    REQUIRE(WTERMSIG(p.exit_of(g).status) == SIGKILL);
    REQUIRE(gone(pid));
}

TEST_CASE("a grain has the priority of other programs if the owner says so") {
    Place p;
    const std::string g = p.make({"/bin/sleep", "60"});
    files::OwnerRules rules = *files::unpack_rules(get_file(p.dir.path + "/rules"));
    rules.ordinary_priority = true;
    put_file(p.dir.path + "/rules", files::pack(rules), 0600);
    REQUIRE(p.start(g).verb == files::Verb::started);
    const pid_t pid = p.pid_of(g);
    REQUIRE(::getpriority(PRIO_PROCESS, static_cast<id_t>(pid)) == ::getpriority(PRIO_PROCESS, 0));
    REQUIRE(::sched_getscheduler(pid) == SCHED_OTHER);
}

TEST_CASE("programs that cannot run are told in words, and leave neither process nor slot") {
    Place p;
    const auto refused = [&](std::vector<std::string> argv, const std::string &directory = "") {
        const std::string g = p.make(std::move(argv), "", {}, directory);
        const files::LauncherCall answer = p.start(g, 1);
        REQUIRE(answer.verb == files::Verb::failed);
        REQUIRE_FALSE(answer.again);
        REQUIRE(answer.number == static_cast<int>(directory.empty() ? Code::not_found : Code::invalid));
        REQUIRE_FALSE(file_exists(AT_FDCWD, p.path(g) + "/pid"));
        REQUIRE(soon([&] { return !slot_held(p.dir.path + "/slots", 0); }));  // it is given back after the answer
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
    const files::LauncherCall too_long = p.start(p.make({"/bin/true", std::string(200'000, 'a')}), 1);
    REQUIRE(too_long.verb == files::Verb::failed);
    REQUIRE(too_long.number == static_cast<int>(Code::invalid));
    REQUIRE(too_long.text.find("Argument list too long") != std::string::npos);
    const std::string g = p.make({"/bin/true"});
    REQUIRE(p.start(g, 1).verb == files::Verb::started);
}

TEST_CASE("no more grains than slots, a slot is free again with the end of its grain") {
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

TEST_CASE("a proof says what a start would say, runs nothing, and needs no slot") {
    Place p;
    const std::string d = p.dir.path;
    const auto prove = [&](std::vector<std::string> argv, const std::string &directory = "") {
        const std::string g = p.make(std::move(argv), "", {"PATH=/usr/bin:/bin"}, directory);
        const files::LauncherCall answer = p.ask({files::Verb::prove, g});
        REQUIRE_FALSE(file_exists(AT_FDCWD, p.path(g) + "/pid"));
        REQUIRE_FALSE(file_exists(AT_FDCWD, p.path(g) + "/exit"));
        if (answer.verb == files::Verb::proved) return std::string("proved");
        REQUIRE(answer.verb == files::Verb::failed);
        REQUIRE(answer.number == static_cast<int>(directory.empty() ? Code::not_found : Code::invalid));
        REQUIRE_FALSE(answer.again);
        return answer.text;
    };
    const std::string busy = p.make({"/bin/sleep", "60"});
    REQUIRE(p.start(busy, 1).verb == files::Verb::started);
    REQUIRE(prove({"/bin/sh", "-c", "echo ran > " + d + "/ran"}) == "proved");
    put_file(d + "/good", "#!/bin/sh\necho ran > " + d + "/ran\n", 0755);
    REQUIRE(prove({d + "/good"}) == "proved");
    REQUIRE(prove({"/bin/true"}, d) == "proved");
    REQUIRE(prove({d + "/missing"}).find("No such file") != std::string::npos);
    REQUIRE(prove({"/usr/bin"}).find("is a directory") != std::string::npos);
    put_file(d + "/plain", "just text\n", 0644);
    REQUIRE(prove({d + "/plain"}).find("not executable") != std::string::npos);
    put_file(d + "/text", "just text\n", 0755);
    REQUIRE(prove({d + "/text"}).find("#! line") != std::string::npos);
    put_file(d + "/script", "#!/no/such/interpreter\n", 0755);
    REQUIRE(prove({d + "/script"}).find("interpreter") != std::string::npos);
    REQUIRE(prove({"/bin/true"}, d + "/nowhere").find("working directory") != std::string::npos);
    nap(100);
    REQUIRE_FALSE(file_exists(AT_FDCWD, d + "/ran"));
    int leftovers = 0;
    for (const ProcessStat &process : all_processes())
        leftovers += process.parent == p.launchers.back() && process.pid != p.pid_of(busy);
    REQUIRE(leftovers == 2);  // the starter, and the keeper of slots
    REQUIRE(alive(p.pid_of(busy)));
    const std::string g = p.make({"/bin/true"});
    REQUIRE(p.ask({files::Verb::prove, g}).verb == files::Verb::proved);
    REQUIRE(p.start(g, 2).verb == files::Verb::started);  // it is as it was
    REQUIRE(p.exit_of(g).status == 0);
    REQUIRE(p.ask({files::Verb::prove, g}).verb == files::Verb::proved);  // it ran: START says the rest
}
