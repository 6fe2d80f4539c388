// What a grain is fenced in by: each rung refuses what it exists for, and nothing else.
#include <map>
#include <sstream>

#include <sys/shm.h>
#include <sys/syscall.h>

#include "base/confinement.h"
#include "grainserver/files/confine.h"
#include "launcher_bench.h"
#include "places.h"
#include "server_bench.h"

using namespace bench;

namespace {
bool root() { return ::geteuid() == 0; }

files::Account made_up(std::uint32_t uid) {
    files::Account a;
    a.change = a.made_up = true;
    a.uid = a.gid = uid;
    return a;
}

// Runs the helper that tries things; one answer per act, as "call:1" -> "EPERM".
std::map<std::string, std::string> tried(Place &p, std::vector<std::string> acts) {
    std::vector<std::string> argv = {"/proc/self/cwd/confined"};  // its own copy: it may lie below /tmp
    argv.insert(argv.end(), acts.begin(), acts.end());
    const std::string g = p.make(argv), work = p.room(g) + "/work";
    REQUIRE(make_directories(work));
    put_file(work + "/confined", get_file(DCS_BINARY_DIR "/tests/confined"), 0755);
    if (p.account.change) REQUIRE(::chown(work.c_str(), p.account.uid, p.account.gid) == 0);
    const files::LauncherCall answer = p.start(g);
    INFO(answer.text);
    REQUIRE(answer.verb == files::Verb::started);
    hurry(p.pid_of(g));
    const files::ExitRecord exit = p.exit_of(g);
    INFO(get_file(p.room(g) + "/err.3"));
    REQUIRE(exit.status == 0);
    std::map<std::string, std::string> found;
    std::istringstream lines(get_file(p.room(g) + "/out.3"));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t space = line.find(' ');
        found[line.substr(0, space)] = line.substr(space + 1);
    }
    REQUIRE(found.size() == acts.size());
    return found;
}

bool has(Rungs rungs) {
    const files::Available host = files::rungs_available(root(), "/");
    if ((rungs & ~host.rungs) == 0) return true;
    WARN("SKIPPED: this host has no " + to_words(rungs & ~host.rungs));
    return false;
}

std::vector<std::string> calls(const std::string &act, const std::vector<long> &numbers) {
    std::vector<std::string> acts;
    for (const long n : numbers) acts.push_back(act + ":" + std::to_string(n));
    return acts;
}

const std::vector<long> refused_calls = {SYS_mount,
                                         SYS_umount2,
                                         SYS_pivot_root,
                                         SYS_chroot,
                                         SYS_move_mount,
                                         SYS_open_tree,
                                         SYS_fsopen,
                                         SYS_fsconfig,
                                         SYS_fsmount,
                                         SYS_fspick,
                                         442 /* mount_setattr */,
                                         SYS_swapon,
                                         SYS_swapoff,
                                         SYS_quotactl,
                                         SYS_acct,
                                         SYS_reboot,
                                         SYS_kexec_load,
                                         SYS_init_module,
                                         SYS_finit_module,
                                         SYS_delete_module,
                                         SYS_bpf,
                                         SYS_perf_event_open,
                                         SYS_add_key,
                                         SYS_request_key,
                                         SYS_keyctl,
                                         SYS_userfaultfd,
                                         SYS_io_uring_setup,
                                         SYS_io_uring_enter,
                                         SYS_io_uring_register,
                                         SYS_setns,
                                         SYS_open_by_handle_at,
                                         SYS_fanotify_init,
                                         SYS_syslog,
                                         SYS_sethostname,
                                         SYS_setdomainname,
                                         SYS_settimeofday,
                                         SYS_adjtimex,
                                         SYS_clock_settime,
                                         SYS_clock_adjtime};
}  // namespace

TEST_CASE("the filter refuses what no computation needs, by every door") {
    if (!has(rung_filter)) return;
    Place p(false);
    const std::vector<std::string> acts = calls("call", refused_calls);
    if (root())  // else the kernel itself refuses most of them
        for (const auto &[act, answer] : tried(p, acts)) {
            INFO(act);
            CHECK(answer != "EPERM");
        }
    p.rungs = rung_filter;
    for (const auto &[act, answer] : tried(p, acts)) {
        INFO(act);
        CHECK(answer == "EPERM");
    }
#if defined(__x86_64__)
    const std::vector<long> old_numbers = {21,  52,  217, 61,  429, 87, 88, 283, 128, 350, 357, 336, 286, 288,
                                           374, 425, 346, 342, 103, 74, 79, 25,  124, 264, 404, 347, 438};
    for (const auto &[act, answer] : tried(p, calls("call32", old_numbers))) {
        INFO(act);
        CHECK((answer == "EPERM" || answer == "none"));
    }
    for (const auto &[act, answer] : tried(p, calls("callx32", {SYS_getpid, SYS_mount}))) {
        INFO(act);
        CHECK(answer == "ENOSYS");
    }
#endif
}

