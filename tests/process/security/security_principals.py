#!/usr/bin/python3
"""Labels that an attacker wrote. Whatever is ended, counted or let in here is so by what the kernel or a key proves: the uid and
control group of a process, the owner of a lock file, a login, the key of a certificate, the owner of a directory; and never by
what an environment, a record, a name or a path says. Each case is an attack; needs root, and plays the users itself."""
import ctypes
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

from hurry import Hurry
from lock_box import Box, runs
from pool import FULL, bin_directory, program, tells, wait_for
from speakers import GROUP, OTHER, OWNER, Speaker, SpeakersPool, make_logins, name_of, need_root
from tls import TOOLS
from users_host import UsersHost

VICTIM, ATTACKER = 5, 7  # logins that every Debian has: games and lp
PYTHON = "/usr/bin/python3"

# A process of its own session and without parents, which says that it belongs to another grain's room and then uses what
# would break that grain's limits.
FRAMER = """
import os, sys, time
room, go = sys.argv[1:]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c",
                  "import time\\nheld = bytearray(300 << 20)\\nfor at in range(0, len(held), 4096): held[at] = 1\\ntime.sleep(600)"],
                  {"DCS_GRAIN_DIR": room})
    os._exit(0)
while not os.path.exists(go): time.sleep(0.05)
"""


def a_grain_does_not_answer_for_processes_of_others():
    """The one that uses too much is ended, whosever name it carries; and what it carries is no way around the limit."""
    with UsersHost("--cgroups", "none", "--max-memory-mb", "200", top="/var/tmp") as host, Hurry(host):
        gate, said = os.path.join(host.base, "gate"), {}

        def run(who, *words, uid):
            said[who] = host.run(*words, uid=uid, check=False)

        def start(*words, **more):
            threads.append(threading.Thread(target=run, args=words, kwargs=more))
            threads[-1].start()
        threads = []
        try:
            start("victim", "/bin/sh", "-c", f"until test -e {gate}; do sleep 0.05; done; echo safe", uid=VICTIM)
            grains = os.path.join(host.server_dir, "grains")
            room = wait_for("the victim's room", lambda: [f"{grains}/{d}/room" for d in os.listdir(grains)
                                                          if os.path.exists(f"{grains}/{d}/pid")])[0]
            start("attacker", PYTHON, "-c", FRAMER, room, gate, uid=ATTACKER)
            wait_for("a process to be ended", lambda: said, 240)
            assert "victim" not in said, said
        finally:
            open(gate, "w").close()
            for thread in threads:
                thread.join()
        assert said["attacker"].returncode != 0 and b"more than its 200 MB of memory" in said["attacker"].stderr, said
        assert said["victim"].returncode == 0 and said["victim"].stdout == b"safe\n", said


def sealed(block):
    total = 0xcbf29ce484222325
    for at in range(0, len(block), 8):
        total = ((total ^ struct.unpack("<Q", block[at:at + 8])[0]) * 0x100000001b3) & (1 << 64) - 1
        total ^= total >> 32
    return struct.pack("<Q", total or 1)


def identity(pid):
    start = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[19])
    fd = ctypes.CDLL(None).syscall(434, pid, 0)  # pidfd_open
    inode = os.fstat(fd).st_ino
    os.close(fd)
    return struct.pack("<IQQ", pid, start, inode)


def forge(path, pid):
    """The record of the lock says that `pid` has had it since yesterday."""
    with open(path, "r+b") as file:
        blocks = []
        for at in (512, 1024):
            file.seek(at)
            block = bytearray(file.read(512))
            if sealed(block[:504]) == bytes(block[504:]):
                blocks.append((struct.unpack("<Q", block[4:12])[0], block))
        sequence, block = max(blocks)
        at = 4 + 8 + 8 + 1  # version, sequence, generation, outcome
        block[at:at + 20] = identity(pid)
        block[at + 20:at + 48] = bytes(28)  # no supervisor, group or session
        cookie = at + 52 + 16 + 8
        block[cookie:cookie + 8] = bytes(8)
        started = cookie + 8 + 49 + 121 + 49
        times = struct.unpack("<qqq", block[started:started + 24])
        day = 86400 * 10**9
        block[started:started + 24] = struct.pack("<qqq", *(t - day for t in times))
        block[4:12] = struct.pack("<Q", sequence + 1)
        block[504:] = sealed(block[:504])
        file.seek(512 if sequence % 2 else 1024)
        file.write(block)


