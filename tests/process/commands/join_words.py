#!/usr/bin/python3
"""dcs host join and schedulers that answer what they should not, or hosts that cannot keep what arrived: what is said, and
that nothing of it is kept."""
import hashlib
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

from daemon_words import REFUSE, as_nobody
from pool import about, program
from remote_peer import crc32c, frame, text
from tls import TOOLS

LIST_TOKENS, JOIN_HOST, JOINED, JOIN_PENDING = 52, 57, 58, 59


def der(directory, name="certificate.pem"):
    return ssl.PEM_cert_to_DER_cert(open(os.path.join(directory, name)).read())


class World:
    """A pool's authority, another one, and who answers at the pool's address."""

    def __init__(self, base):
        self.base, self.count = base, 0
        self.authority, self.other = os.path.join(base, "authority"), os.path.join(base, "other")
        self.scheduler = self.forge(os.path.join(base, "scheduler"), "scheduler", "scheduler")
        self.forge(os.path.join(base, "elsewhere"), "server", "h1", authority=self.other)
        self.hash = hashlib.sha256(der(self.scheduler, "authority.pem")).hexdigest()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        chain = os.path.join(base, "chain.pem")
        with open(chain, "w") as file:
            for name in ("certificate.pem", "authority.pem"):
                file.write(open(os.path.join(self.scheduler, name)).read())
        self.context.load_cert_chain(chain, os.path.join(self.scheduler, "key.pem"))
        self.answer, self.later = None, []  # later: what the next ones get; None: no answer
        threading.Thread(target=self.serve, daemon=True).start()

    def forge(self, directory, role, name, age=0, life=90, authority=None):
        subprocess.run([os.path.join(TOOLS, "tls_forge"), authority or self.authority, directory, role, name, str(age),
                        str(life)], check=True)
        return directory

    def serve(self):
        while True:
            plain, _ = self.listener.accept()
            try:
                with self.context.wrap_socket(plain, server_side=True) as peer:
                    data = b""
                    while len(data) < 24 or len(data) < 24 + struct.unpack("<I", data[8:12])[0]:
                        piece = peer.recv(65536)
                        if not piece:
                            break
                        data += piece
                    magic, kind, _, _, _, crc = struct.unpack("<4sHHIQI", data[:24])
                    assert (magic, kind, crc) == (b"DCS1", JOIN_HOST, crc32c(data[24:])), data
                    answer, self.answer = self.answer, self.later.pop(0) if self.later else self.answer
                    if answer:
                        peer.sendall(answer)
                        peer.recv(1)
            except OSError:
                pass

    def fresh(self):
        self.count += 1
        directory = os.path.join(self.base, f"h{self.count}")
        os.mkdir(directory)
        return directory

    def certified(self, directory, role="server", name="h1", age=0, life=90):
        """What the pool's authority gives for the key of `directory`, which is made there."""
        place = os.path.join(directory, "pki")
        self.forge(place, role, name, age, life)
        certificate = der(place)
        for name in ("certificate.pem", "authority.pem"):
            os.remove(os.path.join(place, name))
        return certificate

    def joined(self, certificate, name="h1", authority=None):
        self.answer = frame(JOINED, text(name) + text(certificate) + text(der(authority or self.scheduler, "authority.pem")))

    def join(self, directory, said, *more, code=1, refuse="", env=None, preexec=None, kept=False):
        environment = dict(os.environ, **(env or {}))
        if refuse:
            environment.update(LD_PRELOAD=REFUSE, DCS_REFUSE=refuse)
        where = ("--dir", directory) if directory else ()
        result = subprocess.run([program("dcs"), "host", "join", self.address, "--token", "ab" * 32, "--ca-hash", self.hash,
                                 *where, *more], env=environment, preexec_fn=preexec, timeout=300, text=True, cwd="/",
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = [said] if isinstance(said, str) else said
        missing = [words for words in said if not about(result.stderr, words.replace("@", directory or ""))]
        assert not missing and result.returncode == code, f"exit {result.returncode}\n{result.stderr}and not {missing}"
        if directory and not kept:
            assert not os.path.isfile(os.path.join(directory, "pki/certificate.pem")), "it was kept"


def answers(world):
    here = world.fresh()
    good = world.certified(here)
    world.joined(good)  # that all else is right
    world.join(here, "", code=0, kept=True)

    not_joined = "dcs: this host has not joined: "
    world.answer = frame(LIST_TOKENS, b"")
    world.join(world.fresh(), not_joined + "scheduler unexpected answer")
    world.answer = frame(JOIN_PENDING, text("h1"))
    world.join(world.fresh(), ["dcs host approve h1 ", "no operator approved", "hint repeat command"], "--wait", "0", code=6)
    here = world.fresh()  # the scheduler is restarted while this host waits
    world.joined(world.certified(here))
    world.later, world.answer = [None, world.answer], frame(JOIN_PENDING, text("h1"))
    world.join(here, ["dcs host approve h1 ", "asking again"], "--wait", "1h", code=0, kept=True)
    here = world.fresh()
    world.joined(world.certified(here), authority=os.path.join(world.base, "elsewhere"))
    world.join(here, not_joined + "authority not given hash")
    world.joined(b"no certificate")
    world.join(world.fresh(), not_joined + "the received certificate: ")
    here = world.fresh()
    world.joined(world.certified(here, age=30, life=10))
    world.join(here, not_joined + "certificate h1 expired")
    here = world.fresh()
    world.joined(world.certified(here, role="client"))
    world.join(here, not_joined + "the received certificate: ")
    world.joined(good)
    world.join(world.fresh(), not_joined + "received certificate key")


def hosts_that_cannot(world):
    here = world.fresh()
    os.mkdir(os.path.join(here, "pki"), 0o700)
    with open(os.path.join(here, "pki/key.pem"), "w") as file:
        file.write("no key\n")
    os.chmod(os.path.join(here, "pki/key.pem"), 0o600)
    world.join(here, "dcs @/pki/key.pem P-256", code=2)
    world.join(world.fresh(), "not joined no descriptors", refuse="epoll_create1::EMFILE")
    here = world.fresh()
    world.joined(world.certified(here))
    os.mkdir(os.path.join(here, "pki/certificate.pem"))
    world.join(here, "certificate not saved repeat")
    here = world.fresh()
    world.joined(world.certified(here, role="client"))
    os.mkdir(os.path.join(here, "pool.conf"))
    world.join(here, "dcs pool.conf not written", "--role", "client", kept=True)
    world.join(None, "--dir DIR missing", env={"HOME": ""}, code=2,
               preexec=as_nobody)


def clients(world):
    here = world.fresh()
    world.join(os.path.join(here, "no/such"), "dcs: this host has not joined: cannot make the directory @: No such file or "
               "directory\n", "--role", "client")
    with open(os.path.join(here, "pool.conf"), "w") as file:
        file.write("dir /var/lib/dcs\n")
    world.join(here, "@/pool.conf /var/lib/dcs not need join", "--role", "client", code=4)


def main():
    if not os.path.exists(REFUSE) or os.geteuid() != 0:
        print("it needs root, and programs without sanitizers")
        return 77
    base = tempfile.mkdtemp(prefix="dcs-join-", dir="/var/tmp")
    try:
        world = World(base)
        for part in (answers, hosts_that_cannot, clients):
            part(world)
            print("ok", part.__name__, flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
