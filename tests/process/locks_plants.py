#!/usr/bin/python3
"""Each bug that can be planted in the locks turns the test red that is there for it, and nothing else makes it so: the same
test is green without. tests/unit/locks/plants.txt has a line for each: name of the bug, name of the test."""
import os
import signal
import subprocess
import sys
import time

UNIT = os.path.join(os.environ["DCS_BIN"], "unit_locks")
PLANTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit/locks/plants.txt")


def sweep(pid, words):
    """What a test that was found hanging left: its runs carry cookies made of its pid, and one has a control group."""
    cookies = [f"{base + pid:016x}" for base in (0x1234567800000000, 0x7654321000000000)]
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            # Forked, and in a session of its own: it still has the words of the test.
            if open(f"/proc/{other}/cmdline", "rb").read() == b"".join(w.encode() + b"\0" for w in words):
                os.kill(int(other), signal.SIGKILL)
            environment = open(f"/proc/{other}/environ", "rb").read().decode(errors="replace")
            if any("DCS_LOCK_ID=" + cookie in environment for cookie in cookies):
                os.kill(int(other), signal.SIGKILL)
        except OSError:
            pass
    for cookie in cookies:
        leaf = f"/sys/fs/cgroup/unified/dcs-lock-{cookie}"
        while os.path.isdir(leaf):
            try:
                os.rmdir(leaf)
            except OSError:
                time.sleep(0.01)


def red(test, plant):
    """A test that hangs over a bug has found it, too."""
    environment = dict(os.environ, DCS_PLANTED=plant)
    words = [UNIT, "-w", "NoTests", test.replace(",", "\\,")]
    process = subprocess.Popen(words, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(20 if plant else 120) != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the supervisors that it forked
        process.wait()
        sweep(process.pid, words)
        return True


def main():
    lines = [line.rstrip("\n").split(" ", 1) for line in open(PLANTS) if line.strip() and not line.startswith("#")]
    bad = [f"{test}: fails without a bug" for test in sorted({t for _, t in lines}) if red(test, "")]
    # What a bug does may depend on who runs first, so each may hide twice.
    bad += [f"{plant}: not found by \"{test}\"" for plant, test in lines if not any(red(test, plant) for _ in range(3))]
    print("\n".join(bad) if bad else f"{len(lines)} planted bugs were found")
    return 1 if bad or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
