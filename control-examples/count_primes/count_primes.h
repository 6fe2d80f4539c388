/* What the parts of count_primes share. */
#ifndef COUNT_PRIMES_H
#define COUNT_PRIMES_H

/* Resumes the session of this ident that an earlier run left, else opens a new one under the first free number. Returns
 * the number, or the error of dcs.h as a negative number. */
int own_session(const char *ident);

#endif
