#!/usr/bin/python3
"""Kills grain servers and launchers with -9 while their slots are full of grains that leave children behind.

    server_kills.py [--seed N] [--kills N]

First only servers: every grain that runs is adopted, none runs twice. Then launchers, alone or with their server: what ran is
started again, and no process is blamed. An observer that looks only at /proc checks all the time that no server has more
grains than slots, and at the end that nothing is left of any grain.
"""
import argparse
import collections
import os
import random
import signal
import sys
import threading
import time

from pool import FULL, Pool, lock_holder, start_time, wait_for

SERVERS, SLOTS = 2, 2

# A grain that says where it ran, leaves a child of its own session behind, and takes its time; the last ones that of the storm.
GRAIN = """#!/bin/sh
echo "$DCS_GRAIN_DIR $$" >>"$JOURNAL"
echo "begin $1"
setsid sleep 300 </dev/null >/dev/null 2>&1 &
sleep "$2"
until [ "$1" -lt "$GATED" ] || [ -e "$JOURNAL.over" ]; do sleep 0.1; done
echo "end $1"
exit $(($1 % 3))
"""


class Observer(threading.Thread):
    """Looks at the processes of the pool's grains, repeatedly, by their environment."""

    def __init__(self, pool):
        super().__init__(daemon=True)
        self.mark = f"DCS_GRAIN_DIR={pool.dir}/servers/".encode()
        self.members = {}  # (pid, start time) -> server, directory of the grain
        self.most, self.scans, self.wrong, self.stop_now = collections.Counter(), 0, [], False

    def grain_of(self, pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            return None
        for word in words:
            if word.startswith(self.mark):
                path = word[len(self.mark):].decode().split("/")
                return path[0], path[2]
        return None

    def look(self):
        seen = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            start = start_time(pid) if os.path.exists(f"/proc/{pid}") else None
            if start is None:
                continue
            grain = self.members.get((pid, start)) or self.grain_of(pid)
            if grain:
                self.members[pid, start] = seen[pid, start] = grain
        # Only what lives still was there at the same time.
        alive = {}
        for (pid, start), grain in seen.items():
            try:
                if start_time(pid) == start:
                    alive[pid, start] = grain
            except OSError:
                pass
        return alive

    def run(self):
        while not self.stop_now:
            on_server = collections.defaultdict(set)
            for server, grain in self.look_again().values():
                on_server[server].add(grain)
            for server, grains in on_server.items():
                self.most[server] = max(self.most[server], len(grains))
                if len(grains) > SLOTS:
                    self.wrong.append(f"{server} has {len(grains)} grains at a time: {sorted(grains)}")
            self.scans += 1
            time.sleep(0.01)

    def look_again(self):
        try:
            return self.look()
        except OSError:  # a process went while we read about it
            return {}


def write_grain(pool):
    path = os.path.join(pool.base, "slow_grain")
    with open(path, "w") as file:
        file.write(GRAIN)
    os.chmod(path, 0o755)
    return path


def start_map(pool, journal, rng, count):
    times = os.path.join(pool.base, "times")
    with open(times, "w") as file:
        file.writelines(f"{i} {rng.uniform(0.3, 2.5):.2f}\n" for i in range(count))
    grain = write_grain(pool)
    command = ["map", "--new", "--attempts", "1", "-a", times, "--", "/bin/sh", "-c", f'exec {grain} ${{0% *}} ${{0#* }}', "{}"]
    pool.env.update(JOURNAL=journal, GATED=str(count - SERVERS * SLOTS))
    return pool.start([os.path.join(pool.bin, "dcs"), *command], stdout=open(os.path.join(pool.base, "out"), "wb"),
                      stderr=open(os.path.join(pool.base, "err"), "wb"))


def lock_of(pool, name, role):
    return lock_holder(os.path.join(pool.dir, "servers", name, "lock" if role == "server" else "launcher.lock"))


def kill(pool, name, role):
    pid = lock_of(pool, name, role)
    if pid:
        os.kill(pid, signal.SIGKILL)
        wait_for("its end", lambda: start_time(pid) is None)
    return bool(pid)


def storm(pool, rng, kills, roles, process, limit):
    """Kills until so many died; the dead are started again after a while that is much shorter than their hosts' limit."""
    done = 0
    while done < kills:
        name = rng.choice(pool.host_names())
        assert process.poll() is None, f"the bag was done after {done} kills"
        wait_for("grains on " + name, lambda: pool.grain_processes(name))
        time.sleep(rng.uniform(0, 0.7))
        for role in rng.choice(roles):
            done += kill(pool, name, role)
        time.sleep(rng.choice((0, rng.uniform(0, limit))))
        pool.up()
    return done


def finish(pool, process):
    """Everything came out as if no process had been killed."""
    wait_for("the bag's end", lambda: process.poll() is not None, timeout=600)
    out = open(os.path.join(pool.base, "out")).read()
    lines = open(os.path.join(pool.base, "times")).read().split("\n")[:-1]
    expected = "".join(f"begin {line.split()[0]}\nend {line.split()[0]}\n" for line in lines)
    assert out == expected, f"outputs differ:\n{out[-2000:]}\nexpected:\n{expected[-2000:]}"
    session = pool.json("session", "ls")["sessions"][-1]["session"]
    rows = pool.grains(session)
    for row in rows:
        assert row["state"] == "finished" and row["exit_code"] == (row["grain"] - 1) % 3, row
        # One failure is what exit codes 1 and 2 are; an innocent end would not be counted at all.
        assert row["failures"] == (row["exit_code"] != 0), row
    return rows


def round_of(pool, rng, observer, kills, roles):
    journal = os.path.join(pool.base, "journal-" + roles[0][0])
    process = start_map(pool, journal, rng, kills * 5 + 12)
    done = storm(pool, rng, kills, roles, process, 3)
    open(journal + ".over", "w").close()
    rows = finish(pool, process)
    runs = [line.split()[0] for line in open(journal)]
    twice = [run for run, times in collections.Counter(runs).items() if times > 1]
    assert not twice, f"started twice: {twice}"
    assert not observer.wrong, observer.wrong[:5]
    wait_for("the end of all that grains left", lambda: not observer.look_again())
    return done, rows, len(runs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DCS_SEED", "1")))
    parser.add_argument("--kills", type=int, default=200 if FULL else 10)
    a = parser.parse_args()
    print(f"seed {a.seed}; again: python3 tests/process server_kills --seed {a.seed} --kills {a.kills}")
    rng = random.Random(a.seed)
    with Pool(SERVERS, SLOTS, 60) as pool:
        observer = Observer(pool)
        observer.start()
        done, rows, runs = round_of(pool, rng, observer, a.kills, [("server",)])
        # A launch that reached a server which died before it could write it down is given to a process again.
        lost = sum(row["restarts"] for row in rows)
        assert runs == len(rows) and lost <= done, f"{runs} runs of {len(rows)} grains, {lost} launched again"
        print(f"{done} kills of servers: {len(rows)} grains, {runs} runs, all adopted; {lost} launched again before they ran")
        done, rows, runs = round_of(pool, rng, observer, max(a.kills // 2, 1), [("launcher",), ("server", "launcher")])
        print(f"{done} kills of launchers and servers: {len(rows)} grains, {runs} runs")
        observer.stop_now = True
        observer.join()
        print(f"{observer.scans} looks at /proc: at most {dict(observer.most)} grains at a time, {SLOTS} slots each")
        assert observer.most and max(observer.most.values()) == SLOTS, "the slots were never full: nothing was tested"
    print("2 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
