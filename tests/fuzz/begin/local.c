/* And of its talk with a scheduler on the same host. */
#define main dcs_begin_main
#include "libdcs/commands/dcs_begin/main.c"

int fuzz_ask_for_token(int fd, const char *ident, unsigned char *token) {
    const struct line line = {.fd = fd, .end = now() + 5};
    return ask_for_token(&line, ident, token) == got_it;
}

void fuzz_make_ident(const char *program, char *ident) { make_ident(program, ident); }
