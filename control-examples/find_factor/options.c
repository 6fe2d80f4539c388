/* The command line, and the levels of the search. */
#include "find_factor.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bounds and numbers of curves that suit factors of 15, 20, 25, 30 and 35 digits; B2 is libecm's
 * default, stated explicitly so that every version of it does the same. */
static const struct level table[] = {
    {2000, 147396, 30, 10},       {11000, 1873422, 90, 10},       {50000, 12746592, 220, 10},
    {250000, 128992510, 500, 20}, {1000000, 1045563762, 900, 10},
};
enum { table_count = sizeof table / sizeof table[0] };

static const char usage[] =
    "usage: find_factor [options] < list\n"
    "Factors the integers of the list, one per line, on the DCS pool; # begins a comment.\n"
    "  --curves-per-grain K  curves that one grain tries (default: by level)\n"
    "  --grains G            at most G grains for one number (default: no limit)\n"
    "  --b1 B1[:CURVES],...  levels of the search (default 2000:30,11000:90,50000:220,\n"
    "                        250000:500,1000000); the last one does not end\n"
    "  --b2 B2[,B2...]       one for each level, or one for all\n"
    "  --seed S              sigma of the first curve (default 596561004)\n"
    "  --class MASK          host classes (default 0: any)\n"
    "  --window W            unfinished grains of one number (default 8)\n"
    "  --parallel P          numbers processed at a time (default 4)\n"
    "  --grain PATH          the grain program (default: ellipsc beside find_factor)\n"
    "Rerun with the same list and options it continues where it was interrupted.\n";

static _Noreturn void refuse(const char *option, const char *value, const char *why)
{
    fprintf(stderr, "find_factor: %s %s: %s\nTry find_factor --help.\n", option, value, why);
    exit(2);
}

static uint64_t parse_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 0) : 0;
    if (end == NULL || *end != '\0' || errno != 0 || value < min || value > max) {
        char why[100];
        snprintf(why, sizeof why, "expected a number from %llu to %llu", (unsigned long long)min,
                 (unsigned long long)max);
        refuse(option, text, why);
    }
    return value;
}

/* The row of the table that is closest to a bound given by the user. */
static const struct level *likest(uint64_t b1)
{
    size_t i = 0;
    while (i + 1 < table_count && table[i + 1].b1 <= b1) i++;
    return &table[i];
}

static void parse_b1(struct options *options, char *text)
{
    options->level_count = 0;
    char *save = NULL;
    for (char *word = strtok_r(text, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
        if (options->level_count == levels_max) refuse("--b1", word, "too many levels");
        struct level *level = &options->levels[options->level_count++];
        char *curves = strchr(word, ':');
        if (curves != NULL) *curves++ = '\0';
        uint64_t b1 = parse_number("--b1", word, 100, UINT64_C(100000000000));
        const struct level *row = likest(b1);
        *level = *row;
        level->b1 = b1;
        if (b1 != row->b1) level->b2 = b1 * (row->b2 / row->b1);
        if (curves != NULL) level->curves = parse_number("--b1", curves, 1, 1000000000);
    }
    if (options->level_count == 0) refuse("--b1", "", "no level");
}

static void parse_b2(struct options *options, char *text)
{
    char *save = NULL;
    size_t count = 0;
    uint64_t b2 = 0;
    for (char *word = strtok_r(text, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
        b2 = parse_number("--b2", word, 0, UINT64_C(100000000000000));
        if (count == options->level_count) refuse("--b2", word, "more of them than levels");
        options->levels[count++].b2 = b2;
    }
    if (count == 1)
        for (size_t i = 0; i < options->level_count; i++) options->levels[i].b2 = b2;
    else if (count != options->level_count) refuse("--b2", "", "one for each level, or one for all");
}

/* A grain path given by the user: if it names a file here, it is made absolute, because grains do
 * not run in this directory; otherwise the hosts look it up. */
static char *grain_path(const char *text)
{
    char *real = strchr(text, '/') != NULL ? realpath(text, NULL) : NULL;
    return real != NULL ? real : strdup(text);
}

static char *default_grain(void)
{
    char path[PATH_MAX + 16];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    char *slash = NULL;
    if (length > 0) {
        path[length] = '\0';
        slash = strrchr(path, '/');
    }
    if (slash == NULL) {
        fprintf(stderr, "find_factor: cannot determine its own path; use --grain PATH\n");
        exit(1);
    }
    strcpy(slash + 1, "ellipsc");
    if (access(path, X_OK) != 0) {
        fprintf(stderr, "find_factor: no grain program at %s: %s; use --grain PATH\n", path, strerror(errno));
        exit(1);
    }
    return strdup(path);
}

void options_parse(struct options *options, int argc, char **argv)
{
    static const struct option names[] = {{"curves-per-grain", 1, NULL, 'k'},
                                          {"grains", 1, NULL, 'g'},
                                          {"b1", 1, NULL, '1'},
                                          {"b2", 1, NULL, '2'},
                                          {"seed", 1, NULL, 's'},
                                          {"class", 1, NULL, 'c'},
                                          {"window", 1, NULL, 'w'},
                                          {"grain", 1, NULL, 'p'},
                                          {"parallel", 1, NULL, 'n'},
                                          {"help", 0, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    memset(options, 0, sizeof *options);
    memcpy(options->levels, table, sizeof table);
    options->level_count = table_count;
    options->seed = 596561004; /* as in the paper */
    options->window = 8;
    options->parallel = 4;
    uint64_t curves_per_grain = 0;
    char *b2 = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 'k': curves_per_grain = parse_number("--curves-per-grain", optarg, 1, 1000000); break;
        case 'g': options->grains = parse_number("--grains", optarg, 1, INT_MAX); break;
        case '1': parse_b1(options, optarg); break;
        case '2': b2 = optarg; break;
        case 's': options->seed = parse_number("--seed", optarg, 6, UINT64_MAX / 4); break;
        case 'c': options->host_class = (unsigned)parse_number("--class", optarg, 0, UINT32_MAX); break;
        case 'w': options->window = parse_number("--window", optarg, 1, 100000); break;
        case 'n': options->parallel = parse_number("--parallel", optarg, 1, 256); break;
        case 'p':
            free(options->grain);
            options->grain = grain_path(optarg);
            break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs("Try find_factor --help.\n", stderr); exit(2);
        }
    }
    if (optind < argc) refuse("argument", argv[optind], "the list is read from standard input");
    if (b2 != NULL) parse_b2(options, b2);
    for (size_t i = 0; i < options->level_count && curves_per_grain > 0; i++)
        options->levels[i].curves_per_grain = curves_per_grain;
    if (options->grain == NULL) options->grain = default_grain();
}
