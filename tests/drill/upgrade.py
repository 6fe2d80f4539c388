#!/usr/bin/python3
"""Two releases in one pool of six hosts, each with an address of its own, and three control programs, while daemons, hosts and
programs are killed with -9 and wires are cut.

    upgrade.py [--seed N] [--seconds S] [--pairs | --rolling] [--plant NAME]

Pairs: scheduler, passive backup, grain servers and control programs, each of the last release or of this tree, in every mixture;
a pool of each. Rolling: a pool of the last release under load becomes one of this tree, part by part, in random order: a
part is stopped, killed or found dead, and continues with the other programs on what it has on its disk. Then the faults stop.

The checker is the drill's: every grain there once (lost 0, duplicated 0), results in one order, outputs byte-identical, no process
stuck. Exit code 77: no network namespaces here, or this clone does not have the last release."""
import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time

from drill import PAIRS, Faults, drained, judged, settle  # first: it says where the others are
from cluster import HOSTS, SERVERS, TESTS, Cluster, test_builds
from hurry import Hurry
from pool import FULL, ROOT, lock_holder, wait_for
from releases import last_one, this_one
from workload import Decide, Keep, Small, Wrong

PARTS = ["scheduler", "backup", *SERVERS, "programs"]


class NoPoints:
    """Programs as people have them know no named points."""

    def log_of(self, name):
        return "/dev/null"

    def learn(self, name):
        pass


class Pool:
    """A cluster of given releases under load."""

    def __init__(self, a, rng, network, releases):
        self.a, self.rng = a, rng
        self.points = NoPoints()
        self.cluster = Cluster(network, self.points, a.plant, releases)
        Small.count = a.small
        self.programs = []

    def __enter__(self):
        try:
            self.cluster.form()
            self.programs += [Decide(self.cluster), Small(self.cluster), Keep(self.cluster)]
        except BaseException:
            self.__exit__(Exception, None, None)
            raise
        self.faults = Faults(self.rng, self.cluster, self.programs)
        return self

    def __exit__(self, kind, value, trace):
        for program in self.programs:
            program.process.kill()
            program.process.wait()
        self.cluster.end(show=kind is not None)

    def disturb(self, seconds, pause):
        """Faults from all kinds of the drill for so long."""
        end = due = time.monotonic()
        end += seconds
        while time.monotonic() < end:
            if time.monotonic() >= due:
                self.faults.one()
                due = time.monotonic() + self.rng.expovariate(1 / pause)
            self.step()

    def step(self):
        self.faults.repair()
        self.cluster.supervise(lambda name: None)
        for program in self.programs:
            program.supervise(another_round=True)
        time.sleep(0.03)

    def upgrade(self, part, release):
        """Stopped as an administrator stops it, or killed; what it has on its disk its successor takes over."""
        self.cluster.releases[part] = release
        if part == "programs":
            for program in self.programs:
                program.kill()
            return "killed"
        if self.rng.random() < 0.5:
            self.cluster.kill(part)
            return "killed"
        if self.cluster.alive(part):
            self.cluster.running[part].terminate()
            wait_for(f"{part} to stop", lambda: not self.cluster.alive(part), 120)
        return "stopped"

    def finish(self):
        """The faults are over: everything comes to its end."""
        self.faults.repair(all_of_it=True)
        took = settle(self.cluster, self.programs, self.points, self.a.settle)
        drained(self.cluster, self.a.settle)
        return took

    def figures(self):
        deaths, faults = self.cluster.deaths, self.faults.count
        kills = sum(deaths.values()) + sum(p.kills for p in self.programs) + faults["kill launcher"] + faults["kill host"]
        rounds = sum(p.judged for p in self.programs)
        grains = sum(p.grains for p in self.programs)
        return kills, rounds, grains


