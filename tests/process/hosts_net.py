"""Hosts of a pool as network namespaces: each has its own interface and address, and all hang on one switch, where the test
listens. In a mount and network namespace of the test's own (remote_world.enter)."""
import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET, ETH_P_ALL, PACKET_OUTGOING = 0x40000000, 3, 4
PREFIX = "10.77.0."


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


def why_not():
    """Why no such hosts can be made here; None: they can."""
    made = ip("link", "add", "dcstry0", "type", "veth", "peer", "name", "dcstry1", check=False)
    if made.returncode != 0:
        return "no pair of interfaces: " + made.stderr.strip()
    ip("link", "del", "dcstry0")
    made = ip("link", "add", "dcstry", "type", "bridge", check=False)
    if made.returncode != 0:
        return "no switch: " + made.stderr.strip()
    ip("link", "del", "dcstry")
    return None


class Net:
    """names: of the hosts, whose addresses are 10.77.0.1, .2, ... in this order."""

    def __init__(self, names):
        self.address = {name: f"{PREFIX}{i + 1}" for i, name in enumerate(names)}
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.open = {}
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)  # where ip keeps their names
        ip("link", "set", "lo", "up")
        ip("link", "add", "switch", "type", "bridge")
        ip("link", "set", "switch", "up")
        for name, address in self.address.items():
            ip("netns", "add", name)
            ip("link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"to-{name}", "master", "switch", "up")
            for words in (("addr", "add", f"{address}/24", "dev", "eth0"), ("link", "set", "eth0", "up"),
                          ("link", "set", "lo", "up")):
                ip("-n", name, *words)
            self.open[name] = os.open(f"/run/netns/{name}", os.O_RDONLY)

    @contextlib.contextmanager
    def at(self, name):
        """What this thread starts or connects meanwhile is on that host."""
        self.enter(self.open[name])
        try:
            yield
        finally:
            self.enter(self.home)

    @staticmethod
    def enter(fd):
        if LIBC.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


class Listener(threading.Thread):
    """Every packet that passes the switch, and between whom how many bytes passed."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUFFORCE if hasattr(socket, "SO_RCVBUFFORCE") else 33, 256 << 20)
        self.heard, self.pairs = bytearray(), {}
        self.start()

    def run(self):
        while True:
            packet, (_, _, kind, _, _) = self.socket.recvfrom(65536 + 64)
            if kind == PACKET_OUTGOING:  # it was heard when it came in
                continue
            self.heard += packet
            if packet[12:14] == b"\x08\x00":
                pair = tuple(sorted(socket.inet_ntoa(packet[at:at + 4]) for at in (26, 30)))
                self.pairs[pair] = self.pairs.get(pair, 0) + len(packet)

    def lost(self):
        """Packets that came faster than they were read."""
        return struct.unpack("II", self.socket.getsockopt(263, 6, 8))[1]  # SOL_PACKET, PACKET_STATISTICS
