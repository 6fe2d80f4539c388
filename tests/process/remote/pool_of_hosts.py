#!/usr/bin/python3
"""A pool of several hosts, each with an address of its own: the scheduler on one, grain servers on two, and a host where two
users with real accounts call through dcs_begin, setgid. Neither gets at what is the other's; all packets that pass
between the hosts are heard, and no token, input, output or grain's name is in them; and a peer that is not what it says is
refused, by the check that failed and the address that it came from."""
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import types

from hosts_net import Listener, Net, why_not
from hurry import Hurry
from pool import frame_in, tells, wait_for
from remote_peer import BEGIN_CONTROL, ERROR, PROTOCOL, Line, text
from remote_world import Desk, DeskPool, enter
from tls import TOOLS
from two_users import SECRET, same_number_other_session, sessions_are_apart, token_of

PORT, LABEL = 7001, "a-name-that-ann-gave-her-grain"
HOSTS = ("sched", "h1", "h2", "desk1", "evil")


class HostsPool(DeskPool):
    net = None  # set before one is made

    def __init__(self):
        super().__init__()
        self.proxy = types.SimpleNamespace(address=f"{self.net.address['sched']}:{PORT}")

    def start(self, name, what, *arguments):
        with self.net.at("sched" if name == "scheduler" else name):
            super().start(name, what, *arguments)

    def start_scheduler(self):
        before = len(self.text("scheduler.log"))
        self.start("scheduler", "dcs_scheduler", "--dir", self.directory, "--tls", f"{self.net.address['sched']}:{PORT}",
                   *self.options)
        wait_for("the scheduler", lambda: "serving in" in self.text("scheduler.log")[before:])

    def code(self, *arguments):
        words = self.dcs("token", "create", *arguments).stdout.split()
        assert words[:3] == ["dcs", "host", "join"] and words[3] == self.proxy.address, words
        return words[1:]

    def client_code(self, *arguments):
        return self.code("--role", "client", *arguments)

    def join(self, name, *arguments, check=True, data=None):
        with self.net.at(name):
            return super().join(name, *arguments, check=check, data=data)

    def call(self, directory, name, *more):
        return subprocess.run([os.path.join(TOOLS, "tls_call"), self.proxy.address, directory, name, *more],
                              stdout=subprocess.PIPE, timeout=60, text=True).stdout

    def refused(self, why, since=0):
        """The log names the host that was refused by its own address, and the check."""
        evil = self.net.address["evil"]
        def told():
            return [line for line in self.text("scheduler.log")[since:].splitlines() if why in line and evil in line]
        return wait_for(f"{why!r} of {evil} in the log", told)


class HostsDesk(Desk):
    """Where users call: on desk1."""

    def __init__(self, net):
        self.net = net
        super().__init__(HostsPool)

    def __enter__(self):
        super().__enter__()
        self.pool.join("h2")
        self.pool.start_server("h2")
        self.pool.wait_active("h2")
        return self

    def join(self):
        line = self.pool.client_code("--host", "desk1")
        with self.net.at("desk1"):
            return self.pool.dcs(*line)

    def popen(self, user, *words, env=None, **more):
        with self.net.at("desk1"):
            return super().popen(user, *words, env=env, **more)


def two_users_work(desk):
    sessions_are_apart(desk)
    same_number_other_session(desk)
    out = desk.run("ann", "dcs", "map", "--", "/bin/sh", "-c", f"sleep 0.2; echo {LABEL}-{{}}", data="1\n2\n3\n4\n5\n6\n").stdout
    assert out == "".join(f"{LABEL}-{i}\n" for i in range(1, 7)), out
    big = SECRET * 20_000
    assert desk.run("ben", "dcs", "run", "--", "/bin/cat", data=big).stdout == big
    ran = {name: desk.pool.host(name)["finished"] for name in ("h1", "h2")}
    assert all(ran.values()), ran  # both hosts had some of them
    assert not os.path.exists(os.path.join(desk.pool.base, "h1", "user.sock"))


def nothing_is_heard(desk, listener):
    token, key = token_of(desk)
    address = desk.net.address
    with desk.net.at("evil"), socket.create_server((address["evil"], 0)) as server:
        with desk.net.at("desk1"):  # that it would be heard
            plain = socket.create_connection(server.getsockname())
        plain.sendall(b"said in the clear")
        plain.close()
    wait_for("what is said in the clear", lambda: b"said in the clear" in listener.heard)
    heard, pairs = bytes(listener.heard), dict(listener.pairs)
    assert listener.lost() == 0, "some packets were not heard"
    for host in ("h1", "h2", "desk1"):
        passed = pairs.pop(tuple(sorted((address["sched"], address[host]))), 0)
        assert passed > 4_000, (host, passed)
    between = {p for p in pairs if address["evil"] not in p}
    assert not between, f"hosts that have nothing to say to each other do: {between}"
    assert not frame_in(heard), "a frame is on the wire"
    for words in (SECRET, LABEL, token, bytes.fromhex(token), key[:40], "/bin/sh", "/bin/cat", "ann-1", "begin control",
                  "x86_64-linux-gnu"):
        words = words.encode() if isinstance(words, str) else words
        assert words not in heard, f"on the wire: {words!r}"
    print(f"    {len(heard) >> 10} KiB were heard", flush=True)