TEST_CASE("calls that kernels have got lately are not there behind the filter") {
    if (!has(rung_filter)) return;
    Place p(false);
    p.rungs = rung_filter;
    const std::vector<long> late = {457 /* statmount */, 458 /* listmount */, 467 /* open_tree_attr */, 999};
    for (const auto &[act, answer] : tried(p, calls("call", late))) {
        INFO(act);
        CHECK(answer == "ENOSYS");
    }
    CHECK(tried(p, calls("call", {SYS_getpid}))["call:" + std::to_string(SYS_getpid)] != "ENOSYS");
#if defined(__x86_64__)
    CHECK(tried(p, {"call32:457"})["call32:457"] != "ok");
#endif
}

TEST_CASE("no namespaces, no tracing of others, no rare sockets behind the filter, the rest goes on") {
    if (!has(rung_filter)) return;
    Place p(false);
    const std::string self = std::to_string(::getpid()), user_space = std::to_string(CLONE_NEWUSER);
    p.rungs = rung_filter;
    auto is = tried(p, {"unshare:" + user_space,
                        "unshare:" + std::to_string(CLONE_NEWNS),
                        "unshare:" + std::to_string(CLONE_FILES),
                        "clone:" + user_space,
                        "clone3:" + user_space,
                        "clone3:0",
                        "trace:" + self,
                        "readmem:" + self,
                        "own_child",
                        "socket:1",
                        "socket:2",
                        "socket:10",
                        "socket:16",
                        "socket:38",
                        "socket:40",
                        "type_ahead",
                        "socketcall32:1",
                        "socketcall32:3",
                        "netlink:12",
                        "trace_me"});
    CHECK(is["unshare:" + user_space] == "EPERM");
    CHECK(is["unshare:" + std::to_string(CLONE_NEWNS)] == "EPERM");
    CHECK(is["unshare:" + std::to_string(CLONE_FILES)] == "ok");
    CHECK(is["clone:" + user_space] == "EPERM");
    CHECK(is["clone3:" + user_space] == "ENOSYS");
    CHECK(is["clone3:0"] == "ENOSYS");  // programs then use clone
    CHECK(is["trace:" + self] == "EPERM");
    CHECK(is["readmem:" + self] == "EPERM");
    CHECK(is["trace_me"] == "ok");
    CHECK(is["own_child"] == "ok");
    CHECK(is["socket:1"] == "ok");
    CHECK(is["socket:2"] == "ok");
    CHECK((is["socket:10"] == "ok" || is["socket:10"] == "EAFNOSUPPORT"));
    CHECK(is["socket:16"] == "ok");
    CHECK(is["socket:38"] == "EACCES");
    CHECK(is["socket:40"] == "EACCES");
    CHECK((is["socketcall32:1"] == "EACCES" || is["socketcall32:1"] == "none"));  // its family is in memory
    CHECK((is["socketcall32:3"] == "EFAULT" || is["socketcall32:3"] == "none"));  // connect
    CHECK(is["netlink:12"] == "EACCES");
    CHECK(is["type_ahead"] == "EPERM");
    p.rungs = rung_filter | rung_no_network;
    is = tried(p, {"socket:1", "socket:2", "socket:10", "socket:16", "socket32:2", "socketcall32:1"});
    CHECK(is["socket:1"] == "ok");
    for (const char *act : {"socket:2", "socket:10", "socket:16"}) CHECK(is[act] == "EACCES");
    for (const char *act : {"socket32:2", "socketcall32:1"}) CHECK((is[act] == "EACCES" || is[act] == "none"));
}

TEST_CASE("a grain's scope ends where its processes end") {
    if (!has(rung_scope)) return;
    Place p(false);
    if (root()) p.account = made_up(2'000'100'007);
    const std::string sleeper = p.make({"/bin/sleep", "600"});
    REQUIRE(p.start(sleeper).verb == files::Verb::started);
    const std::string other = std::to_string(p.pid_of(sleeper));
    const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    const std::string name = "dcs-scope-" + std::to_string(::getpid());
    name.copy(a.sun_path + 1, name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr *>(&a), length) == 0);
    REQUIRE(::listen(listener.get(), 5) == 0);
    const std::vector<std::string> acts = {"kill:" + other, "readmem:" + other, "trace:" + other, "abstract:" + name,
                                           "own_child"};
    for (const auto &[act, answer] : tried(p, acts)) {  // of one user: nothing else is between them
        INFO(act);
        CHECK(answer == "ok");
    }
    for (const Rungs rungs : {rung_scope, rung_scope | rung_filter, rung_scope | rung_filter | rung_files}) {
        p.rungs = rungs;
        auto is = tried(p, acts);
        INFO(to_words(rungs));
        CHECK(is["own_child"] == "ok");
        is.erase("own_child");
        for (const auto &[act, answer] : is) {
            INFO(act);
            CHECK(answer == "EPERM");
        }
    }
    p.client.send({files::Verb::kill, sleeper});
    p.exit_of(sleeper);
}

