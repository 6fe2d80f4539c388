#!/usr/bin/python3
"""What a grain costs besides its own work: no-op grains through a private pool of two slots, beside xargs.

    overhead.py [GRAINS [ROUNDS]]

In turns `xargs -P2 -n1 /bin/true` and `dcs map -- /bin/true` on two servers of one slot and on one server of two; medians of
the rounds. As root it also counts, in a pid namespace of its own, how many processes and threads came to be for each grain."""
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../process"))
from figures import figure  # noqa: E402
from pool import Pool  # noqa: E402

GRAINS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
INSIDE = "DCS_OVERHEAD_INSIDE"  # set in the pid namespace


def words(count):
    return "".join(f"{i}\n" for i in range(count)).encode()


def processes_made():
    """The last number given to a process or thread of this pid namespace."""
    return int(open("/proc/sys/kernel/ns_last_pid").read())


def timed(act):
    before, began = processes_made(), time.monotonic()
    act()
    return time.monotonic() - began, processes_made() - before


def xargs(count):
    subprocess.run(["xargs", "-P2", "-n1", "/bin/true"], input=words(count), check=True)


def bag(pool, count):
    pool.dcs("map", "--new", "--", "/bin/true", data=words(count))


def measure(pools):
    figures = {"xargs": [], **{name: [] for name in pools}}
    for _ in range(ROUNDS):
        figures["xargs"].append(timed(lambda: xargs(GRAINS)))
        for name, pool in pools.items():
            figures[name].append(timed(lambda p=pool: bag(p, GRAINS)))
            figure(f"{name}: dcs map, of xargs -P2", *(GRAINS / figures[which][-1][0] for which in (name, "xargs")), "/s")
            if os.environ.get(INSIDE):
                figure(f"{name}: processes and threads made for a grain", figures[name][-1][1] / GRAINS, None, "made")
    base = statistics.median(t for t, _ in figures["xargs"])
    print(f"{GRAINS} no-op grains, medians of {ROUNDS} rounds in turns; the pool commits submissions in batches, and each result")
    for name, rounds in figures.items():
        seconds = statistics.median(t for t, _ in rounds)
        line = f"{name:24} {GRAINS / seconds:8.0f} a second   {seconds * 1e6 / GRAINS:7.0f} us each   {base / seconds:5.2f} of xargs"
        if os.environ.get(INSIDE):
            line += f"   {statistics.median(n for _, n in rounds) / GRAINS:5.2f} processes and threads each"
        print(line, flush=True)


def main():
    if os.geteuid() == 0 and not os.environ.get(INSIDE):
        os.environ[INSIDE] = "1"
        inside = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, *sys.argv]
        if subprocess.run([*inside[:4], "/bin/true"], stderr=subprocess.DEVNULL).returncode == 0:
            return subprocess.run(inside).returncode
        del os.environ[INSIDE]
    with Pool(2, 1, 10.0, patient=False, modest=True) as two, Pool(1, 2, 10.0, patient=False, modest=True) as one:
        for pool in (two, one):
            bag(pool, 20)  # what is done once is done now
        measure({"pool, 2 servers x 1 slot": two, "pool, 1 server x 2 slots": one})
    return 0


if __name__ == "__main__":
    sys.exit(main())
