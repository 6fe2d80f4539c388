"""A private pool for tests: real daemons, real kills. Everything it starts it also ends, by process id."""
import json
import os
import re
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import hurry

BIN = os.environ.get("DCS_BIN") or os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build/release/bin")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULL = bool(os.environ.get("DCS_TESTS_FULL"))


def program(name):
    return os.path.join(BIN, name)


OPENING_FORM = 8  # of the first frame on each connection, for ever; tests that pack frames by hand speak it throughout


def protocol_versions():
    """The oldest and the newest that programs read, of the tree which these tests belong to."""
    with open(os.path.join(ROOT, "libdcs/wire/form.h")) as header:
        return tuple(int(n) for n in re.search(r" oldest = (\d+), newest = (\d+);", header.read()).groups())


def frame_in(data):
    """Is a frame of ours in there? Its first four letters alone come up by chance in some megabytes of what is encrypted."""
    oldest, newest = (re.escape(bytes([version])) for version in protocol_versions())
    return re.search(rb"DCS1.\x00[" + oldest + b"-" + newest + rb"]\x00", data, re.DOTALL)


def about(text, words):
    """Whether each word of `words` is in the text, whole and in this order: texts for people are compared by their key words."""
    whole = [("(?<![A-Za-z0-9])" if w[0].isalnum() else "") + re.escape(w) + ("(?![A-Za-z0-9])" if w[-1].isalnum() else "")
             for w in words.split()]
    return re.search(".*?".join(whole), text, re.S) is not None


def tells(text, words):
    """Whether a line of the text, or of these bytes, is about those words."""
    return any(about(line, words) for line in (text.decode(errors="replace") if isinstance(text, bytes) else text).splitlines())


def raises(kind, call, *words):
    """The error of this kind that the call raises; its text has these words."""
    try:
        call()
    except kind as error:
        for word in words:
            assert word in str(error), f"{word!r} is not in {error}"
        return error
    raise AssertionError(f"no {kind.__name__}")


def wait_for(what, condition, timeout=300.0, step=0.05):
    """Waits until condition() is true and returns its value; the limit only ends a hung test."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout} s in vain for {what}")
        time.sleep(step)


def free_port(tried=[]):
    """On 127.0.0.1, below those that the kernel gives away meanwhile; tests that run side by side begin at different ones."""
    while True:
        port = 2000 + (os.getpid() * 16 + len(tried)) % 30000
        tried.append(port)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            pass


def process_cpu(pid, start):
    """CPU seconds of a process, or None if it is gone or another one has its number now."""
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    if int(fields[19]) != start or fields[0] == "Z":
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bin_directory(path, test_builds):
    """The programs of a pool with some daemons replaced by their test builds. Each program finds the others in the
    folder of its own executable, as the kernel names it, so these are hard links or copies, not symbolic links."""
    os.mkdir(path)
    for name in ("dcs", "dcs_scheduler", "dcs_backupd", "dcs_grainserver", "dcs_launcher", "dcs_container", "dcs_begin",
                 "dcs_lock"):
        source = os.path.join(os.path.dirname(BIN), "tests", name + "_test") if name in test_builds else program(name)
        try:
            os.link(source, os.path.join(path, name))
        except OSError:
            shutil.copy2(source, os.path.join(path, name))
    return path


def start_time(pid):
    """Tells a process from a later one of the same number; None if it has ended, waited for or not."""
    try:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def grain_directories(server):
    """The names of the directories of grains in a server's directory; those that wait for their next grain are none."""
    return [name for name in os.listdir(os.path.join(server, "grains")) if not name.startswith("spare-")]


def grains_of_server(name, directory):
    """(name, directory name, pid, start time) of every live grain process, from the files in the server's directory."""
    grains, found = os.path.join(directory, "grains"), []
    try:
        entries = os.listdir(grains)
    except OSError:
        return found
    for entry in entries:
        try:
            pid, start = map(int, open(os.path.join(grains, entry, "pid")).read().split()[:2])
        except (OSError, ValueError):  # also of a directory that waits for its next grain
            continue
        if process_cpu(pid, start) is not None:
            found.append((name, entry, pid, start))
    return found


