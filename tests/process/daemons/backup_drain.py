#!/usr/bin/python3
"""The scheduler is killed with -9 and stays away for many call-in intervals, repeatedly: grains run on and end
meanwhile, the backup takes their reports, itself killed now and then; and the hand-over is interrupted by kills at named
points of all three daemons. In the end every result is there once, in its place, and no grain ran twice.

    backup_drain.py [--seed N] [--rounds N]

The daemons are the test builds (the same objects with failpoints), started by `dcs up` after each kill."""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import time

from hurry import Hurry
from pool import FULL, Pool, lock_holder, start_time, wait_for

SERVERS, SLOTS, INTERVAL = 2, 2, 0.8
# Around what the hand-over does durably, and what it sends.
POINTS = {
    "backup": ["backup.decide.before", "backup.commit.before_start", "backup.commit.after_start", "backup.commit.answered",
               "backup.reply.before_send", "backup.reply.after_send", "backup.hand_over.before_send",
               "backup.hand_over.after_send", "backup.start.after_recovery", "backup.start.before_ready",
               "shell.commit.before", "shell.commit.after"],
    "scheduler": ["turn.decide.before", "turn.commit.before_start", "turn.commit.answered", "turn.effects.before",
                  "turn.effects.after", "shell.commit.before", "shell.commit.after"],
    "grainserver": ["server.report.before_send", "server.report.after_send", "server.config_record.before_write",
                    "server.config_record.after_write", "server.acked_record.before_write",
                    "server.directory.before_remove", "server.directory.after_remove"],
}
GRAIN = """#!/bin/sh
echo "$1" >>"$JOURNAL"
echo "begin $1"
sleep "$2"
echo "end $1"
exit $(($1 % 3))
"""


