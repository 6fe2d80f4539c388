#!/usr/bin/python3
"""The comparison of two tables of tests/perf/run, with made-up figures: what is slower is named, what is equal is not."""
import sys

from figures import compare, parse, rows_of, table

RATE, TIME, COUNT, ONCE = "a rate of a yardstick", "a time, of a yardstick", "calls a grain", "a size measured once"


def made(slow=(), faster_machine=1.0, without=()):
    """A table; figures named in `slow` are by 15 percent worse, a faster machine has more of all."""
    lines = ["what is not there\tmissing\tits package is not installed\n"]
    for part in (0.99, 1.0, 1.01):
        speed = part * faster_machine
        lines.append(f"{RATE}\t{1000 * speed / (1.15 if RATE in slow else 1)!r}\t{2000 * faster_machine!r}\t/s\n")
        lines.append(f"{TIME}\t{2.5e-3 / speed * (1.15 if TIME in slow else 1)!r}\t{1e-3 / faster_machine!r}\tms\n")
        lines.append(f"{COUNT}\t{24.0 * (1.15 if COUNT in slow else 1)!r}\t-\tcalls\n")
    lines.append(f"{ONCE}\t{183 * (1.15 if ONCE in slow else 1)!r}\t-\tbytes\n")
    rows, absent = rows_of(line.rstrip("\n") for line in lines if line.split("\t")[0] not in without)
    return table(["a made-up run"], rows, absent)


def named(told, word):
    return {name for name in (RATE, TIME, COUNT, ONCE) for line in told if line.startswith(word) and name in line}


def main():
    old = made()
    assert old.splitlines()[-1] == "what is not there  missing: its package is not installed", old
    rows = parse(old)
    assert set(rows) == {RATE, TIME, COUNT, ONCE}, rows
    assert (rows[RATE].value, rows[RATE].yardstick, rows[RATE].spread) == (1000, 2000, 1), vars(rows[RATE])
    assert rows[COUNT].spread == 0 and rows[ONCE].spread is None and rows[ONCE].yardstick is None
    assert compare(old, old) == ([], False)
    for same in (made(faster_machine=3.0), made(faster_machine=0.3)):  # its yardsticks are as much faster
        assert compare(same, old) == ([], False), compare(same, old)
    for name in (RATE, TIME, COUNT):
        told, slower = compare(made(slow=[name]), old)
        assert slower and named(told, "slower by 15 %") == {name} and len(told) == 1, told
        told, slower = compare(old, made(slow=[name]))  # what is faster is not named
        assert not slower and not told, told
    assert compare(made(slow=[ONCE]), old) == ([], False)  # within what a figure measured once may differ
    told, slower = compare(made(without=[TIME]), old)
    assert not slower and named(told, "only in the earlier table") == {TIME}, told
    assert compare(made(without=[TIME]), old, whole=False) == ([], False)
    told, slower = compare(old, made(without=[TIME]))
    assert not slower and named(told, "not in the earlier table") == {TIME}, told
    wide = old.replace("     1 %\n", "    21 %\n")
    assert wide != old and compare(made(slow=[RATE]), wide) == ([], False)  # its rounds differed as much
    print("slower figures are named, equal ones are not")


if __name__ == "__main__":
    sys.exit(main())
