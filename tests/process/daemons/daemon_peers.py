#!/usr/bin/python3
"""Daemons whose peers, files, keeper or clocks do while they serve what they should not: each says so, in words that this
table expects, and all but one go on. The table is of the kind of daemon_words.py."""
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from clocks import Clocks
from daemon_words import BACKUP, NOBODY, REFUSE, SCHEDULER, SERVER, Case, chosen, complaints
from pool import program, wait_for
from privileges import keeper_of
from remote_peer import frame, text as text_of
from tls import TOOLS

LIST_TOKENS, MIRROR_CALL, MIRROR_PAGE, MIRROR_HAS = 52, 75, 77, 78
TURN = 4  # of enum class MirrorStep
YEAR = 365 * 24 * 3600


def mirror_page(step, number=1, offset=0):
    return frame(MIRROR_PAGE, struct.pack("<QBQQQ", number, step, 7, 1, 1) + text_of("") + text_of("") +
                 struct.pack("<QQ", offset, 9) + text_of("x"), request=0)


def scheduler_that_says(answer):
    """At @/none.sock; `answer` to a process that brings a copy."""
    def prepare(place):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(place, "d/none.sock"))
        listener.listen()
        peers = []

        def hear(peer):
            data = peer.recv(65536)
            if len(data) >= 24 and struct.unpack("<H", data[4:6])[0] == MIRROR_CALL:
                peer.sendall(answer)

        def serve():
            while True:
                peers.append(listener.accept()[0])
                threading.Thread(target=hear, args=(peers[-1],), daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
    return prepare


def spoilt_copy(place):
    """A copy that was whole, and is not any more."""
    os.makedirs(os.path.join(place, "d/mirror/a"))
    with open(os.path.join(place, "d/mirror/current"), "w") as file:
        file.write("a\n")
    scheduler_that_says(mirror_page(TURN, offset=5))(place)


def served_before(damage, *words):
    """A daemon has served in @ and was stopped, then something happened to what it left."""
    def prepare(place):
        log = os.path.join(place, "before.log")
        with open(log, "wb") as file:
            daemon = subprocess.Popen([program(words[0]), *(word.replace("@", place + "/d") for word in words[1:])],
                                      stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        try:
            wait_for("the daemon before", lambda: "serving in" in open(log).read() or daemon.poll() is not None, timeout=120)
        finally:
            daemon.terminate()
            daemon.wait()
        assert daemon.returncode == 0, open(log).read()
        damage(os.path.join(place, "d"))
    return prepare


def flipped(path):
    def damage(directory):
        with open(os.path.join(directory, path), "r+b") as file:
            first = file.read(1)
            file.seek(0)
            file.write(bytes([first[0] ^ 1]))
    return damage


def stranger(path):
    """Another process gets as far as the socket: a process that made its directory open to all did it."""
    def poke(place, daemon, _):
        for part in (place, os.path.join(place, "d")):
            os.chmod(part, 0o755)
        os.chmod(os.path.join(place, path), 0o666)
        code = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(100); "
                "assert s.recv(1) == b''")
        subprocess.run(["/usr/bin/python3", "-c", code, os.path.join(place, path)], user=NOBODY, group=NOBODY, extra_groups=[],
                       check=True, timeout=120, cwd="/")
    return poke


def nonsense_about_the_copy(place, _, __):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(100)
        peer.connect(os.path.join(place, "d/server.sock"))
        peer.sendall(frame(MIRROR_HAS, b"?"))
        assert peer.recv(1) == b"", "it is not hung up"


def port_in(said):
    return int(wait_for("the port", lambda: [w for w in said().split() if w.startswith("127.0.0.1:")])[0].split(":")[1])


def speaks_in_the_clear(port):
    with socket.create_connection(("127.0.0.1", port), timeout=100) as peer:
        peer.sendall(b"DCS1" + bytes(60))
        while peer.recv(4096):
            pass


def many_strangers(_, __, said):
    """More in a second than are reported one by one, and one in a later second."""
    port = port_in(said)

    def told():
        for _ in range(30):
            speaks_in_the_clear(port)
        return "more peers were refused" in said()
    wait_for("the number of those untold", told, timeout=300, step=1.1)


def stranger_at_the_backup(_, __, said):
    found = wait_for("the port", lambda: said().partition("hosts at port ")[2].partition(" with TLS")[0])
    speaks_in_the_clear(int(found))


def keeper_dies(_, daemon, __):
    os.kill(keeper_of(daemon.pid), signal.SIGKILL)


def late_in_the_life(place, _, said):
    clocks = Clocks(place)
    clocks.variables("d")
    clocks.set("d", 29 * YEAR + YEAR // 2)
    wait_for("the end of the authority to be told", lambda: "expires within a year" in said(), timeout=200)


def no_renewal(place, daemon, _):
    """The certificate wants renewal, and in that moment there is no keeper: what is said of both."""
    keeper, clocks = keeper_of(daemon.pid), Clocks(place)
    os.kill(daemon.pid, signal.SIGSTOP)
    clocks.variables("d")
    clocks.set("d", YEAR)
    os.kill(keeper, signal.SIGKILL)
    os.kill(daemon.pid, signal.SIGCONT)


def joined(place):
    """An identity of a backup, as dcs host join leaves it."""
    subprocess.run([os.path.join(TOOLS, "tls_forge"), os.path.join(place, "authority"), os.path.join(place, "d/pki"), "backup",
                    "b1", "0", "90"], check=True)


def scheduler_cases():
    def case(name, words, more=(), code=None, **options):
        return Case("scheduler_" + name, "dcs_scheduler", (*SCHEDULER, *more), words, code, **options)

    tls = ("--tls", "127.0.0.1:0")
    stops = "keeper killed 9 stops restart"
    return [
        case("identity", "identity damaged rewritten",
             prepare=served_before(flipped("state/identity/store"), "dcs_scheduler", *SCHEDULER)),
        case("copy_words", "MirrorHas field number early", poke=nonsense_about_the_copy),
        case("stranger", ["a process of nobody (pid ", "connected servers' refused"],
             poke=stranger("d/server.sock")),
        case("keeper_dies", stops, code=1, poke=keeper_dies),
        case("children", stops, code=1, poke=keeper_dies, preexec=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)),
        case("authority", "dcs_scheduler: the pool's authority: @/pki/authority-key.pem", tls, code=1,
             files={"d/pki/authority-key.pem": "no key\n", "d/start-0": ""}, prepare=lambda place: os.chmod(os.path.join(
                 place, "d/pki/authority-key.pem"), 0o600)),
        case("no_state", "@/state is empty, but this directory has served a pool", tls, code=4,
             files={"d/pki/authority-key.pem": "no key\n"}),
        case("refused", ["was refused: this is not TLS", "more peers were refused"], tls, poke=many_strangers),
        case("authority_ends", "authority expires year join", tls, environment=lambda place: Clocks(place).variables("d"), poke=late_in_the_life),
        case("no_renewal", ["scheduler's certificate cannot", stops], tls, code=1,
             environment=lambda place: Clocks(place).variables("d"), poke=no_renewal),
    ]


def backup_cases():
    def case(name, words, arguments=BACKUP, code=None, **options):
        return Case("backup_" + name, "dcs_backupd", arguments, words, code, **options)

    remote = ("--dir", "@", "--scheduler", "127.0.0.1:1", "--tls", "127.0.0.1:0", "--log-level", "info")
    copy = "copy scheduler's store "
    return [
        case("store", "backup's damaged rewritten",
             prepare=served_before(flipped("state/format"), "dcs_backupd", *BACKUP)),
        case("other_words", copy + "scheduler message not",
             prepare=scheduler_that_says(frame(LIST_TOKENS, b"", request=0))),
        case("spoilt", [copy, "new copy made"], prepare=spoilt_copy),
        case("refused", "127.0.0.1 not TLS", remote, prepare=joined,
             poke=stranger_at_the_backup),
        case("stranger", ["another user pid", ") was refused"], poke=stranger("d/backup.sock")),
    ]


def with_closed_streams(base):
    """A daemon whose caller has closed its standard streams: no file of its own takes their places and gets its log."""
    for arguments in (("dcs_scheduler", *SCHEDULER), ("dcs_backupd", *BACKUP), ("dcs_grainserver", *SERVER, "--run-as", "self")):
        place = os.path.join(base, "closed_" + arguments[0])
        os.makedirs(place)
        with open(os.path.join(place, "hosts"), "w") as file:
            file.write("h1 slots=1\n")
        read, write = os.pipe()
        daemon = subprocess.Popen(["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", program(arguments[0]),
                                   *(word.replace("@", place) for word in arguments[1:]), "--ready-fd", str(write)],
                                  pass_fds=(write,), cwd="/")
        os.close(write)
        try:
            with open(read, "rb") as ready:
                assert ready.read() == b"ready\n", arguments[0]
            streams = [os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in range(3)]
            assert streams == ["/dev/null"] * 3, (arguments[0], streams)
            daemon.terminate()
            assert daemon.wait(timeout=120) == 0, arguments[0]
        finally:
            daemon.kill()
            daemon.wait()


def main():
    if not os.path.exists(REFUSE) or not Clocks.exist or os.geteuid() != 0:
        print("it needs root, and programs without sanitizers")
        return 77
    cases = chosen(scheduler_cases() + backup_cases())
    base = tempfile.mkdtemp(prefix="dcs-peers-", dir="/var/tmp")
    os.chmod(base, 0o755)
    wrong = [complaint for case in cases for complaint in complaints(case, base)]
    if len(sys.argv) == 1:
        with_closed_streams(base)
    shutil.rmtree(base, ignore_errors=True)
    print("\n".join(wrong) if wrong else f"{len(cases)} daemons said what was wrong")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
