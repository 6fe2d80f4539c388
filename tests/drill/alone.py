"""Daemons on copies of what the drill's scheduler and backup left when they were killed: on a disk that is full, and with bytes that
are gone. There they die at the points that no process passes on a healthy disk, are started again, and serve what is left. And a pool
whose backup keeps a copy of the store, where both die at the points of that, and the promotion too."""
import json
import os
import shutil
import subprocess
import sys
import time

import mirror
from cluster import SERVERS, TESTS
from hurry import Hurry
from network import end_with_parent
from pool import ROOT, wait_for
from workload import Wrong

LIVES = 50
# Grains that report a checkpoint every 0.4 s, for the better part of an hour: longer than all of it takes on a busy machine.
WRITERS = """
import sys
import dcs
with dcs.Session("writers") as session:
    for number in range(1, 9):
        session.submit(number, [sys.argv[1], "1", "40"], input="x\\n" * 300000)
    session.wait()
"""
ROOM = 64 << 20  # of the small disk; it is filled to the last byte
FULL_DISK = """
mount -t tmpfs -o size=$ROOM tmpfs "$STATE" && cp -a "$SAVED"/. "$STATE" || exit 99
cat /dev/zero >"$STATE/fill" 2>/dev/null
DCS_FAILPOINTS=$ARMED "$@"
[ $? -eq 137 ] || exit 98
exec "$@"
"""


