"""A pool of root's and an ordinary login in it: `RootPool` is its daemons, in a process of root; `LoginPool` has the calls of Pool in a
process of the login, and asks the other for what only root can do there. Grains run under the login's own account, so its
home directory is theirs. The accounts are those of a mount namespace of the test's own."""
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess

import hurry
import pool
from pool import grains_of_server, lock_holder, program, wait_for
from users_host import FIRST

LOGIN, UID, GROUP = "ann", 61201, 64341
HOME = f"/home/{LOGIN}"
DIRECTORY = "/srv/dcs"
WIRE = "DCS_TEST_ROOT_POOL"  # the descriptor by which a LoginPool asks


def accounts():
    """In this mount namespace only: a login, its home directory, the group whose members may use the pool."""
    for path in ("/mnt", "/home", "/srv"):  # which each Debian has: nothing is made that would stay
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path], check=True)
    for path in ("/mnt/up", "/mnt/work", DIRECTORY):
        os.mkdir(path)
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=/etc,upperdir=/mnt/up,workdir=/mnt/work", "/etc"], check=True)
    for path, lines in (("/etc/passwd", f"{LOGIN}:x:{UID}:{UID}::{HOME}:/bin/sh\n"), ("/etc/group", f"dcs:x:{GROUP}:{LOGIN}\n{LOGIN}:x:{UID}:\n")):
        with open(path) as file:
            text = "".join(line for line in file if line.split(":")[0] not in ("dcs", LOGIN))
        with open(path + ".new", "w") as file:
            file.write(text + lines)
        os.rename(path + ".new", path)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for path in (HOME, HOME + "/tmp"):
        os.mkdir(path, 0o700)
        os.chown(path, UID, UID)


def as_login(words, env, **options):
    """What the login types, with an environment of its own."""
    home = {"PATH": "/usr/bin:/bin", "HOME": HOME, "PWD": HOME, "USER": LOGIN, "LOGNAME": LOGIN, "SHELL": "/bin/sh", "TMPDIR": HOME + "/tmp", "LANG": "C.UTF-8"}
    return subprocess.Popen(words, env={**home, **env}, user=UID, group=UID, extra_groups=[GROUP], cwd=HOME, stdin=subprocess.DEVNULL, **options)


