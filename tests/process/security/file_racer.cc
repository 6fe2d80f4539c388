// Races for the places where daemons open what others may change: a process of the attacker exchanges names as fast as
// it can, this one calls the very functions of the grain server. `file_racer DIR COUNT [RACE]` prints a line per kind
// of race and ends with 1 if one was won. DCS_PLANTED=files.room.follow, files.remove.follow or files.program.as_root:
// with that bug; then a race ends when it is won.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/planted.h"
#include "grainserver/files/room.h"
#include "grainserver/shell/paths.h"

namespace {
using namespace dcs;
namespace fs = std::filesystem;

constexpr uid_t attacker = 2'000'100'021;
constexpr char secret[] = "what only root may know", own[] = "what the grain wrote";

[[noreturn]] void die(const std::string &what) {
    std::fprintf(stderr, "file_racer: %s: %s\n", what.c_str(), std::strerror(errno));
    std::exit(2);
}
void must(bool done, const std::string &what) {
    if (!done) die(what);
}

void put(const std::string &path, const char *text, mode_t mode, uid_t uid) {
    std::ofstream(path) << text;
    must(::chmod(path.c_str(), mode) == 0 && ::lchown(path.c_str(), uid, uid) == 0, path);
}
void folder(const std::string &path, uid_t uid) {
    must(::mkdir(path.c_str(), 0700) == 0 && ::chmod(path.c_str(), uid == 0 ? 0711 : 0700) == 0 &&
             ::chown(path.c_str(), uid, uid) == 0,
         path);
}
void link_to(const std::string &target, const std::string &path) {
    must(::symlink(target.c_str(), path.c_str()) == 0 && ::lchown(path.c_str(), attacker, attacker) == 0, path);
}
void listening(const std::string &path) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    must(path.size() < sizeof a.sun_path, "a short name");
    path.copy(a.sun_path, path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr *>(&a), sizeof a) == 0 && ::listen(fd, 9) == 0, path);
}

void exchange(const char *a, const char *b) { ::syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2u /* EXCHANGE */); }

// Runs `step` for ever in a process of the attacker, in `place`.
class Attack {
public:
    Attack(const std::string &place, const std::function<void()> &step) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const bool ready = ::chdir(place.c_str()) == 0 && ::setresgid(attacker, attacker, attacker) == 0 &&
                           ::setresuid(attacker, attacker, attacker) == 0;
        while (ready) step();
        ::_exit(3);
    }
    ~Attack() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Attack(const Attack &) = delete;
    Attack &operator=(const Attack &) = delete;

private:
    pid_t pid_;
};

struct Tally {
    long fine = 0, refused = 0, won = 0;
    // False: enough. Now and then it rests, so that the attacker gets on where processors are few.
    bool go_on(long count) {
        const long done = fine + refused + won;
        if (done % 8 == 0) ::usleep(20);
        return done < count && (won == 0 || std::getenv("DCS_PLANTED") == nullptr);
    }
    void add(const Result<std::string> &text) {
        if (!text) ++refused;
        else if (*text == own) ++fine;
        else ++won;
    }
};

