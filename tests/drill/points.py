"""The named points of the daemons: which there are, which were passed, at which a daemon was killed."""
import collections
import os
import re

from pool import BIN, ROOT

FOLDERS = ("scheduler", "backupd", "grainserver", "libdcs")
PROGRAMS = {"scheduler": "dcs_scheduler", "backup": "dcs_backupd", "grain server": "dcs_grainserver", "launcher": "dcs_launcher"}
LOCKS = "no daemon asks for a place in a lock's queue, or that a holder be ended (locks/dcs_atoms.cc, start_grain.cc): only dcs_lock " \
        "and the library do, whom process/locks_kill_storm kills there"
# Linked into a daemon and never passed by it, by the beginning of the point's name.
BEYOND = {role: {"locks.queue.": LOCKS, "locks.kill.": LOCKS, "locks.reap.": LOCKS} for role in PROGRAMS}
BEYOND["backup"]["store.lost_root."] = "it has no option by which a lost turn is accepted: what it held is on the hosts again"
BEYOND["scheduler"]["reader."] = "the drill's programs import no session: process/security_reader stops the scheduler there"


def roles_of(name):
    """The kinds of daemons on a host of the drill."""
    return [name] if name in ("scheduler", "backup") else ["grain server", "launcher"]


def why_not(role, point):
    """None: a daemon of that kind passes it."""
    return next((why for name, why in BEYOND[role].items() if point.startswith(name)), None)


def in_source():
    """Every point that the source names."""
    found = set()
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(".cc"):
                    with open(os.path.join(path, name)) as file:
                        for call in re.findall(r"\bfailpoint\(([^;]*)\);", file.read()):
                            found.update(re.findall(r'"([a-z_.]+)"', call))
    return found


def linked(points):
    """Those of them that each kind of daemon has in its program."""
    found = {}
    for role, program in PROGRAMS.items():
        with open(os.path.join(os.path.dirname(BIN), "tests", program + "_test"), "rb") as file:
            text = file.read()
        found[role] = {point for point in points if point.encode() + b"\0" in text}
    return found


class Points:
    def __init__(self, rng, directory):
        self.rng, self.directory = rng, directory
        self.passed, self.killed = collections.defaultdict(set), collections.defaultdict(collections.Counter)
        self.tries = collections.Counter()
        self.read = collections.Counter()  # bytes of each log
        self.source = in_source()
        self.linked = linked(self.source)

    def log_of(self, name):
        """For the environment: each program writes to a file of its own."""
        return os.path.join(self.directory, name + ".%.points")

    def learn(self, name, roles=None):
        """Takes in what a life has written."""
        for role in roles or roles_of(name):
            path = self.log_of(name).replace("%", PROGRAMS[role])
            if not os.path.exists(path):
                continue
            with open(path) as file:
                file.seek(self.read[path])
                text = file.read()
            whole = text[:text.rfind("\n") + 1]
            self.read[path] += len(whole)
            for line in whole.splitlines():
                words = line.split()
                self.passed[role].add(words[0])
                if len(words) == 3:
                    self.killed[role][words[0]] += 1

    def choose(self, name):
        """(role, point, visit) at which that host's daemon, or the launcher that it starts, shall end: rather one at which
        none has died yet."""
        known = [(role, point) for role in roles_of(name) for point in self.passed[role]]
        if not known:
            return None
        least = min(10 * (role_point[1] in self.killed[role_point[0]]) + self.tries[role_point] for role_point in known)
        role, point = self.rng.choice(sorted(k for k in known
                                             if 10 * (k[1] in self.killed[k[0]]) + self.tries[k] <= least + 1))
        self.tries[role, point] += 1
        first = ".start." in point or "recover" in point or self.tries[role, point] > 1
        return role, point, 1 if first else self.rng.randint(1, 4)

    def variable(self, armed):
        """Of the environment of who is to die there."""
        role, point, visit = armed
        return {"DCS_FAILPOINTS": f"{PROGRAMS[role]}:{point}=kill@{visit}"}

    def hit(self):
        return {point for role in self.killed for point in self.killed[role]}

    def left(self):
        """Pairs of a kind of daemon and a point at which none has died yet, though it can."""
        return {(role, point) for role, points in self.linked.items() for point in points
                if point not in self.killed[role] and not why_not(role, point)}

    def contradictions(self):
        """Reasons in BEYOND that are none."""
        return sorted(f"{role} {point}" for role, points in self.passed.items() for point in points if why_not(role, point))

    def print_table(self):
        print(f"{'point':40}" + "".join(f"{role:>14}" for role in PROGRAMS))
        for point in sorted(self.source):
            cells = [str(self.killed[role][point]) if point in self.killed[role] else
                     "passed" if point in self.passed[role] else
                     "" if point not in self.linked[role] else "beyond" if why_not(role, point) else "MISSED" for role in PROGRAMS]
            print(f"{point:40}" + "".join(f"{cell:>14}" for cell in cells))
        reasons = {(role, name): why for role, rows in BEYOND.items() for name, why in rows.items()}
        for (role, name), why in reasons.items():
            print(f"beyond a {role}: {name}*: {why}")
        nobody = sorted(self.source - set().union(*self.linked.values()))
        print("in no daemon's program:", " ".join(nobody))
        pairs = sum(len(points) for points in self.linked.values())
        beyond = sum(why_not(role, point) is not None for role, points in self.linked.items() for point in points)
        print(f"{len(self.hit())} points ended a daemon; of {pairs} pairs of a kind of daemon and a point in its program "
              f"{sum(map(len, self.killed.values()))} were, {beyond} are beyond it, {len(self.left())} were missed")
