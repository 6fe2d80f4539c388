"""The daemons of a drill: a scheduler, a passive backup and grain servers, each on a host of its own, and who starts them
again when they have died. They are the test builds, which can be ordered to die at a named point."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from clocks import HOUR, Clocks
from network import end_with_parent
from pool import BIN, ROOT, bin_directory, grains_of_server, lock_holder, start_time, wait_for

SERVERS = ["h1", "h2", "h3", "h4"]
HOSTS = ["scheduler", "backup", *SERVERS]
SLOTS = 2
INTERVAL = 0.5
TIMES = f"interval={INTERVAL} alert=3 limit=6 extended=12"
PORT, BACKUP_PORT = 7001, 7002
UNREACHABLE = 5  # exit code of dcs
TESTS = os.path.join(os.path.dirname(BIN), "tests")
TEST_BUILDS = ("dcs", "dcs_scheduler", "dcs_backupd", "dcs_grainserver", "dcs_launcher")
Release = collections.namedtuple("Release", "name bin python library")  # where its programs and its libraries are


class Away(AssertionError):
    """No scheduler answers."""


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def test_builds(directory):
    """Of this tree's programs; bugs can be planted in them."""
    return Release("test builds", bin_directory(os.path.join(directory, "bin"), TEST_BUILDS),
                   os.path.join(ROOT, "libdcs/python"), os.path.join(TESTS, "planted/libdcs.so"))


