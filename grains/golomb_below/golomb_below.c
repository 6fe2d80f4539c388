/* golomb_below: searches for the shortest Golomb ruler (no two pairs of marks have the same distance) that begins
 * with given marks and is shorter than a bound. Standard input:
 *
 *   N P BOUND          marks of the ruler, number of given marks, and the bound
 *   D M0 ... MD-1      the marks at the present position of the search (initially the given ones)
 *   NEXT               the next position to try for the mark after them
 *   BEST M0 ... MN-1   the shortest ruler found so far, or only 0
 *
 * Standard output: "BEST M0 ... MN-1", or "none". Of a ruler and its mirror image only the one whose first gap is
 * smaller than its last counts. It can be interrupted at each mark. Exit status: 0, or 2 for invalid input. */
#include <stdio.h>
#include <string.h>

#include "grainlib.h"

enum { marks_max = 16, length_max = 255 };

/* The lengths of the shortest rulers by number of marks (OEIS A003022), a lower bound for the remaining marks. */
static const int shortest[marks_max + 1] = {0, 0, 1, 3, 6, 11, 17, 25, 34, 44, 55, 72, 85, 106, 127, 151, 177};

static int n, given, bound, best;
static int marks[marks_max], best_marks[marks_max];
static unsigned char used[length_max + 1];

/* Records the distances of a mark to those before it; 0 if one occurs already. */
static int add(int depth, int mark)
{
    for (int i = 0; i < depth; i++) {
        if (used[mark - marks[i]]) {
            while (i-- > 0) used[mark - marks[i]] = 0;
            return 0;
        }
        used[mark - marks[i]] = 1;
    }
    marks[depth] = mark;
    return 1;
}

static void take_back(int depth)
{
    for (int i = 0; i < depth; i++) used[marks[depth] - marks[i]] = 0;
}

static int read_state(int *depth, int *next)
{
    if (scanf("%d %d %d %d", &n, &given, &bound, depth) != 4) return 0;
    if (n < 3 || n > marks_max || given < 1 || *depth < given || *depth >= n || bound < 1 || bound > length_max)
        return 0;
    for (int i = 0; i < *depth; i++) {
        int mark;
        if (scanf("%d", &mark) != 1 || mark >= bound || mark < (i > 0 ? marks[i - 1] + 1 : 0) || !add(i, mark))
            return 0;
    }
    if (scanf("%d %d", next, &best) != 2 || *next <= marks[*depth - 1] || best < 0 || best > length_max) return 0;
    for (int i = 0; best > 0 && i < n; i++)
        if (scanf("%d", &best_marks[i]) != 1) return 0;
    return 1;
}

static void write_best(FILE *to)
{
    fprintf(to, "%d", best);
    for (int i = 0; best > 0 && i < n; i++) fprintf(to, " %d", best_marks[i]);
    fputc('\n', to);
}

static void take_checkpoint(int depth, int next)
{
    char message[60];
    snprintf(message, sizeof message, "looking below %d", best > 0 ? best : bound);
    FILE *state = d_opencheck(message);
    fprintf(state, "%d %d %d\n%d", n, given, bound, depth);
    for (int i = 0; i < depth; i++) fprintf(state, " %d", marks[i]);
    fprintf(state, "\n%d\n", next);
    write_best(state);
    d_closecheck(state);
}

static void search(int depth, int next)
{
    for (;;) {
        int below = best > 0 ? best : bound;
        /* The marks from this one on form a ruler. */
        if (next + shortest[n - depth] >= below) {
            if (depth == given) return;
            take_back(--depth);
            next = marks[depth] + 1;
            continue;
        }
        if (!add(depth, next)) {
            next++;
            continue;
        }
        if (depth < n - 1) {
            depth++;
            next++;
        } else {
            if (marks[1] - marks[0] < next - marks[n - 2]) {
                best = next - marks[0];
                memcpy(best_marks, marks, sizeof marks);
            }
            take_back(depth);
            next++;
        }
        if (d_time_to_ckpt()) take_checkpoint(depth, next);
    }
}

int main(void)
{
    int depth, next;
    d_handler();
    if (!read_state(&depth, &next)) {
        fputs("golomb_below: the input does not describe a search\n", stderr);
        return 2;
    }
    search(depth, next);
    if (best > 0) write_best(stdout);
    else puts("none");
    return 0;
}
