/* The list on standard input. The whole list is checked before anything is submitted. */
#include "find_factor.h"

#include <stdlib.h>
#include <string.h>

enum { digits_max = 500, numbers_max = 100000 };

static int wrong(size_t line, const char *text, const char *why)
{
    say("line %zu: %.40s%s: %s", line, text, strlen(text) > 40 ? "..." : "", why);
    return -1;
}

static void add_to_digest(uint64_t *digest, const char *text)
{
    /* FNV-1a; including the zero byte at the end distinguishes 1,23 from 12,3. */
    for (const char *p = text;; p++) {
        *digest = (*digest ^ (unsigned char)*p) * UINT64_C(1099511628211);
        if (*p == '\0') return;
    }
}

static char *strip(char *text)
{
    char *comment = strchr(text, '#');
    if (comment != NULL) *comment = '\0';
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL) text[--length] = '\0';
    return text;
}

static int take_line(struct number_list *list, size_t line, char *text)
{
    if (*text == '-' && text[1] != '\0' && text[1 + strspn(text + 1, "0123456789")] == '\0')
        return wrong(line, text, "is negative; expected positive integers");
    if (text[strspn(text, "0123456789")] != '\0') return wrong(line, text, "is not a decimal integer");
    text += strspn(text, "0");
    if (*text == '\0') return wrong(line, "0", "zero has no factorization");
    if (strlen(text) > digits_max)
        return wrong(line, text, "has more than 500 digits, beyond what elliptic curves can do");
    if (list->count == numbers_max) return wrong(line, text, "more than 100000 numbers; split the list");
    if ((list->count & (list->count + 1)) == 0) {
        /* space for twice as many and one */
        mpz_t *more = realloc(list->numbers, (2 * list->count + 1) * sizeof *more);
        if (more == NULL) return wrong(line, text, "out of memory");
        list->numbers = more;
    }
    mpz_init_set_str(list->numbers[list->count++], text, 10);
    add_to_digest(&list->digest, text);
    return 0;
}

int number_list_read(struct number_list *list, FILE *in)
{
    memset(list, 0, sizeof *list);
    list->digest = UINT64_C(14695981039346656037);
    static char line[65536];
    for (size_t number = 1; fgets(line, sizeof line, in) != NULL; number++) {
        size_t length = strlen(line);
        if (length + 1 == sizeof line && line[length - 1] != '\n') return wrong(number, line, "the line is too long");
        if (!feof(in) && (length == 0 || line[length - 1] != '\n')) return wrong(number, line, "is not text");
        char *text = strip(line);
        if (*text != '\0' && take_line(list, number, text) != 0) return -1;
    }
    if (ferror(in)) {
        say("cannot read the list from standard input");
        return -1;
    }
    return 0;
}

void number_list_clear(struct number_list *list)
{
    for (size_t i = 0; i < list->count; i++) mpz_clear(list->numbers[i]);
    free(list->numbers);
}
