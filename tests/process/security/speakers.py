"""A pool with each peer in it who could try something: users of it and not, its master, root, hosts that have joined,
one that was removed, strangers. Each speaks through tests/process/security/speaker.cc, over the real sockets, as the real uid."""
import ctypes
import grp
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

from pool import wait_for
from tls import TOOLS, TlsPool, TIMES

GROUP = "users"
OWNER, OTHER, OUTSIDER, MASTER, ROOT = 20001, 20002, 20009, 20003, 0
CODES = {"NO_AUTH": 3, "REFUSED": 4, "SESSION_UNKNOWN": 8, "NOTHING_YET": 13, "CANNOT_RUN": 15, "LIMIT": 18, "PROTOCOL": 19,
         "NOT_FOUND": 21}


def name_of(uid):
    return "root" if uid == 0 else f"uid{uid}"


def quoted(value):
    if isinstance(value, bytes):
        return "".join("%%%02x" % byte for byte in value)
    return urllib.parse.quote(str(value), safe="")


class Heard:
    """The reply: the kind of the message and its fields, or kind `closed`."""

    def __init__(self, line):
        self.kind, _, rest = line.partition(" ")
        self.text = rest
        self.fields = {}
        if self.kind not in ("closed", "silence", "opened"):
            for word in rest.split():
                key, _, value = word.partition("=")
                self.fields[key] = urllib.parse.unquote_to_bytes(value)

    def number(self, field):
        return int(float(self.fields[field]))

    def error(self):
        return self.number("code") if self.kind == "ErrorReply" else None

    def __repr__(self):
        return f"{self.kind} {urllib.parse.unquote(self.text, errors='replace')}"


class Speaker:
    """One process of `uid`. A user says Hello by himself, with `token`; a host its FirstCall, with what it holds."""

    def __init__(self, pool, uid=0, host=None, stranger=False):
        self.pool, self.uid, self.host, self.stranger = pool, uid, host, stranger
        options = {} if uid == 0 else dict(user=uid, group=uid, extra_groups=[] if uid == OUTSIDER else [pool.gid])
        self.process = subprocess.Popen([pool.speaker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd="/", **options)
        pool.speakers.append(self.process)

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def open(self, greet=True, token=b"", holds=(), host=None):
        if self.stranger:
            line = f"tls 127.0.0.1:{self.pool.port_number} - {self.pool.directory}/pki"
        elif self.host:
            line = f"tls 127.0.0.1:{self.pool.port_number} {self.pool.base}/{self.host}/pki"
        else:
            line = f"unix {self.pool.directory}/user.sock"
        heard = Heard(self.order(line))
        if heard.kind != "opened" or self.stranger or not greet:
            return heard
        if not self.host:
            self.say("Hello", token=token)
        else:
            fields = {"held.size": len(holds)}
            for i, (user, session, grain, incarnation) in enumerate(holds):
                fields.update({f"held[{i}].key.user": user, f"held[{i}].key.session": session,
                               f"held[{i}].key.grain": grain, f"held[{i}].incarnation": incarnation})
            self.say("FirstCall", host=host or self.host, **fields)
        return self.hear()

    def say(self, kind, **fields):
        words = " ".join(f"{key}={'@request' if value == '@request' else quoted(value)}" for key, value in fields.items())
        answer = self.order(f"say {kind} {words}")
        assert answer == "said", f"{kind} {words}: {answer}"

    def hear(self):
        """The next that is said to us. A host learns about the backup without having asked."""
        heard = Heard(self.order("hear"))
        while heard.kind == "BackupPlace":
            heard = Heard(self.order("hear"))
        return heard

    def ask(self, kind, **fields):
        self.say(kind, **fields)
        return self.hear()


class SpeakersPool(TlsPool):
    """TlsPool with a group that may call and a scheduler_master."""
    table_lines = [f"h1 class=0x1 slots=64 {TIMES}", f"h2 class=0x2 slots=64 {TIMES}", "h3 class=0x4", "h4 class=0x4", "r0 class=0x4", "r20003 class=0x4"]
    more_options = ()

    def __init__(self):
        if os.geteuid() == 0:
            make_logins({name_of(uid): uid for uid in (OWNER, OTHER, OUTSIDER, MASTER)},
                        {GROUP: [name_of(uid) for uid in (OWNER, OTHER, MASTER)]})
        self.gid = grp.getgrnam(GROUP).gr_gid
        self.speakers = []
        super().__init__()
        os.chmod(self.base, 0o711)
        self.speaker = shutil.copy(os.path.join(TOOLS, "speaker"), os.path.join(self.base, "speaker"))
        os.chmod(self.speaker, 0o755)

    def __exit__(self, kind, value, trace):
        for process in self.speakers:
            process.stdin.close()
            process.stdout.close()
            process.kill()
            process.wait()
        super().__exit__(kind, value, trace)

    def table(self, *hosts):
        with open(os.path.join(self.directory, "hosts"), "w") as file:
            file.write("\n".join(self.table_lines) + "\n")

    def start_scheduler(self):
        before = len(self.text("scheduler.log"))
        self.start("scheduler", "dcs_scheduler", "--dir", self.directory, "--tls", f"127.0.0.1:{self.port_number}",
                   "--group", GROUP, "--master", f"nobody-else,{name_of(MASTER)}", *self.more_options)

        def port():
            found = re.search(r"hosts at 127.0.0.1:(\d+) with", self.text("scheduler.log")[before:])
            return found and "serving in" in self.text("scheduler.log")[before:] and found.group(1)
        self.port_number = int(wait_for("the scheduler", port))

    def token_of(self, speaker, ident="test"):
        assert speaker.open().kind == "Welcome"
        reply = speaker.ask("GetAuth", ident=ident)
        assert reply.kind == "AuthReply", reply
        return reply.fields["token"]


def need_root():
    if os.geteuid() != 0:
        print("SKIPPED: only root can be several users")
        sys.exit(77)


def make_logins(logins, members):
    """For this process and what it starts: an /etc laid over, in a mount namespace of its own. May be called again with others."""
    if not hasattr(make_logins, "tables"):
        libc = ctypes.CDLL(None, use_errno=True)
        make_logins.tables = {path: open(path).readlines() for path in ("/etc/passwd", "/etc/group")}
        for result in (libc.unshare(0x20000), libc.mount(b"none", b"/", None, 16384 | 1 << 18, None)):  # CLONE_NEWNS; private
            assert result == 0, os.strerror(ctypes.get_errno())
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/mnt"], check=True)
        for name in ("up", "work"):
            os.mkdir(os.path.join("/mnt", name))
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", "lowerdir=/etc,upperdir=/mnt/up,workdir=/mnt/work", "/etc"],
                       check=True)

    def write(path, lines):
        with open(path + ".new", "w") as file:
            os.fchmod(file.fileno(), 0o644)
            file.writelines(lines)
        assert os.path.exists("/mnt/up/" + os.path.basename(path) + ".new"), "this is the machine's own /etc"
        os.rename(path + ".new", path)
    passwd, group = make_logins.tables.values()
    write("/etc/passwd", passwd + [f"{name}:x:{uid}:{uid}::/:/bin/sh\n" for name, uid in logins.items()])

    def with_members(line):
        name, more = line.split(":")[0], line.rstrip("\n")
        return more + ("" if more.endswith(":") else ",") + ",".join(members[name]) + "\n" if name in members else line
    write("/etc/group", [with_members(line) for line in group])
