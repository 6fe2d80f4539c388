// What failpoint() does in the scheduler that privileges.py pries with: when it is told to stop, it tries from inside,
// as whoever took over the process that reads strangers' bytes would, and writes to DCS_PRY_LOG what came of each.
// DCS_PRY_FILE is a file of its own account, outside of what it needs; DCS_PRY_DIR the scheduler's directory.
#include "base/failpoint.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <csignal>
#include <fcntl.h>
#include <linux/capability.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "scheduler/keeper/keeper_calls.h"

namespace dcs {
namespace {

std::string variable(const char *name) {
    const char *value = std::getenv(name);
    return value != nullptr ? value : "";
}

class Pry {
public:
    Pry() : log_(::open(variable("DCS_PRY_LOG").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
    void all() {
        files();
        powers();
        processes();
        sockets();
        keeper();
        needed();
    }

private:
    void tell(const std::string &name, const std::string &what) {
        const std::string line = name + " " + what + "\n";
        if (::write(log_, line.data(), line.size()) < 0) std::abort();
    }
    // `attempt` answers as a system call does.
    void attempt(const std::string &name, long answer) {
        tell(name, answer >= 0 ? "ok" : ::strerrorname_np(errno));
    }
    void open(const std::string &name, const std::string &path, int flags) {
        const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
        attempt(name, fd);
        if (fd >= 0) ::close(fd);
    }

    void files() {
        const std::string dir = variable("DCS_PRY_DIR"), file = variable("DCS_PRY_FILE");
        open("shadow", "/etc/shadow", O_RDONLY);
        open("key", dir + "/pki/authority-key.pem", O_RDONLY);
        open("pki", dir + "/pki", O_RDONLY | O_DIRECTORY);
        open("hosts", dir + "/hosts", O_RDONLY);
        open("hosts_write", dir + "/hosts", O_WRONLY);
        open("new_file", dir + "/new", O_WRONLY | O_CREAT);
        open("file_read", file, O_RDONLY);
        open("file_write", file, O_WRONLY);
        open("file_cut", file, O_RDONLY | O_TRUNC);
        const struct { std::uint64_t flags, mode, resolve; } how{O_RDONLY | O_TRUNC, 0, 0};
        attempt("file_cut2", ::syscall(437 /* openat2 */, AT_FDCWD, file.c_str(), &how, sizeof how));
        attempt("truncate", ::truncate(file.c_str(), 0));
        attempt("unlink", ::unlink(file.c_str()));
        attempt("rename", ::rename(file.c_str(), (dir + "/state/stolen").c_str()));
        attempt("link", ::link(file.c_str(), (dir + "/state/stolen").c_str()));
        attempt("chmod", ::chmod(file.c_str(), 04777));
        attempt("chown", ::chown(file.c_str(), 1, 1));
        attempt("setxattr", ::syscall(SYS_setxattr, file.c_str(), "user.dcs", "x", 1, 0));
        open("sysctl", "/proc/sys/kernel/core_pattern", O_WRONLY);
        attempt("mknod", ::mknod((dir + "/state/device").c_str(), S_IFBLK | 0600, 0));
    }
    void powers() {
        attempt("setuid", ::syscall(SYS_setuid, 0));
        attempt("setresuid", ::syscall(SYS_setresuid, 0, 0, 0));
        attempt("setgroups", ::syscall(SYS_setgroups, 0, nullptr));
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
        sets[0].permitted = sets[0].effective = 1u << CAP_DAC_OVERRIDE;
        attempt("capset", ::syscall(SYS_capset, &header, sets));
        attempt("unshare", ::unshare(CLONE_NEWUSER));
        attempt("mount", ::mount("none", "/mnt", "tmpfs", 0, nullptr));
        attempt("bpf", ::syscall(SYS_bpf, 0, nullptr, 0));
        attempt("keyctl", ::syscall(SYS_keyctl, 0, -3, 0));
        attempt("dumpable", ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
        attempt("io_uring", ::syscall(SYS_io_uring_setup, 8, nullptr));
        attempt("unheard_of", ::syscall(1000));
#if defined(__x86_64__)
        long answer = 20;  // getpid() of the table for 32-bit programs
        __asm__ volatile("int $0x80" : "+a"(answer) : : "memory", "r8", "r9", "r10", "r11");
        errno = static_cast<int>(-answer);
        attempt("int80", answer);
#endif
    }
    void processes() {
        const pid_t keeper = child();
        char *const argv[] = {const_cast<char *>("/bin/sh"), nullptr};
        attempt("exec", ::execve("/bin/sh", argv, environ));
        const auto forked = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
        if (forked == 0) ::_exit(0);
        attempt("fork", forked);
        attempt("ptrace", ::ptrace(PTRACE_SEIZE, keeper, nullptr, nullptr));
        char byte = 0;
        const iovec ours{&byte, 1}, theirs{&byte, 1};
        attempt("readmem", ::process_vm_readv(keeper, &ours, 1, &theirs, 1, 0));
        open("procmem", "/proc/" + std::to_string(keeper) + "/mem", O_RDONLY);
        attempt("kill_keeper", ::kill(keeper, 0));
        attempt("kill_init", ::kill(1, 0));
        attempt("kill_all", ::kill(0, 0));
        rlimit limit{};
        attempt("prlimit", ::prlimit(keeper, RLIMIT_NOFILE, nullptr, &limit));
        attempt("renice", ::setpriority(PRIO_PROCESS, static_cast<id_t>(keeper), 5));
    }
    // The keeper is the one process that this one has started.
    static pid_t child() {
        const std::string path = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
        char text[32] = "";
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0 || ::read(fd, text, sizeof text - 1) <= 0) std::abort();
        ::close(fd);
        return std::atoi(text);
    }
    void sockets() {
        attempt("unix", ::socket(AF_UNIX, SOCK_STREAM, 0));
        int pair[2];
        attempt("socketpair", ::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
        attempt("raw", ::socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
        attempt("packet", ::socket(AF_PACKET, SOCK_RAW, 0));
        attempt("uevent", ::socket(AF_NETLINK, SOCK_RAW, 15));
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        attempt("inet", fd);
        sockaddr_in low{};
        low.sin_family = AF_INET;
        low.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        low.sin_port = htons(81);
        attempt("low_port", ::bind(fd, reinterpret_cast<const sockaddr *>(&low), sizeof low));
        ::close(fd);
    }
    // Its socket is the only one of its kind here.
    static int keeper_socket() {
        for (int fd = 3; fd < 1024; ++fd) {
            int type = 0;
            socklen_t size = sizeof type;
            if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET) return fd;
        }
        std::abort();
    }
    void say(const std::string &name, const std::string &packet) {
        const int socket = keeper_socket();
        char reply[side_packet_max + 1];
        ssize_t n = ::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL);
        if (n >= 0) n = ::recv(socket, reply, sizeof reply, 0);
        const auto read = n > 0 ? read_side_answer({reply, static_cast<std::size_t>(n)}) : std::nullopt;
        tell(name, !read ? "nothing" : read->status ? "ok" : code_name(read->status.code));
    }
    void keeper() {
        using namespace keeper;
        Request request;
        request.ask = Ask::certificate;
        request.role = pki::Role::scheduler;
        request.name = "scheduler";
        say("ask_scheduler", to_packet(request));
        request.role = pki::Role::authority;
        say("ask_authority", to_packet(request));
        request.role = pki::Role::grain_server;
        request.name = "../h1";
        request.point = *point_of(*pki::public_key_of(pki::new_key()));
        say("ask_name", to_packet(request));
        request.name = "h1";
        std::string packet = to_packet(request);
        say("ask_longer", packet + "x");
        say("ask_huge", std::string(100'000, 'A'));
        packet[offsetof(Packet, name) + 100] = 'x';
        say("ask_hidden", packet);
        say("ask_unknown", std::string(sizeof(Packet), '\xff'));
        Request own;
        own.ask = Ask::own_certificate;
        own.point = request.point;
        say("ask_own", to_packet(own));
        say("ask_good", to_packet(request));
    }
    // What it does need is there.
    void needed() {
        const std::string file = variable("DCS_PRY_DIR") + "/state/pried";
        open("state_new", file, O_WRONLY | O_CREAT | O_EXCL);
        open("state_read", file, O_RDONLY);
        attempt("state_rename", ::rename(file.c_str(), (file + "2").c_str()));
        attempt("state_unlink", ::unlink((file + "2").c_str()));
        open("resolver", "/etc/nsswitch.conf", O_RDONLY);
        addrinfo hints{}, *found = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        const int unknown = ::getaddrinfo("localhost", nullptr, &hints, &found);
        tell("look_up", unknown == 0 ? "ok" : ::gai_strerror(unknown));
        if (found != nullptr) ::freeaddrinfo(found);
        bool ran = false;
        std::thread([&ran] { ran = true; }).join();
        tell("thread", ran ? "ok" : "none");
        attempt("own_signal", ::kill(::getpid(), 0));
    }

    const int log_;
};

}  // namespace

void failpoint(const char *name) noexcept {
    static Pry pry;
    if (std::strcmp(name, "shell.stop.begin") == 0) pry.all();
}

}  // namespace dcs
