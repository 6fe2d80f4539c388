// Names, records and directories of grains.
#include <unistd.h>

#include "base/confinement.h"
#include "base/limits.h"
#include "grainserver/core/checkpoint_file.h"
#include "grainserver/files/grain_name.h"
#include "grainserver/files/launcher_calls.h"
#include "process/table.h"
#include "grainserver/shell/grain_files.h"
#include "scratch_dir.h"

using namespace bench;
using namespace dcs;
using namespace dcs::server;
namespace files = dcs::files;

TEST_CASE("directory names are injective and cannot leave the directory") {
    std::set<std::string> names;
    const std::vector<std::pair<std::string, std::string>> hosts = {{"a", "b,c"}, {"a,b", "c"}, {"..", "c"}};
    for (const auto &[host, user] : hosts)
        REQUIRE(names.insert(files::directory_name(host, {{user, 3}, 17}, 2)).second);
    for (const std::string user : {"ann", "a,nn", "a%2Cnn", "..", ".", "", "a/b", "\xc3\xa4", "ANN", "a\nb", "%"}) {
        const GrainKey key{{user, 3}, 17};
        const std::string name = files::directory_name("local1", key, 2);
        INFO(name);
        REQUIRE(names.insert(name).second);
        REQUIRE(name.find('/') == std::string::npos);
        REQUIRE(name[0] != '.');
        const Result<files::LeaseName> back = files::parse_directory_name(name);
        REQUIRE(back);
        REQUIRE(back->host == "local1");
        REQUIRE(back->key == key);
        REQUIRE(back->incarnation == 2);
    }
    for (const char *bad :
         {"", "ann", "ann,3,17", "ann,3,17,2", "h,ann,3,17,2,1", "h,ann,03,17,2", "h,ann,3,17,x", "h,a%zz,3,1,1",
          "h,a%2cnn,3,17,2", "h,ann,3,17,99999999999", ".h,ann,1,1,1", "h,ann, 3,17,2"})
        REQUIRE_FALSE(files::parse_directory_name(bad));
}

TEST_CASE("records come back as they went, and damage is noticed") {
    files::LaunchRecord launch;
    launch.boot_id = "boot";
    launch.program = "/bin/x";
    launch.argv = {"x", "", "y z"};
    launch.env = {"A=1"};
    launch.checkpoint_length = 7;
    launch.next_seq = 9;
    launch.demands.notice = -1;
    launch.demands.wall_s = 3600;
    launch.tentative = true;
    launch.runner = {"/bin/run", "{name}"};
    launch.rungs = rung_filter;
    launch.writable = {"/scratch"};
    const std::string bytes = files::pack(launch);
    const Result<files::LaunchRecord> back = files::unpack_launch(bytes);
    REQUIRE(back);
    REQUIRE(back->argv == launch.argv);
    REQUIRE(back->demands.notice == -1);
    REQUIRE(back->next_seq == 9);
    REQUIRE(back->demands.wall_s == 3600);
    REQUIRE(back->tentative);
    REQUIRE(back->runner == launch.runner);
    REQUIRE(back->rungs == rung_filter);
    REQUIRE(back->writable == launch.writable);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string bad = bytes;
        bad[i] = static_cast<char>(bad[i] ^ 4);
        REQUIRE_FALSE(files::unpack_launch(bad));
        REQUIRE_FALSE(files::unpack_launch(bytes.substr(0, i)));
    }
    files::ExitRecord exit;
    exit.known = true;
    exit.status = 9;
    exit.reason = "r";
    exit.user_us = 123;
    const Result<files::ExitRecord> exit_back = files::unpack_exit(files::pack(exit));
    REQUIRE(exit_back);
    REQUIRE(exit_back->status == 9);
    REQUIRE(exit_back->user_us == 123);
    REQUIRE_FALSE(files::unpack_exit(files::pack(launch)));
}

