"""A host with real accounts, a pool whose scheduler it reaches over TLS only, and dcs_begin installed there as an
administrator would: what begin_remote.py and two_users.py run in. A mount and network namespace of the test's own. With DCS_DESK_BIN that
host's programs are those of another release (drill/upgrade.py)."""
import os
import shutil
import subprocess
import sys

from begin_world import GROUPS, USERS, World
from pool import BIN
from remote_peer import RemotePool


def enter(script):
    """Returns the arguments in the namespace; elsewhere goes there. None: it cannot be done here."""
    if os.getuid() != 0:
        print("only root can make accounts and install a setgid program")
        return None
    if sys.argv[1:2] == ["inside"]:
        return sys.argv[2:]
    os.execv("/usr/bin/unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable,
                                  os.path.abspath(script), "inside", *sys.argv[1:]])


class DeskPool(RemotePool):
    """This host is desk1 of it; the scheduler looks its users up in the group dcs."""
    options = ("--group", "dcs")
    sources = "desk1 role=client\n"


class Desk:
    def __init__(self, pool=DeskPool):
        self.world = World()
        try:
            shutil.rmtree("/etc/dcs")
            self.bin = os.path.dirname(self.world.program)
            for name in ("dcs", "dcs_lock"):
                shutil.copy(os.path.join(os.environ.get("DCS_DESK_BIN", BIN), name), self.bin)
            self.pool = pool()
        except BaseException:
            self.world.close()
            raise

    def __enter__(self):
        self.pool.__enter__()
        self.pool.join("h1")
        self.pool.start_server("h1")
        self.pool.wait_active("h1")
        return self

    def __exit__(self, *what):
        self.pool.__exit__(*what)
        self.world.close()

    def join(self):
        """This host, by root, as the line of `dcs token create` says."""
        return self.pool.dcs(*self.pool.client_code("--host", "desk1"), path=os.path.join(self.bin, "dcs"))

    def popen(self, user, *words, env=None, **more):
        uid = USERS[user]
        environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": f"{self.world.base}/home-{uid}", "LANG": "C.UTF-8",
                       **(env or {})}
        process = subprocess.Popen([os.path.join(self.bin, words[0]), *words[1:]], env=environment, user=uid, group=uid,
                                   extra_groups=GROUPS[user], cwd="/", text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
        self.pool.programs.append(process)
        return process

    def run(self, user, *words, data=None, check=True, env=None):
        process = self.popen(user, *words, env=env, stdin=subprocess.PIPE)
        out, err = process.communicate(data, timeout=240)
        if check:
            assert process.returncode == 0, f"{user}: {words}: {process.returncode}\n{out}{err}"
        return subprocess.CompletedProcess(words, process.returncode, out, err)
