#!/usr/bin/python3
"""A grain server of a private pool is killed and no process starts it again: the kernel tells the scheduler that it has ended, and its
grain goes on elsewhere after a restart's patience, not after the six intervals that a silent host has. Its old copy, which ran on,
does not count."""
import os
import signal
import subprocess
import sys

from pool import Pool, lock_holder, tells, wait_for

INTERVAL = 4.0  # six of them are more than the 10 s that a restart may take


def grain(pool):
    rows = pool.json("grain", "ls", "last", check=False).get("grains", [])
    return rows[0] if rows and rows[0]["state"] == "running" else None


def main():
    with Pool(servers=2, slots=1, interval=INTERVAL) as pool:
        gate, journal = os.path.join(pool.base, "gate"), os.path.join(pool.base, "journal")
        script = f"echo $$ >>{journal}; while ! test -e {gate}; do sleep 0.1; done; echo by $$"
        program = pool.start([os.path.join(pool.bin, "dcs"), "run", "--", "/bin/sh", "-c", script], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True)
        first = wait_for("the grain to run", lambda: os.path.exists(journal) and grain(pool))
        os.kill(lock_holder(os.path.join(pool.dir, "servers", first["host"], "lock")), signal.SIGKILL)
        moved = wait_for("the grain on the other host", lambda: (row := grain(pool)) and row["host"] != first["host"] and row, 180)
        assert moved["incarnation"] == first["incarnation"] + 1, moved
        log = open(os.path.join(pool.dir, "scheduler/log")).read()
        assert tells(log, f"host {first['host']} dead server ended not restarted"), log
        assert "was not heard of" not in log, log
        pids = wait_for("both copies", lambda: (p := open(journal).read().split()) and len(p) == 2 and p)
        open(gate, "w").close()
        out = program.communicate(timeout=120)[0]
        assert program.returncode == 0 and out == f"by {pids[1]}\n", (program.returncode, out, pids)
        # Started again, the server ends what is left of the old copy, and works.
        pool.up()
        assert pool.dcs("map", "--new", "--", "echo", data=b"1\n2\n3\n").stdout == b"1\n2\n3\n"
    print("a killed server was not waited for as a silent one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
