// What a host refuses its grain server and its launcher (disks, descriptors, processes), and how that is reported.
#include "support/about.h"
#include "support/refuse.h"

#if DCS_CAN_REFUSE
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

#include "base/confinement.h"
#include "grainserver/files/confine.h"
#include "grainserver/launcher/launcher.h"
#include "grainserver/launcher/start_grain.h"
#include "grainserver/shell/content_cache.h"
#include "grainserver/shell/copying.h"
#include "launcher_bench.h"
#include "pki/digest.h"
#include "places.h"

using namespace bench;
using namespace dcs;
using test::Refusing;

namespace {

// What becomes of it while those calls are refused.
std::string words(const char *orders, const std::function<Status()> &work) {
    const Refusing refusing(orders);
    REQUIRE(refusing.understood);
    const Status s = work();
    return s ? "" : s.text;
}

// A grain's directory and what starts it, in this very process.
struct Starter {
    ScratchDir dir;
    starter::Cgroups cgroups, groups;  // none, and those of control_groups()
    starter::Cgroups *use = &cgroups;
    starter::StarterClient asks;
    launcher::SlotKeeper keeper;
    Fd base, grains;
    files::LaunchRecord record;
    files::OwnerRules rules;
    const std::string grain = "local1,ann,1,1,1";
    launcher::Place place;