TEST_CASE("pid records") {
    char buffer[128];
    const std::size_t n = files::format_pid(buffer, sizeof buffer, 4711, 99, "boot-id");
    const Result<files::PidRecord> r = files::parse_pid(std::string_view(buffer, n));
    REQUIRE(r);
    REQUIRE(r->pid == 4711);
    REQUIRE(r->start_time == 99);
    REQUIRE(r->boot_id == "boot-id");
    REQUIRE(files::format_pid(buffer, 5, 4711, 99, "boot-id") == 0);
    for (const char *bad : {"", "x", "12", "12 3", "1 3 b\n", "-5 3 b\n", "12 3 b"})
        REQUIRE_FALSE(files::parse_pid(bad));
}

TEST_CASE("a process's own line of /proc is understood, whatever its name is") {
    ProcessStat stat;
    REQUIRE(read_stat(::getpid(), stat));
    REQUIRE(stat.parent == ::getppid());
    REQUIRE(stat.session == ::getsid(0));
    REQUIRE(stat.start_time > 0);
    std::string line = "17 (a) b 9 (c) S 5 17 17 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 1";
    REQUIRE(parse_stat(line, stat));
    REQUIRE(stat.parent == 5);
    REQUIRE(stat.minor_faults == 3);
    REQUIRE(stat.user_ticks == 5 + 7);
    REQUIRE(stat.start_time == 4242);
    REQUIRE_FALSE(parse_stat(line.substr(0, 40), stat));
    REQUIRE_FALSE(read_stat(0, stat));
    REQUIRE(has_variable(environment_of(::getpid()), std::string("PATH=") + std::getenv("PATH")));
}

TEST_CASE("launcher calls") {
    files::LauncherCall call{files::Verb::failed, "ann,1,2,3", 21, true, "no such program: /x y"};
    const files::LauncherCall back = files::parse_call(files::format(call));
    REQUIRE(back.verb == files::Verb::failed);
    REQUIRE(back.dir == call.dir);
    REQUIRE(back.number == 21);
    REQUIRE(back.again);
    REQUIRE(back.text == call.text);
    REQUIRE(files::parse_call("START ann,1,2,3 4").verb == files::Verb::start);
    REQUIRE(files::parse_call(files::format({files::Verb::prove, "a,1,1,1"})).verb == files::Verb::prove);
    REQUIRE(files::parse_call(files::format({files::Verb::proved, "a,1,1,1"})).verb == files::Verb::proved);
    for (const char *bad : {"", "START", "START x", "START ../x 1", "START .x 1", "START a/b 1", "START x 1 2",
                            "NOPE x", "LIST x", "SIGNAL x y"})
        REQUIRE(files::parse_call(bad).verb == files::Verb::none);
}

TEST_CASE("files of a grain: no link is followed, no special file is opened") {
    ScratchDir dir;
    const Result<Fd> fd = open_directory(AT_FDCWD, dir.path);
    REQUIRE(fd);
    put_file(dir.path + "/secret", "secret");
    REQUIRE(::symlink("secret", (dir.path + "/out.1").c_str()) == 0);
    REQUIRE(::mkfifo((dir.path + "/out.2").c_str(), 0600) == 0);
    REQUIRE_FALSE(read_file(fd->get(), "out.1", 100));
    REQUIRE_FALSE(read_file(fd->get(), "out.2", 100));
    REQUIRE(read_file(fd->get(), "missing", 1).status().code == Code::not_found);
    REQUIRE(replace_file(fd->get(), "out.1", "new"));
    REQUIRE(get_file(dir.path + "/secret") == "secret");
    REQUIRE(get_file(dir.path + "/out.1") == "new");
    REQUIRE(read_file(fd->get(), "secret", 5).status().code == Code::limit);
    REQUIRE(*read_file(fd->get(), "secret", 6) == "secret");
}

