/* Declarations shared by the parts of count_primes. */
#ifndef COUNT_PRIMES_H
#define COUNT_PRIMES_H

/* Resumes the session with this ident from an earlier run, or opens one with the first free number. Returns
 * the number, or the error of dcs.h as a negative number. */
int own_session(const char *ident);

#endif
