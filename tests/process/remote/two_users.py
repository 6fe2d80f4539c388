#!/usr/bin/python3
"""Two users with real accounts on a host whose scheduler is elsewhere: neither sees, kills, reads or resumes what is the other's,
nor gets hold of his credentials; and who listens on the wire hears no token and none of their data."""
import os
import re
import socket
import sys
import threading

from begin_world import REPORT_FD
from hurry import Hurry
from pool import frame_in, wait_for
from remote_world import Desk, enter

SECRET = "what-ann-does-is-nobody-elses-business"
ETH_P_ALL = 3


class Listener(threading.Thread):
    """All packets of this network namespace, as they pass."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self.socket.bind(("lo", 0))
        self.heard = bytearray()
        self.start()

    def run(self):
        while True:
            self.heard += self.socket.recv(65536 + 64)


def sessions_are_apart(desk):
    gate = os.path.join(desk.world.base, "gate")
    ann = desk.popen("ann", "dcs", "run", "--", "/bin/sh", "-c",
                     f"echo {SECRET}; while ! test -e {gate}; do sleep 0.1; done")
    rows = lambda user: re.findall(r'"user":"([^"]+)","session":(\d+)', desk.run(user, "dcs", "session", "ls", "-o", "json").stdout)
    wait_for("ann's session", lambda: rows("ann"), 240)
    number = rows("ann")[0][1]
    wait_for("her grain", lambda: '"state":"running"' in desk.run("ann", "dcs", "grain", "ls", number, "-o", "json").stdout, 240)
    assert not rows("ben"), rows("ben")
    theirs = f"ann/{number}"
    # How many grains a session has is each peer's to know; what they are is not.
    for words in (("session", "show", theirs), ("grain", "ls", theirs), ("grain", "ls", theirs, "-o", "json")):
        counts = desk.run("ben", "dcs", *words).stdout
        assert "/bin/sh" not in counts and SECRET not in counts, counts
    for words in (("session", "close", theirs), ("session", "clean", theirs),
                  ("session", "export", theirs, "/tmp/nothing"), ("grain", "show", theirs + ":1"),
                  ("grain", "cat", theirs + ":1"), ("grain", "kill", theirs + ":1"), ("grain", "restart", theirs + ":1"),
                  ("grain", "explain", theirs + ":1")):
        result = desk.run("ben", "dcs", *words, check=False)
        assert result.returncode in (3, 4) or words[:2] == ("session", "clean") and "is active" in result.stderr, (words, result)
        assert SECRET not in result.stdout + result.stderr, (words, result)
    result = desk.run("ben", "dcs", "host", "rm", "h1", check=False)
    assert result.returncode == 4, result
    assert ann.poll() is None
    # Nor by way of her process: it runs under her uid, and what dcs_begin left is no file of any user's.
    for name in ("fd", "environ", "mem", "maps"):
        path = f"/proc/{ann.pid}/{name}"
        out = desk.run("ben", "/bin/sh", "-c", f"ls {path} >/dev/null 2>&1 && cat {path} 2>/dev/null | head -c 20 | wc -c; ls {path}/ 2>&1",
                       check=False)
        assert "denied" in out.stdout or out.stdout.strip().splitlines()[0] in ("0", path + "/"), (name, out)
    words = open(f"/proc/{ann.pid}/cmdline").read()
    assert "TOKEN" not in words and not re.search(r"[0-9a-f]{64}", words), words
    open(gate, "w").close()
    out, err = ann.communicate(timeout=240)
    assert ann.returncode == 0 and out == SECRET + "\n", (out, err)
    number = desk.run("ann", "dcs", "run", "--detach", "--", "/bin/true").stdout.strip()
    desk.run("ann", "dcs", "session", "wait", number)
    result = desk.run("ben", "dcs", "grain", "kill", f"ann/{number}:1", check=False)
    assert result.returncode == 4 and "finished" not in result.stderr, result
    desk.run("ann", "dcs", "session", "close", number), desk.run("ann", "dcs", "session", "clean", number)


def same_number_other_session(desk):
    """Both call the same number theirs."""
    for user in ("ann", "ben"):
        out = desk.run(user, "dcs", "map", "--session", "4711", "--", "/bin/echo", f"{user}-{{}}", data="1\n2\n").stdout
        assert out == f"{user}-1\n{user}-2\n", out
    for user, other in (("ann", "ben"), ("ben", "ann")):
        out = desk.run(user, "dcs", "grain", "cat", "4711:1").stdout
        assert f"{user}-1" in out and other not in out, out


def token_of(desk):
    """Of a program that dcs_begin starts for ann: its token, and the key in its credentials."""
    read, write = os.pipe()
    os.dup2(write, REPORT_FD)
    os.set_inheritable(REPORT_FD, True)
    process = desk.popen("ann", "dcs_begin", desk.world.witness, str(REPORT_FD), pass_fds=[REPORT_FD])
    os.close(write)
    os.close(REPORT_FD)
    with os.fdopen(read, "rb") as report:
        words = report.read().decode(errors="replace")
    process.communicate(timeout=300)
    credentials = bytes.fromhex(re.search(r"credentials: (\w+)", words)[1]).decode()
    token = re.search(r"token (\w{64})", credentials)[1]
    return token, "".join(re.search(r"BEGIN PRIVATE KEY-----\n(.*?)-----END", credentials, re.DOTALL)[1].split())


def nothing_is_heard(desk, listener):
    token, key = token_of(desk)
    other = socket.create_server(("127.0.0.1", 0))  # that it would be heard
    with socket.create_connection(other.getsockname()) as plain:
        plain.sendall(b"said in the clear")
    wait_for("what is said in the clear", lambda: b"said in the clear" in listener.heard)
    heard = bytes(listener.heard)
    assert len(heard) > 50_000, len(heard)
    assert not frame_in(heard), "a frame is on the wire"
    for words in (SECRET, token, bytes.fromhex(token), key[:40], "/bin/sh", "ann-1", "begin control"):
        words = words.encode() if isinstance(words, str) else words
        assert words not in heard, f"on the wire: {words!r}"


def main():
    if enter(__file__) is None:
        return 77
    with Desk() as desk, Hurry(desk.pool):
        listener = Listener()
        desk.join()
        for part in (sessions_are_apart, same_number_other_session, lambda d: nothing_is_heard(d, listener)):
            part(desk)
        print("two users, and one who listens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
