"""A host with users of its own for dcs_begin: in a mount and network namespace of the test, with /etc laid over, the program
installed as an administrator would, and a scheduler's door at 127.0.0.1:7001. What runs in it is judged here."""
import ctypes
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from pool import BIN, tells, wait_for

TOOLS = os.environ.get("DCS_TOOLS") or os.path.join(os.path.dirname(BIN), "tests")
DCS_GROUP, KEY_GROUP, PORT, REPORT_FD = 64321, 64322, 7001, 97
USERS = {"ann": 61001, "ben": 61002, "eve": 61003, "od+d": 61004}  # eve is not of the group
GROUPS = {"ann": [DCS_GROUP, 61777], "ben": [DCS_GROUP], "eve": [], "od+d": [DCS_GROUP]}
LIBC = ctypes.CDLL(None, use_errno=True)


def shared(path):
    """With the group for which dcs_begin is setgid, as `dcs host join` leaves them."""
    os.chown(path, 0, KEY_GROUP)
    os.chmod(path, 0o710 if os.path.isdir(path) else 0o640)


class Outcome:
    def __init__(self, status, text, report, hung, cwd):
        self.status, self.text, self.hung = status, text, hung
        self.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        self.code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1
        self.core = os.WCOREDUMP(status) or any(n.startswith("core") for n in os.path.isdir(cwd) and os.listdir(cwd) or ())
        head, _, tail = report.partition(b"env\n")
        self.started, self.environment = bool(report), tail.split(b"\0")[:-1]
        self.lines = [line.split(":", 1) for line in head.decode(errors="replace").splitlines() if ":" in line]

    def __getitem__(self, key):
        return next((value.strip() for name, value in self.lines if name == key), None)

    def all(self, key):
        return [value.strip() for name, value in self.lines if name == key]

    def __str__(self):
        return (f"exit {self.code}, signal {self.signal}, hung {self.hung}, core {self.core}, started {self.started}: "
                f"{self.text[:2000]!r}")