def a_lock_file_ends_nobody_whom_its_writers_could_not_end():
    with Box(0o755) as box:
        shared = box.path("shared")  # as /run/lock
        os.mkdir(shared)
        os.chmod(shared, 0o1777)
        path, mine = os.path.join(shared, "job"), os.path.join(shared, "roots")
        innocent = box.start("600", program="/bin/sleep")
        ready = os.path.join(shared, "ready")
        holder = box.start("--mode=0666", path, "/bin/sh", "-c", f"echo $$ >{ready}; exec sleep 600", user=ATTACKER,
                           group=ATTACKER, extra_groups=[])
        wait_for("the attacker's lock", lambda: os.path.exists(ready) and open(ready).read().endswith("\n"))
        wait_for("its record", lambda: (box.list(path)[0].get("holder") or {}).get("pid"))
        command = int(open(ready).read())
        forge(path, innocent.pid)
        result = box.run("-v", "-e", "1", "--grace=1,1,1", path, "/bin/echo", "taken")
        assert result.returncode == 77 and "taken" not in result.stdout, result
        assert tells(result.stderr, f"belongs uid {ATTACKER} others may write"), result.stderr
        os.chmod(path, 0o600)
        for words in (["-e", "1", "--grace=1,1,1", path, "/bin/echo", "taken"], ["break", "--grace=1,1,1", path]):
            result = box.run(*words)
            assert result.returncode == 77 and "taken" not in result.stdout, (words, result)
            assert f"does not run as uid {ATTACKER}, to whom the file belongs" in result.stderr + result.stdout, result
        assert runs(innocent.pid) and runs(command) and holder.poll() is None
        # Root's own file that others may write: even with its record believed no peer is ended who has not got the lock.
        holder, command = box.hold("--mode=0666", mine)
        forge(mine, innocent.pid)
        result = box.run("-e", "1", "--grace=1,1,1", mine, "/bin/echo", "taken")
        assert result.returncode == 77 and tells(result.stderr, "does not hold lock"), result
        assert runs(innocent.pid) and runs(command)
        # And as it is meant: the holder of a file of root's is ended when its time is over.
        own = box.path("own")
        holder, command = box.hold(own)
        box.aged(own)
        box.run("-e", "1s", "--grace=5", own, "/bin/true", code=0)
        assert holder.wait(60) == 124 and not runs(command)


def a_user_is_a_login(pool):
    nobody = Speaker(pool, 300001)  # as a range of /etc/subuid gives them to the user that has it; with the group of the socket
    heard = nobody.open(greet=False)
    heard = nobody.hear() if heard.kind == "opened" else heard
    assert heard.kind == "ErrorReply" and "no login name" in heard.fields["text"].decode(), heard
    member, left = Speaker(pool, OWNER), Speaker(pool, OTHER)
    for speaker in (member, left):
        assert speaker.open().kind == "Welcome"
    logins = {name_of(OWNER): OWNER, name_of(OTHER): OTHER}
    make_logins(logins, {GROUP: [name_of(OWNER)]})  # the other one has left the group; his processes still have it
    pool.running["scheduler"].send_signal(signal.SIGHUP)
    wait_for("the tables to count", lambda: refused(left, "not a member"))
    assert member.open().kind == "Welcome"
    make_logins({"successor": OWNER}, {GROUP: ["successor"]})  # the uid is another person's now
    pool.running["scheduler"].send_signal(signal.SIGHUP)
    wait_for("the uid's new owner", lambda: b"successor" in Speaker(pool, OWNER).open().fields.get("user", b""))


def refused(speaker, words):
    heard = speaker.open()
    return heard.kind == "ErrorReply" and words in heard.fields["text"].decode()


def joins(pool, name, directory):
    words = pool.dcs("token", "create", "--host", name).stdout.split()
    pool.dcs(*words[1:], "--dir", os.path.join(pool.base, directory))


def dial(pool, pki=None):
    """A connection; with a certificate one whose handshake is over, which says nothing then."""
    connection = socket.create_connection(("127.0.0.1", pool.port_number), timeout=300)
    if pki is None:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(os.path.join(pki, "certificate.pem"), os.path.join(pki, "key.pem"))
    return context.wrap_socket(connection)


def a_revoked_key_takes_no_place_of_its_successor(pool):
    joins(pool, "h1", "h1-old")
    joins(pool, "h1", "h1")
    old = [dial(pool, os.path.join(pool.base, "h1-old", "pki")) for _ in range(4)]
    new = Speaker(pool, host="h1")
    heard = new.open()
    assert heard.kind == "Configure", heard
    for connection in old:
        connection.close()


