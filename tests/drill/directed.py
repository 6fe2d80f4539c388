"""The points at which no process has died by chance, one after the other: a daemon is set to die at a point and is driven there,
while the control programs work. First those of the backup, for which the scheduler is stopped repeatedly; then all others."""
import os
import signal
import time

from cluster import HOSTS
from points import roles_of
from workload import Wrong

PATIENCE = 12     # s of a life, then it is asked to stop, then killed
SOON = 2          # s, for what lies on the way of stopping
AWAY, HERE = 5, 7  # s of the scheduler's, in turns, for the backup's sake
HINTS_AT = 32768 + 64 * 256  # of a file of counted slots: whose head is there when no process has to look at each slot
# Not in this pool: alone.py. A backup removes trees only of the copy that it keeps there.
ALONE = ("mirror.", "store.lost_root.", "store.marker.", "store.reserve_shrink.")
ALONE_OF = {"backup": (*ALONE, "store.apply_remove.")}


class Directed:
    def __init__(self, cluster, programs, points, limit):
        self.cluster, self.programs, self.points, self.limit = cluster, programs, points, limit
        self.roles, self.asked, self.change = (), {}, time.monotonic()
        self.reloads = 0

    def wanted(self, name=None):
        return [(role, point) for role, point in sorted(self.points.left())
                if role in (roles_of(name) if name else self.roles) and role in self.roles
                and (not point.startswith(ALONE_OF.get(role, ALONE)) or point.startswith("mirror.attached."))]

    # ---- one life ---------------------------------------------------------------------------
    def arm(self, name):
        wanted = self.wanted(name)
        self.asked.pop(name, None)
        if not wanted:
            return None
        others = [armed[:2] for other, armed in self.cluster.armed.items() if armed and other != name]
        role, point = min(wanted, key=lambda pair: (self.points.tries[pair] + 3 * (pair in others), pair))
        self.points.tries[role, point] += 1
        self.prepare(name, role, point)
        return role, point, 1

    def prepare(self, name, role, point):
        """No process of that host lives: what makes the next life pass there."""
        directory = self.cluster.directory(name)
        if role == "launcher":
            self.cluster.kill_launcher(name)
        if ".reserve_grow." in point:
            self.remove(directory, "state/reserve")
        elif ".members." in point:
            self.remove(directory, "members")  # as its own advice is when it is damaged
        elif "mirror.attached." in point:
            self.remove(directory, "attached")
        elif point == "locks.slots.before_rebuild":
            self.damage_slots(directory)

    def remove(self, *words):
        path = os.path.join(*words)
        if os.path.exists(path):
            os.remove(path)

    def damage_slots(self, directory):
        """The head of the hints, which are made again from the locks."""
        for folder, _, names in os.walk(os.path.join(directory, "slots")):
            for path in (os.path.join(folder, name) for name in names):
                if os.path.getsize(path) > HINTS_AT + 4:
                    with open(path, "r+b") as file:
                        file.seek(HINTS_AT)
                        file.write(b"\xff\xff\xff\xff")

    def look(self, name):
        """A process who does not come to the point where he is to die goes another way."""
        cluster, armed = self.cluster, self.cluster.armed.get(name)
        if not armed or not cluster.alive(name):
            return
        role, point, _ = armed
        age = time.monotonic() - cluster.since[name]
        if point in self.points.killed[role]:  # a launcher did, or another host's; or the server would arm the next one
            cluster.kill(name)
        elif name in self.asked:
            if time.monotonic() > self.asked[name] + PATIENCE:
                cluster.kill(name)
        elif age > (SOON if ".stop." in point or ".release." in point else PATIENCE):
            self.asked[name] = time.monotonic()
            if role == "launcher":
                cluster.kill_launcher(name, signal.SIGTERM)
            else:
                cluster.running[name].terminate()

    # ---- all of them ------------------------------------------------------------------------
    def outage(self):
        """Grain servers have something to report to the backup, and it something to hand over."""
        if time.monotonic() < self.change:
            return
        if self.cluster.alive("scheduler"):
            self.cluster.kill("scheduler", AWAY)
            self.change = time.monotonic() + AWAY + HERE
        else:
            self.change = time.monotonic() + 1

    def reload(self):
        """A change of the host table, for what servers write down of it."""
        if time.monotonic() < self.change or not self.cluster.alive("scheduler"):
            return
        self.change = time.monotonic() + 4
        self.reloads += 1
        self.cluster.write_table(slots=1 + self.reloads % 2)
        self.cluster.dcs("reload", check=False)

    def phase(self, roles, until, act, end):
        """Until no process of the kind `until` has a point left; others of `roles` get on meanwhile."""
        self.roles, self.change = roles, time.monotonic() + HERE
        for name in HOSTS:  # the next life is armed
            self.cluster.kill(name)
        while any(role in until for role, _ in self.wanted()):
            if time.monotonic() > end:
                raise Wrong(f"no daemon came to these points within {self.limit:g} s: " + ", ".join(
                    f"{role} {point} ({self.points.tries[role, point]} lives)" for role, point in self.wanted()))
            self.cluster.supervise(self.arm)
            for name in HOSTS:
                self.points.learn(name)
                self.look(name)
            for program in self.programs:
                program.supervise(another_round=True)
            act()
            time.sleep(0.03)

    def run(self):
        begin, before = time.monotonic(), len(self.points.left())
        servers = ("grain server", "launcher")
        self.phase(("backup", *servers), ("backup",), self.outage, begin + self.limit)
        self.phase(("scheduler", *servers), ("scheduler", *servers), self.reload, begin + self.limit)
        self.cluster.write_table()
        print(f"{before - len(self.points.left())} pairs of a daemon and a point more, by driving it there, in "
              f"{time.monotonic() - begin:.0f} s", flush=True)
