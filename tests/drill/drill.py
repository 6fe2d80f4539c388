#!/usr/bin/python3
"""A whole pool of six hosts, each with an address of its own, and three control programs, while everything dies and every
wire is cut: scheduler, backup, grain servers, launchers, whole hosts and the control programs are killed with -9 at random and
at named points, each pair of hosts is parted, half-open or reset, and the scheduler stays away for many call-in intervals,
sometimes with the backup. Then the faults stop, and everything must come to its end as if nothing had been.

    drill.py [--seed N] [--minutes M] [--small N] [--points] [--plant NAME[,NAME]]

Wall clocks are set by an hour and by ten years meanwhile, and hosts fall asleep for an hour (clocks of their own, clocks.py).

The checker sees what the control programs print and what the commands say, nothing else: every grain there once (lost 0,
duplicated 0), results in one order, outputs byte-identical, no process stuck. Exit code 77: no network namespaces here."""
import argparse
import collections
import itertools
import os
import random
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/process"), os.path.join(ROOT, "libdcs/python")]
os.environ.setdefault("DCS_LIBRARY", os.path.join(os.environ.get("DCS_BIN", ROOT + "/build/release/bin"), "../lib/libdcs.so"))
import folders  # noqa: E402, F401  (the rest of tests/process)
import alone  # noqa: E402
from backwards import Backwards  # noqa: E402
from calm import Calm  # noqa: E402
from clocks import STEPS  # noqa: E402
from cluster import HOSTS, INTERVAL, SERVERS, Cluster  # noqa: E402
from directed import Directed  # noqa: E402
from hurry import Hurry  # noqa: E402
from network import Network  # noqa: E402
from points import Points  # noqa: E402
from pool import FULL  # noqa: E402
from workload import Decide, Errand, Keep, Small, Wrong  # noqa: E402

PAIRS = list(itertools.combinations(HOSTS, 2))
LEAST_POINTS = 60
ARMED, MOSTLY_ARMED = 0.6, 0.95  # of the new lives


class Deck:
    """Draws in random order, each card as often as the others."""

    def __init__(self, rng, cards):
        self.rng, self.cards, self.left = rng, list(cards), []

    def draw(self):
        if not self.left:
            self.left = self.rng.sample(self.cards, len(self.cards))
        return self.left.pop()


