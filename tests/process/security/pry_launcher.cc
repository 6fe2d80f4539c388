// What failpoint() does in the launcher that privileges.py pries with, once it has given up what its starter has.
#include "base/failpoint.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/owner_rules.h"
#include "grainserver/starter/starter.h"
#include "process/security/pry.h"
#include "process/table.h"

namespace dcs {
namespace {

using starter::Ask, starter::Request;
constexpr const char *grain = "h1,eve,1,1,1";

class LauncherPry : public Pry {
public:
    LauncherPry() : Pry("/grains") {}
    void all() {
        common();
        own_files();
        const std::string path = variable("DCS_PRY_DIR") + "/grains/" + grain;
        ::mkdir(path.c_str(), 0711);
        ::mkdir((path + "/room").c_str(), 0700);
        starts();
        processes_of_others();
        names();
        tell("done", "ok");
    }

private:
    void own_files() {
        const std::string dir = variable("DCS_PRY_DIR");
        open("rules_write", dir + "/rules", O_WRONLY);
        attempt("rules_unlink", ::unlink((dir + "/rules").c_str()));
        attempt("rules_rename", ::rename((dir + "/rules").c_str(), (dir + "/grains/rules").c_str()));
        open("new_file", dir + "/new", O_WRONLY | O_CREAT);
        open("lock_write", dir + "/launcher.lock", O_WRONLY);
        open("server_file", dir + "/server/made", O_WRONLY | O_CREAT);
        const bool unified = ::access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0;
        open("group", unified ? "/sys/fs/cgroup/cgroup.procs" : "/sys/fs/cgroup/pids/cgroup.procs", O_WRONLY);
    }
    void write(const char *name, const std::string &bytes) {
        const std::string path = variable("DCS_PRY_DIR") + "/grains/" + grain + "/" + name;
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (::write(file, bytes.data(), bytes.size()) < 0) std::abort();
        ::close(file);
    }
    void start(const char *name, files::LaunchRecord record) {
        record.boot_id = boot_id();
        record.program = "/bin/true";
        record.argv = {"true"};
        record.next_seq = 1;
        write(files::launch_name, files::pack(record));
        Request request;
        request.dir = grain;
        say(name, to_packet(request));
    }
    // As in pry_server.cc: what the owner does not permit is not started, whoever wrote the record.
    void starts() {
        const bool users = ::geteuid() == 0;
        files::LaunchRecord record;
        record.rungs = all_rungs;
        record.account.change = true;
        start("start_root", record);
        record.account.uid = record.account.gid = 1;
        start("start_daemon", record);
        record.account.made_up = true;
        start("start_made_up_daemon", record);
        record.account = {};
        if (users) start("start_server", record);
        else tell("start_server", "IO_ERROR");
        record.account.change = record.account.made_up = users;
        record.account.uid = record.account.gid = users ? made_up_uid() : 0;
        record.rungs = 0;
        start("start_bare", record);
    }
    void process(const char *name, Ask ask, pid_t pid, int number = 0) {
        Request request;
        request.ask = ask;
        request.pid = static_cast<std::uint32_t>(pid);
        ProcessStat stat;
        read_stat(pid, stat);
        request.number = number;
        if (ask == Ask::signal) request.amount = static_cast<std::int64_t>(stat.start_time);
        say(name, to_packet(request));
    }
    void processes_of_others() {
        const pid_t foreign = std::atoi(variable("DCS_PRY_PID").c_str());  // of an account that runs no grains
        process("signal_foreign", Ask::signal, foreign, SIGKILL);
        process("signal_starter", Ask::signal, child(), SIGCONT);
        process("group_foreign", Ask::signal_group, foreign, SIGKILL);
        process("lower_foreign", Ask::lower, foreign);
        process("clear_root", Ask::clear, 0);
        process("clear_foreign", Ask::clear, 1);
        ProcessStat stat;
        read_stat(foreign, stat);
        write(files::pid_name,
              std::to_string(foreign) + " " + std::to_string(stat.start_time) + " " + boot_id() + "\n");
        Request request;
        request.ask = Ask::end_orphan;
        request.dir = grain;
        say("orphan_foreign", to_packet(request));
    }
    void names() {
        const auto named = [&](const char *name, Ask ask, const std::string &dir, const std::string &leaf) {
            Request request;
            request.ask = ask;
            request.dir = dir;
            request.leaf = leaf;
            say(name, to_packet(request));
        };
        named("start_outside", Ask::start, "../../etc", "");
        named("disk_outside", Ask::disk, "..", "");
        named("orphan_outside", Ask::end_orphan, "", "../x");
        named("leaf_outside", Ask::make_leaf, "", "../x");
        named("seal_outside", Ask::seal_leaf, "", "..");
        named("remove_outside", Ask::remove_leaf, "", "a/b");
        say("ask_huge", std::string(100'000, 'A'));
        say("ask_unknown", std::string(15, '\xff'));
    }
};

}  // namespace

void failpoint(const char *name) noexcept {
    static LauncherPry pry;  // opens its report while it can
    static bool done = false;
    if (done || std::strcmp(name, "launcher.open.after_fence") != 0) return;
    done = true;
    pry.all();
}

}  // namespace dcs