def strangers_keep_nobody_out(pool):
    """More silent connections of one address than it may have, again as fast as they are dropped."""
    stop, silent = threading.Event(), []

    def squat():
        while not stop.is_set():
            silent.append(dial(pool))
            if len(silent) > 200:
                silent.pop(0).close()
    joins(pool, "h2", "h2")
    for _ in range(100):
        silent.append(dial(pool))
    for _ in range(5):
        assert Speaker(pool, host="h2").open().kind == "Configure"
    thread = threading.Thread(target=squat)
    thread.start()
    try:
        # A crowd this quick may push one aside; a grain server calls again, and so does this.
        wait_for("h2 to get in", lambda: Speaker(pool, host="h2").open().kind == "Configure")
    finally:
        stop.set()
        thread.join()
        for connection in silent:
            connection.close()
    pool.logged("scheduler.log", "to make room: too many peers there have not authenticated yet")


def roots_daemons_start_where_only_root_writes():
    with Box(0o755) as box:
        def start(*words):
            return subprocess.run(words, capture_output=True, text=True, timeout=120)
        open_dir, foreign = box.path("open"), box.path("foreign")
        for directory in (open_dir, foreign):
            os.mkdir(directory)
        os.chmod(open_dir, 0o777)
        good = box.path("good")
        os.mkdir(good, 0o700)
        os.chown(foreign, ATTACKER, ATTACKER)
        hosts = os.path.join(foreign, "hosts")
        open(hosts, "w").write("h1 class=0x1 slots=1\n")
        for directory, why in ((open_dir, f"{open_dir} can be written by other users"),
                               (os.path.join(foreign, "below"), f"{foreign} belongs to uid {ATTACKER}")):
            for words in ([program("dcs_scheduler"), "--dir", directory],
                          [program("dcs_grainserver"), "--dir", directory, "--name", "h1", "--scheduler", "/nowhere"],
                          [program("dcs_backupd"), "--dir", directory, "--scheduler", "/nowhere"]):
                result = start(*words)
                assert result.returncode in (1, 2, 4) and why in result.stderr, (words, result)
                assert not os.path.exists(os.path.join(directory, "lock")), words
        result = start(program("dcs_scheduler"), "--dir", good, "--hosts", hosts)
        assert result.returncode in (2, 4) and f"{foreign} belongs to uid {ATTACKER}" in result.stderr, result


# The bug that each attack finds; with --full each is planted, and its attack must succeed then.
PLANTS = {"locks.believe_the_file": a_lock_file_ends_nobody_whom_its_writers_could_not_end,
          "daemon.any_path": roots_daemons_start_where_only_root_writes,
          "net.count_by_name": a_revoked_key_takes_no_place_of_its_successor,
          "net.refuse_newcomers": strangers_keep_nobody_out,
          "daemon.uid_for_ever": a_user_is_a_login,
          "launcher.believe_environment": a_grain_does_not_answer_for_processes_of_others}
OF_A_POOL = (a_revoked_key_takes_no_place_of_its_successor, strangers_keep_nobody_out, a_user_is_a_login)


def attack(*cases):
    """Those of a pool together."""
    for case in cases:
        if case not in OF_A_POOL:
            case()
    if any(case in OF_A_POOL for case in cases):
        with SpeakersPool() as pool:
            for case in cases:
                if case in OF_A_POOL:
                    case(pool)


def planted_bugs_are_found():
    with tempfile.TemporaryDirectory(prefix="dcs-principals-") as base:
        os.chmod(base, 0o711)
        os.symlink(TOOLS, os.path.join(base, "tests"))
        bins = bin_directory(os.path.join(base, "bin"), ("dcs_scheduler", "dcs_grainserver", "dcs_launcher"))
        for plant, case in PLANTS.items():
            result = subprocess.run([sys.executable, os.path.abspath(__file__), case.__name__], capture_output=True, text=True,
                                    env=dict(os.environ, DCS_BIN=bins, DCS_PLANTED=plant))
            assert result.returncode == 1 and "AssertionError" in result.stderr, (plant, result.returncode, result.stderr[-2000:])
            print(f"{plant}: found by {case.__name__}", flush=True)


def main():
    need_root()
    if len(sys.argv) > 1:
        return attack(*(case for case in PLANTS.values() if case.__name__ in sys.argv[1:]))
    attack(*PLANTS.values())
    print(f"{len(PLANTS)} attacks failed", flush=True)
    if FULL:
        planted_bugs_are_found()


if __name__ == "__main__":
    main()
