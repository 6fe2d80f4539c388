#!/usr/bin/python3
"""mersenne: whether 2^P - 1 is prime. Each exponent is one long grain that cannot be divided, only moved: it continues
from its checkpoints wherever there is a host for it.

Run again after a kill, it makes the same calls and gets the same results. Exit status: 0 if the results equal the
published ones; 1: an error; 2: wrong usage."""
import argparse
import concurrent.futures
import hashlib
import os
import sys

try:
    import dcs
except ImportError as missing:
    sys.exit(f"mersenne: {missing}\nSet PYTHONPATH to the directory of the dcs package: libdcs/python in the source tree.")

# OEIS A000043: all P below the last of them with 2^P - 1 prime.
PRIME = [3, 5, 7, 13, 17, 19, 31, 61, 89, 107, 127, 521, 607, 1279, 2203, 2281, 3217, 4253, 4423, 9689, 9941, 11213, 19937,
         21701, 23209, 44497, 86243, 110503, 132049, 216091, 756839, 859433, 1257787, 1398269]


def exponent(text):
    p = int(text)
    if not 3 <= p < 10**8 or any(p % d == 0 for d in range(2, int(p**0.5) + 1)):
        raise argparse.ArgumentTypeError(f"{p} is not an odd prime below 10^8")
    return p


def examine(exponents, program):
    """Pairs of an exponent and the grain's answer, in the order of completion."""
    ident = "mersenne-" + hashlib.sha256(" ".join(map(str, exponents)).encode()).hexdigest()[:16]
    with dcs.Executor(ident, notice=1) as executor:
        futures = {executor.submit_command([program], input=f"{p} 0 4\n", label=f"2^{p}-1"): p for p in exponents}
        for future in concurrent.futures.as_completed(futures):
            yield futures[future], future.result().output.decode().strip()


def is_published(p, answer):
    return p > PRIME[-1] or (answer == "prime") == (p in PRIME)


def main():
    parser = argparse.ArgumentParser(prog="mersenne", description="Tests Mersenne numbers on the pool, by Lucas and Lehmer.")
    parser.add_argument("exponents", nargs="*", type=exponent, default=[11239, 21701, 44497, 86243, 110503], metavar="P")
    parser.add_argument("--grain", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "lucas_lehmer"))
    options = parser.parse_args()
    wrong = 0
    try:
        for p, answer in examine(list(dict.fromkeys(options.exponents)), options.grain):
            print(f"2^{p}-1 is {answer}", flush=True)
            if not is_published(p, answer):
                print(f"mersenne: but it is published as {'prime' if p in PRIME else 'composite'}", file=sys.stderr)
                wrong += 1
    except (dcs.Error, dcs.GrainFailed) as error:
        sys.exit(f"mersenne: {error}\nRun the same command again when the cause is removed: it continues where it was.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