TEST_CASE("trees are removed with links and unreadable directories in them, and nothing outside") {
    ScratchDir dir;
    put_file(dir.path + "/outside", "x");
    REQUIRE(make_directories(dir.path + "/t/a/b"));
    put_file(dir.path + "/t/a/b/f", "x");
    REQUIRE(::symlink("../outside", (dir.path + "/t/link").c_str()) == 0);
    REQUIRE(::symlink("..", (dir.path + "/t/up").c_str()) == 0);
    ::chmod((dir.path + "/t/a/b").c_str(), 0);
    const Result<Fd> fd = open_directory(AT_FDCWD, dir.path);
    REQUIRE(remove_tree(fd->get(), "t"));
    REQUIRE_FALSE(file_exists(fd->get(), "t"));
    REQUIRE(file_exists(fd->get(), "outside"));
    REQUIRE(remove_tree(fd->get(), "t"));
}

namespace {
struct GrainOnDisk {
    ScratchDir dir;
    GrainFiles grains;
    GrainId id{{{"ann", 3}, 17}, 2};
    std::string record, path;  // where our own files are, and where the grain's are

    explicit GrainOnDisk(const std::string &boot = "boot") {
        REQUIRE(grains.open(dir.path, "local1", boot));
        record = dir.path + "/grains/local1,ann,3,17,2";
        path = record + "/room";
    }
    void prepare(std::uint64_t checkpoint_length = 0, std::uint64_t input_base = 0) {
        wire::Launch m;
        m.argv = {"/bin/cat", "x"};
        m.input = "0123456789";
        m.checkpoint_length = checkpoint_length;
        m.input_base = input_base;
        REQUIRE(grains.prepare(id, m, 1));
    }
    void increment(int k, const std::string &out, const std::string &err) {
        put_file(path + "/out." + std::to_string(k), out);
        put_file(path + "/err." + std::to_string(k), err);
    }
    void checkpoint(int k, const std::string &state, int offset) {
        char text[256];
        std::snprintf(text, sizeof text,
                      "dcs-checkpoint 1\ninput_offset %d\nusage_us 5 6\nmessage 2\n\nhi\n%sdcs-end %zu %08X\n", offset,
                      state.c_str(), state.size(), crc32_ieee(state));
        put_file(path + "/checkpoint." + std::to_string(k), text);
    }
    wire::GrainReport report(unsigned first, unsigned last, unsigned checkpoint_number, bool cut = false) {
        SendReport plan;
        plan.id = id;
        plan.first = first;
        plan.last = last;
        plan.checkpoint = checkpoint_number;
        plan.cut = cut;
        auto built = grains.build(plan);
        REQUIRE(std::get_if<wire::GrainReport>(&built) != nullptr);
        return std::get<wire::GrainReport>(built);
    }
    ReportUnsendable::Why trouble(unsigned first, unsigned last, unsigned checkpoint_number) {
        SendReport plan;
        plan.id = id;
        plan.first = first;
        plan.last = last;
        plan.checkpoint = checkpoint_number;
        auto built = grains.build(plan);
        REQUIRE(std::get_if<ReportUnsendable>(&built) != nullptr);
        return std::get<ReportUnsendable>(built).why;
    }
};
}  // namespace

TEST_CASE("a report joins the increments and normalises the checkpoint") {
    GrainOnDisk g;
    g.prepare(4, 100);  // input: 4 bytes of checkpoint text, then the original from 100 on
    g.increment(1, "a", "A");
    g.increment(2, "b", "");
    g.increment(3, "never", "never");
    g.checkpoint(2, "state", 6);
    wire::GrainReport r = g.report(1, 2, 2);
    REQUIRE(r.out == "ab");
    REQUIRE(r.err == "A");
    REQUIRE(r.has_checkpoint);
    REQUIRE(r.checkpoint == "state");
    REQUIRE(r.message == "hi");
    REQUIRE(r.input_position == 102);
    REQUIRE(r.usage.user_us == 5);
    g.checkpoint(2, "state", 1);  // three bytes of the old checkpoint text are unread
    r = g.report(2, 2, 2);
    REQUIRE(r.checkpoint == "state123");
    REQUIRE(r.input_position == 100);
    REQUIRE(r.out == "b");
}

