// Under which accounts grains run, and what they cannot do to us and to each other.
#include <pwd.h>

#include "grainserver/shell/identity.h"
#include "launcher_bench.h"
#include "places.h"
#include "server_bench.h"
#include "support/about.h"

using namespace bench;
using server::Identities;
using server::IdentityOptions;

namespace {
bool is_root() {
    if (::geteuid() == 0) return true;
    WARN("SKIPPED: needs root");
    return false;
}
files::Account account_of(std::uint32_t uid) {
    files::Account a;
    a.change = a.made_up = true;
    a.uid = a.gid = uid;
    return a;
}
std::uint32_t uid_of(Identities &who, const std::string &user, bool own = false, std::string *note = nullptr) {
    std::string words;
    const Result<files::Account> a = who.of(user, own, words);
    REQUIRE(a);
    REQUIRE(a->change);
    REQUIRE(a->uid >= 1000);
    if (note != nullptr) *note = words;
    return a->uid;
}
// On a slow machine one about nothing but time may come before it.
wire::GrainReport last_report(Pool &p) {
    for (;;)
        if (auto r = p.scheduler.wait_for<wire::GrainReport>(); r.ended) return r;
}
IdentityOptions users(std::uint32_t first, std::uint32_t last) {
    IdentityOptions o;
    o.users = true;
    o.first = first;
    o.last = last;
    return o;
}
}  // namespace

TEST_CASE("made-up uids: one user one uid, permanently, from every server") {
    ScratchDir d;
    const IdentityOptions o = users(2'000'100'000, 2'000'100'002);
    Identities first, second;
    REQUIRE(first.open(d.path, o));
    REQUIRE(second.open(d.path, o));
    const std::uint32_t ann = uid_of(first, "ann"), bob = uid_of(second, "bob");
    REQUIRE(ann != bob);
    REQUIRE(uid_of(second, "ann") == ann);
    REQUIRE(uid_of(first, "bob") == bob);
    REQUIRE(uid_of(first, "ann") == ann);
    const std::uint32_t odd = uid_of(first, "c,\nd 1");
    std::string note;
    REQUIRE(second.of("one more", false, note).status().code == Code::limit);
    Identities later;
    REQUIRE(later.open(d.path, o));
    REQUIRE(uid_of(later, "bob") == bob);
    REQUIRE(uid_of(later, "c,\nd 1") == odd);
    IdentityOptions moved = users(2'000'200'000, 2'000'200'009);
    const Status refused = later.open(d.path, moved);  // what was handed out stays, and could never start
    REQUIRE(refused.code == Code::invalid);
    REQUIRE(refused.text == about("2000200000-2000200009 not contain 3 of 3 " + d.path + "/anonymous-uids records " +
                                  std::to_string(o.first) + " range contains remove"));
    IdentityOptions wider = users(o.first - 10, o.last + 10);
    REQUIRE(later.open(d.path, wider));
    REQUIRE(uid_of(later, "ann") == ann);
    REQUIRE(uid_of(later, "new") == o.first - 10);
}

