"""The control programs of a drill: started again when they were killed, judged when they have ended, then the next round
of them begins, as long as the faults last."""
import hashlib
import os
import re
import subprocess
import sys

import decide
import errand
import keep
from cluster import TESTS, Away
from network import end_with_parent

SEAM = b"--\n"  # as keep.py writes it
HERE = os.path.dirname(os.path.abspath(__file__))


class Wrong(AssertionError):
    """What the checker found."""


class Workload:
    """One control program, round after round."""
    name = ""

    def __init__(self, cluster):
        self.cluster, self.round, self.process = cluster, 0, None
        self.kills = self.reruns = self.judged = self.grains = 0
        self.prepare()
        self.start()

    def path(self, what):
        return os.path.join(self.cluster.base, f"{self.name}-{self.round}.{what}")

    def prepare(self):
        """Whatever a round needs besides the program."""

    @property
    def env(self):
        cluster, release = self.cluster, self.cluster.releases["programs"]
        return dict(cluster.env, **cluster.plants, **cluster.clocks.variables("programs"), PYTHONPATH=release.python,
                    DCS_LIBRARY=release.library)

    def start(self):
        with open(self.path("out"), "wb") as out, open(self.path("err"), "ab") as err:
            self.process = subprocess.Popen(self.command(), env=self.env, stdout=out, stderr=err, cwd=self.cluster.base,
                                            stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            self.kills += 1

    def supervise(self, another_round):
        """True: nothing is left to do."""
        code = self.process.poll()
        if code is None:
            return False
        if code == -9:
            self.reruns += 1
            self.start()
            return False
        if code != 0:
            raise Wrong(f"{self.name}, round {self.round}: exit code {code}\n{open(self.path('err')).read()[-3000:]}")
        if self.judged == self.round:
            if not self.cluster.alive("scheduler") or "scheduler" in self.cluster.asleep:
                return False
            try:
                self.judge()
            except Away:  # and no process starts it meanwhile
                return False
            self.judged += 1
        if not another_round:
            return True
        self.round += 1
        self.prepare()
        self.start()
        return False

    def judge(self):
        """Only by what the program printed, and by what the commands say of its session."""
        with open(self.path("out")) as file:
            found = file.read()
        wanted = self.expected()
        if found != wanted:
            at = len(os.path.commonprefix([found, wanted]))
            raise Wrong(f"{self.name}, round {self.round}: the output differs at byte {at}: "
                        f"{found[at - 60:at + 60]!r} instead of {wanted[at - 60:at + 60]!r}")
        sessions = [s for s in self.cluster.json("session", "ls")["sessions"] if self.is_mine(s)]
        if len(sessions) != 1 or sessions[0]["state"] == "active":
            raise Wrong(f"{self.name}, round {self.round}: its sessions are {sessions}")
        rows = self.cluster.json("grain", "ls", str(sessions[0]["session"]))["grains"]
        if sorted(row["grain"] for row in rows) != self.numbers():
            raise Wrong(f"{self.name}, round {self.round}: grains lost, or of no program: {[row['grain'] for row in rows]}")
        for row in rows:
            if row["state"] != "finished" or row["exit_code"] != 0:
                raise Wrong(f"{self.name}, round {self.round}: {row}")
        self.grains += len(rows)

    def is_mine(self, session):
        return session["ident"] == f"{self.name}-{self.round}"


class Decide(Workload):
    name = "decide"

    def command(self):
        return [sys.executable, "-B", os.path.join(HERE, "decide.py"), str(self.round), self.path("order")]

    def expected(self):
        return decide.expected()

    def numbers(self):
        return list(range(1, decide.LAST + 1))

    def judge(self):
        super().judge()
        with open(self.path("order")) as file:
            runs = [part.split() for part in file.read().split("run\n")[1:]]
        longest = max(runs, key=len)
        for run in runs:
            if run != longest[:len(run)] or len(set(run)) != len(run):
                raise Wrong(f"decide, round {self.round}: the order of results changed: {run}, and {longest}")


class Small(Workload):
    name = "small"
    count = 1500

    def prepare(self):
        with open(self.path("args"), "w") as file:
            file.writelines(f"{self.round}.{i}\n" for i in range(self.count))

    def command(self):
        return [os.path.join(self.cluster.bin, "dcs"), "map", "-a", self.path("args"), "--", "/bin/echo", "small", "{}"]

    def expected(self):
        return "".join(f"small {self.round}.{i}\n" for i in range(self.count))

    def numbers(self):
        return list(range(1, self.count + 1))

    def is_mine(self, session):
        with open(self.path("err")) as file:
            told = re.search(r"session (\d+)", file.read())
        return told is not None and session["session"] == int(told.group(1))


class Keep(Workload):
    name = "keep"
    ledger = os.path.join(TESTS, "grains/ledger_c")
    doomed = False  # killed as soon as it has a result that it has not kept yet

    def in_hand(self):
        directory = self.path("results")
        found = os.listdir(directory) if os.path.isdir(directory) else []
        return [os.path.join(directory, name) for name in found if name.endswith(".new")]

    def start(self):
        for left in self.in_hand():
            os.remove(left)
        super().start()

    def kill(self):
        """Every second time not now, but in that moment, however seldom it comes on a busy machine."""
        self.doomed = not self.doomed
        if not self.doomed:
            super().kill()

    def supervise(self, another_round):
        if self.doomed and another_round and self.in_hand():
            self.doomed = False
            super().kill()
        return super().supervise(another_round)

    def command(self):
        return [sys.executable, "-B", os.path.join(HERE, "keep.py"), str(self.round), self.ledger, self.path("results")]

    def expected(self):
        """The same program by hand, without its rests."""
        lines = []
        for number in self.numbers():
            done = subprocess.run([self.ledger, "0", str(keep.EVERY)], input=keep.text_of(number).encode(), check=True,
                                  capture_output=True)
            lines.append(f"{number} {hashlib.sha256(done.stdout + SEAM + done.stderr).hexdigest()}\n")
        return "".join(lines)

    def numbers(self):
        return list(range(1, keep.GRAINS + 1))


class Errand(Workload):
    name = "errand"

    def command(self):
        return [sys.executable, "-B", os.path.join(HERE, "errand.py"), str(self.round), self.path("files")]

    def judge(self):
        """It sees for itself; its session is removed."""
        with open(self.path("out")) as file:
            found = file.read()
        if found != " ".join(map(str, range(1, errand.GRAINS))) + "\n":
            raise Wrong(f"errand, round {self.round}: {found!r}")
        if [s for s in self.cluster.json("session", "ls")["sessions"] if self.is_mine(s)]:
            raise Wrong(f"errand, round {self.round}: its session is still there")
        self.grains += errand.GRAINS
