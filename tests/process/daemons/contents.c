/* contents SESSION GRAIN WHAT... -- ARG..., where WHAT is one of
 *   file NAME PATH, tool NAME PATH, program CLASS PATH, output NAME, input PATH, stdin:
 * submits one grain with files; prints the error's name, and its words on standard error. Session 0: fetch,
 * contents 0 SESSION GRAIN NAME writes a file that came back to standard output. */
#include <stdlib.h>
#include <string.h>

#include "dcs.h"

enum { most = 64 };

static int told(int error) {
    puts(d_errorname(error));
    if (error != NO_ERROR) fprintf(stderr, "%s\n", d_errortext());
    return error != NO_ERROR;
}

static int fetch(char **argv) {
    FILE *file = NULL;
    char buffer[65536];
    size_t n;
    int error = d_grain_file(NULL, atoi(argv[0]), atoi(argv[1]), argv[2], &file);
    if (error != NO_ERROR) return told(error);
    while ((n = fread(buffer, 1, sizeof buffer, file)) > 0) fwrite(buffer, 1, n, stdout);
    return fclose(file) != 0;
}

int main(int argc, char **argv) {
    struct d_file files[most], programs[most];
    const char *outputs[most + 1];
    size_t output_count = 0;
    struct d_grain grain;
    int at = 3, error;
    if (argc > 4 && atoi(argv[1]) == 0) return fetch(argv + 2);
    d_grain_init(&grain);
    for (; at < argc && strcmp(argv[at], "--") != 0 && at < most; at += 3) {
        const struct d_file file = {sizeof file, argv[at + 1], argv[at + 2], NULL, strcmp(argv[at], "tool") == 0, 0};
        const struct d_file program = {sizeof program, NULL, argv[at + 2], *argv[at + 1] ? argv[at + 1] : NULL, 0, 0};
        if (strcmp(argv[at], "file") == 0 || strcmp(argv[at], "tool") == 0) files[grain.file_count++] = file;
        if (strcmp(argv[at], "program") == 0) programs[grain.program_count++] = program;
        if (strcmp(argv[at], "output") == 0) outputs[output_count++] = argv[at-- + 1];
        else if (strcmp(argv[at], "input") == 0) grain.input_path = argv[at-- + 1];
        else if (strcmp(argv[at], "stdin") == 0) grain.input_fd = 0, at -= 2;
    }
    outputs[output_count] = NULL;
    grain.files = files, grain.programs = programs, grain.outputs = outputs;
    grain.gargv = argv + at + 1;
    error = d_get_auth("contents");
    if (error == NO_ERROR) error = d_resume_ses(atoi(argv[1]), FALSE);
    if (error == NO_ERROR) error = d_gexec_grain(atoi(argv[1]), atoi(argv[2]), &grain);
    return told(error);
}
