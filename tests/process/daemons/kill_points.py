#!/usr/bin/python3
"""The scheduler is killed with -9 at named points around its durable steps and at random, under a stream of
submissions, kills and finishes; nothing acknowledged is lost and nothing happens twice.

    kill_points.py [--seed N] [--kills N] [--seconds S] [--clients N]

The scheduler is dcs_scheduler_test (the same objects with failpoints), started by `dcs up` after each kill.
Control programs (stream.c) keep their own histories outside of the pool; stream_checker.py judges them."""
import argparse
import os
import random
import shutil
import signal
import subprocess
import time

from pool import BIN, FULL, Pool, lock_holder, start_time, wait_for
from stream_checker import Checker

STREAM = os.path.join(os.path.dirname(BIN), "tests/stream")
SESSIONS_EACH = 100000   # numbers that one control program may use
POINT_PATIENCE = 4.0     # s until a point that is not reached becomes a kill at random
TRIES = 6                # per point, before the others are more important


class Points:
    """What is known of the named points, from the logs of the scheduler's lives."""

    def __init__(self, rng):
        self.rng, self.known, self.killed, self.tries = rng, set(), {}, {}

    def choose(self):
        """(name, visit) to be killed at next, or None for a kill at any time."""
        missing = sorted(n for n in self.known if n not in self.killed and self.tries.get(n, 0) < TRIES)
        if missing:
            name = self.rng.choice(missing)
            first = self.tries.get(name, 0) > 0 or ".start." in name or ".stop." in name or "recover" in name
            visit = 1 if first else self.rng.randint(1, 20)
        elif self.known and self.rng.random() < 0.5:
            name, visit = self.rng.choice(sorted(self.known)), self.rng.randint(1, 40)
        else:
            return None
        self.tries[name] = self.tries.get(name, 0) + 1
        return name, visit

    def learn(self, path):
        """Takes in the log of a life; true if it ended at a point."""
        ended = False
        for line in open(path) if os.path.exists(path) else ():
            words = line.split()
            self.known.add(words[0])
            if len(words) == 3:
                self.killed[words[0]] = self.killed.get(words[0], 0) + 1
                ended = True
        return ended


def is_gone(daemon):
    return start_time(daemon[0]) != daemon[1]


