#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/fence.h"
#include "daemon/log.h"
#include "scheduler/keeper/keeper.h"

namespace dcs::keeper {
namespace {

// Of root's rights: the files of --hosts, --policy and --limits may be anybody's, and echo requests need a raw socket.
constexpr std::uint64_t kept = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_CHOWN | 1ull << CAP_FOWNER | 1ull << CAP_NET_RAW;

bool send_reply(int socket, const std::string &packet, int fd) {
    iovec part{const_cast<char *>(packet.data()), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    ssize_t n;
    do {
        n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n >= 0;
}

void close_from(unsigned first) {
    if (::syscall(SYS_close_range, first, ~0u, 0) == 0) return;
    rlimit most{};  // a kernel before 5.9
    ::getrlimit(RLIMIT_NOFILE, &most);
    for (rlim_t fd = first; fd < most.rlim_cur && fd < 1u << 20; ++fd) ::close(static_cast<int>(fd));
}

// Until nobody is there any more.
void serve(int socket, Keeper &keeper) {
    // A longer packet than any request shows as one, and is cut off.
    char packet[sizeof(Packet) + 1];
    for (;;) {
        const ssize_t n = ::recv(socket, packet, sizeof packet, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        int fd = -1;
        ::alarm(patience_s);  // a name service that hangs ends it, and so the scheduler's waiting
        const Reply reply = keeper.answer({packet, static_cast<std::size_t>(n)}, wall_clock_s(), &fd);
        ::alarm(0);
        if (!reply.status) log_debug(reply.status.text);
        const bool sent = send_reply(socket, to_packet(reply), fd);
        if (fd >= 0) ::close(fd);
        if (!sent) return;
    }
}

}  // namespace

void run_keeper(int socket, Place place) {
    constexpr int only = 3;
    const bool moved = socket == only || ::dup3(socket, only, O_CLOEXEC) == only;
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    // Whoever started us without a standard error has the socket there.
    const bool placed = moved && nothing >= 0 && ::dup2(nothing, 0) == 0 && ::dup2(nothing, 1) == 1 &&
                        (socket != STDERR_FILENO || ::dup2(nothing, STDERR_FILENO) == STDERR_FILENO);
    close_from(only + 1);  // locks among them: they are the scheduler's, and free when it is gone
    ::setsid();
    // It ends with the scheduler, by whatever that ends, and not before: a signal to the whole group is for the other.
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
    ::umask(077);
    constexpr const char *name = "dcs_keeper";
    ::prctl(PR_SET_NAME, name, 0, 0, 0);
    log_open(name, log_level());
    Status s = placed ? give_up_capabilities(kept) : fail(Code::io_error, "the keeper has no descriptors");
    // What it holds is in no core file, and no process of the same user may look at it.
    if (s && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) s = fail_errno(Code::io_error, "not to be looked at", errno);
    if (!s) log_error(s.text);
    Keeper keeper(std::move(place));
    if (s) serve(only, keeper);
    ::_exit(s ? 0 : 1);  // nothing of the scheduler's is undone here
}

}  // namespace dcs::keeper
