#pragma once
// What the process of a daemon that reads strangers' bytes tries from inside in privileges.py, as a peer that took
// it over
// would. It writes to DCS_PRY_LOG the outcome of each. DCS_PRY_FILE is a file of its own account, outside of what it
// needs; DCS_PRY_DIR the daemon's directory.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <csetjmp>
#include <csignal>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
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

#include "base/status.h"
#include "daemon/side_process.h"
#include "net/look_up.h"

namespace dcs {

inline std::string variable(const char *name) {
    const char *value = std::getenv(name);
    return value != nullptr ? value : "";
}

// Of the range that its server was given.
inline std::uint32_t made_up_uid() {
    return static_cast<std::uint32_t>(std::strtoul(variable("DCS_PRY_UID").c_str(), nullptr, 10));
}

class Pry {
public:
    // `kept`: a directory below DCS_PRY_DIR that the daemon keeps.
    explicit Pry(const char *kept)
        : kept_(kept), log_(::open(variable("DCS_PRY_LOG").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
    void common() {
        files();
        powers();
        processes();
        sockets();
        needed();
    }

    void tell(const std::string &name, const std::string &what) {
        const std::string line = name + " " + what + "\n";
        if (::write(log_, line.data(), line.size()) < 0) std::abort();
    }
    // `attempt` answers as a system call does.
    void attempt(const std::string &name, long answer) { tell(name, answer >= 0 ? "ok" : ::strerrorname_np(errno)); }
    void open(const std::string &name, const std::string &path, int flags) {
        const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
        attempt(name, fd);
        if (fd >= 0) ::close(fd);
    }

    void files() {
        const std::string kept = variable("DCS_PRY_DIR") + kept_, file = variable("DCS_PRY_FILE");
        open("shadow", "/etc/shadow", O_RDONLY);
        open("resolver", "/etc/nsswitch.conf", O_RDONLY);
        open("file_read", file, O_RDONLY);
        open("file_write", file, O_WRONLY);
        open("file_cut", file, O_RDONLY | O_TRUNC);
        const struct { std::uint64_t flags, mode, resolve; } how{O_RDONLY | O_TRUNC, 0, 0};
        attempt("file_cut2", ::syscall(437 /* openat2 */, AT_FDCWD, file.c_str(), &how, sizeof how));
        attempt("truncate", ::truncate(file.c_str(), 0));
        attempt("unlink", ::unlink(file.c_str()));
        attempt("rename", ::rename(file.c_str(), (kept + "/stolen").c_str()));
        attempt("link", ::link(file.c_str(), (kept + "/stolen").c_str()));
        attempt("chmod", ::chmod(file.c_str(), 04777));
        attempt("chown", ::chown(file.c_str(), 1, 1));
        attempt("setxattr", ::syscall(SYS_setxattr, file.c_str(), "user.dcs", "x", 1, 0));
        open("sysctl", "/proc/sys/kernel/core_pattern", O_WRONLY);
        attempt("mknod", ::mknod((kept + "/device").c_str(), S_IFBLK | 0600, 0));
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
        // getpid() of the table for 32-bit programs. A kernel without that table answers by a signal.
        static sigjmp_buf back;
        volatile long answer = 20;
        const auto before = ::signal(SIGSEGV, [](int) { ::siglongjmp(back, 1); });
        if (sigsetjmp(back, 1) == 0) {
            long number = answer;
            __asm__ volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
            answer = number;
        } else {
            answer = -ENOSYS;
        }
        ::signal(SIGSEGV, before);
        errno = static_cast<int>(-answer);
        attempt("int80", answer);
#endif
    }
    void processes() {
        const pid_t beside = child();
        char *const argv[] = {const_cast<char *>("/bin/sh"), nullptr};
        attempt("exec", ::execve("/bin/sh", argv, environ));
        const auto forked = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
        if (forked == 0) ::_exit(0);
        attempt("fork", forked);
        attempt("ptrace", ::ptrace(PTRACE_SEIZE, beside, nullptr, nullptr));
        char byte = 0;
        const iovec ours{&byte, 1}, theirs{&byte, 1};
        attempt("readmem", ::process_vm_readv(beside, &ours, 1, &theirs, 1, 0));
        open("procmem", "/proc/" + std::to_string(beside) + "/mem", O_RDONLY);
        attempt("kill_beside", ::kill(beside, 0));
        attempt("kill_init", ::kill(1, 0));
        attempt("kill_all", ::kill(0, 0));
        rlimit limit{};
        attempt("prlimit", ::prlimit(beside, RLIMIT_NOFILE, nullptr, &limit));
        attempt("renice", ::setpriority(PRIO_PROCESS, static_cast<id_t>(beside), 5));
    }
    // The side process is the one that this one has started.
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
    // Its socket is the first one of its kind here.
    static int side_socket() {
        for (int fd = 3; fd < 1024; ++fd) {
            int type = 0;
            socklen_t size = sizeof type;
            if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET) return fd;
        }
        std::abort();
    }
    void say(const std::string &name, const std::string &packet) {
        const int socket = side_socket();
        char reply[side_packet_max + 1];
        ssize_t n = ::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL);
        if (n >= 0) n = ::recv(socket, reply, sizeof reply, 0);
        const auto read = n > 0 ? read_side_answer({reply, static_cast<std::size_t>(n)}) : std::nullopt;
        tell(name, !read ? "nothing" : read->status ? "ok" : code_name(read->status.code));
    }
    // What it does need is there.
    void needed() {
        const std::string file = variable("DCS_PRY_DIR") + kept_ + "/pried";
        open("kept_new", file, O_WRONLY | O_CREAT | O_EXCL);
        open("kept_read", file, O_RDONLY);
        attempt("kept_rename", ::rename(file.c_str(), (file + "2").c_str()));
        attempt("kept_unlink", ::unlink((file + "2").c_str()));
        bool ran = false;
        std::thread([&ran] { ran = true; }).join();
        tell("thread", ran ? "ok" : "none");
        attempt("own_signal", ::kill(::getpid(), 0));
    }
    // By the resolver; not in a launcher, which has none.
    void look_up() {
        const auto asked = net::look_up("localhost", 7);
        pollfd answer{asked ? asked->get() : -1, POLLIN, 0};
        const bool came = asked && ::poll(&answer, 1, 10'000) == 1;
        tell("look_up", came && !net::read_found(asked->get()).places.empty() ? "ok" : "none");
    }

private:
    const std::string kept_;
    const int log_;
};

}  // namespace dcs