class Test:
    def __init__(self, pool, rng):
        self.pool, self.rng = pool, rng
        self.done = collections.Counter()
        self.children = []
        self.log = os.path.join(pool.base, "points.log")

    def lock(self, role, name="local1"):
        folder = {"scheduler": "scheduler", "backup": "backup"}.get(role, f"servers/{name}")
        return os.path.join(self.pool.dir, folder, "lock")

    def kill(self, role, name="local1"):
        pid = lock_holder(self.lock(role, name))
        if pid and start_time(pid) is not None:
            os.kill(pid, signal.SIGKILL)
            wait_for(f"the end of the {role}", lambda: start_time(pid) is None)
            self.done[f"kill {role}"] += 1

    def start_backup(self, environment=None):
        """The backup alone: `dcs up` would start the scheduler too."""
        directory = os.path.join(self.pool.dir, "backup")
        self.children = [c for c in self.children if c.poll() is None]
        with open(os.path.join(directory, "log"), "ab") as log:
            self.children.append(subprocess.Popen(
                [os.path.join(self.pool.bin, "dcs_backupd"), "--dir", directory, "--scheduler",
                 os.path.join(self.pool.dir, "scheduler/server.sock")], env=environment or self.pool.env, stdout=log, stderr=log))

    def status(self):
        result = self.pool.dcs("backup", "status", "-o", "json", check=False)
        if result.returncode != 0:
            assert result.returncode == 5, result.stderr.decode()
            return None
        return json.loads(result.stdout)

    def armed(self, roles):
        """An environment in which one of these daemons dies at one of its points."""
        role = self.rng.choice(roles)
        point = self.rng.choice(POINTS[role])
        self.done["armed"] += 1
        return dict(self.pool.env, DCS_FAILPOINTS=f"{point}=kill@{self.rng.choice((1, 1, 2, 3, 5))}",
                    DCS_FAILPOINT_LOG=self.log)

    def up(self, environment=None):
        """With a patience of its own: a scheduler that dies under it at a point is started by the next one."""
        environment = dict(environment or self.pool.env, DCS_PATIENCE_S="2")
        return subprocess.run([os.path.join(self.pool.bin, "dcs"), "up", "--dir", self.pool.dir],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)

    def away(self, intervals, kill_backup):
        """No process but the backup is there for that long."""
        end = time.monotonic() + intervals * INTERVAL
        while time.monotonic() < end:
            time.sleep(self.rng.uniform(0.2, 1.0) * INTERVAL)
            if kill_backup and self.rng.random() < 0.3:
                self.kill("backup")
                time.sleep(self.rng.choice((0, INTERVAL)))
                self.start_backup(self.armed(["backup"]) if self.rng.random() < 0.5 else None)
            if lock_holder(self.lock("backup")) is None:
                self.start_backup()
        return self.status()

    def round(self, number):
        """One outage. Which kind depends on the round, so that few rounds have all kinds."""
        self.kill("scheduler")
        status = self.away(self.rng.randint(4, 8), kill_backup=number % 2 == 1)
        if status and status["reports"] > 0:
            self.done["rounds with reports held"] += 1
        if number % 3 == 1:  # a server too, so that it must find its number again
            self.kill("grainserver", self.rng.choice(self.pool.host_names()))
        if number % 2 == 1:  # the hand-over is interrupted
            if number % 4 == 3:
                self.kill("backup")
            self.up(self.armed(["scheduler", "backup", "grainserver"]))
            time.sleep(INTERVAL)
        wait_for("the pool", lambda: self.up().returncode == 0, timeout=300)
        wait_for("the backup to have handed over everything", self.drained, timeout=300)

    def drained(self):
        self.up()
        status = self.status()
        return status is not None and status["scheduler"] and status["reports"] == 0

    def end(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()


def start_map(pool, rng, count):
    grain = os.path.join(pool.base, "slow_grain")
    with open(grain, "w") as file:
        file.write(GRAIN)
    os.chmod(grain, 0o755)
    times = os.path.join(pool.base, "times")
    with open(times, "w") as file:
        file.writelines(f"{i} {rng.uniform(0.2, 4.0):.2f}\n" for i in range(count))
    pool.env["JOURNAL"] = os.path.join(pool.base, "journal")
    return pool.start([os.path.join(pool.bin, "dcs"), "map", "--new", "--attempts", "1", "-a", times, "--", "/bin/sh", "-c",
                       f'exec {grain} ${{0% *}} ${{0#* }}', "{}"],
                      stdout=open(os.path.join(pool.base, "out"), "wb"), stderr=open(os.path.join(pool.base, "err"), "wb"))


def judge(test, process, count):
    pool = test.pool

    def ended():
        """What was armed lives on until its point comes, which may be long after the last round: so a process still
        starts what died."""
        test.up()
        return process.poll() is not None

    wait_for("the bag's end", ended, timeout=600, step=1)
    out = open(os.path.join(pool.base, "out")).read()
    expected = "".join(f"begin {i}\nend {i}\n" for i in range(count))
    assert out == expected, f"outputs differ:\n{out[-2000:]}\nerr: {open(os.path.join(pool.base, 'err')).read()[-2000:]}"
    rows = pool.grains(pool.json("session", "ls")["sessions"][-1]["session"])
    assert len(rows) == count
    for row in rows:
        assert row["state"] == "finished" and row["exit_code"] == (row["grain"] - 1) % 3, row
    runs = collections.Counter(open(os.path.join(pool.base, "journal")).read().split())
    assert set(runs) == {str(i) for i in range(count)}
    return sum(runs.values()) - count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DCS_SEED", "1")))
    parser.add_argument("--rounds", type=int, default=40 if FULL else 6)
    a = parser.parse_args()
    print(f"seed {a.seed}; again: python3 tests/process backup_drain --seed {a.seed} --rounds {a.rounds}")
    rng = random.Random(a.seed)
    count = a.rounds * 14
    with Pool(SERVERS, SLOTS, INTERVAL, test_builds=("dcs_scheduler", "dcs_backupd", "dcs_grainserver")) as pool:
        pool.env["DCS_PATIENCE_S"] = "600"
        test = Test(pool, rng)
        assert pool.daemons()["backup", "backup"]["state"] == "up"
        process = start_map(pool, rng, count)
        wait_for("grains", pool.grain_processes)
        try:
            with Hurry(pool):
                for number in range(a.rounds):
                    if process.poll() is not None:
                        break
                    test.round(number)
                again = judge(test, process, count)
        finally:
            test.end()
        points = [line for line in open(test.log) if " kill " in line] if os.path.exists(test.log) else []
        print(f"{count} grains, {dict(test.done)}, killed at points: {sorted({p.split()[0] for p in points})}")
        assert test.done["rounds with reports held"] > 0, "the backup was never needed: nothing was tested"
        assert points, "no daemon died at a point: nothing was interrupted"
        # What the backup has is not done again. A server that was away for its limit has lost its grains, though.
        servers_killed = test.done["kill grainserver"] + sum(p.split()[0].startswith("server.") for p in points)
        assert again <= servers_killed * SLOTS, f"{again} grains ran twice"
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
