/* What dcs_begin keeps to itself of root's files. */
#include "libdcs/commands/dcs_begin/hygiene.c"

int fuzz_read_conf(char *text, struct host *host) { return read_conf(text, host); }