class Alone:
    def __init__(self, cluster, points, role):
        self.cluster, self.points, self.role = cluster, points, role
        self.base = os.path.join(cluster.base, "alone")
        self.directory, self.saved = os.path.join(self.base, role), os.path.join(cluster.base, role + ".saved")
        self.state, self.text = os.path.join(self.directory, "state"), ""
        self.env = dict(cluster.env, DCS_DIR=self.base, DCS_PATIENCE_S="60", DCS_FAILPOINT_LOG=points.log_of("alone"))

    def save(self):
        """Its life has ended, with turns that were committed and not synced away."""
        live = self.cluster.directory(self.role)
        wait_for(f"turns of the {self.role}", lambda: self.roots(live), 600, 0.002)
        self.cluster.kill(self.role)  # what there is now is synced away by the next start: only then something is appended to
        self.cluster.start(self.role)
        question = ("host", "ls") if self.role == "scheduler" else ("backup", "status")
        wait_for(f"the {self.role}", lambda: self.cluster.dcs(*question, check=False).returncode == 0, 600)
        for _ in range(LIVES):
            wait_for(f"turns of the {self.role}", lambda: self.roots(live), 600, 0.002)
            self.cluster.kill(self.role)
            if self.roots(live):
                break
            self.cluster.start(self.role)
        shutil.copytree(live, self.saved, ignore=lambda _, names: [n for n in names if "sock" in n])
        if not self.roots(self.saved):
            raise Wrong(f"the {self.role} was killed {LIVES} times, and nothing was left to do again")

    def roots(self, directory):
        turns = os.path.join(directory, "state/turns")
        return [os.path.join(turns, name) for name in sorted(os.listdir(turns)) if name.endswith(".commit")]

    def fresh(self):
        shutil.rmtree(self.base, ignore_errors=True)
        shutil.copytree(self.saved, self.directory)

    def command(self, *words):
        """Without its door: no process but this test is to find it."""
        program = "dcs_scheduler" if self.role == "scheduler" else "dcs_backupd"
        own = [] if self.role == "scheduler" else ["--scheduler", os.path.join(self.base, "nobody.sock")]
        return [os.path.join(self.cluster.bin, program), "--dir", self.directory, *own, *words]

    def start(self, *words, point=None, prefix=(), **env):
        """The process, and whether it serves. With a point: it must die there, unless another process has to (prefix)."""
        armed = self.points.variable((self.role, point, 1)) if point else {}
        if prefix and armed:
            armed = {"ARMED": armed["DCS_FAILPOINTS"]}
        read, write = os.pipe()
        log = os.path.join(self.cluster.base, f"alone-{self.role}.log")
        with open(log, "wb") as out:
            process = subprocess.Popen([*prefix, *self.command(*words, "--ready-fd", str(write))], pass_fds=(write,), stdout=out,
                                       stderr=out, env=dict(self.env, **armed, **env), stdin=subprocess.DEVNULL,
                                       preexec_fn=end_with_parent)
        os.close(write)
        with os.fdopen(read, "rb") as ready:
            serves = ready.readline() == b"ready\n"
        if not serves:
            process.wait()
        with open(log, errors="replace") as file:
            self.text = file.read()
        self.points.learn("alone", [self.role])
        return process, serves

    def dies(self, point, *words):
        process, serves = self.start(*words, point=point)
        process.kill()
        process.wait()
        return not serves and point in self.points.killed[self.role]

    def must(self, condition, what):
        if not condition:
            raise Wrong(f"the {self.role}'s copy: {what}\n{self.text[-3000:]}")

    def serving(self, look, *words, **options):
        process, serves = self.start(*words, **options)
        try:
            self.must(serves, f"it does not start ({process.poll()})")
            return look()
        finally:
            process.kill()
            process.wait()

    def ask(self, *words):
        done = subprocess.run([os.path.join(self.cluster.bin, "dcs"), *words, "-o", "json"], env=self.env, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.must(done.returncode in (0, 1), f"dcs {' '.join(words)}: {done.returncode} {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def holds(self):
        """What it must not have lost."""
        if self.role == "backup":
            return self.ask("backup", "status", "--dir", self.base)["reports"]
        return [(s["session"], s["ident"], s["finished"]) for s in self.ask("session", "ls")["sessions"]]

    # ---- what befalls it --------------------------------------------------------------------
    def full_disk(self, right):
        for point in ("store.reserve_shrink.before", "store.reserve_shrink.after"):
            self.fresh()
            shutil.rmtree(self.state)
            os.mkdir(self.state)
            prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", FULL_DISK, "sh"]
            now = self.serving(self.holds, point=point, prefix=prefix, STATE=self.state, ROOM=str(ROOM),
                               SAVED=os.path.join(self.saved, "state"))
            self.must(now == right, f"started on a full disk, killed at {point}, started again: {now} instead of {right}")

    def lost_root(self):
        """The last turn's root is nothing but zeros. It says so and touches nothing; told to go on without, it does."""
        self.fresh()
        root = self.roots(self.directory)[-1]
        turn = str(int(os.path.basename(root).split(".")[0]))
        size = os.path.getsize(root)
        with open(root, "wb") as file:
            file.write(bytes(size))
        process, serves = self.start()
        self.must(not serves and process.returncode != 0 and os.path.basename(root) in self.text, "a lost turn is not named")
        for point in ("store.lost_root.before", "store.lost_root.after"):
            self.must(self.dies(point, "--accept-lost-turn", turn), f"it does not come to {point}")
        self.serving(self.holds)

    def damaged_tree(self):
        """A file to which a turn that is to be done again appends is empty now: its tree is set aside, the rest goes on."""
        roots = b"".join(open(root, "rb").read() for root in self.roots(self.saved))
        for folder, _, names in sorted(os.walk(os.path.join(self.saved, "state"))):
            tree = os.path.relpath(folder, os.path.join(self.saved, "state"))
            for name in sorted(names) if tree != "turns" and tree.encode() in roots else ():
                self.fresh()
                os.truncate(os.path.join(self.state, tree, name), 0)
                if not self.dies("store.marker.before"):
                    continue
                self.must(self.dies("store.marker.after"), "it does not come to store.marker.after")
                self.serving(self.holds)
                self.must(os.path.exists(os.path.join(self.state, tree, "DAMAGED")) and tree in self.text, f"{tree} is not set aside")
                return
        raise Wrong(f"the {self.role}'s copy: no turn is left that appends to a file")

    def run(self):
        self.fresh()
        right = self.serving(self.holds)
        self.must(right, "it holds nothing")
        self.full_disk(right)
        if self.role == "scheduler":
            self.lost_root()
        self.damaged_tree()
        shutil.rmtree(self.base)


def leave_reports(cluster):
    """Grains write while the scheduler is away: for it there are turns to finish, for the backup there is something to hold.
    What is left of them ends with the cluster."""
    env = dict(cluster.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"),
               DCS_LIBRARY=os.path.join(TESTS, "planted/libdcs.so"))
    work = subprocess.Popen([sys.executable, "-B", "-c", WRITERS, os.path.join(TESTS, "grains/ledger_c")], env=env,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cluster.base,
                            preexec_fn=end_with_parent)
    try:
        wait_for("grains on all hosts", lambda: len(cluster.grain_processes()) == 8, 600)
        yield "scheduler"
        logs = [os.path.join(cluster.directory("backup"), "state/hosts", name, "log") for name in SERVERS]
        wait_for("reports of each server", lambda: all(os.path.exists(log) and os.path.getsize(log) > 0 for log in logs), 600)
        yield "backup"
    finally:
        work.kill()
        work.wait()


def run(cluster, points):
    """Ends the pool's scheduler and backup."""
    begin, before = time.monotonic(), len(points.left())
    alone = []
    for role in leave_reports(cluster):
        alone.append(Alone(cluster, points, role))
        alone[-1].save()
    for one in alone:
        one.run()
    print(f"{before - len(points.left())} more on damaged and on full disks, in {time.monotonic() - begin:.0f} s", flush=True)


def run_mirrored(points):
    begin, before = time.monotonic(), len(points.left())
    with mirror.MirroredPool(2, 1, 1.0, test_builds=("dcs_scheduler", "dcs_backupd")) as pool, Hurry(pool):
        pool.env["DCS_FAILPOINT_LOG"] = points.log_of("mirrored")
        test = mirror.Test(pool)
        test.current()
        mirror.killed_at_points(test)
        mirror.killed_while_it_removes(test)
        test.kill("backup")
        mirror.promotion_interrupted(test)
        points.learn("mirrored", ["scheduler", "backup"])
    print(f"{before - len(points.left())} more with a copy of the store, in {time.monotonic() - begin:.0f} s", flush=True)