class Lives:
    """Starts the scheduler repeatedly, and sees to it that it dies."""

    def __init__(self, pool, rng, clients):
        self.pool, self.rng, self.clients, self.points = pool, rng, clients, Points(rng)
        self.count = {"point": 0, "random": 0}
        self.lock = os.path.join(pool.dir, "scheduler/lock")

    def scheduler(self):
        """(pid, start time) of a live one; the lock still names the last one for a moment after its death."""
        pid = lock_holder(self.lock)
        started = start_time(pid) if pid else None
        return (pid, started) if started is not None else None

    def live(self, point, seconds):
        """One life: to the armed point, or for `seconds`, after which it is killed (or asked to stop, for the
        points on that way)."""
        log = os.path.join(self.pool.base, "points.log")
        if os.path.exists(log):
            os.remove(log)
        environment = dict(self.pool.env, DCS_FAILPOINT_LOG=log)
        if point:
            environment["DCS_FAILPOINTS"] = f"{point[0]}=kill@{point[1]}"
        up = subprocess.Popen([os.path.join(self.pool.bin, "dcs"), "up", "--dir", self.pool.dir], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began = time.monotonic()
        wait_for("a scheduler", lambda: self.scheduler() or up.poll() is not None, 240, 0.005)
        daemon = self.scheduler()
        ended_itself = True
        quiet = began + self.rng.random() * 2.0  # then no call comes for a while, and the scheduler flushes
        while daemon and not is_gone(daemon):
            self.clients.pause(quiet < time.monotonic() < quiet + 0.6)
            if time.monotonic() - began > seconds:
                ended_itself = False
                self.end(daemon, point and ".stop." in point[0])
            time.sleep(0.005)
        self.clients.pause(False)
        up.kill()
        up.wait()
        at_point = self.points.learn(log)
        assert at_point or not ended_itself, f"the scheduler ended by itself, armed was {point}: see its log"
        self.count["point" if at_point else "random"] += 1

    def end(self, daemon, ask):
        if ask:
            os.kill(daemon[0], signal.SIGTERM)
            try:
                return wait_for("the scheduler to stop", lambda: is_gone(daemon), 120, 0.005)
            except AssertionError:
                pass
        os.kill(daemon[0], signal.SIGKILL)
        wait_for("the end of the scheduler", lambda: is_gone(daemon), 120, 0.005)

    def one(self):
        time.sleep(self.rng.choice((0, 0.03, 0.2)))  # away for a while, so that calls run out of patience
        point = self.points.choose()
        if not point:
            short = self.rng.random() < 0.25  # while it starts
            return self.live(None, self.rng.random() * (0.15 if short else 2.0))
        stopping = ".stop." in point[0]
        self.live(point, 0.7 + self.rng.random() if stopping else POINT_PATIENCE)

    def total(self):
        return sum(self.count.values())


class Clients:
    def __init__(self, pool, rng, count):
        self.directory = os.path.join(pool.base, "histories")
        os.mkdir(self.directory)
        self.stop_file = os.path.join(self.directory, "stop")
        self.processes, self.histories, self.paused = [], [], False
        for i in range(count):
            history = os.path.join(self.directory, f"client{i}")
            # Half of them soon give a call up, so that calls stay in doubt.
            pool.env["DCS_PATIENCE_S"] = "60" if i % 2 == 0 else "0"
            self.processes.append(pool.start([STREAM, "run", f"client{i}", str(rng.randrange(1 << 30)), history,
                                              str(i * SESSIONS_EACH + 1), self.stop_file]))
            self.histories.append(history)
        pool.env.pop("DCS_PATIENCE_S")

    def pause(self, paused):
        if paused == self.paused:
            return
        self.paused = paused
        for process in self.processes:
            process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def check_alive(self):
        for i, process in enumerate(self.processes):
            assert process.poll() is None, f"client{i} ended with exit code {process.returncode}"

    def finish(self):
        open(self.stop_file, "w").close()
        for i, process in enumerate(self.processes):
            assert process.wait(timeout=900 if FULL else 600) == 0, f"client{i}: exit code {process.returncode}"

    def kill(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def final_state(pool):
    sessions = {row["session"]: row["state"] for row in pool.json("session", "ls")["sessions"]}
    grains, numbers = {}, sorted(sessions)
    for i in range(0, len(numbers), 200):
        for row in pool.json("grain", "ls", *map(str, numbers[i:i + 200]))["grains"]:
            key = (row["session"], row["grain"])
            assert key not in grains, f"grain {key} is listed twice"
            grains[key] = row
    result = subprocess.run([STREAM, "look"], env=pool.env, stdout=subprocess.PIPE, timeout=600, check=True)
    streams = {}
    for line in result.stdout.decode().splitlines():
        session, grain, *rest = line.split()
        streams[(int(session), int(grain))] = rest
    return sessions, grains, streams


def judge(pool, clients):
    sessions, grains, streams = final_state(pool)
    counted = (len(sessions), len(grains), len(streams))
    checkers = [Checker(path) for path in clients.histories]
    wrong, calls, in_doubt = [], {}, 0
    for checker in checkers:
        checker.finish(sessions, grains, streams)
        wrong += checker.wrong
        in_doubt += checker.in_doubt
        for op, n in checker.counts.items():
            calls[op] = calls.get(op, 0) + n
    wrong += [f"session {n} exists and was never opened" for n in sessions]
    wrong += [f"grain {key} exists and was never submitted" for key in grains]
    print("calls:", ", ".join(f"{n} {op}" for op, n in sorted(calls.items())), f"; in doubt {in_doubt}")
    print(f"at the end {counted[0]} sessions, {counted[1]} grains, {counted[2]} finished")
    assert not wrong, f"{len(wrong)} things are wrong:\n" + "\n".join(wrong[:30])
    assert min(calls[op] for op in ("exec", "kill", "wait", "close", "resume", "reopen", "clean")) > 0, calls


def run(pool, a):
    rng = random.Random(a.seed)
    pool.up()
    clients = Clients(pool, rng, a.clients)
    try:
        lives = Lives(pool, rng, clients)
        lives.end(lives.scheduler(), ask=False)
        lives.live(("shell.stop.none", 1), 3.0)  # warm-up: the points of working, and of stopping
        lives.count = {"point": 0, "random": 0}
        end = time.monotonic() + a.seconds
        different = min(20, a.least // 2)  # points, however loaded the machine is
        while lives.total() < a.kills and (lives.total() < a.least or len(lives.points.killed) < different or time.monotonic() < end):
            lives.one()
            clients.check_alive()
        pool.up()
        clients.finish()
    finally:
        clients.kill()
    wait_for("the end of all grains", lambda: not pool.grain_processes())
    points = lives.points
    print(f"kills: {lives.total()}, of them {lives.count['point']} at {len(points.killed)} named points of "
          f"{len(points.known)}, {lives.count['random']} at random")
    missed = sorted(points.known - set(points.killed))
    if missed:
        print("not killed at:", " ".join(missed))
    judge(pool, clients)
    assert len(points.killed) >= different, f"too few points were hit: {sorted(points.killed)}"
    return missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DCS_SEED", "1")))
    parser.add_argument("--kills", type=int, default=1000 if FULL else 60)
    parser.add_argument("--least", type=int, default=1000 if FULL else 24, help="kills, whatever time they take")
    parser.add_argument("--seconds", type=float, default=55)
    parser.add_argument("--clients", type=int, default=4)
    a = parser.parse_args()
    print(f"seed {a.seed}; again: DCS_SEED={a.seed} python3 tests/process kill_points --kills {a.kills}", flush=True)
    pool = Pool(2, 2, 0.5, test_builds=("dcs_scheduler",))
    kept = True
    try:
        missed = run(pool, a)
        assert not missed or a.kills < 1000, f"never killed at {missed}"
        kept = False
    finally:
        if kept:
            pool.show_logs()
            print(f"kept for inspection: {pool.base}", flush=True)
        pool.down()
        left = pool.left_over()
        if not kept:
            shutil.rmtree(pool.base, ignore_errors=True)
    assert not left, f"processes left after dcs down: {left}"
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
