/* queens_below: the number of ways to place the remaining queens on a board of N x N if those of the first P rows
 * are in given columns. Standard input:
 *
 *   N P C1 ... CP      the board, and the columns of the first rows, from 0
 *   COUNT D C ... C    the count so far, and the columns of the D rows after them at the present position (0 0)
 *
 * Standard output: the count. It can be interrupted at each queen. Exit status: 0, or 2 for invalid input. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "grainlib.h"

enum { rows_max = 31 };

struct row {
    uint32_t columns, left, right; /* attacked by the previous rows */
    uint32_t untried;
    int chosen;
};

static int n, given;
static struct row rows[rows_max + 1];

static uint32_t free_columns(const struct row *row)
{
    return ~(row->columns | row->left | row->right) & ((UINT32_C(1) << n) - 1);
}

/* Places a queen, and computes the attacked columns of the next row. */
static void place(int row, int column)
{
    uint32_t bit = UINT32_C(1) << column;
    struct row *next = &rows[row + 1];
    rows[row].chosen = column;
    next->columns = rows[row].columns | bit;
    next->left = (rows[row].left | bit) << 1;
    next->right = (rows[row].right | bit) >> 1;
    next->untried = free_columns(next);
}

/* Reads `count` columns from `row` on; in the rows of the search, the columns before them are finished. */
static int read_columns(int row, int count)
{
    for (int i = row; i < row + count; i++) {
        int column;
        if (scanf("%d", &column) != 1 || column < 0 || column >= n || !(free_columns(&rows[i]) >> column & 1)) return 0;
        rows[i].untried &= ~((UINT32_C(2) << column) - 1);
        place(i, column);
    }
    return 1;
}

static int read_state(uint64_t *count, int *row)
{
    int deep;
    if (scanf("%d %d", &n, &given) != 2 || n < 1 || n > rows_max || given < 0 || given >= n) return 0;
    rows[0].untried = free_columns(&rows[0]);
    if (!read_columns(0, given) || scanf("%" SCNu64 " %d", count, &deep) != 2 || deep < 0 || given + deep >= n)
        return 0;
    *row = given + deep;
    return read_columns(given, deep);
}

static void take_checkpoint(uint64_t count, int row)
{
    char message[60];
    snprintf(message, sizeof message, "%" PRIu64 " solutions so far", count);
    FILE *state = d_opencheck(message);
    fprintf(state, "%d %d", n, given);
    for (int i = 0; i < given; i++) fprintf(state, " %d", rows[i].chosen);
    fprintf(state, "\n%" PRIu64 " %d", count, row - given);
    for (int i = given; i < row; i++) fprintf(state, " %d", rows[i].chosen);
    fputc('\n', state);
    d_closecheck(state);
}

int main(void)
{
    uint64_t count = 0;
    int row = 0;
    d_handler();
    if (!read_state(&count, &row)) {
        fputs("queens_below: the input does not describe a search\n", stderr);
        return 2;
    }
    while (row >= given) {
        if (rows[row].untried == 0) {
            row--;
            continue;
        }
        int column = __builtin_ctz(rows[row].untried);
        rows[row].untried &= rows[row].untried - 1;
        if (row == n - 1) {
            count++;
            continue;
        }
        place(row++, column);
        if (d_time_to_ckpt()) take_checkpoint(count, row);
    }
    printf("%" PRIu64 "\n", count);
    return 0;
}
