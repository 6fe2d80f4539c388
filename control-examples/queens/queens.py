#!/usr/bin/python3
"""queens: the number of ways to place N queens on a board of N x N so that none attacks another. A grain counts the
solutions that begin with two given queens; mirror images are not counted but doubled.

Run again after a kill, it makes the same calls and gets the same results. Exit status: 0 if it succeeds and the result
equals the published number, if there is one; 1: an error; 2: wrong usage."""
import argparse
import os
import sys

try:
    import dcs
except ImportError as missing:
    sys.exit(f"queens: {missing}\nSet PYTHONPATH to the directory of the dcs package: libdcs/python in the source tree.")

# OEIS A000170, from N = 0.
PUBLISHED = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512, 95815104, 666090624]


def beginnings(n):
    """Columns of the first two queens, and the factor for their solutions."""
    for first in range((n + 1) // 2):
        weight = 1 if 2 * first + 1 == n else 2
        for second in range(n):
            if abs(second - first) > 1:
                yield first, second, weight


def count(session, n, program):
    plan = list(beginnings(n))
    session.submit_many([(number, dcs.Grain([program], input=f"{n} 2 {first} {second}\n0 0\n", notice=1))
                         for number, (first, second, _) in enumerate(plan)])
    total = done = 0
    for result in session.results():
        total += plan[result.grain][2] * int(result.check().output)
        done += 1
        print(f"queens: {done} of {len(plan)} grains done", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr)
    if done < len(plan):
        raise RuntimeError(f"{len(plan) - done} grains of session {session.number} were killed: the count is not complete")
    return total


def main():
    parser = argparse.ArgumentParser(prog="queens", description="Counts the solutions of the N queens problem on the pool.")
    parser.add_argument("n", nargs="?", type=int, default=15, choices=range(4, 28), metavar="N", help="4 to 27; default 15")
    parser.add_argument("--grain", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "queens_below"))
    options = parser.parse_args()
    try:
        with dcs.Session(f"queens-{options.n}") as session:
            solutions = count(session, options.n, options.grain)
    except (dcs.Error, dcs.GrainFailed, RuntimeError) as error:
        sys.exit(f"queens: {error}\nRun the same command again when the cause is removed: it continues where it was.")
    print(solutions)
    if options.n >= len(PUBLISHED):
        return 0
    if solutions == PUBLISHED[options.n]:
        print("queens: this is the published number", file=sys.stderr)
        return 0
    print(f"queens: the published number is {PUBLISHED[options.n]}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
