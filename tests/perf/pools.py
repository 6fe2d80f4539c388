"""Pools for measurements besides those of `dcs up`: one whose grain server has joined over TLS, as an administrator makes it."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "process"))
from pool import lock_holder, wait_for  # noqa: E402


class JoinedPool:
    """A scheduler with a TLS port and a grain server of two slots that reached it by `dcs host join`."""

    def __init__(self, binary, place, run_as):
        """place: grains of other users write where a server below /tmp or /var/tmp would hide its room from them."""
        self.binary, self.run_as = binary, run_as
        self.directory = tempfile.mkdtemp(prefix="dcs-perf-", dir=place)
        os.chmod(self.directory, 0o755)
        self.dcs = os.path.join(binary, "dcs")
        self.env = dict(os.environ, DCS_DIR=self.directory, PATH=binary + ":" + os.environ["PATH"])
        self.daemons = []

    def run(self, *line, **more):
        return subprocess.run([self.dcs, *line], env=self.env, check=True, **{"stdout": subprocess.DEVNULL, **more})

    def start(self, name, *line):
        with open(os.path.join(self.directory, name + ".log"), "w") as log:
            self.daemons.append(subprocess.Popen([os.path.join(self.binary, name), *line], env=self.env, stdout=log, stderr=log,
                                                 stdin=subprocess.DEVNULL))

    def log(self, name):
        return open(os.path.join(self.directory, name + ".log"), errors="replace").read()

    def __enter__(self):
        try:
            return self.up()
        except BaseException:
            print(self.log("dcs_scheduler"), file=sys.stderr)
            self.__exit__()
            raise

    def up(self):
        scheduler, server = (os.path.join(self.directory, name) for name in ("scheduler", "server"))
        os.mkdir(scheduler)
        with open(os.path.join(scheduler, "hosts"), "w") as hosts:
            hosts.write("h1 slots=2 interval=10 alert=30 limit=60 extended=60\n")
        self.start("dcs_scheduler", "--dir", scheduler, "--tls", "127.0.0.1:0")
        wait_for("the scheduler", lambda: "serving in" in self.log("dcs_scheduler") and re.search(r"127.0.0.1:\d+ with", self.log("dcs_scheduler")))
        line = self.run("token", "create", "--host", "h1", stdout=subprocess.PIPE, text=True).stdout.split()
        self.run(*line[1:], "--dir", server)
        self.start("dcs_grainserver", "--name", "h1", "--dir", server, "--scheduler", line[3], "--run-as", self.run_as,
                   "--courtesy", "priority", "--log-level", "warn")
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait()
        launcher = lock_holder(os.path.join(self.directory, "server/launcher.lock"))
        if launcher:
            os.kill(launcher, signal.SIGTERM)
            wait_for("the end of the launcher", lambda: not os.path.exists(f"/proc/{launcher}"))
        shutil.rmtree(self.directory, ignore_errors=True)