def begin_with(pool, identity, user="ann"):
    """What dcs_begin of a host with that identity gets to hear."""
    _, key = pool.new_key()
    try:
        with Line(pool.proxy.address, identity) as line:
            return line.ask(BEGIN_CONTROL, struct.pack("<H", PROTOCOL) + text(user) + text("x") + text(key))
    except (ssl.SSLError, OSError) as error:
        return None, str(error)


def strangers_are_refused(desk):
    pool = desk.pool
    begins = (  # identity, what it hears, what the log says with its address
        (pool.forge("expired", "client", "desk1", 30, 10), "certificate expired", "the certificate of desk1 expired on"),
        (pool.forge("early", "client", "desk1", -30, 90), "", "is not valid before"),
        (pool.forge("foreign", "client", "desk1", authority=os.path.join(pool.base, "other-authority")), "unknown ca",
         "was issued by another authority than this pool's"),
        (pool.forge("copied", "client", "desk1"), "another key has since joined under that name", "another key has since joined"),
        (os.path.join(pool.base, "h1", "pki"), "", ""))
    with desk.net.at("evil"):
        for identity, heard, logged in begins:
            since = len(pool.text("scheduler.log"))
            answer = begin_with(pool, identity)
            said = str(answer[-1]).lower()
            assert answer[0] in (None, ERROR) and heard.replace("certificate ", "") in said, (identity, answer)
            if logged:
                pool.refused(logged, since)
        # A grain server's key and certificate, copied: they are good for that name alone.
        copied = os.path.join(pool.base, "h1", "pki")
        answer = pool.call(copied, "h2")
        assert tells(answer, "certificate server names host h1 but server reports h2"), answer
        since = len(pool.text("scheduler.log"))
        try:
            Line(pool.proxy.address, copied, ssl.TLSVersion.TLSv1_2)
            raise AssertionError("TLS 1.2 was taken")
        except ssl.SSLError as error:
            assert "VERSION" in str(error).upper(), error
        pool.refused("the peer offers TLS 1.2 or older", since)
        with socket.create_connection((desk.net.address["sched"], PORT)) as plain:
            plain.sendall(b"DCS1" + bytes(60))
            assert b"this is not TLS" in plain.recv(4096)
        pool.refused("this is not TLS", since)


class Recorder(threading.Thread):
    """On the way of one connection: what went to the scheduler."""

    def __init__(self, net, target):
        super().__init__(daemon=True)
        self.said = bytearray()
        with net.at("desk1"):
            self.listener = socket.create_server((net.address["desk1"], 0))
            self.out = socket.create_connection(target)
        self.address = "%s:%d" % self.listener.getsockname()
        self.start()

    def run(self):
        client, _ = self.listener.accept()
        threading.Thread(target=self.back, args=(client,), daemon=True).start()
        while data := client.recv(65536):
            self.said += data
            self.out.sendall(data)
        self.out.shutdown(socket.SHUT_WR)

    def back(self, client):
        try:
            while data := self.out.recv(65536):
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def a_recording_says_nothing(desk):
    """All that dcs_begin of desk1 once sent, sent again by another."""
    pool, target = desk.pool, (desk.net.address["sched"], PORT)
    recorder = Recorder(desk.net, target)
    _, key = pool.new_key()
    with desk.net.at("desk1"), Line(recorder.address, "/etc/dcs/pki") as line:
        answer = line.ask(BEGIN_CONTROL, struct.pack("<H", PROTOCOL) + text("ann") + text("x") + text(key))
    assert answer[0] is not None and answer[0] != ERROR, answer
    begun = lambda: pool.text("scheduler.log").count("ann begins control program x on host desk1")
    assert wait_for("it to begin", begun) == 1
    since = len(pool.text("scheduler.log"))
    with desk.net.at("evil"), socket.create_connection(target) as again:
        again.settimeout(60)
        again.sendall(bytes(recorder.said))
        answer = b""
        try:
            while piece := again.recv(65536):
                answer += piece
        except ConnectionError:
            pass
    print("    a recording hears", len(answer), "bytes;", pool.refused("was refused", since)[0].split("refused: ")[-1], flush=True)
    assert begun() == 1


def the_host_is_removed(desk):
    pool = desk.pool
    identity = os.path.join(pool.base, "stolen")
    shutil.copytree("/etc/dcs/pki", identity)
    assert desk.run("ann", "dcs", "session", "ls").returncode == 0
    pool.dcs("host", "rm", "desk1")
    pool.table("h1", "h2")  # the name comes back, its key does not
    pool.dcs("reload")
    result = desk.run("ann", "dcs", "session", "ls", check=False)
    assert result.returncode == 125 and tells(result.stderr, "revoked host must join again"), result
    with desk.net.at("evil"):
        answer = begin_with(pool, identity)
    assert answer[0] == ERROR and "has been revoked" in answer[-1], answer
    pool.refused("has been revoked")


def main():
    if enter(__file__) is None:
        return 77
    if why := why_not():
        print("SKIPPED: a pool of network namespaces cannot be made here:", why)
        return 77
    HostsPool.net = net = Net(HOSTS)
    with HostsDesk(net) as desk, Hurry(desk.pool):
        listener = Listener()
        desk.join()
        for part in (two_users_work, lambda d: nothing_is_heard(d, listener), strangers_are_refused, a_recording_says_nothing,
                     the_host_is_removed):
            part(desk)
            print(getattr(part, "__name__", "").replace("_", " ").replace("<lambda>", "nothing is heard"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
