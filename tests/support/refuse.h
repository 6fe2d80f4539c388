/* Calls of libc that fail when a test says so: refuse.c stands between a program and libc. It is linked into test
 * programs, or preloaded into daemons (build/.../tests/librefuse.so, with DCS_REFUSE in their environment). */
#ifndef DCS_TESTS_REFUSE_H
#define DCS_TESTS_REFUSE_H

#ifdef __cplusplus
extern "C" {
#endif
/* What is refused from now on: orders CALL:ABOUT:ERROR[:SKIP[:TIMES]] with spaces between them; "" is nothing.
 * CALL is the name of the function (or openat2, seccomp, landlock_...); ABOUT is a part of the path, or of that which
 * the descriptor leads to, or =NUMBER= of prctl, and empty for any; ERROR is a name such as EIO, or, for ioctl and
 * landlock_..., DONE: it does nothing and says that it did; the first SKIP calls that fit go through, then TIMES fail
 * (0: all).
 * 0 is returned if an order is no order. */
int dcs_refuse(const char *orders);
/* How many calls were refused since the last dcs_refuse(). */
int dcs_refused(void);
#ifdef __cplusplus
}

/* The runtimes of sanitizers want to stand between a program and libc themselves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DCS_CAN_REFUSE 0
#else
#define DCS_CAN_REFUSE 1
namespace dcs::test {
struct Refusing {  // while it lives
    bool understood;
    explicit Refusing(const char *orders) : understood(dcs_refuse(orders) != 0) {}
    ~Refusing() { dcs_refuse(""); }
    Refusing(const Refusing &) = delete;
    Refusing &operator=(const Refusing &) = delete;
    bool happened() const { return understood && dcs_refused() > 0; }
};
}  // namespace dcs::test
#endif
#endif
#endif