// base: secret, victim/, grain/room/ ...
struct World {
    std::string base, room_path;
    Fd grain;
    explicit World(const std::string &top) : base(top), room_path(top + "/grain/room") {
        must(::chmod(base.c_str(), 0711) == 0, base);
        put(base + "/secret", secret, 0600, 0);
        folder(base + "/victim", 0);
        put(base + "/victim/out", secret, 0600, 0);
        put(base + "/victim/keep", secret, 0600, 0);
        folder(base + "/grain", 0);
        folder(room_path, attacker);
        put(room_path + "/x", own, 0600, attacker);
        link_to(base + "/secret", room_path + "/evil_link");
        must(::link((base + "/secret").c_str(), (room_path + "/evil_name").c_str()) == 0, "a second name");
        must(::mkfifo((room_path + "/evil_fifo").c_str(), 0666) == 0, "fifo");
        listening(room_path + "/evil_sock");
        folder(room_path + "/evil_folder", attacker);
        folder(room_path + "/work", attacker);
        folder(room_path + "/work/d", attacker);
        put(room_path + "/work/d/out", own, 0600, attacker);
        link_to(base + "/victim", room_path + "/work/evil_link");
        folder(room_path + "/trees", attacker);
        put(room_path + "/program", own, 0755, attacker);
        link_to(base + "/secret", room_path + "/evil_program");
        grain = Fd(::open((base + "/grain").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        must(static_cast<bool>(grain), "grain");
    }
    files::Room room() const {
        Result<files::Room> r = files::open_room(grain.get());
        must(static_cast<bool>(r), "room");
        return std::move(*r);
    }
    bool victim_is_whole() const {
        struct stat st {};
        for (const char *name : {"/victim/out", "/victim/keep", "/secret"}) {
            if (::stat((base + name).c_str(), &st) != 0 || st.st_uid != 0 || (st.st_mode & 07777) != 0600) return false;
            if (st.st_size != sizeof secret - 1) return false;
        }
        return ::stat((base + "/victim").c_str(), &st) == 0 && (st.st_mode & 07777) == 0711;
    }
};

// Outputs, checkpoints, streams: a name in the room.
Tally race_name(const World &w, long count) {
    const files::Room room = w.room();
    const Attack attack(w.room_path, [] {
        const char *const evils[] = {"evil_link", "evil_name", "evil_fifo", "evil_sock", "evil_folder"};
        exchange("x", evils[std::rand() % 5]);
    });
    Tally t;
    while (t.go_on(count)) t.add(files::read_foreign(room, "x", 4096));
    return t;
}

Tally race_size(const World &w, long count) {
    const files::Room room = w.room();
    const Attack attack(w.room_path, [] { exchange("x", std::rand() % 2 ? "evil_name" : "evil_link"); });
    Tally t;
    while (t.go_on(count)) {
        const std::int64_t size = files::foreign_size(room, "x");
        if (size < 0) ++t.refused;
        else if (size == sizeof own - 1) ++t.fine;
        else ++t.won;
    }
    return t;
}

// Outputs in folders: the folder on the way is exchanged.
Tally race_folder(const World &w, long count) {
    const files::Room room = w.room();
    const Attack attack(w.room_path + "/work", [] { exchange("d", "evil_link"); });
    Tally t;
    while (t.go_on(count)) {
        const Result<Fd> work = open_directory(room.fd.get(), "work");
        std::string last;
        Result<Fd> in = work ? server::enter_folders(*work, "d/out", false, last) : Result<Fd>(work.status());
        if (!in) {
            ++t.refused;
            continue;
        }
        const files::Room place{std::move(*in), room.uid, room.gid};
        t.add(files::read_foreign(place, last, 4096));
    }
    return t;
}

// What a grain leaves is removed while it exchanges folders for links to a peer's.
Tally race_removal(const World &w, long count) {
    const std::string top = w.room_path + "/trees";
    const Fd trees(::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const Attack attack(top, [] {
        const char *const folders[] = {"t/a", "t/b", "t/c", "t/d"};
        exchange(folders[std::rand() % 4], "t/evil");
    });
    Tally t;
    while (t.go_on(count)) {
        folder(top + "/t", attacker);
        for (const char *name : {"/t/a", "/t/b", "/t/c", "/t/d"}) folder(top + name, attacker);
        link_to(w.base + "/victim", top + "/t/evil");
        const Status s = remove_tree(trees.get(), "t");
        if (!w.victim_is_whole()) {
            ++t.won;
            put(w.base + "/victim/out", secret, 0600, 0);
            put(w.base + "/victim/keep", secret, 0600, 0);
        } else {
            ++(s ? t.fine : t.refused);
        }
        while (fs::exists(top + "/t"))
            if (Status again = remove_tree(trees.get(), "t"); !again) continue;
    }
    return t;
}

// A program's path is its user's word.
Tally race_program(const World &w, long count) {
    const Attack attack(w.room_path, [] { exchange("program", "evil_program"); });
    const std::string path = w.room_path + "/program";
    Tally t;
    while (t.go_on(count)) {
        std::optional<ActAs> user;
        if (!planted("files.program.as_root")) user.emplace(attacker, attacker);
        const Fd fd(open_regular(path.c_str()));
        user.reset();
        t.add(fd ? read_open(fd.get(), path, 4096, false) : Result<std::string>(file_error(path, EACCES)));
    }
    return t;
}
}  // namespace

int main(int argc, char **argv) {
    if (argc < 3 || ::geteuid() != 0) {
        std::fprintf(stderr, "usage, as root: file_racer DIRECTORY COUNT [RACE]\n");
        return 2;
    }
    const World w(argv[1]);
    const long count = std::atol(argv[2]);
    constexpr struct {
        const char *name;
        Tally (*race)(const World &, long);
        long share;
    } races[] = {{"name", race_name, 1},
                 {"size", race_size, 1},
                 {"folder", race_folder, 1},
                 {"removal", race_removal, 8},
                 {"program", race_program, 1}};
    long won = 0;
    for (const auto &r : races) {
        if (argc > 3 && std::strcmp(argv[3], r.name) != 0) continue;
        const Tally t = r.race(w, count / r.share);
        const bool whole = w.victim_is_whole();
        std::printf("%s: %ld as it should be, %ld refused, %ld won%s\n", r.name, t.fine, t.refused, t.won,
                    whole ? "" : ", and what is root's was changed");
        std::fflush(stdout);
        won += t.won + (whole ? 0 : 1);
    }
    return won == 0 ? 0 : 1;
}
