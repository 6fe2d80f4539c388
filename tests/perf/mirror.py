#!/usr/bin/python3
"""What the backup's running copy costs: durable submissions a second, one call after the other and from eight callers at
once, with the copy off, lagging and in step (sync), in turns in the same minutes, as medians and as ratios to `off`.

    mirror.py [ROUNDS]"""
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/process"))
from figures import figure  # noqa: E402
from pool import BIN, Pool, wait_for  # noqa: E402

FILL = os.path.join(os.path.dirname(BIN), "tests/fill")
MODES, CALLERS, CALLS = ("off", "lagging", "sync"), 8, 400


def measure(pool, session, callers):
    """Submissions a second. The grains can run nowhere: the pool's one host is drained."""
    began = time.monotonic()
    running = [pool.start([FILL, str(session + i), "1", str(CALLS), "60", "/bin/true"], stdout=subprocess.DEVNULL)
               for i in range(callers)]
    assert all(caller.wait() == 0 for caller in running)
    return callers * CALLS / (time.monotonic() - began)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found = {(mode, callers): [] for mode in MODES for callers in (1, CALLERS)}
    with Pool(1, 1, 10.0, patient=False, modest=True) as pool:
        session = 1
        for _ in range(rounds):
            for mode in MODES:
                pool.dcs("up", "--mirror", mode, "--dir", pool.dir)
                pool.dcs("host", "drain", "local1")
                if mode != "off":
                    wait_for("the copy", lambda: pool.json("backup", "status")["copy"]["state"] == "current", timeout=300)
                for callers in (1, CALLERS):
                    found[mode, callers].append(measure(pool, session, callers))
                    session += callers
                    if mode != "off":
                        figure(f"--mirror {mode}: submissions, {callers} at once, of --mirror off", found[mode, callers][-1],
                               found["off", callers][-1], "/s")
    for callers in (1, CALLERS):
        base = statistics.median(found["off", callers])
        for mode in MODES:
            median = statistics.median(found[mode, callers])
            print(f"{callers} at once, {mode:8}: {median:7.0f} submissions/s, {median / base:.2f} of `off`")


if __name__ == "__main__":
    main()