class Faults:
    """What is done to the pool, and when it is taken back."""

    def __init__(self, rng, cluster, programs):
        self.rng, self.cluster, self.network, self.programs = rng, cluster, cluster.network, programs
        self.count, self.parted = collections.Counter(), set()
        self.pairs, self.servers = Deck(rng, PAIRS), Deck(rng, SERVERS)
        self.repairs = []  # (time, what to do)
        self.kinds = Deck(rng, [self.kill_scheduler] * 2 + [self.lose_scheduler, self.lose_both] + [self.kill_backup] * 2 +
                          [self.kill_server] * 4 + [self.kill_launcher, self.kill_host, self.stop] + [self.kill_program] * 5 +
                          [self.cut] * 4 + [self.half_open] * 2 + [self.reset] * 2 + [self.isolate] +
                          ([self.step_clock] * 2 + [self.sleep] if cluster.clocks.exist else []))
        self.steps = Deck(rng, itertools.product([*HOSTS, "programs"], STEPS))

    def one(self):
        self.kinds.draw()()

    def a_while(self, least, most):
        return self.rng.uniform(least, most) * INTERVAL

    # ---- deaths -----------------------------------------------------------------------------
    def kill(self, name, rest):
        if self.cluster.kill(name, rest):
            self.count[f"kill {name if name in ('scheduler', 'backup') else 'server'}"] += 1

    def kill_scheduler(self):
        self.kill("scheduler", self.a_while(0, 2))

    def lose_scheduler(self):
        self.kill("scheduler", self.a_while(8, 14))
        self.count["scheduler away for 8 intervals or more"] += 1

    def lose_both(self):
        self.lose_scheduler()
        self.kill("backup", self.a_while(4, 10))
        self.count["both away"] += 1

    def kill_backup(self):
        self.kill("backup", self.a_while(0, 4))

    def kill_server(self):
        self.kill(self.servers.draw(), self.a_while(0, 4))

    def kill_launcher(self):
        self.count["kill launcher"] += self.cluster.kill_launcher(self.servers.draw())

    def kill_host(self):
        self.cluster.kill_host(self.servers.draw(), self.a_while(0, 16))
        self.count["kill host"] += 1

    def stop(self):
        """As its service does, which starts it again."""
        name = self.rng.choice(HOSTS)
        if self.cluster.alive(name):
            self.cluster.running[name].terminate()
            self.count["stop"] += 1

    def kill_program(self):
        program = self.rng.choice(self.programs)
        before = program.kills
        program.kill()
        self.count[f"kill {program.name}"] += program.kills - before

    # ---- wires ------------------------------------------------------------------------------
    def later(self, least, most, what, *words):
        self.repairs.append((time.monotonic() + self.a_while(least, most), what, words))

    def cut(self):
        pair = self.pairs.draw()
        self.network.cut(*pair)
        self.later(1, 14, self.network.mend, *pair)
        self.parted.add(pair)
        self.count["cut"] += 1

    def half_open(self):
        pair = self.pairs.draw()
        self.network.lose(*self.rng.sample(pair, 2))
        self.later(1, 14, self.network.mend, *pair)
        self.parted.add(pair)
        self.count["half-open"] += 1

    def reset(self):
        """Both directions of what the two have are reset; new connections are refused for a while."""
        pair = self.rng.sample(self.pairs.draw(), 2)
        if any(what == self.network.refuse_no_more and words == tuple(pair) for _, what, words in self.repairs):
            return
        self.network.refuse(*pair)
        self.later(0.5, 3, self.network.refuse_no_more, *pair)
        self.count["reset"] += 1

    def isolate(self):
        name = self.rng.choice(HOSTS)
        self.network.isolate(name)
        self.later(1, 14, self.network.rejoin, name)
        self.count["isolated"] += 1

    # ---- clocks -----------------------------------------------------------------------------
    def step_clock(self):
        """Ten years off, a process that connects again meanwhile is not believed, and believes no process."""
        name, seconds = self.steps.draw()
        self.cluster.clocks.set(name, seconds)
        self.later(2, 14, self.cluster.clocks.set, name, 0)
        self.count["clock step"] += 1

    def sleep(self):
        name = self.rng.choice(HOSTS)
        self.later(0.5, 10, self.cluster.awake, name, self.cluster.sleep(name), 1)
        self.count["host asleep for an hour"] += 1

    def repair(self, all_of_it=False):
        now = time.monotonic()
        due = [r for r in self.repairs if all_of_it or r[0] <= now]
        self.repairs = [r for r in self.repairs if r not in due]
        for _, what, words in due:
            what(*words)


def disturb(a, rng, cluster, programs, points, faults):
    def arm(name):
        return points.choose(name) if rng.random() < (MOSTLY_ARMED if a.points else ARMED) else None

    for name in HOSTS:
        points.learn(name)
    if a.minutes == 0:
        return
    begin = time.monotonic()
    end = begin + a.minutes * 60
    due = begin
    while time.monotonic() < end or len(faults.parted) < len(PAIRS):
        if time.monotonic() >= due:
            (faults.one if time.monotonic() < end else faults.cut)()
            due = time.monotonic() + rng.expovariate(1 / a.pause)
        faults.repair()
        cluster.supervise(arm)
        for program in programs:
            program.supervise(another_round=True)
        time.sleep(0.03)
    faults.repair(all_of_it=True)
    for name in SERVERS:  # a server hands what it was ordered to die at on to each launcher that it starts
        if cluster.armed.get(name):
            faults.kill(name, 0)


def disarm(cluster):
    """A process that would still die at some point does so now: daemons, and launchers, which outlive the server that armed them."""
    for name in HOSTS:
        if cluster.armed.get(name):
            cluster.kill(name)
    for name in SERVERS:
        cluster.kill_launcher(name)
    cluster.supervise(lambda name: None)


def settle(cluster, programs, points, limit):
    """What was armed may die now still, and is started again; nothing else happens any more."""
    begin = time.monotonic()
    cluster.rest = dict.fromkeys(HOSTS, 0.0)
    left = list(programs)
    while left:
        cluster.supervise(lambda name: None)
        left = [program for program in left if not program.supervise(another_round=False)]
        if time.monotonic() - begin > limit:
            raise Wrong(f"stuck: {[program.name for program in left]} did not end within {limit} s after the faults")
        time.sleep(0.05)
    for name in HOSTS:
        points.learn(name)
    return time.monotonic() - begin