TEST_CASE("what cannot be reported is told apart") {
    GrainOnDisk g;
    g.prepare();
    g.increment(1, "a", "A");
    g.checkpoint(1, "state", 11);  // behind the end of the input
    REQUIRE(g.trouble(1, 1, 1) == ReportUnsendable::Why::bad_checkpoint);
    REQUIRE(g.trouble(1, 1, 7) == ReportUnsendable::Why::bad_checkpoint);
    REQUIRE(g.trouble(1, 2, 0) == ReportUnsendable::Why::unreadable);
    REQUIRE(::truncate((g.path + "/out.1").c_str(), static_cast<off_t>(limits::report_bytes)) == 0);
    REQUIRE(g.trouble(1, 1, 0) == ReportUnsendable::Why::too_big);  // one byte of err
    put_file(g.path + "/err.1", "");
    REQUIRE(g.report(1, 1, 0).out.size() == limits::report_bytes);
}

TEST_CASE("a report that is cut has the first part of both streams") {
    GrainOnDisk g;
    g.prepare();
    g.increment(1, "start", "complaint");
    REQUIRE(::truncate((g.path + "/out.1").c_str(), static_cast<off_t>(limits::report_bytes) * 2) == 0);
    const wire::GrainReport r = g.report(1, 1, 0, true);
    REQUIRE(r.out.substr(0, 5) == "start");
    REQUIRE(r.err == "complaint");
    REQUIRE(r.out.size() + r.err.size() == limits::report_bytes);
}

TEST_CASE("looking finds pairs of increments, checkpoints and the announcement") {
    GrainOnDisk g;
    g.prepare();
    g.increment(1, "abc", "de");
    put_file(g.path + "/out.2", "alone");
    put_file(g.path + "/checkpoint.1", "x");
    put_file(g.path + "/checkpoint.2.tmp", "x");
    put_file(g.path + "/out.03", "x");
    DirFacts f = g.grains.look(g.id, 0);
    REQUIRE_FALSE(f.announced);
    REQUIRE(f.increments == std::map<std::uint32_t, std::uint64_t>{{1, 5}});
    REQUIRE(f.checkpoints == std::map<std::uint32_t, std::uint64_t>{{1, 1}});
    put_file(g.path + "/announce", "");
    REQUIRE(g.grains.look(g.id, 0).announced);
}

TEST_CASE("acknowledging removes what is not needed any more and is remembered") {
    GrainOnDisk g;
    g.prepare();
    for (int k = 1; k <= 3; ++k) g.increment(k, "o", "e");
    g.checkpoint(1, "s", 0);
    g.checkpoint(2, "s", 0);
    REQUIRE(g.grains.write_acked(g.id, 2));
    const DirFacts f = g.grains.look(g.id, 2);
    REQUIRE(f.increments.size() == 1);
    REQUIRE(f.increments.count(3) == 1);
    REQUIRE(f.checkpoints.empty());
    const auto there = [&](const std::string &name) { return ::access((g.path + "/" + name).c_str(), F_OK) == 0; };
    for (const char *gone : {"out.1", "err.1", "checkpoint.1", "out.2", "err.2"}) REQUIRE_FALSE(there(gone));
    REQUIRE(there("checkpoint.2"));  // the grain continues from it
    const std::vector<Adopted> adopted = g.grains.adopt();
    REQUIRE(adopted.size() == 1);
    REQUIRE(adopted[0].id == g.id);
    REQUIRE(adopted[0].acked == 2);
    REQUIRE_FALSE(adopted[0].started);
}

