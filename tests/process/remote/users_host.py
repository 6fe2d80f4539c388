"""A scheduler and a grain server that is root, as an administrator would have them: each user's grains under an account
of their own. Not below /tmp, which some grains do not see. What it starts it also ends, by process id."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from pool import BIN, lock_holder, process_cpu, program, wait_for

TOOLS = os.path.join(os.path.dirname(BIN), "tests")
GAMES = 5  # a login that every Debian has: a second user
FIRST = 2_000_300_000 + 100 * os.getpid()  # each test that runs at the same time has uids of its own
LAST = FIRST + 99


def tool(name):
    return os.path.join(TOOLS, name)


def need_root(what):
    if os.geteuid() != 0:
        print(f"SKIPPED: {what} needs root")
        sys.exit(77)


class UsersHost:
    """`table`: what the host table says more about host h1. `options`: of its server."""

    of_scheduler = ()  # more of its options

    def __init__(self, *options, table="", slots=4, run_as="users", top="/var/lib", bin=BIN):
        self.base = tempfile.mkdtemp(prefix="dcs-users-", dir=top)
        os.chmod(self.base, 0o711)
        self.dir, self.bin, self.slots, self.run_as, self.more = os.path.join(self.base, "pool"), bin, slots, run_as, table
        self.options = options
        self.scheduler_dir, self.server_dir = os.path.join(self.dir, "scheduler"), os.path.join(self.base, "h1")
        os.makedirs(self.scheduler_dir)
        for path in (self.dir, self.scheduler_dir):
            os.chmod(path, 0o711)
        # For grains: a copy of the helper that each peer can run, wherever the build lies.
        self.tools = os.path.join(self.base, "tools")
        os.mkdir(self.tools)
        for name in ("confined",):
            shutil.copy2(tool(name), os.path.join(self.tools, name))
        self.env = dict(os.environ, DCS_DIR=self.dir)
        self.env.pop("DCS_AUTH_FD", None)
        self.scheduler = self.server = None
        self.preexec = None  # of the server, before its exec

    def __enter__(self):
        try:
            self.start_scheduler()
            self.start_server()
            self.wait_active()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            for name in ("scheduler.log", "server.log", "h1/launcher.log"):
                print(f"---- {name}", self.text(name)[-6000:], sep="\n", flush=True)
        self.stop_server()
        if self.scheduler:
            self.scheduler.terminate()
            self.scheduler.wait(timeout=300)
        self.end_launcher()
        shutil.rmtree(self.base, ignore_errors=True)

    def start_scheduler(self):
        self.write_table(self.more)
        log = open(os.path.join(self.base, "scheduler.log"), "ab")
        self.scheduler = subprocess.Popen([os.path.join(self.bin, "dcs_scheduler"), "--dir", self.scheduler_dir, "--log-level",
                                           "debug", *self.of_scheduler], stderr=log, env=self.env)
        socket = os.path.join(self.scheduler_dir, "user.sock")
        wait_for("the scheduler", lambda: os.path.exists(socket) and os.path.exists(os.path.join(self.scheduler_dir, "server.sock")))
        os.chmod(socket, 0o666)

    def write_table(self, more):
        with open(os.path.join(self.scheduler_dir, "hosts"), "w") as file:
            file.write(f"h1 class=0x1 slots={self.slots} interval=1 alert=60 limit=120 extended=120 {more}\n")
        if self.scheduler:
            self.scheduler.send_signal(signal.SIGHUP)

    def start_server(self, *options):
        words = [os.path.join(self.bin, "dcs_grainserver"), "--name", "h1", "--dir", self.server_dir, "--scheduler",
                 os.path.join(self.scheduler_dir, "server.sock"), "--log-level", "debug", "--courtesy", "priority",
                 "--run-as", self.run_as, "--anonymous-uids", f"{FIRST}-{LAST}", *(options or self.options)]
        log = open(os.path.join(self.base, "server.log"), "ab")
        self.server = subprocess.Popen(words, stderr=log, env=self.env, preexec_fn=self.preexec)

    def stop_server(self):
        if self.server:
            self.server.terminate()
            self.server.wait(timeout=300)
        self.server = None

    def launcher(self):
        return lock_holder(os.path.join(self.server_dir, "launcher.lock"))

    def end_launcher(self):
        pid = self.launcher()
        if pid:
            os.kill(pid, signal.SIGTERM)
            wait_for("the end of the launcher", lambda: not self.launcher())

    def wait_active(self, connected=True):
        wait_for("the host to call", lambda: self.host()["state"] == "active" and self.host()["connected"] == connected)

    def text(self, name):
        try:
            return open(os.path.join(self.base, name), errors="replace").read()
        except OSError:
            return ""

    def dcs(self, *words, check=True, data=None, uid=None, timeout=300, env=None, cwd=None):
        def become():
            os.setgroups([])
            os.setresgid(60, 60, 60)
            os.setresuid(uid, uid, uid)
        result = subprocess.run([os.path.join(self.bin, "dcs"), *words], input=data, env=dict(self.env, **(env or {})),
                                capture_output=True, timeout=timeout, preexec_fn=become if uid else None, cwd=cwd or "/")
        if check and result.returncode != 0:
            raise AssertionError(f"dcs {words}: exit {result.returncode}\n{result.stdout.decode()}{result.stderr.decode()}")
        return result

    def json(self, *words):
        return json.loads(self.dcs(*words, "-o", "json").stdout)

    def host(self):
        return self.json("host", "show", "h1")["host"]

    def run(self, *command, uid=None, options=(), check=True, **more):
        return self.dcs("run", *options, "--", *command, uid=uid, check=check, data=more.pop("data", b""), **more)

    def confined(self, *acts, uid=None):
        """What the helper says about each act."""
        text = self.run(os.path.join(self.tools, "confined"), *acts, uid=uid, options=("--file", "x=/etc/hostname")).stdout.decode()
        answers = dict(line.split(" ", 1) for line in text.splitlines())
        assert len(answers) == len(set(acts)), text
        return answers

    def grain_processes(self, host=None):
        found = []
        top = os.path.join(self.server_dir, "grains")
        for entry in os.listdir(top) if os.path.isdir(top) else []:
            try:
                pid, start = map(int, open(os.path.join(top, entry, "pid")).read().split()[:2])
            except (OSError, ValueError):
                continue
            if process_cpu(pid, start) is not None:
                found.append(("h1", entry, pid, start))
        return found