def drained(cluster, limit):
    """No process has anything left that the scheduler has not."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        cluster.supervise(lambda name: None)
        status = cluster.backup_status()
        if status and status["scheduler"] and status["reports"] == 0 and not cluster.grain_processes():
            return
        time.sleep(0.2)
    raise Wrong(f"stuck: the backup holds {cluster.backup_status()}, grains run on: {cluster.grain_processes()}")


def tell(a, cluster, programs, points, faults, took):
    deaths = sum(cluster.deaths.values())
    kills = deaths + sum(program.kills for program in programs) + faults.count["kill launcher"] + faults.count["kill host"]
    at_points = sum(sum(deaths.values()) for role, deaths in points.killed.items() if role != "launcher")
    launchers = sum(points.killed["launcher"].values())  # a server starts them until it is started again itself
    print(f"{kills} kills, of them {at_points} at named points, and {launchers} of launchers at theirs; {len(points.hit())} "
          f"points; each daemon: {cluster.deaths}")
    print(f"{sum(faults.count[k] for k in ('cut', 'half-open', 'reset', 'isolated'))} partitions, of {len(faults.parted)} "
          f"pairs of {len(PAIRS)}; {dict(faults.count)}")
    print("; ".join(f"{p.name}: {p.judged} rounds, {p.grains} grains, run {p.reruns + p.judged} times" for p in programs))
    print(f"lost 0, duplicated 0, in order, outputs identical; all ended {took:.0f} s after the faults")


def run(a, network):
    rng = random.Random(a.seed)
    points = Points(rng, "")
    cluster = Cluster(network, points, a.plant)
    points.directory = cluster.base
    Small.count = a.small
    programs, good = [], False
    try:
        cluster.form()
        programs += [Decide(cluster), Small(cluster), Keep(cluster)]
        faults = Faults(rng, cluster, programs)
        with Hurry(cluster):
            disturb(a, rng, cluster, programs, points, faults)
            if a.points:
                programs.append(Errand(cluster))
                Directed(cluster, programs, points, a.directed).run()
            took = settle(cluster, programs, points, a.settle)
            drained(cluster, a.settle)
            disarm(cluster)
            drained(cluster, a.settle)
            Calm(rng, cluster).run()
            Backwards(cluster, programs[0].env).run()
            if a.points:
                alone.run(cluster, points)
                alone.run_mirrored(points)
        tell(a, cluster, programs, points, faults, took)
        if a.points:
            points.print_table()
            if points.left() or len(points.hit()) < LEAST_POINTS:
                raise Wrong(f"{len(points.hit())} points ended a daemon, {LEAST_POINTS} are the least; the others: "
                            f"{sorted(points.left())}")
            if points.contradictions():
                raise Wrong(f"said to be beyond a drill, but passed: {points.contradictions()}")
        good = True
    finally:
        for program in programs:
            program.process.kill()
            program.process.wait()
        cluster.end(show=not good)


def judged(run):
    """Runs with namespaces for the hosts; the exit code, and a line for people."""
    try:
        network = Network(HOSTS)
    except Network.CannotBe as error:
        print(f"SKIPPED, network namespaces cannot be made here: {error}")
        return 77
    try:
        run(network)
    except (Wrong, AssertionError, subprocess.SubprocessError) as wrong:
        print(f"WRONG: {wrong}")
        return 1
    finally:
        network.close()
    print("1 passed, 0 failed")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DCS_SEED", "0" if FULL else "1")),
                        help="0: a random one")
    parser.add_argument("--minutes", type=float, default=60 if FULL else 1.5)
    parser.add_argument("--small", type=int, default=10000 if FULL else 1000, help="grains of the program that has many")
    parser.add_argument("--pause", type=float, default=0.7, help="seconds from fault to fault, on the average")
    parser.add_argument("--settle", type=float, default=600, help="seconds that everything may take to end after the faults")
    parser.add_argument("--directed", type=float, default=1800, help="seconds that driving daemons to their points may take")
    parser.add_argument("--points", action="store_true", default=FULL, help="kill a daemon at each named point; print the table")
    parser.add_argument("--plant", default="", help="bugs to be planted in the daemons")
    a = parser.parse_args()
    a.seed = a.seed or random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {a.seed}; again: tests/drill/drill.py --seed {a.seed} --minutes {a.minutes:g} --small {a.small}", flush=True)
    return judged(lambda network: run(a, network))


if __name__ == "__main__":
    sys.exit(main())
