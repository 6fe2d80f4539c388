#include "grainserver/starter/starter.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/require.h"
#include "daemon/privileges.h"
#include "grainserver/files/grain_record.h"
#include "grainserver/starter/grain_processes.h"
#include "process/spawn.h"

namespace dcs::starter {
namespace {
constexpr std::size_t packet_max = 1024;
constexpr std::size_t leaves_max = 4096;                // that it remembers
constexpr int first_look_ms = 50, last_look_ms = 5000;  // interval of checks for the end of grains after the launcher's

bool is_plain(const std::string &name) {
    return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

// The keeper's side: everything below runs in its process.
struct Kept {
    const std::string &grains;
    const Cgroups &cgroups;
    int socket, bell;
    struct Slot {
        Fd lock;
        std::string leaf;
    };
    std::map<std::string, Slot> slots;
    std::set<std::string> leaves;  // that grains of this launcher have had
    Fd uids;                       // the claim of their anonymous uids

    // Handles "hold <dir> <leaf>" with a descriptor, "next <dir>/<dir> <leaf>" when the slot of one grain becomes that
    // of another, "drop <dir>", or "uids" with a descriptor. False: the launcher has ended.
    bool take_call() {
        Fd slot;
        const auto packet = receive_packet(socket, packet_max, slot);
        if (!packet) return errno == EAGAIN && wait();
        if (*packet == "uids") {
            uids = std::move(slot);
            return true;
        }
        const std::string word = packet->substr(0, 5), rest = packet->substr(word.size());
        std::string dir = rest.substr(0, rest.find(' '));
        const std::string leaf = rest.substr(std::min(dir.size() + 1, rest.size()));
        if (word == "next ") {
            const std::string from = dir.substr(0, dir.find('/'));
            dir.erase(0, from.size() + 1);
            slot = std::move(slots[from].lock);
            slots.erase(from);
        }
        // No launcher says anything else; what nothing was kept for is dropped without a name.
        if ((!is_plain(dir) && !(word == "drop " && dir.empty())) || (!leaf.empty() && !is_plain(leaf))) return false;
        if (leaves.size() >= leaves_max) leaves.clear();
        if (!leaf.empty()) leaves.insert(leaf);
        if (word != "drop " && slot) slots[dir] = {std::move(slot), leaf};
        else slots.erase(dir);
        if (word == "drop ") (void)!::send(socket, "ok", 2, MSG_NOSIGNAL | MSG_DONTWAIT);
        return true;
    }

    // Not for a packet: most need not be read before the launcher's end.
    bool wait() const {
        pollfd events[] = {{socket, 0, 0}, {bell, POLLIN, 0}};
        ::poll(events, 2, -1);
        std::uint64_t rings = 0;
        (void)!::read(bell, &rings, sizeof rings);
        return true;
    }

    bool lives(const std::string &dir, const std::string &leaf) const {
        const std::string path = grains + "/" + dir;
        Orphan orphan{0, 0, path, leaf, {}};
        if (const Result<Fd> grain = open_directory(AT_FDCWD, path)) {
            orphan.account = account_of(grain->get());
            if (const auto text = files::read_record(grain->get(), files::pid_name))
                if (const Result<files::PidRecord> pid = files::parse_pid(*text)) {
                    ProcessStat stat;
                    orphan.pid = pid->pid;
                    orphan.start_time = pid->start_time;
                    if (read_stat(pid->pid, stat) && stat.start_time == pid->start_time && stat.state != 'Z')
                        return true;
                }
        }
        return !look_for(orphan, cgroups).processes.empty();
    }

    void outlive() {
        for (int pause = first_look_ms; !slots.empty(); pause = std::min(pause * 2, last_look_ms)) {
            for (auto it = slots.begin(); it != slots.end();) {
                if (lives(it->first, it->second.leaf)) {
                    ++it;
                    continue;
                }
                it = slots.erase(it);
                pause = first_look_ms;
            }
            if (!slots.empty()) ::poll(nullptr, 0, pause);
        }
        for (const std::string &leaf : leaves) cgroups.remove(leaf);
        if (cgroups.leaves().empty()) cgroups.remove_group();
    }
};

[[noreturn]] void keep(const std::string &grains, const Cgroups &cgroups, int socket, int bell) {
    ::setsid();
    ::prctl(PR_SET_NAME, "dcs_slot_keeper", 0, 0, 0);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
    DCS_REQUIRE(socket > 2 && bell > socket, "the standard streams stay open");
    keep_descriptors({socket, bell});
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
    // To see by their environment which processes are of a grain.
    if (!give_up_capabilities(1ull << CAP_SYS_PTRACE)) ::_exit(1);
    Kept kept{grains, cgroups, socket, bell, {}, {}, {}};
    while (kept.take_call()) {}
    kept.outlive();
    ::_exit(0);
}
}  // namespace

Result<pid_t> start_keeper(const std::string &grains, const Cgroups &cgroups, bool sibling, Fd &socket) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fail_errno(Code::io_error, "cannot create a socket to the keeper of slots", errno);
    Fd ours(ends[0]);
    const Fd its(ends[1]), bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell) return fail_errno(Code::io_error, "cannot make the bell of the keeper of slots", errno);
    // As fork(), but where the caller is the launcher's starter, the child is the launcher's.
    const auto pid = static_cast<pid_t>(
        sibling ? ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr) : ::fork());
    if (pid == 0) keep(grains, cgroups, its.get(), bell.get());
    if (pid < 0) return fail_errno(Code::io_error, "cannot start the keeper of slots", errno);
    DCS_REQUIRE(pid > 1, "only the parent returns from fork");
    if (!send_packet(its.get(), "bell", bell.get()))
        return fail_errno(Code::io_error, "cannot send the bell of the keeper of slots", errno);
    socket = std::move(ours);
    return pid;
}

}  // namespace dcs::starter
