// What a launcher may ask of its starter, and what becomes of both when one is killed.
#include "grainserver/starter/starter_client.h"

#include "launcher_bench.h"

using namespace bench;
using starter::Ask, starter::Request;

namespace {

// A process of that account; killed with this.
struct Foreign {
    pid_t pid;
    explicit Foreign(uid_t uid) : pid(::fork()) {
        if (pid == 0) {
            if (::setresuid(uid, uid, uid) == 0) ::pause();
            ::_exit(1);
        }
        REQUIRE(soon([&] { return only_uid(pid) == uid; }));
    }
    ~Foreign() {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    ProcessStat stat() const {
        ProcessStat s;
        REQUIRE(read_stat(pid, s));
        return s;
    }
};

bool stopped(pid_t pid) {
    ProcessStat s;
    return soon([&] { return read_stat(pid, s) && s.state == 'T'; });
}

}  // namespace

TEST_CASE("a request of the starter has one form, and nothing else is one") {
    Request start;
    start.dir = "local1,ann,1,1,1";
    start.leaf = "local1,ann,1,1,1+3";
    start.number = 8;
    start.list = {0, 7, 65535};
    REQUIRE(starter::read_request(to_packet(start)) == start);
    const auto refused = [](Request request, const auto &change) {
        change(request);
        return !starter::read_request(to_packet(request));
    };
    CHECK(refused(start, [](Request &r) { r.dir = ".."; }));
    CHECK(refused(start, [](Request &r) { r.dir = "a/b"; }));
    CHECK(refused(start, [](Request &r) { r.dir = std::string("a\0b", 3); }));
    CHECK(refused(start, [](Request &r) { r.dir.clear(); }));
    CHECK(refused(start, [](Request &r) { r.leaf = "../x"; }));
    CHECK(refused(start, [](Request &r) { r.pid = 7; }));
    CHECK(refused(start, [](Request &r) { r.number = -1; }));
    CHECK(refused(start, [](Request &r) { r.list.resize(starter::list_max + 1); }));
    CHECK(refused(start, [](Request &r) { r.ask = static_cast<Ask>(0); }));
    CHECK(refused(start, [](Request &r) { r.ask = static_cast<Ask>(static_cast<int>(Ask::last) + 1); }));
    Request signal;
    signal.ask = Ask::signal;
    signal.pid = 4711;
    signal.number = SIGKILL;
    REQUIRE(starter::read_request(to_packet(signal)) == signal);
    CHECK(refused(signal, [](Request &r) { r.pid = 1; }));
    CHECK(refused(signal, [](Request &r) { r.pid = 0xffffffff; }));
    CHECK(refused(signal, [](Request &r) { r.number = 0; }));
    CHECK(refused(signal, [](Request &r) { r.dir = "x"; }));
    Request orphan;
    orphan.ask = Ask::end_orphan;
    CHECK_FALSE(starter::read_request(to_packet(orphan)));
    orphan.leaf = "leaf";
    CHECK(starter::read_request(to_packet(orphan)) == orphan);
    CHECK(refused(orphan, [](Request &r) { r.dir = "as well"; }));
    CHECK_FALSE(starter::read_request(to_packet(start) + "x"));
    CHECK_FALSE(starter::read_request(""));
    starter::Answer answer;
    answer.status = fail(Code::io_error, std::string(100'000, 'x'));
    answer.failure = starter::Failure{starter::Step::exec, ENOENT, starter::There::something};
    const std::string packet = to_packet(answer);
    REQUIRE(packet.size() <= starter::answer_max);
    const auto read = starter::read_answer(packet);
    REQUIRE((read && read->failure && read->failure->error == ENOENT));
    CHECK_FALSE(starter::read_answer(packet.substr(0, packet.size() - 1)));
}

TEST_CASE("the starter touches the processes of accounts under which grains were started, and no others") {
    if (::geteuid() != 0) {
        WARN("SKIPPED: other accounts need root");
        return;
    }
    constexpr uid_t own = 2'000'400'021, other = 2'000'400'022, nobody = 65534;
    Place p(false);
    p.account = {true, own, own, {}, true};
    const std::string g = p.make({"/bin/true"}), foreign_grain = "local1,eve,1,1,1";
    starter::Cgroups none;
    starter::Starter within(p.dir.path, none, ::getpid());
    REQUIRE(within.open());
    starter::StarterClient asks;
    asks.use(within);
    const Foreign mine(own), others(other), foreign(nobody);
    REQUIRE_FALSE(asks.signal(mine.stat(), SIGSTOP));  // no grain has had it yet
    REQUIRE(asks.prove_grain(g).status);
    REQUIRE(asks.signal(mine.stat(), SIGSTOP));
    REQUIRE(stopped(mine.pid));
    for (const Foreign *one : {&others, &foreign}) {
        CHECK_FALSE(asks.signal(one->stat(), SIGSTOP));
        CHECK_FALSE(asks.signal_group(one->pid, SIGSTOP));
        CHECK(one->stat().state != 'T');
    }
    CHECK_FALSE(asks.signal(::getpid(), SIGCONT));
    CHECK(asks.mark(foreign.pid).status().code == Code::not_found);
    const auto clears = [&](uid_t uid) {
        Request request;
        request.ask = Ask::clear;
        request.pid = uid;
        Fd fd;
        return static_cast<bool>(within.answer(to_packet(request), fd).status);
    };
    CHECK_FALSE(clears(other));
    CHECK_FALSE(clears(nobody));
    CHECK(clears(own));
    // A record that names another account's process, in a directory whose room is not a grain's.
    REQUIRE(make_directories(p.room(foreign_grain)));
    REQUIRE(::chown(p.room(foreign_grain).c_str(), nobody, nobody) == 0);
    put_file(p.path(foreign_grain) + "/pid",
             std::to_string(foreign.pid) + " " + std::to_string(foreign.stat().start_time) + " " + boot_id() + "\n");
    CHECK(asks.end_orphan(foreign_grain, "").code == Code::refused);
    CHECK(alive(foreign.pid));
}

TEST_CASE("when a grain started is what the kernel says, in its record and in that of its slot") {
    Place p;
    for (int i = 0; i < 30; ++i) {
        const std::string g = p.make({"/bin/sleep", "60"});
        REQUIRE(p.start(g, 30).verb == files::Verb::started);
        const auto record = files::parse_pid(get_file(p.path(g) + "/pid"));
        ProcessStat stat;
        REQUIRE((record && read_stat(record->pid, stat)));
        CHECK(record->start_time == stat.start_time);
    }
    locks::Place slots;
    slots.path = p.dir.path + "/slots/slots";
    const auto holders = locks::slot_holders(slots);
    REQUIRE((holders && holders->size() == 30));
    for (const auto &holder : *holders) {
        const auto process = identify(holder.owner.process.pid);
        CHECK((process && *process == holder.owner.process));
    }
}

TEST_CASE("starter killed: its launcher ends, and the slots stay taken until the next one has ended the grains") {
    for (const bool groups : {true, false}) {
        Place p(groups);
        const std::string slots = p.dir.path + "/slots";
        const std::string g = p.make({"/bin/sleep", "60"});
        REQUIRE(p.start(g, 1).verb == files::Verb::started);
        const pid_t grain = p.pid_of(g), starter = p.beside("dcs_starter"), launcher = p.launchers.back();
        REQUIRE(starter > 1);
        ::kill(starter, SIGKILL);
        REQUIRE(soon([&] {
            p.client.read();
            return p.client.broken();
        }));
        REQUIRE(soon([&] { return gone(launcher); }));
        REQUIRE(alive(grain));
        REQUIRE(slot_held(slots, 0));
        p.connect();
        REQUIRE(gone(grain));
        REQUIRE(files::unpack_exit(get_file(p.path(g) + "/exit"))->innocent);
        REQUIRE(soon([&] { return !slot_held(slots, 0); }));
        const std::string next = p.make({"/bin/true"});
        REQUIRE(p.start(next, 1).verb == files::Verb::started);
        REQUIRE(p.exit_of(next).status == 0);
        REQUIRE(get_file(p.dir.path + "/launcher.log").find("starter was killed by signal 9") != std::string::npos);
    }
}

TEST_CASE("launcher killed: its starter is gone before the next one serves") {
    Place p;
    const std::string g = p.make({"/bin/sleep", "60"});
    REQUIRE(p.start(g).verb == files::Verb::started);
    const pid_t starter = p.beside("dcs_starter");
    REQUIRE(starter > 1);
    ::kill(p.launchers.back(), SIGKILL);
    REQUIRE(soon([&] { return gone(starter); }));
    p.connect();
    REQUIRE(gone(p.pid_of(g)));
}

TEST_CASE("the weight of grains is the owner's of now, not of when the launcher started") {
    Place p;
    const std::string g = p.make({"/bin/true"}), group = p.dir.path + "/cg/dcs-1-2";
    const auto make = [&](const std::string &path, const std::string &text) {
        REQUIRE(make_directories(path.substr(0, path.rfind('/'))));
        put_file(path, text);
    };
    make(p.dir.path + "/proc/self/cgroup", "3:cpu:/\n");
    make(p.dir.path + "/proc/self/mountinfo", "31 23 0:28 / /cg rw - cgroup cgroup rw,cpu\n");
    for (const std::string &place : {group, group + "/grain", group + "/probe"}) make(place + "/cpu.shares", "");
    put_file(group + "/probe/tasks", "");
    starter::Cgroups groups;
    INFO(groups.open("dcs-1-2", p.dir.path));
    REQUIRE(get_file(group + "/cpu.shares") == "2");
    starter::Starter within(p.dir.path, groups, ::getpid());
    REQUIRE(within.open());
    starter::StarterClient asks;
    asks.use(within);
    const auto starts_with = [&](bool ordinary) {
        const auto old = files::unpack_rules(get_file(p.dir.path + "/rules"));
        REQUIRE(old);
        files::OwnerRules rules = *old;
        rules.ordinary_priority = ordinary;
        REQUIRE(replace_file(AT_FDCWD, p.dir.path + "/rules", files::pack(rules)));
        const starter::Answer started = asks.start_grain(g, "", 1, {});
        REQUIRE(started.status);
        ::waitpid(static_cast<pid_t>(started.value), nullptr, 0);
    };
    starts_with(true);
    CHECK(get_file(group + "/cpu.shares") == "1024");
    CHECK(get_file(group + "/grain/cpu.shares") == "1024");
    starts_with(false);
    CHECK(get_file(group + "/cpu.shares").substr(0, 1) == "2");
    put_file(p.path(g) + "/exit", "");
}

TEST_CASE("a grain starts in no control group with other limits than its own") {
    Place p;
    const std::string cookie = std::to_string(::getpid());
    p.limits.processes = 5;
    const std::string g = p.make({"/bin/true"});
    starter::Cgroups groups;
    struct stat st {};
    REQUIRE(::stat(p.dir.path.c_str(), &st) == 0);
    groups.open("dcs-test-" + cookie);
    if (!groups.usable()) {
        WARN("SKIPPED: no control groups may be used here");
        return;
    }
    {
        starter::Starter within(p.dir.path, groups, ::getpid());
        REQUIRE(within.open());
        starter::StarterClient asks;
        asks.use(within);
        files::Limits more = p.limits;
        more.processes = 500;
        REQUIRE(asks.make_leaf(groups, "wide", more).there);
        REQUIRE(asks.make_leaf(groups, "own", p.limits).there);
        const starter::Answer wide = asks.start_grain(g, "wide", 1, {});
        INFO(wide.status.text << " value " << wide.value);
        CHECK_FALSE(wide.status);
        const starter::Answer started = asks.start_grain(g, "own", 1, {});
        CHECK(started.status);
        if (started.status) ::waitpid(static_cast<pid_t>(started.value), nullptr, 0);
        CHECK(asks.remove_leaf("wide"));
        CHECK(asks.remove_leaf("own"));
        asks.remove_group();
    }
    put_file(p.path(g) + "/exit", "");
}
