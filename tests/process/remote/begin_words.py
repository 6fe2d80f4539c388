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
REFUSED = (("no_openssl", "cannot initialise OpenSSL TLS 1.3 out memory?"),
           ("no_version", "cannot initialise OpenSSL TLS 1.3 out memory?"),
           ("no_socket", f"no scheduler answers 127.0.0.1:{PORT}: socket Too many open files"),
           ("no_connection", "OpenSSL cannot create key connection out memory?"),
           ("no_public_key", "OpenSSL cannot encode public key out memory?"),
           ("no_text", "OpenSSL cannot encode credentials out memory?"),
           ("no_bio", "no memory"),
           ("no_malloc", "no memory"),
           ("no_environment", "cannot keep credentials Cannot allocate memory"))


def complaint(world, want, **start):
    """Nothing if that is all it says, else what it says."""
    start.setdefault("env", {"DCS_PATIENCE_S": "0"})
    o = world.run(**start)
    wrong = world.judge(o, want)
    return [] if not wrong and o.code == 125 and o.text.startswith("dcs_begin: ") and o.text.count("\n") == 1 else [wrong or f"not {want!r}: {o}"]


def machine_refuses(world):
    world.peer()
    world.install(os.path.join(TOOLS, "dcs_begin_test"))
    bad = [wrong for wrong in [world.judge(world.run(), None)] if wrong]  # it runs if it is refused nothing
    for world.plant, want in REFUSED:
        bad += complaint(world, want)
    world.plant = "no_reason"
    server = Stranger(world, alert(80))
    bad += complaint(world, "TLS failed unknown error")
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
    for talk, want in ((alert(80), "TLS failed tlsv1 alert internal error"),
                       (web_server, "peer does not speak TLS not scheduler's TLS port"),
                       (old_tls(world.base + "/server"), "peer does not speak TLS 1.3"),
                       (hangs_up, "scheduler closed connection"),
                       (resets, "connection scheduler broke Connection reset peer")):
        server = Stranger(world, talk)
        bad += complaint(world, want)
        server.close()
    world.peer("long")
    bad += complaint(world, "peer's certificate not valid malformed")
    return bad


def hosts_files(world):
    world.peer()
    world.configure()
    world.write("/etc/dcs/pki/authority.pem", "no certificate\n")
    bad = complaint(world, KEYS.format("authority.pem does not contain certificate"))
    world.configure(identity="young")
    refused = "scheduler refuses host's certificate malformed not valid yet"
    bad += complaint(world, refused, env={})  # its alert may be lost, and is asked for again
    world.configure()
    os.unlink("/etc/dcs/pool.conf")
    world.users(names={"ben": 61002})
    bad += complaint(world, "no pool configured set DCS_DIR absolute path directory", env={"HOME": None})
    world.users()
    world.configure()
    return bad


def no_proc():
    """For one process: a host whose /proc is not mounted."""
    assert LIBC.unshare(0x20000) == 0 and LIBC.umount2(b"/proc", 2) == 0, "cannot unmount /proc"


def guarded(world):
    world.peer()
    words = ["dcs_begin", "-n", world.witness, str(REPORT_FD)]
    beside = f"{world.base}/bin/dcs_lock: No such file directory must installed beside dcs_begin"
    return (complaint(world, beside, argv=words) +
            complaint(world, "cannot prepare lock No such file directory", argv=words, before=no_proc))


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