class World:
    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="dcs-begin-")
        os.chmod(self.base, 0o755)
        self.peers, self.secrets = {}, []
        self.plant, self.patience = "", 200  # seconds until what does not end is hanging
        overlay = os.path.join(self.base, "overlay")
        os.mkdir(overlay)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", overlay], check=True)
        for name in ("up", "work"):
            os.mkdir(os.path.join(overlay, name))
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                        f"lowerdir=/etc,upperdir={overlay}/up,workdir={overlay}/work", "/etc"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        program = os.path.join(os.environ.get("DCS_DESK_BIN", BIN), "dcs_begin")
        # Release 0.1 is setuid root, and takes a key for root alone.
        self.old = " 0.1" in subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True).stdout
        self.users()
        self.install(program)
        self.identities()
        self.witness = os.path.join(self.base, "witness")
        shutil.copy(os.path.join(TOOLS, "begin_witness"), self.witness)

    def close(self):
        for name in list(self.peers):
            self.end_peer(name)
        subprocess.run(["umount", "-l", "/etc"], check=True)
        subprocess.run(["umount", "-l", os.path.join(self.base, "overlay")], check=True)
        shutil.rmtree(self.base, ignore_errors=True)

    def users(self, members=("ann", "ben", "od+d"), names=None, group="dcs"):
        """/etc/passwd and /etc/group, new files each time: they may be open elsewhere."""
        names = names or USERS
        lines = [line for line in open("/etc/passwd") if not line.split(":")[2].startswith("610")]
        lines += [f"{name}:x:{uid}:{uid}::{self.base}/home-{uid}:/bin/sh\n" for name, uid in names.items()]
        self.write("/etc/passwd", "".join(lines))
        lines = [line for line in open("/etc/group") if line.split(":")[2].strip() not in (str(DCS_GROUP), str(KEY_GROUP), "61777")]
        lines += [f"{group}:x:{DCS_GROUP}:{','.join(members)}\n", *([] if self.old else [f"dcs-key:x:{KEY_GROUP}:\n"]), "more:x:61777:ann\n"]
        self.write("/etc/group", "".join(lines))
        for uid in USERS.values():
            home = f"{self.base}/home-{uid}"
            if not os.path.isdir(home):
                os.mkdir(home, 0o700)
                os.chown(home, uid, uid)

    @staticmethod
    def write(path, text, mode=0o644):
        with open(path + ".new", "w") as file:
            file.write(text)
        os.chmod(path + ".new", mode)
        os.rename(path + ".new", path)

    def install(self, program):
        os.makedirs(self.base + "/bin", exist_ok=True)
        self.program = os.path.join(self.base, "bin/dcs_begin")
        shutil.copyfile(program, self.program + ".new")
        os.chown(self.program + ".new", 0, DCS_GROUP if self.old else KEY_GROUP)
        os.chmod(self.program + ".new", 0o4750 if self.old else 0o2755)
        os.rename(self.program + ".new", self.program)

    def identities(self):
        for name, authority, role, age in (("h1", "authority", "client", 0), ("other", "foreign", "client", 0),
                                           ("server", "authority", "grainserver", 0), ("old", "authority", "client", 100),
                                           ("young", "authority", "client", -2)):
            subprocess.run([os.path.join(TOOLS, "tls_forge"), f"{self.base}/{authority}", f"{self.base}/{name}", role,
                            "h1", str(age), "90"], check=True)
        self.configure()
        for name in ("key.pem", "certificate.pem"):
            self.secrets += [line for line in open("/etc/dcs/pki/" + name).read().splitlines() if len(line) > 20]

    def configure(self, conf=f"# of the test\nscheduler 127.0.0.1:{PORT}\npki /etc/dcs/pki\n", identity="h1"):
        shutil.rmtree("/etc/dcs", ignore_errors=True)
        os.mkdir("/etc/dcs", 0o755)
        shutil.copytree(f"{self.base}/{identity}", "/etc/dcs/pki")
        for path in ("", *(f"/{name}.pem" for name in ("key", "certificate", "authority"))):
            shared("/etc/dcs/pki" + path)
        self.write("/etc/dcs/pool.conf", conf)

    def peer(self, how="serve", authority="authority"):
        """The door, as it is to behave; others than this one are ended first."""
        wanted = f"{how} {authority}"
        if wanted in self.peers:
            return self.peers[wanted]
        for name in list(self.peers):
            self.end_peer(name)
        heard = open(os.path.join(self.base, "heard"), "w+")
        process = subprocess.Popen([os.path.join(TOOLS, "begin_peer"), f"{self.base}/{authority}", f"127.0.0.1:{PORT}", how],
                                   stdout=heard)
        self.peers[wanted] = process, heard
        wait_for("the door", lambda: "ready" in open(heard.name).read() or process.poll() is not None)
        assert process.poll() is None, "the door did not open"
        return self.peers[wanted]

    def end_peer(self, name):
        process, heard = self.peers.pop(name)
        process.kill()
        process.wait()
        heard.close()

    def heard(self):
        return open(os.path.join(self.base, "heard")).read()

    # --- running

    def start(self, user="ann", argv=None, env=None, before=None, after=None, limits=(), program=None, groups=None,
              uid=None, cwd=None, raw_env=None):
        """A child that becomes the user, makes itself hostile, and executes dcs_begin. `before` runs as root, `after` as
        the user; limits come last of all, since Python itself may not live with them."""
        uid = USERS.get(user, 0) if uid is None else uid
        groups = GROUPS.get(user, []) if groups is None else groups
        cwd = cwd or tempfile.mkdtemp(prefix="cwd-", dir=self.base)
        os.chown(cwd, uid, uid)
        out, report = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        words = [b if isinstance(b, bytes) else b.encode() for b in (
            argv if argv is not None else ["dcs_begin", self.witness, str(REPORT_FD)])]
        default = {"PATH": "/usr/bin:/bin", "HOME": f"{self.base}/home-{uid}", "KEPT": "as it was", **(env or {})}
        if self.plant:
            default["DCS_PLANTED"] = self.plant
        values = raw_env if raw_env is not None else [f"{k}={v}".encode() for k, v in default.items() if v is not None]
        c_argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
        c_env = (ctypes.c_char_p * (len(values) + 1))(*values, None)
        c_limits = [(which, (ctypes.c_ulong * 2)(soft, hard)) for which, soft, hard in limits]
        path = (program or self.program).encode()
        pid = os.fork()
        if pid != 0:
            os.close(out[1])
            os.close(report[1])
            return pid, out[0], report[0], cwd
        try:
            os.setsid()
            os.chdir(cwd)
            for name in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(name, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(out[1], 1)
            os.dup2(out[1], 2)
            os.dup2(report[1], REPORT_FD)
            os.closerange(3, REPORT_FD)
            os.closerange(REPORT_FD + 1, 1 << 16)
            if before:
                before()
            os.setgroups(groups)
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            if after:
                after()
            for which, pair in c_limits:
                LIBC.prlimit(0, which, pair, None)
            LIBC.execve(path, c_argv, c_env)
        finally:
            os._exit(96)

    def finish(self, child):
        pid, out, report, cwd = child
        text, told, end, hung = bytearray(), bytearray(), time.monotonic() + self.patience, False
        left = {out: text, report: told}
        while left:
            ready, _, _ = select.select(list(left), [], [], max(0, end - time.monotonic()))
            if not ready:
                hung = True
                os.kill(pid, signal.SIGKILL)
                break
            for fd in ready:
                piece = os.read(fd, 65536)
                left[fd] += piece
                if not piece:
                    del left[fd]
        _, status = os.waitpid(pid, 0)
        os.close(out)
        os.close(report)
        outcome = Outcome(status, text.decode(errors="replace"), bytes(told), hung, cwd)
        shutil.rmtree(cwd, ignore_errors=True)
        return outcome

    def run(self, **how):
        return self.finish(self.start(**how))

    # --- judging

    def judge(self, outcome, want, user="ann", uid=None, groups=None, stds=True, killed=(), own_fds=True):
        """Nothing if all is well, else what is wrong. want: None for a program that runs, else words of the message."""
        leaked = [s for s in self.secrets if s in outcome.text]
        if outcome.hung or outcome.core or leaked:
            return f"{'it hangs' if outcome.hung else 'core' if outcome.core else 'a secret is shown'}: {outcome}"
        if outcome.signal:
            return None if outcome.signal in killed else f"killed: {outcome}"
        if want is not None:
            good = not outcome.started and any(not w or tells(outcome.text, w) for w in ([want] if isinstance(want, str) else want))
            return None if good else f"no such message: {want!r}: {outcome}"
        if not outcome.started or outcome.code != 7:
            return f"the program did not run: {outcome}"
        return self.judge_program(outcome, USERS.get(user, 0) if uid is None else uid,
                                  GROUPS.get(user, []) if groups is None else groups, stds, own_fds)

    @staticmethod
    def judge_program(o, uid, groups, stds, own_fds):
        wrong = []
        def same(what, is_, should):
            if is_ != should:
                wrong.append(f"{what}: {is_!r}, not {should!r}")
        for key in ("Uid", "Gid"):
            same(key, o[key].split(), [str(uid)] * 4)
        same("groups", sorted(map(int, o["Groups"].split())), sorted(groups))
        if uid != 0:
            for key in ("CapPrm", "CapEff", "CapAmb"):
                same(key, int(o[key], 16), 0)
        same("dumpable", o["dumpable"], "1")
        same("seals", int(o["seals"]) & 15, 15)
        own = [v for v in o.environment if v.startswith(b"DCS_AUTH_FD=")]
        same("DCS_AUTH_FD", len(own), 1)
        text = bytes.fromhex(o["credentials"] or "").decode(errors="replace")
        same("credentials", [re.sub("[0-9a-f]{64}$", "TOKEN", line) for line in text.split("\n")[:3]],
             ["DCS-CREDENTIALS 1", re.search("^scheduler .*", open("/etc/dcs/pool.conf").read(), re.M)[0], "token TOKEN"])
        same("keys in them", re.findall("BEGIN (.*?)-----", text), ["PRIVATE KEY", "CERTIFICATE", "CERTIFICATE"])
        known = {own[0].split(b"=")[1].decode() if own else "", "0", "1", "2"}
        strange = [line for line in o.all("fd") if line.split()[0] not in known]
        if own_fds:
            same("descriptors", strange, [])
        if stds:
            same("standard descriptors", {line.split()[0] for line in o.all("fd")} >= {"0", "1", "2"}, True)
        return "; ".join(wrong) or None


class Hole:
    """An address that answers nothing, as that of a host without power: its queue of connections stays full."""

    def __init__(self, host, port=PORT):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.sockets = [socket.create_server((host, port), family=family, backlog=0)]
        for _ in range(4):
            self.sockets.append(socket.socket(family))
            self.sockets[-1].setblocking(False)
            self.sockets[-1].connect_ex((host, port))

    def close(self):
        for each in self.sockets:
            each.close()


class Stranger:
    """A TCP server in the scheduler's place: `talk` has each connection, in a process of its own."""

    def __init__(self, world, talk):
        for name in list(world.peers):
            world.end_peer(name)
        self.listener = socket.create_server(("127.0.0.1", PORT), reuse_port=True)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.serve(talk)
            finally:
                os._exit(0)

    def serve(self, talk):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            peer, _ = self.listener.accept()
            if os.fork() == 0:
                try:
                    talk(peer)
                finally:
                    os._exit(0)
            peer.close()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.listener.close()
