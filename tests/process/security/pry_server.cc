// What failpoint() does in the grain server that privileges.py pries with, once it serves.
#include "base/failpoint.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/files/launcher_calls.h"
#include "grainserver/warden/warden.h"
#include "process/table.h"
#include "process/security/pry.h"

#include <sys/un.h>

namespace dcs {
namespace {

constexpr const char *grain = "h1,eve,1,1,1";

class ServerPry : public Pry {
public:
    ServerPry() : Pry("/grains") {}
    void all() {
        common();
        look_up();
        own_files();
        warden();
        launcher();
    }

private:
    void own_files() {
        const std::string dir = variable("DCS_PRY_DIR");
        open("rules_write", dir + "/rules", O_WRONLY);
        attempt("rules_unlink", ::unlink((dir + "/rules").c_str()));
        attempt("rules_rename", ::rename((dir + "/rules").c_str(), (dir + "/grains/rules").c_str()));
        open("new_file", dir + "/new", O_WRONLY | O_CREAT);
        open("lock_write", dir + "/launcher.lock", O_WRONLY);
        const int library = ::open("/etc/nsswitch.conf", O_RDONLY | O_CLOEXEC);
        attempt("fchmod_open", ::fchmod(library, 0666));
        attempt("fchmod_setuid", ::fchmod(library, 04555));
        attempt("fchown_open", ::fchown(library, 1, 1));
        ::close(library);
        open("grain_user", dir + "/server/made", O_WRONLY | O_CREAT);
    }

    void ask(const char *name, warden::Ask what, const std::string &text, std::uint32_t uid, bool change = true,
             bool made_up = true) {
        warden::Request request;
        request.ask = what;
        request.text = text;
        request.change = change;
        request.made_up = change && made_up;
        request.uid = request.gid = change ? uid : 0;
        say(name, to_packet(request));
    }
    // As the server's own account is root's or a person's, what is right for the one is wrong for the other.
    void warden() {
        using warden::Ask;
        const bool users = ::geteuid() == 0;
        const std::uint32_t uid = made_up_uid();
        ask("ask_as_root", Ask::program, "/bin/true", 0);
        ask("ask_as_login", Ask::program, "/bin/true", 1, true, false);
        ask("ask_as_other", Ask::program, "/bin/true", users ? 0 : uid, !users);
        ask("ask_shadow", Ask::program, "/etc/shadow", uid, users);
        ask("ask_device", Ask::program, "/dev/zero", uid, users);
        ask("ask_room_outside", Ask::give_room, "../../etc", uid, users);
        ask("ask_room_to_root", Ask::give_room, grain, 0);
        ask("ask_home_outside", Ask::give_home, "..", uid, users);
        warden::Request login;
        login.ask = Ask::login;
        login.text = "root";
        say("ask_login", to_packet(login));
        say("ask_huge", std::string(100'000, 'A'));
        say("ask_unknown", std::string(15, '\xff'));
        ask("ask_good", Ask::program, "/bin/true", uid, users);
    }

    files::LauncherCall start(const std::string &directory, files::LaunchRecord record) {
        record.boot_id = boot_id();
        record.program = "/bin/true";
        record.argv = {"true"};
        record.next_seq = 1;
        const std::string path = directory + "/grains/" + grain;
        ::mkdir(path.c_str(), 0711);
        const std::string bytes = files::pack(record);
        const int file = ::open((path + "/launch").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (::write(file, bytes.data(), bytes.size()) < 0) std::abort();
        ::close(file);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::snprintf(address.sun_path, sizeof address.sun_path, "%s/launcher.sock", directory.c_str());
        const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        // The launcher was just asked for.
        for (int i = 0; i < 600; ++i) {
            if (::connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0) break;
            ::usleep(100'000);
        }
        const std::string call = files::format({files::Verb::start, grain, 1});
        if (::send(fd, call.data(), call.size(), MSG_NOSIGNAL) < 0) std::abort();
        char packet[files::launcher_packet_max];
        const ssize_t n = ::recv(fd, packet, sizeof packet, 0);
        ::close(fd);
        return files::parse_call({packet, n > 0 ? static_cast<std::size_t>(n) : 0});
    }
    void launch(const char *name, const files::LaunchRecord &record) {
        const files::LauncherCall answer = start(variable("DCS_PRY_DIR"), record);
        const bool refused = answer.text.find("the owner of this host does not permit") != std::string::npos;
        tell(name, refused ? "refused" : answer.verb == files::Verb::failed ? "failed" : "started");
    }
    void launcher() {
        say("ask_launcher", to_packet(warden::Request{}));
        files::LaunchRecord record;
        record.rungs = all_rungs;
        record.account.change = true;
        launch("launch_root", record);
        record.account.uid = record.account.gid = 1;
        launch("launch_daemon", record);
        record.account.made_up = true;
        launch("launch_made_up_daemon", record);
        record.account = {};
        if (::geteuid() == 0) launch("launch_server", record);
        else tell("launch_server", "refused");
        record.account.change = record.account.made_up = ::geteuid() == 0;
        record.account.uid = record.account.gid = ::geteuid() == 0 ? made_up_uid() : 0;
        record.rungs = 0;
        launch("launch_bare", record);
    }
};

}  // namespace

void failpoint(const char *name) noexcept {
    static ServerPry pry;
    static bool done = false;
    if (done || std::strcmp(name, "server.config_record.after_write") != 0) return;
    done = true;
    pry.all();
}

}  // namespace dcs
