#!/usr/bin/python3
"""Each planted bug turns the unit test red that is there for it, and nothing else makes it so: the same test is green
without. A file tests/unit/SUBJECT/plants.txt has a line for each: name of the bug, name of the test of unit_SUBJECT."""
import concurrent.futures
import ctypes
import glob
import os
import signal
import subprocess
import sys
import time

PLANTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit/*/plants.txt")


def adopt_orphans():
    """Whatever a test forks becomes our child when its parent dies, in whichever session it is."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit(f"adopting orphans: {os.strerror(ctypes.get_errno())}")


def descendants():
    parent = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent[int(pid)] = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    found = {os.getpid()}
    while more := {pid for pid, above in parent.items() if above in found} - found:
        found |= more
    return found - {os.getpid()}


def sweep(pid):
    """What a test left that was found hanging, or that failed half-way: processes, and the control groups of its runs,
    whose names are made of its pid."""
    while left := descendants():
        for other in left:
            try:
                os.kill(other, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.01)
    for base in (0x1234567800000000, 0x7654321000000000):
        leaf = f"/sys/fs/cgroup/unified/dcs-lock-{base + pid:016x}"
        while os.path.isdir(leaf):
            try:
                os.rmdir(leaf)
            except OSError:
                time.sleep(0.01)


def red(program, test, plant):
    """A test that hangs over a bug has found it, too."""
    environment = dict(os.environ, DCS_PLANTED=plant)
    words = [program, "-w", "NoTests", test.replace(",", "\\,")]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(20 if plant else 900) != 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    finally:
        sweep(process.pid)


def found(program, test, plant):
    """What a bug does may depend on who runs first, so each may hide twice."""
    return any(red(program, test, plant) for _ in range(3))


def failures(path, beside):
    program = os.path.join(os.environ["DCS_BIN"], "unit_" + os.path.basename(os.path.dirname(path)))
    lines = [line.rstrip("\n").split(" ", 1) for line in open(path) if line.strip() and not line.startswith("#")]
    tests = sorted({test for _, test in lines})
    fails = [beside.submit(red, program, test, "") for test in tests]
    finds = [beside.submit(found, program, test, plant) for plant, test in lines]
    bad = [f"{test}: fails without a bug" for test, failed in zip(tests, fails) if failed.result()]
    bad += [f"{plant}: not found by \"{test}\"" for (plant, test), was_found in zip(lines, finds) if not was_found.result()]
    if not lines:
        bad.append(f"{path}: there is no bug in it")
    print("\n".join(bad) if bad else f"{path}: {len(lines)} planted bugs were found")
    return bad


def main():
    lists = sorted(glob.glob(PLANTS))
    # Several at once: those that hang over their bug only wait. Each has a process of its own, which sweeps no other's.
    with concurrent.futures.ProcessPoolExecutor(4, initializer=adopt_orphans) as beside:
        return 1 if not lists or any([failures(path, beside) for path in lists]) else 0


if __name__ == "__main__":
    sys.exit(main())