class Pool:
    """patient: a host that gets no processor time for seconds, on a busy machine, is neither late nor given up for that; one
    whose server was killed is, all the same. modest: grains leave the processors to other programs, as those of users do."""

    def __init__(self, servers=2, slots=1, interval=1.0, directory=None, test_builds=(), patient=True, modest=False):
        self.base = tempfile.mkdtemp(prefix="dcs-test-")
        self.bin = bin_directory(os.path.join(self.base, "bin"), test_builds) if test_builds else BIN
        self.dir = directory or os.path.join(self.base, "pool")
        self.servers, self.slots, self.interval = servers, slots, interval
        self.patient, self.pace = patient, None if modest else hurry.Hurry(self)
        self.env = dict(os.environ, DCS_DIR=self.dir)
        self.env.pop("DCS_AUTH_FD", None)

    def __enter__(self):
        self.up()
        if self.patient:
            self.dcs("host", "set", "all", "--alert", "600", "--limit", "600", "--extended", "600")
        if self.pace:
            self.pace.__enter__()
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.show_logs()
        if self.pace and self.pace.is_alive():
            self.pace.__exit__()
        self.down()
        left = self.left_over()
        for _ in range(200):  # what ends with a daemon, by itself, may take a moment
            if not left:
                break
            time.sleep(0.1)
            left = self.left_over()
        shutil.rmtree(self.base, ignore_errors=True)
        if kind is None:
            assert not left, f"processes left after dcs down: {left}"

    def up(self, check=True):
        return self.dcs("up", "--local", str(self.servers), "--slots", str(self.slots), "--interval",
                        str(self.interval), "--dir", self.dir, check=check)

    def down(self):
        return self.dcs("down", "--dir", self.dir, check=False)

    def dcs(self, *arguments, check=True, data=None, timeout=300, cwd=None):
        result = subprocess.run([os.path.join(self.bin, "dcs"), *arguments], input=data, env=self.env, timeout=timeout, cwd=cwd,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if check and result.returncode != 0:
            raise AssertionError(f"dcs {' '.join(arguments)}: exit {result.returncode}\n"
                                 f"{result.stdout.decode()}{result.stderr.decode()}")
        return result

    def json(self, *arguments, check=True):
        return json.loads(self.dcs(*arguments, "-o", "json", check=check).stdout)

    def start(self, arguments, **options):
        return subprocess.Popen(arguments, env=self.env, **options)

    def daemons(self):
        return {(d["role"], d["name"]): d for d in self.json("status", check=False)["daemons"]}

    def host_names(self):
        return [f"local{i + 1}" for i in range(self.servers)]

    def pid(self, role, name):
        daemon = self.daemons().get((role, name))
        return daemon["pid"] if daemon and daemon["state"] == "up" else None

    def kill(self, role, name):
        """kill -9 of one daemon; False if it was not alive."""
        pid = self.pid(role, name)
        if not pid:
            return False
        os.kill(pid, signal.SIGKILL)
        wait_for(f"the end of {role} {name}", lambda: not os.path.exists(f"/proc/{pid}") or
                 open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z")
        return True

    def stop_scheduler(self):
        """A clean stop of the scheduler alone."""
        pid = self.pid("scheduler", "scheduler")
        if pid:
            os.kill(pid, signal.SIGTERM)
            wait_for("the scheduler to stop", lambda: start_time(pid) is None)

    def hurry(self):
        """The grains that there are now, once."""
        hurry.hurry(hurry.leaders_of(self))

    def grain_processes(self, host=None):
        """(host, directory name, pid, start time) of every live grain process, from the servers' own files."""
        names = [host] if host else self.host_names()
        return [grain for name in names for grain in grains_of_server(name, os.path.join(self.dir, "servers", name))]

    def kill_host(self, name):
        """A whole host goes: server, launcher and all grains, as when its power fails."""
        locks = [os.path.join(self.dir, "servers", name, lock) for lock in ("lock", "launcher.lock")]
        holders = [(path, lock_holder(path)) for path in locks]
        for path, pid in holders:
            if pid:
                os.kill(pid, signal.SIGKILL)
        for path, pid in holders:  # a server that is started again refuses a directory whose server still lives
            wait_for(f"the end of the holder of {path}", lambda: not pid or lock_holder(path) != pid)
        killed = {}
        for _ in range(100):
            alive = self.grain_processes(name)
            if not alive:
                break
            for _, entry, pid, start in alive:
                cpu = process_cpu(pid, start)
                try:
                    os.killpg(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.setdefault(entry, cpu)
            time.sleep(0.02)
        return list(killed.items())

    def grains(self, session):
        return self.json("grain", "ls", str(session))["grains"]

    def left_over(self):
        """Processes that name this pool's directory in their command line, environment or working directory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) == os.getpid():
                continue
            try:
                text = open(f"/proc/{pid}/cmdline", "rb").read() + open(f"/proc/{pid}/environ", "rb").read()
                state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if self.dir.encode() + b"/servers" in text and state != "Z":
                found.append((int(pid), open(f"/proc/{pid}/cmdline").read().replace("\0", " ")))
        return found

    def show_logs(self):
        for folder, _, files in os.walk(self.dir):
            for name in files:
                if name in ("log", "launcher.log"):
                    path = os.path.join(folder, name)
                    print(f"---- {path}", *open(path, errors="replace").read().splitlines()[-40:], sep="\n")
        sys.stdout.flush()


def lock_holder(path):
    """Pid of the process that took the lock, if it lives."""
    try:
        inode = os.stat(path).st_ino
        for line in open("/proc/locks"):
            words = line.split()
            if words[1] == "FLOCK" and words[5].rsplit(":", 1)[1] == str(inode):
                os.kill(int(words[4]), 0)
                return int(words[4])
    except (OSError, ValueError, IndexError):
        pass
    return None


class CpuSampler(threading.Thread):
    """Adds up the CPU time of every grain process that ever lived in a pool, sampled from /proc; `seen` has it by the grain's
    directory, pid and start time."""

    def __init__(self, pool):
        super().__init__(daemon=True)
        self.pool, self.seen, self.stop_now = pool, {}, False

    def run(self):
        while not self.stop_now:
            for _, entry, pid, start in self.pool.grain_processes():
                cpu = process_cpu(pid, start)
                if cpu is not None:
                    self.seen[entry, pid, start] = max(cpu, self.seen.get((entry, pid, start), 0.0))
            time.sleep(0.03)

    def total(self):
        return sum(self.seen.values())


def seeded(default=1):
    """The run's random generator; DCS_SEED=N repeats a run."""
    seed = int(os.environ.get("DCS_SEED", default))
    print(f"seed {seed} (DCS_SEED={seed} repeats it)")
    return random.Random(seed)
