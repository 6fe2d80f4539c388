"""Machines with a Debian of their own and systemd as their first process: containers on overlays of one root, each in a network
namespace on one switch. In a mount and network namespace of the test's own (inside())."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/process"))
from hosts_net import Net, why_not  # noqa: E402
from pool import wait_for  # noqa: E402

PACKAGES = os.path.join(ROOT, "build/packages")
CLEAN = os.path.join(ROOT, "build/clean-root")
NEEDED = ("systemd", "systemd-sysv", "dbus", "iproute2", "procps", "libnss-myhostname", "man-db")
LANDLOCK = "landlock_create_ruleset landlock_add_rule landlock_restrict_self"


def inside(script):
    """In namespaces of the test's own; goes there. A reason why it cannot be done here, or None."""
    if os.getuid() != 0:
        return "only root can make machines"
    for program in ("systemd-nspawn", "mmdebstrap"):
        if not shutil.which(program):
            return f"{program} is not installed (deploy/install-packages --full)"
    if sys.argv[1:2] != ["inside"]:
        os.execv("/usr/bin/unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable,
                                      os.path.abspath(script), "inside", *sys.argv[1:]])
    del sys.argv[1]
    return why_not()


def dependencies(packages):
    """What Debian has to bring for them."""
    names = set()
    for path in packages:
        for field in ("Depends", "Recommends"):
            text = subprocess.run(["dpkg-deb", "-f", path, field], stdout=subprocess.PIPE, text=True, check=True).stdout
            names |= {re.match(r"[\w.+-]+", word.strip()).group(0) for word in text.split(",") if word.strip()}
    own = {os.path.basename(path).split("_")[0] for path in packages}
    return sorted(names - own)


def clean_root(packages):
    """A minimal Debian 12 with systemd, made once; what the packages need from Debian lies downloaded in it, not installed. Needs the
    mirror: before inside() leaves its network."""
    wanted = " ".join(dependencies(packages))
    stamp = os.path.join(CLEAN, "made-for")
    if os.path.exists(stamp) and open(stamp).read() == wanted:
        return
    shutil.rmtree(CLEAN, ignore_errors=True)
    download = f'chroot "$1" apt-get install -y --install-recommends --download-only {wanted}'
    subprocess.run(["mmdebstrap", "--variant=minbase", "--include=" + ",".join(NEEDED), "--skip=cleanup/apt,cleanup/tmp",
                    "--customize-hook=" + download, "--customize-hook=rm -f \"$1/etc/machine-id\" && touch \"$1/etc/machine-id\"",
                    "bookworm", CLEAN], check=True, stdout=subprocess.DEVNULL, timeout=1200)
    with open(stamp, "w") as file:
        file.write(wanted)


class Machine:
    def __init__(self, name, net, base, clean=CLEAN):
        self.name, self.net, self.base, self.nspawn, self.first = name, net, os.path.join(base, name), None, 0
        for folder in ("upper", "work", "root"):
            os.makedirs(os.path.join(self.base, folder))
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                        f"lowerdir={clean},upperdir={self.base}/upper,workdir={self.base}/work", f"{self.base}/root"], check=True)
        names = "".join(f"{address} {other}\n" for other, address in net.address.items())
        self.write("/etc/hosts", "127.0.0.1 localhost\n" + names)
        self.write("/etc/hostname", name + "\n")
        self.write("/etc/systemd/journald.conf.d/test.conf", "[Journal]\nStorage=persistent\nRateLimitBurst=0\n")
        for unit in ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "man-db.timer"):
            os.symlink("/dev/null", self.path("/etc/systemd/system/" + unit))

    def path(self, name):
        return self.base + "/root" + name

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def start(self):
        self.log = open(self.base + "/console", "ab")
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe", "--resolv-conf=off", "--timezone=off",
             "--system-call-filter=" + LANDLOCK, f"--network-namespace-path=/run/netns/{self.name}", "-M", self.name,
             "-D", self.base + "/root", "--boot"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
            env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"})
        self.first = wait_for(f"the first process of {self.name}", self.find_first)
        wait_for(f"{self.name} to be up", lambda: self.run("systemctl is-system-running --wait").stdout.strip() in ("running", "degraded"))

    def find_first(self):
        assert self.nspawn.poll() is None, open(self.base + "/console", errors="replace").read()
        children = open(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read().split()
        for pid in children:
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "systemd":
                    return int(pid)
            except OSError:
                pass
        return 0

    def words(self, line, user="root"):
        """The command line by which `line` is typed there."""
        words = ["nsenter", "-t", str(self.first), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wdns=/",
                 "env", "-i", "LANG=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "TERM=dumb"]
        if user == "root":
            return words + ["HOME=/root", "bash", "-c", "cd /root\n" + line]
        return words + ["runuser", "-l", user, "-c", line]

    def run(self, line, user="root", timeout=600):
        return subprocess.run(self.words(line, user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=timeout)

    def type(self, line, user="root", code=0):
        done = self.run(line, user)
        assert code is None or done.returncode == code, \
            f"{user}@{self.name}: {line}\nexit {done.returncode}\n{done.stdout}{done.stderr}\n{self.journal()}"
        return done.stdout

    def journal(self):
        return self.run("journalctl --no-pager -n 60 -u 'dcs-*'").stdout if self.first else ""

    def die(self):
        """As by a power failure: no process of it is asked."""
        os.kill(self.first, signal.SIGKILL)
        self.nspawn.wait()
        self.first = 0

    def stop(self):
        if self.nspawn is None or self.nspawn.poll() is not None:
            return
        self.nspawn.terminate()
        try:
            self.nspawn.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.die()


class Machines:
    """with Machines(names) as m: m["sched"].type("...")"""

    def __init__(self, names):
        self.names = names

    def __enter__(self):
        self.base = tempfile.mkdtemp(prefix="dcs-machines-")
        os.chmod(self.base, 0o755)
        self.net = Net(self.names)
        self.all = {}
        try:
            for name in self.names:
                self.all[name] = Machine(name, self.net, self.base)
            for machine in self.all.values():
                machine.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __getitem__(self, name):
        return self.all[name]

    def __exit__(self, *what):
        for machine in self.all.values():
            if machine.nspawn is not None and machine.nspawn.poll() is None:
                machine.nspawn.terminate()
        for machine in self.all.values():
            machine.stop()
            subprocess.run(["umount", "-l", machine.base + "/root"], check=False)
        time.sleep(0.1)
        shutil.rmtree(self.base, ignore_errors=True)
