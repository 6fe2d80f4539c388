/* Calls of libc that fail when a test says so: refused_calls.c is between a program and libc, refuse.c keeps what a
 * test has ordered. Both are linked into test programs, or preloaded into daemons and commands
 * (build/.../tests/librefuse.so, with DCS_REFUSE in their environment). */
#ifndef DCS_TESTS_REFUSE_H
#define DCS_TESTS_REFUSE_H

#ifdef __cplusplus
extern "C" {
#endif
/* What is refused from now on: orders CALLS:ABOUT:ERROR[:SKIP[:TIMES]] with spaces between them; "" is nothing.
 * CALLS are names of functions (or openat2, seccomp, landlock_...) with commas between them, counted together.
 * ABOUT is a part of the path, or of that which the descriptor leads to, or =NUMBER= for the number that tells
 * calls of prctl, fcntl, syscall, socket, kill, dup2 and epoll_ctl apart, and empty for any.
 * ERROR is a name such as EIO or a number, or DONE: the call does nothing and says that it did.
 * The first SKIP calls that fit go through, then TIMES fail (0: all); with a SKIP of -N each Nth fails.
 * 0 is returned if an order is no order. */
int dcs_refuse(const char *orders);
/* How many calls were refused since the last dcs_refuse(). */
int dcs_refused(void);
/* For refused_calls.c: is this call one that fails? errno is set then; 0 if it is only said to be done. */
int dcs_refuses(const char *call, int fd, const char *path);
/* The system call itself, past any interposer. */
long dcs_kernel(long number, ...);
#ifdef __cplusplus
}

/* The runtimes of sanitizers want to stand between a program and libc themselves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DCS_CAN_REFUSE 0
#else
#define DCS_CAN_REFUSE 1
#include <string>
namespace dcs::test {
/* An order: ABOUT may be a number. */
inline std::string order(const std::string &calls, int error, const std::string &about = "", int skip = 0) {
    const bool number = !about.empty() && about.find_first_not_of("0123456789") == std::string::npos;
    const std::string which = number ? "=" + about + "=" : about;
    return calls + ":" + which + ":" + std::to_string(error) + ":" + std::to_string(skip);
}
struct Refusing {  // while it lives
    bool understood;
    explicit Refusing(const char *orders) : understood(dcs_refuse(orders) != 0) {}
    Refusing(const char *calls, int error, const std::string &about = "", int skip = 0)
        : Refusing(order(calls, error, about, skip).c_str()) {}
    ~Refusing() { dcs_refuse(""); }
    Refusing(const Refusing &) = delete;
    Refusing &operator=(const Refusing &) = delete;
    bool happened() const { return understood && dcs_refused() > 0; }
};
}  // namespace dcs::test
#endif
#endif
#endif
