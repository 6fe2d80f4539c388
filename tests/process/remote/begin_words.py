#!/usr/bin/python3
"""What dcs_begin, installed setgid, says to a user when root's files are wrong, when something answers that is no
scheduler, and when the machine refuses it something: the very words of each message, and no program runs."""
import contextlib
import os
import socket
import ssl
import struct
import sys

from begin_cases import CASES
from begin_hostile import run_cases
from begin_world import LIBC, PORT, REPORT_FD, TOOLS, Stranger, World
from remote_world import enter

KEYS = "/etc/dcs/pki: {}; `dcs host join` replaces them"
# What the test build of dcs_begin is refused, and what it says.
REFUSED = (("no_openssl", "cannot initialise OpenSSL with TLS 1.3: out of memory?"),
           ("no_version", "cannot initialise OpenSSL with TLS 1.3: out of memory?"),
           ("no_socket", f"no scheduler answers at 127.0.0.1:{PORT}: socket: Too many open files"),
           ("no_connection", "OpenSSL cannot create a key or a connection: out of memory?"),
           ("no_public_key", "OpenSSL cannot encode the public key: out of memory?"),
           ("no_text", "OpenSSL cannot encode the credentials: out of memory?"),
           ("no_bio", "no memory"),
           ("no_malloc", "no memory"),
           ("no_environment", "cannot keep the credentials: Cannot allocate memory"))


def complaint(world, want, **start):
    """Nothing if that is all it says, else what it says."""
    start.setdefault("env", {"DCS_PATIENCE_S": "0"})
    o = world.run(**start)
    wrong = world.judge(o, want)
    return [] if not wrong and o.code == 125 and o.text == f"dcs_begin: {want}\n" else [wrong or f"not {want!r}: {o}"]


def machine_refuses(world):
    world.peer()
    world.install(os.path.join(TOOLS, "dcs_begin_test"))
    bad = [wrong for wrong in [world.judge(world.run(), None)] if wrong]  # it runs if it is refused nothing
    for world.plant, want in REFUSED:
        bad += complaint(world, want)
    world.plant = "no_reason"
    server = Stranger(world, alert(80))
    bad += complaint(world, "TLS failed: unknown error")
    server.close()
    world.plant = ""
    world.install(os.path.join(TOOLS, "../bin/dcs_begin"))
    return bad


def alert(number):
    """Answers what it is asked with an alert of TLS."""
    def talk(peer):
        peer.recv(1 << 16)
        peer.sendall(bytes((21, 3, 3, 0, 2, 2, number)))
        peer.recv(1 << 16)
    return talk


def web_server(peer):
    peer.recv(1 << 16)
    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    peer.recv(1 << 16)


def hangs_up(peer):
    peer.recv(1 << 16)


def resets(peer):
    peer.recv(1 << 16)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def old_tls(identity):
    def talk(peer):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{identity}/certificate.pem", f"{identity}/key.pem")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.wrap_socket(peer, server_side=True)
        except ssl.SSLError:
            pass
    return talk


def strangers_answer(world):
    bad = []
    for talk, want in ((alert(80), "TLS failed: tlsv1 alert internal error"),
                       (web_server, "the peer does not speak TLS, so it is not a scheduler's TLS port"),
                       (old_tls(world.base + "/server"), "the peer does not speak TLS 1.3"),
                       (hangs_up, "the scheduler closed the connection"),
                       (resets, "the connection to the scheduler broke: Connection reset by peer")):
        server = Stranger(world, talk)
        bad += complaint(world, want)
        server.close()
    world.peer("long")
    bad += complaint(world, "the peer's certificate is not valid: it is malformed")
    return bad


def hosts_files(world):
    world.peer()
    world.configure()
    world.write("/etc/dcs/pki/authority.pem", "no certificate\n")
    bad = complaint(world, KEYS.format("authority.pem does not contain a certificate"))
    world.configure(identity="young")
    refused = "the scheduler refuses this host's certificate: it is malformed or not valid yet"
    bad += complaint(world, refused, env={})  # its alert may be lost, and is asked for again
    world.configure()
    os.unlink("/etc/dcs/pool.conf")
    world.users(names={"ben": 61002})
    bad += complaint(world, "no pool is configured: set DCS_DIR to the absolute path of its directory", env={"HOME": None})
    world.users()
    world.configure()
    return bad


def no_proc():
    """For one process: a host whose /proc is not mounted."""
    assert LIBC.unshare(0x20000) == 0 and LIBC.umount2(b"/proc", 2) == 0, "cannot unmount /proc"


def guarded(world):
    world.peer()
    words = ["dcs_begin", "-n", world.witness, str(REPORT_FD)]
    beside = f"{world.base}/bin/dcs_lock: No such file or directory; it must be installed beside dcs_begin"
    return (complaint(world, beside, argv=words) +
            complaint(world, "cannot prepare the lock: No such file or directory", argv=words, before=no_proc))


def known_cases(world):
    """Those of the hostile environments in which there is something to say about files, peers and users."""
    names = [case["name"] for case in CASES if isinstance(case["want"], str) and (case["world"] or "account" in case["name"])]
    return run_cases(world, names)


def main():
    if enter(__file__) is None:
        return 77
    with contextlib.closing(World()) as world:
        bad = [wrong for part in (hosts_files, strangers_answer, guarded, machine_refuses, known_cases) for wrong in part(world)]
    print("\n".join(bad) or "all said what they should")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
