/* The kernel refuses calls, as a full, locked down or broken machine does. Linked into a test program, or
 * preloaded into another program with REFUSE=CALLS:ERROR[:SKIP[:OF]] in its environment, it answers in libc's place. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* From now on `calls` ("tmpfile,fork") fail with `error` (0: they return 0), after `skip` of them that are made; with
 * -N, each Nth fails. `of`, if it is not empty, says which: a part of a path, or the number that tells calls of prctl,
 * fcntl, syscall and others apart. NULL: none is refused. */
void refuse_call(const char *calls, int error, int skip, const char *of);
/* How many were refused since then. */
int refuse_count(void);

#ifdef __cplusplus
}

namespace dcs::test {
/* As long as it lives. */
class Refused {
public:
    Refused(const char *calls, int error, const char *of = "", int skip = 0)
    {
        refuse_call(calls, error, skip, of);
    }
    Refused(const Refused &) = delete;
    ~Refused() { refuse_call(nullptr, 0, 0, ""); }
};
}  // namespace dcs::test
#endif