TEST_CASE("a damaged table of made-up uids is not replaced") {
    ScratchDir d;
    Identities who;
    for (const char *text : {"", "2000000000 ann\n", "5 ann\nend\n", "2000000000 ann\n2000000000 bob\nend\n",
                             "2000000000 ann\n2000000001 ann\nend\n", "x\nend\n"}) {
        put_file(d.path + "/anonymous-uids", text);
        INFO(text);
        REQUIRE(who.open(d.path, users(2'000'000'000, 2'000'000'009)).code == Code::io_error);
    }
    put_file(d.path + "/anonymous-uids", "2000000000 ann\nend\n");
    REQUIRE(who.open(d.path, users(2'000'000'000, 2'000'000'009)));
    REQUIRE(uid_of(who, "bob") == 2'000'000'001);
}

TEST_CASE("a login is used only if both sides say so, and never one of the system") {
    ScratchDir d;
    Identities who;
    IdentityOptions o = users(2'000'100'000, 2'000'100'099);
    std::string login;
    ::setpwent();
    while (const passwd *p = ::getpwent())
        if (p->pw_uid >= 1000 && p->pw_uid != 65534) login = p->pw_name;
    ::endpwent();
    o.accounts = {"root", "daemon", "nobody", "no-such-login"};
    if (!login.empty()) o.accounts.push_back(login);
    REQUIRE(who.open(d.path, o));
    std::string note;
    for (const char *user : {"root", "daemon", "nobody"}) {
        REQUIRE(uid_of(who, user, true, &note) >= o.first);
        REQUIRE(note.find("a system account") != std::string::npos);
    }
    REQUIRE(uid_of(who, "no-such-login", true, &note) >= o.first);
    REQUIRE(note.find("no such login") != std::string::npos);
    REQUIRE(uid_of(who, "sync", true, &note) >= o.first);
    REQUIRE(note.find("--accounts") != std::string::npos);
    if (login.empty()) {
        WARN("SKIPPED: this host has no login of a person");
        return;
    }
    const Result<files::Account> own = who.of(login, true, note);
    REQUIRE(own);
    REQUIRE(own->uid == ::getpwnam(login.c_str())->pw_uid);
    REQUIRE_FALSE(own->made_up);
    REQUIRE_FALSE(own->groups.empty());
    REQUIRE(uid_of(who, login, false) >= o.first);  // the scheduler did not say so
}

TEST_CASE("options: accounts and uids") {
    REQUIRE(server::parse_logins("--accounts", "none", "none")->empty());
    REQUIRE(server::parse_logins("--accounts", "ann,bob", "none")->size() == 2);
    for (const char *bad : {"", "ann,", ",ann", "a b", "a:b", "../x"})
        REQUIRE_FALSE(server::parse_logins("--accounts", bad, "none"));
    std::uint32_t first = 0, last = 0;
    REQUIRE(server::parse_uids("100000-100009", first, last));
    REQUIRE((first == 100000 && last == 100009));
    for (const char *bad : {"", "5", "5-", "-5", "999-2000", "2000-1999", "60000-70000", "70000-4294967295", "a-b",
                            "1000-65534", "2000-3000x"})
        REQUIRE_FALSE(server::parse_uids(bad, first, last));
}

TEST_CASE("a grain under an account of its own has nothing of ours") {
    if (!is_root()) return;
    Place p;
    p.account = account_of(2'000'100'007);
    const std::string d = p.dir.path;
    put_file(d + "/secret", "of root", 0600);
    const std::string other = [&] {
        Place &q = p;
        q.account = account_of(2'000'100'009);
        const std::string g = q.make({"/bin/sleep", "60"});
        q.account = account_of(2'000'100'007);
        return g;
    }();
    REQUIRE(p.start(other).verb == files::Verb::started);
    const std::string script =
        "id -u; id -g; id -G; grep -E 'NoNewPrivs|CapEff|CapPrm' /proc/self/status; cd ../..; "
        "for f in launch exit pid acked withdrawn; do echo forged > $f && echo WROTE $f; ln -s x $f.2 && echo LINKED; "
        "rm -f $f && ! test -e $f && test $f = launch && echo REMOVED $f; done; mv room elsewhere && echo MOVED; "
        "mkdir m && echo MADE; cat launch && echo READ; cat " +
        d +
        "/secret && echo SECRET; ls .. && echo LISTED; "
        "ls ../" +
        other + "/room && echo NEIGHBOUR; kill -9 " + std::to_string(p.launchers.back()) +
        " && echo KILLED; kill -9 $(cat ../" + other + "/pid) && echo KILLED; cd room/work; echo ok > file; cat file";
    const std::string g = p.shell(script);
    REQUIRE(p.start(g).verb == files::Verb::started);
    const files::ExitRecord e = p.exit_of(g);
    const std::string out = get_file(p.room(g) + "/out.3");
    INFO(out << get_file(p.room(g) + "/err.3"));
    REQUIRE(e.status == 0);
    REQUIRE(out ==
            "2000100007\n2000100007\n2000100007\nCapPrm:\t0000000000000000\n"
            "CapEff:\t0000000000000000\nNoNewPrivs:\t1\nok\n");
    REQUIRE(alive(p.pid_of(other)));
    p.client.send({files::Verb::kill, other});
    p.exit_of(other);
}

TEST_CASE("signals and ends reach grains of other uids, what they may not run is named") {
    if (!is_root()) return;
    for (const bool groups : {true, false}) {
        Place p(groups);
        p.account = account_of(2'000'100'007);
        p.limits.processes = 40;
        const std::string d = p.dir.path;
        const std::string g = p.shell(
            "trap '' TERM; trap 'echo usr1' USR1; (setsid sh -c 'trap \"\" TERM; "
            "echo $$ > ../pid; while :; do sleep 0.1; done' &); echo > ../ready; "
            "while :; do sleep 0.05; done");
        REQUIRE(p.start(g).verb == files::Verb::started);
        const pid_t child = p.number_in(p.room(g) + "/pid");
        REQUIRE(soon([&] { return file_exists(AT_FDCWD, p.room(g) + "/ready"); }));
        p.client.send({files::Verb::signal, g, SIGUSR1});
        REQUIRE(soon([&] { return get_file(p.room(g) + "/out.3") == "usr1\n"; }));
        p.client.send({files::Verb::term, g});
        p.client.send({files::Verb::kill, g});
        REQUIRE(WTERMSIG(p.exit_of(g).status) == SIGKILL);
        REQUIRE(gone(child));
        put_file(d + "/program", "#!/bin/sh\n", 0700);
        const files::LauncherCall no = p.start(p.make({d + "/program"}));
        REQUIRE(no.verb == files::Verb::failed);
        REQUIRE(no.text.find("not executable for this user") != std::string::npos);
        REQUIRE(p.ask({files::Verb::prove, p.make({d + "/program"})}).verb == files::Verb::failed);
        REQUIRE(p.ask({files::Verb::prove, p.make({"/bin/true"})}).verb == files::Verb::proved);
    }
}

TEST_CASE("a server that is root gives each user a uid, and keeps it over a restart") {
    if (!is_root()) return;
    Pool p(false);
    REQUIRE(::chmod(p.dir.path.c_str(), 0711) == 0);
    p.slots = 4;
    p.options = {"--run-as", "users", "--anonymous-uids", "2000100000-2000100009", "--accounts", "root"};
    p.start();
    p.greet();
    int number = 0;
    const auto uid_of_grain = [&](const std::string &user) {
        wire::Launch m;
        m.key = {user, 1, ++number};
        m.incarnation = 1;
        m.account = true;  // the scheduler is not believed
        m.argv = {"bin/who"};
        m.env = {"PATH=/usr/bin:/bin"};
        const std::string home = p.server_dir + "/home/" + user;
        REQUIRE(make_directories(home + "/bin"));
        ::chmod((home + "/bin").c_str(), 0755);
        put_file(home + "/bin/who", "#!/bin/sh\nid -u; stat -c %u ../input .. ../../../../home/" + user + "\n", 0755);
        p.scheduler.send(m);
        const wire::GrainReport r = last_report(p);
        INFO(r.err);
        REQUIRE(r.exit_code == 0);
        p.scheduler.send(wire::ReportAck{m.key, 1, r.last_seq, true, wire::Verdict::taken});
        const std::string uid = r.out.substr(0, r.out.find('\n') + 1);
        REQUIRE(r.out == uid + uid + uid + uid);
        return std::stol(uid);
    };
    const long ann = uid_of_grain("ann"), root_user = uid_of_grain("root");
    REQUIRE(ann >= 2000100000);
    REQUIRE(root_user >= 2000100000);
    REQUIRE(ann != root_user);
    p.stop(SIGKILL);
    p.start();
    p.greet();
    REQUIRE(uid_of_grain("bob") != ann);
    REQUIRE(uid_of_grain("ann") == ann);
}

TEST_CASE("a limit is the grain's result: signal, words, and that it would meet it again") {
    Pool p(false);
    p.options.insert(p.options.end(), {"--max-memory-mb", "100", "--max-processes", "30"});
    p.start();
    p.greet();
    wire::Launch m;
    m.key = {"ann", 3, 1};
    m.incarnation = 1;
    m.demands.memory_mb = 64;  // less than the host gives
    m.argv = {"/bin/sh", "-c", "echo before; (head -c 300000000 /dev/zero; exec sleep 60) | tail -n 1"};
    m.env = {"PATH=/usr/bin:/bin"};
    p.scheduler.send(m);
    const wire::GrainReport r = last_report(p);
    REQUIRE(r.limit);
    REQUIRE_FALSE(r.innocent);
    REQUIRE(r.signal == SIGKILL);
    REQUIRE(r.exit_code == 0);
    REQUIRE(r.reason == about("64 MB memory"));
    REQUIRE(r.out == "before\n");
}

TEST_CASE("who may say --run-as users, and where") {
    const auto run = [](const std::string &command) {
        std::string text;
        std::FILE *f = ::popen((command + " 2>&1").c_str(), "r");
        char buffer[512];
        while (std::fgets(buffer, sizeof buffer, f) != nullptr) text += buffer;
        const int status = ::pclose(f);
        return std::to_string(WEXITSTATUS(status)) + " " + text;
    };
    ScratchDir d;
    const std::string server = DCS_BINARY_DIR "/bin/dcs_grainserver --name h --scheduler /x --dir " + d.path + "/s ";
    REQUIRE(run(server + "--run-as somebody") == about("2 dcs_grainserver --run-as somebody"));
    REQUIRE(run(server + "--run-as self --accounts ,").find("2 ") == 0);
    REQUIRE(run(server + "--run-as self --anonymous-uids 5-6").find("2 ") == 0);
    if (!is_root()) {
        REQUIRE(run(server + "--run-as users") == about("2 dcs_grainserver --run-as users needs"));
        return;
    }
    const std::string closed = run(server + "--run-as users");
    INFO(closed);
    REQUIRE(closed == about("1 dcs_grainserver cannot"));
    REQUIRE(closed.find("because " + d.path + " is closed") != std::string::npos);
    const std::string as_nobody = "cd /; setpriv --reuid=65534 --regid=65534 --clear-groups ";
    if (run(as_nobody + "true") != "0 " || run(as_nobody + "test -x " DCS_BINARY_DIR "/bin/dcs_grainserver") != "0 ") {
        WARN("SKIPPED: nobody cannot run the program here");
        return;
    }
    REQUIRE(run(as_nobody + server + "--run-as users") == about("2 dcs_grainserver --run-as users needs"));
}

TEST_CASE("the launcher's tests hold for an ordinary user too") {
    if (!is_root()) return;
    const std::string as_nobody = "cd /; setpriv --reuid=65534 --regid=65534 --clear-groups ";
    const std::string program = DCS_BINARY_DIR "/bin/unit_grainserver";
    if (std::system((as_nobody + "test -x " + program + " 2>/dev/null").c_str()) != 0) {
        WARN("SKIPPED: nobody cannot run " << program);
        return;
    }
    const std::string tests =
        "'a grain reads its input*,with the grain goes everything*,a fork bomb*,64 MB*,"
        "a daemon without session*,launcher killed*,keeper killed*,what a grain keeps*'";
    ScratchDir out;
    const std::string log = out.path + "/log";
    const int status = std::system((as_nobody + program + " " + tests + " > " + log + " 2>&1").c_str());
    INFO(get_file(log));
    REQUIRE(WEXITSTATUS(status) == 0);
}

TEST_CASE("a server with --users runs no grain of another user, whatever the scheduler gives") {
    ScratchDir d;
    IdentityOptions o;
    o.of_users = {"ann", "bob"};
    Identities who;
    REQUIRE(who.open(d.path, o));
    std::string note;
    CHECK(who.of("ann", false, note));
    CHECK(who.of("bob", true, note));
    const auto eve = who.of("eve", false, note);
    REQUIRE_FALSE(eve);
    CHECK(eve.status().code == Code::refused);
    CHECK(eve.status().text == about("no grains of eve --users"));
    CHECK(server::parse_logins("--users", "all", "all")->empty());
}