TEST_CASE("where writing is fenced, a grain writes in its room, in scratch and where the owner said") {
    if (!has(rung_files)) return;
    Place p(false);
    const std::string top = "/var/lib/dcs-fence-" + std::to_string(::getpid());  // not below scratch
    if (!root() || ::mkdir(top.c_str(), 0777) != 0) {
        WARN("SKIPPED: needs root and /var/lib");
        return;
    }
    for (const char *folder : {"/closed", "/open"}) REQUIRE(::mkdir((top + folder).c_str(), 0777) == 0);
    for (const char *folder : {"", "/closed", "/open"}) REQUIRE(::chmod((top + folder).c_str(), 0777) == 0);
    put_file(top + "/closed/file", "text", 0666);
    put_file(top + "/open/file", "text", 0666);
    p.account = made_up(2'000'100'007);
    p.writable = {top + "/open", "/not/there"};
    const std::string scratch = "/tmp/dcs-fence-" + std::to_string(::getpid());
    const std::vector<std::string> acts = {"write:" + top + "/closed/file",
                                           "make:" + top + "/closed/new",
                                           "remove:" + top + "/closed/new",
                                           "write:" + top + "/open/file",
                                           "make:" + top + "/open/new",
                                           "remove:" + top + "/open/new",
                                           "make:" + scratch,
                                           "remove:" + scratch,
                                           "make:here",
                                           "rename:here:../there",
                                           "read:" + top + "/closed/file",
                                           "write:/dev/null",
                                           "write:/proc/self/comm"};
    for (const auto &[act, answer] : tried(p, acts)) {
        INFO(act);
        CHECK(answer == "ok");
    }
    p.rungs = rung_filter | rung_scope | rung_files;
    put_file(top + "/closed/new", "", 0666);
    auto is = tried(p, acts);
    for (const char *name : {"write:/closed/file", "make:/closed/new", "remove:/closed/new"}) {
        std::string act = name;
        act.insert(act.find('/'), top);
        INFO(act);
        CHECK((is[act] == "EACCES" || is[act] == "EEXIST"));
        is.erase(act);
    }
    for (const auto &[act, answer] : is) {
        INFO(act);
        CHECK(answer == "ok");
    }
    CHECK(get_file(top + "/closed/file") == "xext");  // once, without the fence
    CHECK(remove_tree(AT_FDCWD, top));
}

TEST_CASE("scratch, IPC and the sight of processes of its own") {
    if (!root() || !has(rung_namespaces)) return;
    Place p(false);
    p.account = made_up(2'000'100'007);
    const int segment = ::shmget(0x4c5d6e7f, 4096, IPC_CREAT | 0666);
    REQUIRE(segment >= 0);
    const std::string mark = "/tmp/dcs-mark-" + std::to_string(::getpid());
    put_file(mark, "", 0666);
    const std::string self = std::to_string(::getpid());
    const std::vector<std::string> acts = {"segment:0x4c5d6e7f", "read:" + mark,    "see:" + self,   "see:self",
                                           "make:/var/tmp/mine", "read:/tmp/mine",  "list:/dev/shm", "make:here",
                                           "see:1/../self/fd",   "remove:/tmp/mine"};
    auto is = tried(p, acts);
    for (const char *act : {"segment:0x4c5d6e7f", "see:self"}) CHECK(is[act] == "ok");
    CHECK((is["read:" + mark] == "ok" && is["see:" + self] == "ok" && is["read:/tmp/mine"] == "ENOENT"));
    ::unlink("/var/tmp/mine");
    p.rungs = rung_filter | rung_scope | rung_files | rung_namespaces;
    is = tried(p, acts);
    CHECK(is["segment:0x4c5d6e7f"] == "ENOENT");
    CHECK(is["read:" + mark] == "ENOENT");
    CHECK(is["see:" + self] == "ENOENT");
    CHECK(is["see:self"] == "ok");
    CHECK(is["make:/var/tmp/mine"] == "ok");
    CHECK(is["read:/tmp/mine"] == "ok");
    CHECK(is["list:/dev/shm"] == "mine ");
    CHECK(is["make:here"] == "ok");
    CHECK_FALSE(file_exists(AT_FDCWD, "/var/tmp/mine"));
    // Its present directory is no way out of them.
    const std::string g = p.shell("cd ..; cd ../../../..; ls tmp; ls -d tmp/dcs-mark-* || echo none");
    REQUIRE(p.start(g).verb == files::Verb::started);
    hurry(p.pid_of(g));
    p.exit_of(g);
    CHECK(get_file(p.room(g) + "/out.3").find("dcs-mark") == std::string::npos);
    ::unlink(mark.c_str());
    ::shmctl(segment, IPC_RMID, nullptr);
}

TEST_CASE("with mounts of its own a grain changes no modes outside of what it may write") {
    if (!root() || !has(rung_files | rung_namespaces)) return;
    Place p(false);
    const std::string top = "/var/lib/dcs-modes-" + std::to_string(::getpid());
    p.account = made_up(2'000'100'007);
    for (const char *folder : {"", "/closed", "/open"}) {
        REQUIRE(::mkdir((top + folder).c_str(), 0755) == 0);
        REQUIRE(::chown((top + folder).c_str(), p.account.uid, p.account.gid) == 0);
    }
    p.writable = {top + "/open", "/not/there"};
    const std::string closed = "mode:" + top + "/closed", open = "mode:" + top + "/open";
    const std::vector<std::string> acts = {
        closed, open, "make:" + top + "/open/new", "make:here", "mode:here", "make:/tmp/mine", "make:../there"};
    p.rungs = rung_filter | rung_scope | rung_files;
    CHECK(tried(p, {closed})[closed] == "ok");
    p.rungs |= rung_namespaces;
    for (const auto &[act, answer] : tried(p, acts)) {
        INFO(act);
        CHECK(answer == (act == closed ? "EROFS" : "ok"));
    }
    CHECK(remove_tree(AT_FDCWD, top));
}

TEST_CASE("signals, limits, ends and proofs are as ever behind every fence") {
    const files::Available host = files::rungs_available(root(), "/");
    for (const Rungs rungs : {rung_filter, rung_filter | rung_scope, rung_filter | rung_scope | rung_files,
                              rung_filter | rung_scope | rung_files | rung_namespaces | rung_no_network}) {
        if ((rungs & ~host.rungs) != 0) continue;
        INFO(to_words(rungs));
        Place p(false);
        if (root()) p.account = made_up(2'000'100'007);
        p.rungs = rungs;
        const std::string g = p.shell(
            "trap 'echo usr1' USR1; (setsid sh -c 'trap \"\" TERM; echo $$ > ../pid; "
            "while :; do sleep 0.1; done' &); echo > ../ready; while :; do sleep 0.05; done");
        REQUIRE(p.ask({files::Verb::prove, g}).verb == files::Verb::proved);
        REQUIRE(p.start(g).verb == files::Verb::started);
        hurry(p.pid_of(g));
        REQUIRE(soon([&] { return file_exists(AT_FDCWD, p.room(g) + "/ready"); }));
        const pid_t child = p.number_in(p.room(g) + "/pid");
        p.client.send({files::Verb::signal, g, SIGUSR1});
        REQUIRE(soon([&] { return get_file(p.room(g) + "/out.3") == "usr1\n"; }));
        p.client.send({files::Verb::kill, g});
        REQUIRE(WTERMSIG(p.exit_of(g).status) == SIGKILL);
        REQUIRE(gone(child));
        const std::string no = p.make({"/not/there"});
        REQUIRE(p.start(no).verb == files::Verb::failed);
    }
}

TEST_CASE("a fence that cannot be put up stops the start, and the host is to blame") {
    Place p(false);
    p.rungs = 1u << 20;
    const files::LauncherCall answer = p.start(p.make({"/bin/true"}));
    REQUIRE(answer.verb == files::Verb::failed);
    REQUIRE(answer.number == static_cast<int>(Code::io_error));
    REQUIRE(answer.text.find("confinement of the grain") != std::string::npos);
}

TEST_CASE("a server says at its first call how it confines, and does not start if it cannot") {
    if (!has(rung_filter)) return;
    Pool p(false);
    p.options = {"--run-as", "self", "--confine", "filter", "--grain-network", "none"};
    p.start();
    CHECK(p.greet().confinement == (rung_filter | rung_no_network));
    p.stop(SIGTERM);
    p.options = {"--run-as", "self", "--confine", "namespaces"};  // its directory is below /tmp
    p.start();
    int status = 0;
    REQUIRE(::waitpid(p.server, &status, 0) == p.server);
    p.server = 0;
    CHECK(WEXITSTATUS(status) == 1);
}
