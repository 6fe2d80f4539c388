#!/usr/bin/python3
"""libdcs under many threads, also while the scheduler is killed repeatedly; in the long tests the same with the library
built under ThreadSanitizer."""
import os
import subprocess

from hurry import Hurry
from pool import BIN, FULL, ROOT, Pool

THREADS, GRAINS = 8, 12


def run(pool, program, session, kills):
    env = dict(pool.env, DCS_PATIENCE_S="120", TSAN_OPTIONS="exitcode=66")
    process = subprocess.Popen([program, str(session), str(THREADS), str(GRAINS)], env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    for _ in range(kills):
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            pool.kill("scheduler", "scheduler")
            pool.up()
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, f"exit {process.returncode}\n{out[-6000:]}"
    print(out.strip())


def sanitized():
    """The program and the library, built as preset tsan says."""
    directory = os.path.join(ROOT, "build/tsan")
    for command in (["cmake", "--preset", "tsan"], ["cmake", "--build", directory, "--target", "threads"]):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(directory, "tests/threads")


def main():
    with Pool(2, 4, 0.5) as pool, Hurry(pool):
        program = os.path.join(os.path.dirname(BIN), "tests/threads")
        run(pool, program, 1000, kills=0)
        run(pool, program, 2000, kills=3)
        if FULL:
            run(pool, sanitized(), 3000, kills=0)
            run(pool, sanitized(), 4000, kills=10)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
