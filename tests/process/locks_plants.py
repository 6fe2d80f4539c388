#!/usr/bin/python3
"""Each bug that can be planted in the locks turns the test red that is there for it, and nothing else makes it so: the same
test is green without. tests/unit/locks/plants.txt has a line for each: name of the bug, name of the test."""
import os
import subprocess
import sys

UNIT = os.path.join(os.environ["DCS_BIN"], "unit_locks")
PLANTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit/locks/plants.txt")


def red(test, plant):
    """A test that hangs over a bug has found it, too."""
    environment = dict(os.environ, DCS_PLANT=plant)
    process = subprocess.Popen([UNIT, "-w", "NoTests", test.replace(",", "\\,")], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(20 if plant else 120) != 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True


def main():
    lines = [line.rstrip("\n").split(" ", 1) for line in open(PLANTS) if line.strip() and not line.startswith("#")]
    bad = [f"{test}: fails without a bug" for test in sorted({t for _, t in lines}) if red(test, "")]
    bad += [f"{plant}: not found by \"{test}\"" for plant, test in lines if not red(test, plant)]
    print("\n".join(bad) if bad else f"{len(lines)} planted bugs were found")
    return 1 if bad or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