def pairs(a, rng, network, old, new):
    """Every mixture but the two pure ones."""
    total = [0, 0, 0]
    for mixture in itertools.product((old, new), repeat=4):
        if len(set(mixture)) == 1:
            continue
        scheduler, backup, servers, programs = mixture
        releases = {"scheduler": scheduler, "backup": backup, "programs": programs, **dict.fromkeys(SERVERS, servers)}
        with Pool(a, rng, network, releases) as pool, Hurry(pool.cluster):
            pool.disturb(a.seconds, a.pause)
            took = pool.finish()
            figures = pool.figures()
        total = [x + y for x, y in zip(total, figures)]
        names = ", ".join(f"{part} {release.name}" for part, release in zip(("scheduler", "backup", "servers", "programs"), mixture))
        print(f"{names}: {figures[0]} kills, {figures[1]} rounds, {figures[2]} grains; ended {took:.0f} s after the faults", flush=True)
    print(f"pairs: {total[0]} kills, {total[1]} rounds of programs, {total[2]} grains, lost 0, duplicated 0, outputs identical", flush=True)


def rolling(a, rng, network, old, new):
    with Pool(a, rng, network, dict.fromkeys([*HOSTS, "programs"], old)) as pool, Hurry(pool.cluster):
        pool.disturb(a.seconds, a.pause)
        order = rng.sample(PARTS, len(PARTS))
        for part in order:
            how = pool.upgrade(part, new)
            print(f"{part} {how}, goes on as {new.name}", flush=True)
            pool.disturb(a.seconds, a.pause)
        took = pool.finish()
        kills, rounds, grains = pool.figures()
        wait_for("the launchers of the last release to be replaced", lambda: all(
            path.startswith(new.bin) for path in launchers(pool.cluster)), 120)
        running = {name: os.readlink(f"/proc/{pool.cluster.running[name].pid}/exe") for name in HOSTS}
        if any(not path.startswith(new.bin) for path in running.values()):
            raise Wrong(f"not all of this tree: {running}")
    print(f"rolling: {kills} kills, {len(pool.faults.parted)} pairs of {len(PAIRS)} parted, {rounds} rounds of programs, {grains} grains, "
          f"lost 0, duplicated 0, in order, outputs identical; ended {took:.0f} s after the faults", flush=True)


def launchers(cluster):
    holders = [lock_holder(os.path.join(cluster.directory(name), "launcher.lock")) for name in SERVERS]
    return [os.readlink(f"/proc/{pid}/exe") if pid else "none" for pid in holders]


def desks(old, new):
    """Control programs that dcs_begin starts on a host of their own: those programs of one release, the pool of the other."""
    for desk, pool in ((old, new), (new, old)):
        subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/process"), "begin_remote"], check=True, timeout=1800,
                       env=dict(os.environ, DCS_BIN=pool.bin, DCS_DESK_BIN=desk.bin, DCS_TOOLS=TESTS))
        print(f"dcs_begin {desk.name}, pool {pool.name}: works, and is refused where it should be", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DCS_SEED", "0")), help="0: a random one")
    parser.add_argument("--seconds", type=float, default=15, help="of faults, with each mixture or after each upgrade")
    parser.add_argument("--small", type=int, default=400, help="grains of the program that has many")
    parser.add_argument("--pause", type=float, default=0.7, help="seconds from fault to fault, on the average")
    parser.add_argument("--settle", type=float, default=600, help="seconds that everything may take to end after the faults")
    parser.add_argument("--plant", default="", help="a bug in this tree's daemons")
    parser.add_argument("--pairs", action="store_true", help="only those")
    parser.add_argument("--rolling", action="store_true", help="only that")
    a = parser.parse_args()
    if not FULL and not (a.pairs or a.rolling):
        print("SKIPPED: builds the last release; DCS_TESTS_FULL=1 runs it")
        return 77
    a.seed = a.seed or random.SystemRandom().randrange(1, 1 << 31)
    print(f"seed {a.seed}; again: tests/drill/upgrade.py --seed {a.seed} --seconds {a.seconds:g}", flush=True)
    planted = tempfile.TemporaryDirectory(prefix="dcs-upgrade-")
    old, new = last_one(), test_builds(planted.name) if a.plant else this_one()
    if old is None:
        print("SKIPPED: this clone does not have the last release's commit")
        return 77
    rng = random.Random(a.seed)

    def run(network):
        if not a.pairs:
            rolling(a, rng, network, old, new)
        if not a.rolling:
            pairs(a, rng, network, old, new)
            desks(old, new)

    return judged(run)


if __name__ == "__main__":
    sys.exit(main())
