#!/usr/bin/python3
"""What the owner of a host notices of grains: speed of programs that keep all cores busy, and how late a program that
sleeps 1 ms wakes, alone and beside a private pool whose slots all compute; also with grains whose children begin
sessions of their own. Short slices in turn (the grains are stopped for those without), medians and ratios.

    courtesy.py [ROUNDS] [SLICE_SECONDS]"""
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "process"))
from pool import Pool, program, wait_for  # noqa: E402

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
SLICE = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
OWNER = os.path.join(os.path.dirname(os.path.dirname(program("dcs"))), "tests", "owner")
CORES = os.cpu_count()
PLAIN = ["/bin/sh", "-c", "while :; do :; done"]
SESSIONS = ["/bin/sh", "-c", "setsid sh -c 'while :; do :; done'"]


def tree(pids):
    """These processes and all below them."""
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(pid))
    found = list(pids)
    for pid in found:
        found += children.get(pid, [])
    return found


def owners(kind, count, seconds):
    """As many programs of the owner at the same time, each in a session of its own as in a terminal of its own."""
    started = [subprocess.Popen([OWNER, kind, str(int(seconds * 1000))], stdout=subprocess.PIPE, start_new_session=True)
               for _ in range(count)]
    return [list(map(int, process.communicate()[0].split())) for process in started]


def cpu(pids):
    total = 0.0
    for pid in pids:
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return total


def beside(pool, command, what):
    run = pool.start([program("dcs"), "map", "--", *command, ":::", *map(str, range(CORES))], stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    wait_for("the grains", lambda: len(pool.grain_processes()) == CORES)
    time.sleep(2.5)  # until the launcher has looked for sessions that they began
    grains = tree([pid for _, _, pid, _ in pool.grain_processes()])
    figures = {"spin": {False: [], True: []}, "wake": {False: [], True: []}}
    got = 0.0
    for i in range(2 * ROUNDS):
        with_grains = i % 2 == 1
        for pid in grains:
            os.kill(pid, signal.SIGCONT if with_grains else signal.SIGSTOP)
        before = cpu(grains)
        figures["spin"][with_grains].append(sum(row[0] for row in owners("spin", CORES, SLICE)))
        if with_grains:
            got += cpu(grains) - before
        figures["wake"][with_grains].append(owners("wake", 1, SLICE / 2)[0])
    for pid in grains:
        os.kill(pid, signal.SIGCONT)
    run.send_signal(signal.SIGINT)
    run.wait()
    pool.dcs("session", "close", "all")  # else its grains take the slots of the next ones
    wait_for("the end of the grains", lambda: not pool.grain_processes())
    spin = [statistics.median(figures["spin"][w]) for w in (False, True)]
    wake = [[statistics.median(row[k] for row in figures["wake"][w]) for k in range(3)] for w in (False, True)]
    print(f"{what}:")
    print(f"  owner on {CORES} cores: {spin[0]:.0f} rounds alone, {spin[1]:.0f} beside {CORES} grains: "
          f"{spin[1] / spin[0]:.3f} of the speed; the grains got {got / (ROUNDS * SLICE * CORES) * 100:.1f} % of the cores")
    print(f"  1 ms timer late by (median, 99 %, worst): {wake[0][0]:.0f}, {wake[0][1]:.0f}, {wake[0][2]:.0f} us alone; "
          f"{wake[1][0]:.0f}, {wake[1][1]:.0f}, {wake[1][2]:.0f} us beside grains on all cores", flush=True)


def main():
    with Pool(servers=1, slots=CORES, patient=False, modest=True) as pool:
        beside(pool, PLAIN, "grains that compute")
        pool.down()
        pool.up()
        beside(pool, SESSIONS, "grains whose children begin sessions of their own")


if __name__ == "__main__":
    main()
