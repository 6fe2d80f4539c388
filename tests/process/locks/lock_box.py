"""A lock directory of a test's own, dcs_lock run in it, and processes that are looked at, not timed."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from pool import BIN, wait_for

TEST_LOCK = os.path.join(os.path.dirname(BIN), "tests", "dcs_lock_test")
LOCK = TEST_LOCK if "DCS_PLANTED" in os.environ else os.path.join(BIN, "dcs_lock")
skipped = []


def later(seconds):
    """Variables by which TEST_LOCK sees its clocks ahead, so that no verdict depends on how fast this machine is."""
    return {"DCS_LOCK_TEST_" + clock: str(seconds) for clock in ("WALL", "MONO", "BOOT")}


def skip(what, why):
    skipped.append(what)
    print(f"SKIPPED: {what}: {why}", flush=True)


def state_of(pid):
    """The letter of proc(5); None if there is no such process."""
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


def runs(pid):
    return state_of(pid) not in (None, "Z", "X")


class Box:
    """`with Box() as box`: everything it started is ended with it."""

    def __init__(self, mode=0o700):
        self.base = tempfile.mkdtemp(prefix="dcs-lock-test-")
        os.chmod(self.base, mode)
        self.locks = os.path.join(self.base, "locks")
        os.mkdir(self.locks, 0o700)
        self.env = dict(os.environ, DCS_LOCK_DIR=self.locks, PATH=f"{BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        for name in ("DCS_LOCK_NOW", "DCS_LOCK_ID", "DCS_LOCK_TOKEN"):
            self.env.pop(name, None)
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for process in self.started:
            if process.poll() is None:
                for number in (signal.SIGTERM, signal.SIGCONT):
                    process.send_signal(number)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        left = self.own_processes()
        while left:  # one that is about to start another may be ended too late, so look again
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.02)
            left = [pid for pid in self.own_processes() if runs(pid)]
        shutil.rmtree(self.base, ignore_errors=True)

    def own_processes(self):
        """Processes that still show this box's directory in their environment; its keepers and strays."""
        mark = f"DCS_LOCK_DIR={self.locks}".encode()
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                if mark in open(f"/proc/{name}/environ", "rb").read().split(b"\0"):
                    found.append(int(name))
            except OSError:
                pass
        return found

    def path(self, name):
        return os.path.join(self.base, name)

    def run(self, *arguments, program=LOCK, env=None, data=None, code=None, **options):
        result = subprocess.run([program, *map(str, arguments)], env=dict(self.env, **(env or {})), input=data, timeout=120,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        if code is not None and result.returncode != code:
            raise AssertionError(f"dcs_lock {' '.join(map(str, arguments))}: exit {result.returncode}, not {code}\n"
                                 f"{result.stdout}{result.stderr}")
        return result

    def start(self, *arguments, program=LOCK, env=None, **options):
        process = subprocess.Popen([program, *map(str, arguments)], env=dict(self.env, **(env or {})), **options)
        self.started.append(process)
        return process

    def hold(self, *arguments, seconds=600, **options):
        """A dcs_lock whose command runs (it has written its pid); returns (dcs_lock's process, pid of the command)."""
        ready = tempfile.mktemp(dir=self.base)
        process = self.start(*arguments, "sh", "-c", f"echo $$ >{ready}.new; mv {ready}.new {ready}; exec sleep {seconds}",
                             **options)
        wait_for("the command to run", lambda: os.path.exists(ready) or process.poll() is not None)
        assert process.poll() is None, f"dcs_lock {arguments} ended with {process.returncode}"
        pid = int(open(ready).read())
        wait_for("the record of the command", lambda: self.recorded(pid, arguments))
        return process, pid

    def recorded(self, pid, arguments):
        """The supervisor writes down who runs a moment after the command has begun; shared and foreign locks have no record."""
        locks = self.list() + [lock for word in arguments if "/" in word and ":" not in word for lock in self.list(word)]
        holders = [lock["holder"]["pid"] for lock in locks if "holder" in lock]
        holders += [slot["holder"]["pid"] for lock in locks for slot in lock.get("slots", [])]
        return "-s" in arguments or pid in holders or any(lock["kind"] == "foreign" for lock in locks)

    def list(self, *name):
        return json.loads(self.run("list", "-o", "json", *name, code=0).stdout)["locks"]

    def aged(self, *name):
        """Its holder is older than the limit of a second that tests then ask for."""
        wait_for("the holder to grow older", lambda: (self.list(*name)[0].get("age_s") or 0) > 1)

    def waiting(self, name):
        return sum(len(lock["waiting"]) for lock in self.list(name))


def cases(scope):
    """Runs the functions of a test script named test_*, or those that the command line names."""
    chosen = sys.argv[1:]
    assert set(chosen) <= set(scope), f"no such test among {chosen}"
    for name, function in list(scope.items()):
        if name.startswith("test_") and (not chosen or name in chosen):
            begun = time.monotonic()
            function()
            print(f"ok {name} ({time.monotonic() - begun:.1f} s)", flush=True)
    if skipped:
        print(f"{len(skipped)} skipped: {', '.join(skipped)}")
