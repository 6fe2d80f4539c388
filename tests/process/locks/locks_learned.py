#!/usr/bin/python3
"""Limits learned from real runs of dcs_lock: what advise says of them, what -e auto and -i auto do, and what the run
log tells perf_learned."""
import os
import shutil
import subprocess
import tempfile

from pool import program, tells

RUNS = 30


class Locks:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="dcs-test-")
        self.env = dict(os.environ, DCS_LOCK_DIR=self.dir)

    def run(self, *words, expect=0):
        result = subprocess.run([program("dcs_lock"), *words], env=self.env, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=120)
        out = result.stdout.decode()
        assert result.returncode == expect, f"dcs_lock {' '.join(words)}: exit {result.returncode}, not {expect}\n{out}"
        return out

    def replay(self):
        out = subprocess.run([program("perf_learned"), "--log", os.path.join(self.dir, "run.log")], check=True,
                             stdout=subprocess.PIPE, timeout=120).stdout.decode()
        return [line for line in out.splitlines() if " learned  " in line]


def good_runs_are_evidence(locks):
    for _ in range(RUNS):
        locks.run("-i", "0", "-e", "auto", "job", "sleep", "0.01")
    text = locks.run("advise", "job")
    assert f"{RUNS} completed runs" in text and tells(text, "0 runs ended limit"), text
    assert "expireafter   " in text and "predicted     " in text, text
    lines = locks.replay()
    assert len(lines) == 1 and f"{RUNS} good runs,    0.0 of 1000" in lines[0], lines


def a_hang_ends_at_the_learned_limit(locks):
    locks.run("-i", "0", "-e", "auto", "--max-expire", "1s", "job", "sleep", "1000", expect=124)
    text = locks.run("advise", "job")
    assert tells(text, "1 run ended limit") and "starving" not in text, text
    assert " expired " in open(os.path.join(locks.dir, "run.log")).read()
    # The hang is no good run that was ended by mistake, and is not evidence for a longer limit.
    assert f"{RUNS} good runs,    0.0 of 1000" in locks.replay()[0]


def a_job_that_never_completes_starves(locks):
    for _ in range(2):
        locks.run("-i", "0", "-e", "0.2s", "slow", "sleep", "1000", expect=124)
    text = locks.run("advise", "slow")
    assert "starving" in text and tells(text, "ended 2 times never completed"), text


def a_burst_is_refused_and_named(locks):
    locks.run("-i", "auto", "asked", "true")
    for _ in range(14):
        locks.run("-i", "auto", "asked", "true", expect=79)
    text = locks.run("advise", "asked")
    assert "spam" in text and f"uid {os.getuid()}, " in text, text
    assert "a factor of up to " in text, text


def main():
    locks = Locks()
    try:
        good_runs_are_evidence(locks)
        a_hang_ends_at_the_learned_limit(locks)
        a_job_that_never_completes_starves(locks)
        a_burst_is_refused_and_named(locks)
    finally:
        shutil.rmtree(locks.dir, ignore_errors=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