class Cluster:
    def __init__(self, network, points, plants="", releases=None):
        """releases: of each host and of "programs", a Release; else all are the test builds of this tree."""
        self.network, self.points = network, points
        self.base = tempfile.mkdtemp(prefix="dcs-drill-")
        self.clocks = Clocks(self.base)
        self.releases = releases or dict.fromkeys([*HOSTS, "programs"], test_builds(self.base))
        self.env = dict(os.environ, DCS_DIR=self.base, DCS_PATIENCE_S="900")
        self.env.pop("DCS_AUTH_FD", None)
        self.env.pop("DCS_PLANTED", None)
        self.plants = {"DCS_PLANTED": plants} if plants else {}
        self.running = {}                     # name -> Popen
        self.rest = dict.fromkeys(HOSTS, 0.0)  # not started before that time
        self.deaths = dict.fromkeys(HOSTS, 0)
        self.asleep = set()
        self.armed = {}                       # name -> the role and point at which it is to die
        self.since = {}                       # name -> when it was started
        os.mkdir(os.path.join(self.base, "scheduler"))
        self.write_table()

    @property
    def bin(self):
        """Of the programs that people type."""
        return self.releases["programs"].bin

    def write_table(self, slots=SLOTS, times=TIMES):
        with open(os.path.join(self.base, "scheduler/hosts"), "w") as file:
            file.write(f"backup role=backup address={self.network.address('backup')}:{BACKUP_PORT}\n")
            file.writelines(f"{name} class=0x1 slots={slots} {times}\n" for name in SERVERS)

    def directory(self, name):
        return os.path.join(self.base, name)

    def command(self, name):
        words = ["--dir", self.directory(name), "--log-level", "info"]
        door = f"{self.network.address('scheduler')}:{PORT}"
        if name == "scheduler":
            return ["dcs_scheduler", *words, "--tls", door]
        if name == "backup":
            return ["dcs_backupd", *words, "--scheduler", door, "--tls", f"{self.network.address('backup')}:{BACKUP_PORT}"]
        return ["dcs_grainserver", *words, "--name", name, "--scheduler", door, "--run-as", "self", "--courtesy", "priority"]

    def start(self, name, armed=None):
        """armed: (role, point, visit) at which it is to die, or the launcher that it starts."""
        program, *words = self.command(name)
        self.armed[name] = armed
        env = dict(self.env, **self.plants, **self.clocks.variables(name), DCS_FAILPOINT_LOG=self.points.log_of(name))
        env.update(self.points.variable(armed) if armed else {})
        self.since[name] = time.monotonic()
        with open(os.path.join(self.base, name + ".log"), "ab") as log:
            self.running[name] = subprocess.Popen([*self.network.inside(name), os.path.join(self.releases[name].bin, program), *words],
                                                  env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                  preexec_fn=end_with_parent)

    def alive(self, name):
        return name in self.running and self.running[name].poll() is None

    def form(self):
        """Each process joins, and the pool works."""
        self.start("scheduler")
        wait_for("the scheduler", lambda: self.dcs("host", "ls", check=False).returncode == 0)
        for name in ["backup", *SERVERS]:
            role = ["--role", "backup"] if name == "backup" else []
            line = self.dcs("token", "create", "--host", name, *role).stdout.split()
            self.dcs(*line[1:], "--dir", self.directory(name), inside=name)
            self.start(name)
        wait_for("all hosts", lambda: [h["connected"] for h in self.json("host", "ls")["hosts"]] == [True] * len(SERVERS))
        for name in SERVERS:
            wait_for(f"{name} to know the backup", lambda: "the passive backup is" in self.text(name))
        wait_for("the backup to know its servers", lambda: self.members() == SERVERS)

    def members(self):
        path = os.path.join(self.base, "backup/members")
        return [line.split()[0] for line in open(path)] if os.path.exists(path) else []

    def supervise(self, arm):
        """Starts what has died, unless it is to rest; `arm(name)` says what its new life shall end at."""
        for name in HOSTS:
            if not self.alive(name) and time.monotonic() >= self.rest[name]:
                self.points.learn(name)
                killed = self.running[name].returncode == -signal.SIGKILL
                self.deaths[name] += killed
                if not killed:  # as with a clock by which its certificate is not valid
                    self.rest[name] = time.monotonic() + INTERVAL
                self.start(name, arm(name))

    def kill(self, name, rest=0.0):
        self.rest[name] = time.monotonic() + rest
        if not self.alive(name):
            return False
        self.running[name].kill()
        self.running[name].wait()
        return True

    def processes(self, name):
        """All of a host: daemons, what they have forked off, grains."""
        pids = [self.running[name].pid] if self.alive(name) else []
        if name in SERVERS:
            pids += filter(None, [lock_holder(os.path.join(self.directory(name), "launcher.lock"))])
            pids += [pid for _, _, pid, _ in self.grain_processes([name])]
        known, left = set(), pids
        while left:
            known.update(left)
            left = [child for pid in left for child in children_of(pid) if child not in known]
        return known

    def sleep(self, name):
        """As when a lid is closed. What it returns awake() wakes."""
        asleep = []
        self.asleep.add(name)
        for pid in self.processes(name):
            start = start_time(pid)
            if start is not None:
                asleep.append((pid, start))
                os.kill(pid, signal.SIGSTOP)
        return asleep

    def awake(self, name, asleep, hours):
        self.asleep.discard(name)
        self.clocks.set(name, 0, hours * HOUR)
        for pid, start in asleep:
            if start_time(pid) == start:
                os.kill(pid, signal.SIGCONT)

    def kill_launcher(self, name, number=signal.SIGKILL):
        pid = lock_holder(os.path.join(self.directory(name), "launcher.lock"))
        if pid and start_time(pid) is not None:
            os.kill(pid, number)
        return bool(pid)

    def kill_host(self, name, rest):
        """Server, launcher and grains, as when a power supply fails."""
        self.kill(name, rest)
        self.kill_launcher(name)
        for _ in range(100):
            grains = self.grain_processes([name])
            if not grains:
                break
            for _, _, pid, _ in grains:
                try:
                    os.killpg(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)

    def grain_processes(self, names=tuple(SERVERS)):
        """As Pool's."""
        return [grain for name in names for grain in grains_of_server(name, self.directory(name))]

    def dcs(self, *words, check=True, inside=None):
        prefix = self.network.inside(inside) if inside else []
        bin = self.releases[inside or "programs"].bin
        result = subprocess.run([*prefix, os.path.join(bin, "dcs"), *words], env=dict(self.env, DCS_PATIENCE_S="2"),
                                timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
        if check and (result.returncode == UNREACHABLE or '"broken"' in result.stdout):
            raise Away(f"dcs {words}: {result.stdout}{result.stderr}")
        assert not check or result.returncode == 0, f"dcs {words}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result

    def json(self, *words):
        return json.loads(self.dcs(*words, "-o", "json").stdout)

    def backup_status(self):
        result = self.dcs("backup", "status", "-o", "json", check=False)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def text(self, name):
        return open(os.path.join(self.base, name + ".log"), errors="replace").read()

    def end(self, show):
        if show:
            for name in HOSTS:
                print(f"---- {name}", *self.text(name).splitlines()[-30:], sep="\n", flush=True)
        for process in self.running.values():
            process.kill()
            process.wait()
        for name in SERVERS:
            self.kill_host(name, 0)
        left = wait_for("the end of all grains", lambda: not self.left_over() or self.end_left_over(), 60)
        assert left is not None
        shutil.rmtree(self.base, ignore_errors=True)

    def left_over(self):
        mark = re.compile(rb"(^|[\0=])" + re.escape(self.base.encode()) + rb"/h\d")
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                text = open(f"/proc/{pid}/cmdline", "rb").read() + b"\0" + open(f"/proc/{pid}/environ", "rb").read()
            except OSError:
                continue
            if mark.search(text) and start_time(int(pid)) is not None:
                found.append(int(pid))
        return found

    def end_left_over(self):
        """Keepers and what launchers that were killed left: all of it names this drill's own directory."""
        for pid in self.left_over():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return False