    Starter() {
        const std::string path = dir.path + "/grains";
        REQUIRE(make_directories(path + "/" + grain + "/room"));
        REQUIRE(make_directories(dir.path + "/slots"));
        put_file(path + "/" + grain + "/room/input", "");
        base = Fd(::open(dir.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        grains = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        place = {base.get(), grains.get(), path, dir.path + "/slots", nullptr, &keeper, &asks};
        record.boot_id = boot_id();
        record.program = "/bin/true";
        record.argv = {"true"};
        record.next_seq = 3;
    }
    ~Starter() { keeper.finish(); }
    // Files as a kernel with version 2 of control groups shows them. Returns the leaf of the grain.
    std::string control_groups() {
        const std::string root = dir.path + "/kernel", own = root + "/cg/dcs", leaf = own + "/dcs-1-2/" + grain;
        for (const std::string &directory : {root + "/proc/self", own + "/dcs-1-2/probe", leaf})
            REQUIRE(make_directories(directory));
        put_file(root + "/proc/self/cgroup", "0::/dcs\n");
        put_file(root + "/proc/self/mountinfo", "31 23 0:28 / /cg rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
        put_file(own + "/dcs-1-2/probe/cgroup.procs", "");
        put_file(leaf + "/cgroup.procs", "");
        REQUIRE(groups.open("dcs-1-2", root).find("control groups: v2") == 0);
        return leaf;
    }
    void write() {
        put_file(dir.path + "/grains/" + grain + "/launch", files::pack(record), 0600);
        REQUIRE(replace_file(base.get(), files::rules_name, files::pack(rules)));  // as the server does
    }
    // Why it does not start; or "", when it has ended.
    std::string start(const char *orders = "") {
        starter::Starter within(dir.path, *use, ::getpid());
        REQUIRE(within.open());
        asks.use(within);
        if (keeper.pid() == 0) REQUIRE(keeper.start(asks));
        launcher::Leaves leaves(*use, asks);
        place.leaves = &leaves;
        const Refusing refusing(orders);
        REQUIRE(refusing.understood);
        launcher::HeldSlot slot;
        launcher::StartOutcome outcome = launcher::start_grain(place, grain, 2, slot, {});
        if (outcome.kind != launcher::StartOutcome::Kind::started) {
            CHECK_FALSE(file_exists(AT_FDCWD, place.path + "/" + grain + "/pid"));
            if (slot.slot.held()) keeper.drop(slot.kept_as);
            return outcome.text;
        }
        ::waitpid(outcome.pid, nullptr, 0);
        keeper.drop(grain);
        return "";
    }
    std::string started(const char *orders = "") {
        write();
        return start(orders);
    }
};

// A launcher takes the signals of its whole process: it has one of its own.
std::string launcher_words(const char *orders) {
    const ScratchDir dir;
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        launcher::Launcher one;
        const std::string text = words(orders, [&] { return one.open({dir.path, "local1", "", false, false}); });
        const bool written = ::write(ends[1], text.data(), text.size()) >= 0;
        ::_exit(written ? 0 : 1);
    }
    ::close(ends[1]);
    std::string text(1000, '\0');
    const ssize_t n = ::read(ends[0], text.data(), text.size());
    ::close(ends[0]);
    ::waitpid(pid, nullptr, 0);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
}

}  // namespace

TEST_CASE("a directory that cannot be listed is named") {
    const ScratchDir dir;
    const Fd fd(::open(dir.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto list = [&] { return list_directory(fd.get()).status(); };
    CHECK(words("", list).empty());
    CHECK(words("openat:dcs-gs:EMFILE", list) == about("cannot list " + dir.path + " many open files"));
    CHECK(words("getdents64:dcs-gs:EIO", list) == "cannot list " + dir.path + ": Input/output error");
}

TEST_CASE("a copy that the disk refuses says at which end") {
    const ScratchDir dir;
    put_file(dir.path + "/from", std::string(3'000'000, 'x'));
    put_file(dir.path + "/to", std::string(100, 'y'));
    const Fd from(::open((dir.path + "/from").c_str(), O_RDONLY | O_CLOEXEC));
    const Fd to(::open((dir.path + "/to").c_str(), O_RDWR | O_CLOEXEC));
    const auto copy = [&](std::uint64_t max, bool digest) {
        return [&, max, digest] {
            REQUIRE(::lseek(to.get(), 0, SEEK_SET) == 0);
            server::Copying copying(from.get(), 0, max, to.get(), digest);
            Result<bool> done = false;
            while (done && !*done) done = copying.go_on();
            return done.status();
        };
    };
    CHECK(words("", copy(~0ull, false)).empty());
    CHECK(words("", copy(~0ull, true)).empty());
    CHECK(words("copy_file_range:/from:EIO", copy(~0ull, false)) == "a copy: Input/output error");
    CHECK(words("write:/to:ENOSPC", copy(~0ull, true)) == about("write copy space left"));
    CHECK(words("pread:/from:EIO", copy(~0ull, true)) == about("read source copy Input/output"));
    // A file system that shares the bytes, and then fails.
    CHECK(words("ioctl:/to:DONE lseek:/to:EIO:2", copy(50, false)) == "a copy: Input/output error");
    CHECK(words("ioctl:/to:DONE ftruncate:/to:EIO", copy(50, false)) == "a copy: Input/output error");
}

TEST_CASE("the library of a host tells what it cannot keep") {
    const ScratchDir dir;
    server::ContentCache cache;
    REQUIRE(cache.open(dir.path, 1u << 30, [] { return server::ContentCache::Names(); }));
    const std::string bytes = "some bytes", digest = pki::sha256_text(bytes);
    const auto keep = [&](std::uint64_t offset, const std::string &piece, const std::string &name) {
        return [&, offset, piece, name] { return cache.keep(name, bytes.size(), offset, piece, 1000).status(); };
    };
    CHECK(words("openat:incoming:EMFILE", keep(0, bytes, digest)) == about("library many open files"));
    CHECK(words("pwrite::EIO", keep(0, bytes, digest)) == about("content library Input/output"));
    CHECK(words("", keep(4, " bytes", digest)) == about("beginning content missing"));
    CHECK(words("", keep(0, "some", digest)).empty());
    CHECK(words("", keep(5, "bytes", digest)) == about("piece arrived order"));
    CHECK(words("", keep(0, bytes, pki::sha256_text("others"))) == about("content not SHA-256"));
    CHECK(words("", keep(0, bytes, digest)).empty());
}

TEST_CASE("a fence that cannot be made says which") {
    const ScratchDir dir;
    const Fd room(::open(dir.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto fence = [&](Rungs rungs) {
        return [&, rungs] { return files::make_confinement({rungs, room.get(), {}}).status(); };
    };
    CHECK(words("", fence(1u << 31)) == about("launch asks unknown kind confinement"));
    CHECK(words("landlock_create_ruleset::EMFILE", fence(rung_scope)) == about("confinement many open files"));
    CHECK(words("landlock_create_ruleset::DONE landlock_add_rule::ENOMEM", fence(rung_files))
              .find("the confinement to ") == 0);
}

TEST_CASE("a start that fails says at which step, and leaves nothing behind") {
    Starter s;
    REQUIRE(s.started().empty());
    REQUIRE(remove_tree(AT_FDCWD, s.dir.path + "/grains/" + s.grain + "/pid"));
    const struct {
        const char *orders, *words;
    } table[] = {
        {"clone::EAGAIN", "cannot process temporarily unavailable"},
        {"openat:pid:ENOSPC", "file grain space left"},
        {"getppid::EPERM", "launcher ended during"},
        {"prctl:=38=:EPERM", "account grain not permitted"},  // PR_SET_NO_NEW_PRIVS
        {"openat:out.3:ENOSPC", "standard streams space left"},
        {"fchdir::EACCES", "working directory Permission denied"},
    };
    for (const auto &row : table) {
        INFO(row.orders);
        CHECK(s.started(row.orders) == about(row.words));
    }
    {
        const std::string groups = s.control_groups();
        s.use = &s.groups;
        CHECK(s.started("write:cgroup.procs:ENODEV") == about("control No device"));
        CHECK(get_file(groups + "/cgroup.procs").empty());
        CHECK(s.started().empty());
        CHECK(get_file(groups + "/cgroup.procs") == "0");
        REQUIRE(remove_tree(AT_FDCWD, s.dir.path + "/grains/" + s.grain + "/pid"));
        s.use = &s.cgroups;
    }
    s.record.rungs = s.rules.rungs = rung_filter;
    CHECK(s.started("seccomp::EPERM") == about("confinement grain not permitted"));
    s.record.rungs = s.rules.rungs = 0;
    s.record.directory = s.dir.path + "/nowhere";
    CHECK(s.started() == about("working directory " + s.dir.path + "/nowhere No file directory"));
    s.record.directory.clear();
    s.record.runner = {"/no/such/emulator"};
    CHECK(s.started() == about("cannot /no/such/emulator such file"));
    s.record.runner.clear();
    CHECK(s.started().empty());
}

TEST_CASE("a grain that may not be started says who is in the way") {
    Starter s;
    CHECK(s.start().find("launch: No such file") != std::string::npos);
    s.record.argv.clear();
    CHECK(s.started() == about("launch no program"));
    s.record.argv = {"true"};
    s.record.rungs = 1u << 31;
    CHECK(s.started() == about("confinement unknown confinement"));
    s.record.rungs = 0;
    s.write();
    put_file(s.dir.path + "/rules", "nonsense", 0600);
    CHECK(s.start() == about("rules host's owner cannot read record DOR1 damaged dcs_grainserver writes starts"));
    s.place.slots = "/dev/null/slots";
    CHECK(s.started() == about("/dev/null/slots Not a directory"));
    s.place.slots = s.dir.path + "/slots";
    launcher::SlotKeeper nobody;
    s.place.keeper = &nobody;
    CHECK(s.started() == about("keeper host's replaced"));
    s.place.keeper = &s.keeper;
    launcher::Leaves leaves(s.cgroups, s.asks);
    s.place.leaves = &leaves;
    launcher::HeldSlot slot;
    CHECK(launcher::start_grain(s.place, "none", 2, slot, {}).text == about("directory none No"));
    CHECK(s.started() == "");
}

TEST_CASE("a launcher that cannot be says what it lacks") {
    CHECK(launcher_words("").empty());
    CHECK(launcher_words("signalfd::EMFILE") == "signalfd: Too many open files");
    CHECK(launcher_words("socketpair::EMFILE") == about("cannot many open files"));
    CHECK(launcher_words("fork::EAGAIN") == about("cannot starter temporarily unavailable"));
    CHECK(launcher_words("socket::EMFILE") == "socket: Too many open files");
    CHECK(launcher_words("listen::EPERM") == "listen: Operation not permitted");
}

TEST_CASE("a new keeper of slots that does not listen is in the launcher's log") {
    REQUIRE(::setenv("LD_PRELOAD", DCS_BINARY_DIR "/tests/librefuse.so", 1) == 0);
    // The slots' first ways to a keeper are open, and those of two keepers to the launcher.
    REQUIRE(::setenv("DCS_REFUSE", "sendmsg::EPERM:4:1", 1) == 0);
    Place p(false);
    ::unsetenv("LD_PRELOAD");
    ::unsetenv("DCS_REFUSE");
    for (int i = 0; i < 4; ++i) REQUIRE(p.start(p.make({"/bin/sleep", "600"})).verb == files::Verb::started);
    const pid_t keeper = p.keeper();
    REQUIRE(keeper > 0);
    REQUIRE(::kill(keeper, SIGKILL) == 0);
    CHECK(soon([&] {
        return get_file(p.dir.path + "/launcher.log").find("Z the keeper of slots does not listen") !=
               std::string::npos;
    }));  // with its time
}
#endif