class RootPool:
    """The scheduler of a host and its servers, as root runs them; /etc/dcs/pool.conf names it."""

    def __init__(self):
        self.base, self.daemons, self.names = DIRECTORY, {}, []

    def begin(self):
        """The scheduler alone, which is enough for dcs_begin."""
        for path in (f"{self.base}/scheduler", "/etc/dcs"):
            os.makedirs(path)
        open(f"{self.base}/scheduler/hosts", "w").close()
        with open("/etc/dcs/pool.conf", "w") as file:
            file.write(f"dir {self.base}\n")
        self.up()

    def make(self, servers, slots, interval):
        self.names = [f"local{i + 1}" for i in range(servers)]
        with open(f"{self.base}/scheduler/hosts", "w") as file:
            file.write("".join(f"{name} class=0x{1 << i:x} slots={slots} interval={interval} alert=60 limit=120 extended=120 accounts={LOGIN}\n"
                               for i, name in enumerate(self.names)))
        subprocess.run([program("dcs"), "reload"], env=dict(os.environ, DCS_DIR=self.base), check=True, stdout=subprocess.DEVNULL)
        self.up()
        return self.base

    def up(self):
        door = f"{self.base}/scheduler/server.sock"
        self.serve("scheduler", "dcs_scheduler", "--dir", f"{self.base}/scheduler", "--group", "dcs")
        wait_for("the scheduler", lambda: os.path.exists(door) and self.hosts() is not None)
        for i, name in enumerate(self.names):
            self.serve(name, "dcs_grainserver", "--name", name, "--dir", f"{self.base}/{name}", "--scheduler", door, "--courtesy", "priority",
                       "--accounts", LOGIN, "--anonymous-uids", f"{FIRST + 10 * i}-{FIRST + 10 * i + 9}")
        wait_for("the hosts", lambda: [h["state"] for h in self.hosts() or () if h["connected"]] == ["active"] * len(self.names))

    def serve(self, name, *words):
        if name not in self.daemons or self.daemons[name].poll() is not None:
            with open(f"{self.base}/{name}.log", "ab") as log:
                self.daemons[name] = subprocess.Popen([program(words[0]), *words[1:]], stderr=log, stdin=subprocess.DEVNULL)

    def hosts(self):
        done = subprocess.run([program("dcs"), "host", "ls", "-o", "json"], env=dict(os.environ, DCS_DIR=self.base), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return json.loads(done.stdout)["hosts"] if done.returncode == 0 else None

    def kill(self, _, name):
        self.daemons[name].kill()
        self.daemons[name].wait()

    def kill_host(self, name):
        self.kill("grainserver", name)
        if launcher := lock_holder(f"{self.base}/{name}/launcher.lock"):
            os.kill(launcher, signal.SIGKILL)
        wait_for("the end of its grains", lambda: not [os.killpg(pid, signal.SIGKILL) for _, _, pid, _ in self.grain_processes(name) if alive(pid)])

    def grain_processes(self, host=None):
        return [grain for name in ([host] if host else self.names) for grain in grains_of_server(name, f"{self.base}/{name}")]

    def down(self):
        for daemon in reversed(list(self.daemons.values())):
            daemon.terminate()
            daemon.wait(timeout=300)
        for name in self.names:
            path = f"{self.base}/{name}/launcher.lock"
            if launcher := lock_holder(path):
                os.kill(launcher, signal.SIGTERM)
                wait_for("the end of the launcher", lambda path=path: not lock_holder(path))
        self.daemons, self.names = {}, []
        for name in os.listdir(self.base):
            path = os.path.join(self.base, name)
            (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
        shutil.rmtree("/etc/dcs", ignore_errors=True)

    def logs(self):
        for name in sorted(os.listdir(self.base)):
            if name.endswith(".log"):
                print(f"---- {name}", open(os.path.join(self.base, name), errors="replace").read()[-3000:], sep="\n", flush=True)

    def answer(self, wire):
        """Does what a LoginPool asks for, until it has gone."""
        with wire.makefile("rw") as lines:
            for line in lines:
                name, *arguments = json.loads(line)
                lines.write(json.dumps(getattr(self, name)(*arguments)) + "\n")
                lines.flush()


def alive(pid):
    return pool.start_time(pid) is not None


class LoginPool(pool.Pool):
    """Of the login: no DCS_DIR is set, so its programs find the pool as those of any user of the host do."""

    def __init__(self, servers=2, slots=1, interval=1.0):
        super().__init__(servers, slots, interval, directory=DIRECTORY)
        self.env.pop("DCS_DIR")
        self.wire = socket.socket(fileno=os.dup(int(os.environ[WIRE]))).makefile("rw")

    def ask(self, *words):
        self.wire.write(json.dumps(words) + "\n")
        self.wire.flush()
        return json.loads(self.wire.readline())

    def __enter__(self):
        self.ask("make", self.servers, self.slots, self.interval)
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.ask("logs")
        self.ask("down")
        shutil.rmtree(self.base, ignore_errors=True)

    def up(self, check=True):
        return self.ask("up")

    def kill(self, role, name):
        return self.ask("kill", role, name)

    def kill_host(self, name):
        return self.ask("kill_host", name)

    def grain_processes(self, host=None):
        return self.ask("grain_processes", host)


def be_the_login():
    """In a program of the login: tests that make a Pool get this one, and leave the pace of grains to root."""
    pool.Pool = LoginPool
    leave_the_pace()


def leave_the_pace():
    hurry.leaders_of = lambda _: []
    assert pwd.getpwuid(os.geteuid()).pw_name == LOGIN