TEST_CASE("adoption: endings and exits are remembered, leftovers and other boots are removed") {
    GrainOnDisk g;
    g.prepare();
    put_file(g.record + "/pid", "99999999 1 boot\n");
    REQUIRE(g.grains.adopt().at(0).since == Instant{10'000'000});  // one tick after the boot
    REQUIRE(g.grains.write_ending({g.id, Ending::overrun, "too long", 24}));
    REQUIRE(g.grains.adopt().at(0).limit_signal == 24);
    REQUIRE(g.grains.write_ending({g.id, Ending::terminated, "busy"}));
    std::vector<Adopted> adopted = g.grains.adopt();
    REQUIRE(adopted.size() == 1);
    REQUIRE(adopted[0].started);
    REQUIRE(adopted[0].ending == Ending::terminated);
    REQUIRE(adopted[0].reason == "busy");
    REQUIRE_FALSE(adopted[0].exit);

    files::ExitRecord exit;
    exit.known = true;
    exit.status = 3 << 8;
    put_file(g.record + "/exit", files::pack(exit));
    adopted = g.grains.adopt();
    REQUIRE(adopted.size() == 1);
    REQUIRE(adopted[0].exit->code == 3);

    // a damaged record of a grain that may run: it must be found, and ended
    ::unlink((g.record + "/exit").c_str());
    put_file(g.record + "/launch", "damaged");
    adopted = g.grains.adopt();
    REQUIRE(adopted.size() == 1);
    REQUIRE(adopted[0].ending == Ending::discard);

    // half made
    ::unlink((g.record + "/launch").c_str());
    ::unlink((g.record + "/pid").c_str());
    REQUIRE(g.grains.adopt().empty());
    REQUIRE(::access(g.record.c_str(), F_OK) != 0);

    g.prepare();
    GrainFiles rebooted;
    REQUIRE(rebooted.open(g.dir.path, "local1", "another boot"));
    REQUIRE(rebooted.adopt().empty());
    REQUIRE(::access(g.record.c_str(), F_OK) != 0);
}

TEST_CASE("relative programs lie in the user's DCS home") {
    GrainOnDisk g;
    wire::Launch m;
    m.argv = {"bin/prog", "x"};
    m.directory = "data";
    REQUIRE(g.grains.prepare(g.id, m, 1));
    const Result<files::LaunchRecord> r = files::unpack_launch(get_file(g.record + "/launch"));
    REQUIRE(r);
    REQUIRE(r->program == g.dir.path + "/home/ann/bin/prog");
    REQUIRE(r->argv[0] == "prog");
    REQUIRE(r->directory == g.dir.path + "/home/ann/data");
    m.argv = {"/bin/"};
    REQUIRE(g.grains.prepare(g.id, m, 1).code == Code::not_found);
    REQUIRE(::access(g.record.c_str(), F_OK) != 0);
}

TEST_CASE("what a grain makes of its room counts only if it is an ordinary file of its own") {
    ScratchDir other;
    const std::string secret = other.path + "/secret";
    put_file(secret, "somebody else's");
    const auto link = [&](const char *path) { return ::symlink(secret.c_str(), path); };
    const auto hard = [&](const char *path) { return ::link(secret.c_str(), path); };
    const auto fifo = [](const char *path) { return ::mkfifo(path, 0600); };
    const auto folder = [](const char *path) { return ::mkdir(path, 0700); };
    for (int way = 0; way < 4; ++way)
        for (const std::string name : {"out.1", "err.1", "checkpoint.1", "announce"}) {
            GrainOnDisk h;
            h.prepare();
            h.increment(1, "ours", "");
            const std::string path = h.path + "/" + name;
            ::unlink(path.c_str());
            REQUIRE((way == 0   ? link(path.c_str())
                     : way == 1 ? hard(path.c_str())
                     : way == 2 ? fifo(path.c_str())
                                : folder(path.c_str())) == 0);
            const DirFacts f = h.grains.look(h.id, 0);
            INFO(name << ": " << f.strange);
            REQUIRE(f.strange.find(name + " is ") == 0);
            REQUIRE(f.checkpoints.empty());
            REQUIRE_FALSE(f.announced);
            const bool stream = name == "out.1" || name == "err.1";
            REQUIRE(f.increments.empty() == stream);
            if (stream) REQUIRE(h.trouble(1, 1, 0) == ReportUnsendable::Why::unreadable);
            if (name == "checkpoint.1") REQUIRE(h.trouble(1, 1, 1) == ReportUnsendable::Why::bad_checkpoint);
        }
}
