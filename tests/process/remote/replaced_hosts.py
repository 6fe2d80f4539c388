#!/usr/bin/python3
"""/etc/hosts is replaced by another file while daemons run, as `sed -i` and editors do it: a grain server and the
backup go by the new one; without the process that looks names up they end. Needs root, for an /etc of its own."""
import os
import signal
import subprocess
import sys
import tempfile

from backup_remote import BackupPool, far_backup
from pool import wait_for
from privileges import beside

NAME = "sched.pool"


def inside():
    """In a mount namespace with an /etc of the test's own, or it cannot be done here."""
    if os.getuid() != 0:
        print("only root can make an /etc of its own")
        return False
    if sys.argv[1:] != ["inside"]:
        os.execv("/usr/bin/unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, os.path.abspath(__file__),
                                      "inside"])
    folder = tempfile.mkdtemp(prefix="dcs-etc-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder], check=True)
    subprocess.run(["cp", "-a", "/etc/.", folder], check=True)
    subprocess.run(["mount", "--bind", folder, "/etc"], check=True)
    return True


def replace_hosts(address, file="/etc/hosts"):
    """By another file of that name: what a rule of the kernel says of the former does not hold for it."""
    before = os.stat(file).st_ino
    with open(file + ".new", "w") as new:
        new.write(f"127.0.0.1 localhost\n{address} {NAME}\n")
    os.chmod(file + ".new", 0o644)
    os.rename(file + ".new", file)
    assert os.stat(file).st_ino != before


class NamedPool(BackupPool):
    """The scheduler is at the address that its name stands for in /etc/hosts."""
    at = "127.0.0.1"

    def start(self, name, what, *arguments):
        named = [a.replace(self.proxy.address, f"{NAME}:{self.port_number}") if hasattr(self, "proxy") else a for a in arguments]
        if what == "dcs_scheduler":
            named = [a.replace("127.0.0.1", self.at) for a in arguments]
        super().start(name, what, *named)

    def text(self, name):
        return super().text(name).replace(self.at, "127.0.0.1")  # for those who look for the port


def main():
    if not inside():
        return 77
    replace_hosts("127.0.0.1")
    with NamedPool() as pool:
        pool.list_backup()
        pool.join("h1")
        line = pool.dcs("token", "create", "--host", "bk", "--role", "backup").stdout.split()
        pool.join("backup", *line[1:])
        pool.start_server("h1")
        pool.start_backup()
        pool.wait_active("h1")
        wait_for("the backup to call", lambda: far_backup(pool)["state"] == "connected")
        pool.stop("scheduler")
        replace_hosts("127.0.0.2")
        pool.at = "127.0.0.2"
        pool.start_scheduler()
        pool.wait_active("h1")
        wait_for("the backup to call there", lambda: far_backup(pool)["state"] == "connected")
        resolver = beside(pool.running["h1"].pid, "dcs_resolver")
        wait_for("the processes that looked up to be collected",
                 lambda: not open(f"/proc/{resolver}/task/{resolver}/children").read())
        for name, what in (("h1", "grain server"), ("backup", "backup"), ("scheduler", "scheduler")):
            os.kill(beside(pool.running[name].pid, "dcs_resolver"), signal.SIGKILL)
            assert pool.running.pop(name).wait() == 1, name
            pool.logged(f"{name}.log", f"the {what}'s resolver was killed by signal 9, so the {what} stops: restart it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
