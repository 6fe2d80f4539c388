"""The named points of the daemons: which there are, which were passed, at which a daemon was killed."""
import collections
import os
import re

from pool import ROOT

FOLDERS = ("scheduler", "backupd", "grainserver", "libdcs")
# Of these a daemon passes what its stores, locks and files need.
DAEMONS = {"scheduler": "scheduler", "backup": "backup", "h1": "grain server", "h2": "grain server", "h3": "grain server",
           "h4": "grain server"}
# What no daemon of a drill passes, by the beginning of its name, and who passes it instead.
BEYOND = {
    "lock_command.": "only dcs_lock, which is killed by process/locks_kill_storm",
    "locks.keeper.": "only the keeper of a command under dcs_lock",
    "locks.kill.": "only who ends the holder of an adaptive lock",
    "locks.queue.": "only who waits for an adaptive lock",
    "locks.reap.": "only who ends the holder of an adaptive lock",
    "locks.supervise.": "only dcs_lock",
    "store.lost_root.": "only with a damaged disk: crash/store",
    "store.marker.": "only with a damaged disk: crash/store",
    "store.reserve_shrink.": "only with a full disk: crash/store",
}


def why_not(point):
    """None: it should have been passed."""
    return next((why for name, why in BEYOND.items() if point.startswith(name)), None)


def in_source():
    """Every point that the source names."""
    found = set()
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(".cc"):
                    with open(os.path.join(path, name)) as file:
                        found.update(re.findall(r'\bfailpoint\("([a-z_.]+)"\)', file.read()))
    return found


class Points:
    def __init__(self, rng, directory):
        self.rng, self.directory = rng, directory
        self.passed, self.killed = collections.defaultdict(set), collections.defaultdict(collections.Counter)
        self.tries = collections.Counter()
        self.read = collections.Counter()  # bytes of each log

    def log_of(self, name):
        return os.path.join(self.directory, name + ".points")

    def learn(self, name):
        """Takes in what a life has written. A grain server's launcher writes to the same file, and may outlive it."""
        role = DAEMONS[name]
        if not os.path.exists(self.log_of(name)):
            return
        with open(self.log_of(name)) as file:
            file.seek(self.read[name])
            text = file.read()
            whole = text[:text.rfind("\n") + 1]
            self.read[name] += len(whole)
            for line in whole.splitlines():
                words = line.split()
                of = "launcher" if words[0].startswith("launcher.") else role
                self.passed[of].add(words[0])
                if len(words) == 3:
                    self.killed[of][words[0]] += 1

    def choose(self, name):
        """(point, visit) at which that daemon's next life shall end: rather one at which none has died yet."""
        roles = [DAEMONS[name]] + ["launcher"] * (DAEMONS[name] == "grain server")
        known = [(role, point) for role in roles for point in self.passed[role]]
        if not known:
            return None
        least = min(10 * (role_point[1] in self.killed[role_point[0]]) + self.tries[role_point] for role_point in known)
        role, point = self.rng.choice(sorted(k for k in known
                                             if 10 * (k[1] in self.killed[k[0]]) + self.tries[k] <= least + 1))
        self.tries[role, point] += 1
        first = ".start." in point or "recover" in point or self.tries[role, point] > 1
        return point, 1 if first else self.rng.randint(1, 4)

    def hit(self):
        return {point for role in self.killed for point in self.killed[role]}

    def print_table(self):
        roles = ("scheduler", "backup", "grain server", "launcher")
        print(f"{'point':40}" + "".join(f"{role:>14}" for role in roles))
        for point in sorted(set().union(*self.passed.values())):
            cells = [str(self.killed[role][point]) if point in self.killed[role] else
                     "passed" if point in self.passed[role] else "" for role in roles]
            print(f"{point:40}" + "".join(f"{cell:>14}" for cell in cells))
        print("a launcher's locks stand in its server's column, as both write to one file")
        for point in sorted(in_source() - set().union(*self.passed.values())):
            print(f"{point:40}  not passed: {why_not(point) or 'by chance, or nobody knows why'}")
        ends, passed = sum(map(len, self.killed.values())), sum(map(len, self.passed.values()))
        print(f"{len(self.hit())} points were somebody's end; {ends} of the {passed} pairs of a kind of daemon and a point it passed")
