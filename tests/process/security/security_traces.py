#!/usr/bin/python3
"""What one user's programs learn of another's, and what they leave on a host. Each case is an attack by a grain or a control
program, as another uid; needs root, and plays the users itself."""
import glob
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

from hurry import Hurry
from pool import FULL, bin_directory, grain_directories, program, tells, wait_for
from security_principals import TOOLS
from speakers import CODES, OTHER, OWNER, Speaker, SpeakersPool, name_of, need_root
from users_host import FIRST, LAST, UsersHost

VICTIM, ATTACKER = 5, 7  # logins that every Debian has: games and lp
PYTHON = "/usr/bin/python3"
ROOM = ("--file", "x=/etc/hostname")  # for a working directory in the room


def digests_find_no_secret(pool):
    """A guess at all the secrets of one digit, with the right one among them, by a digest's answers and by submissions."""
    def program_of(uid):
        speaker = Speaker(pool, uid)
        token = pool.token_of(speaker)
        speaker = Speaker(pool, uid)
        assert speaker.open(token=token).kind == "Welcome"
        heard = speaker.ask("OpenSession", number=1, mode=0, sent_reset=0)
        assert heard.kind == "OpenReply", heard
        return speaker
    owner, other = program_of(OWNER), program_of(OTHER)
    secrets = [b"the number is %d" % n for n in range(10)]
    digests = [hashlib.sha256(secret).digest() for secret in secrets]
    heard = owner.ask("PutContent", digest=digests[7], total=len(secrets[7]), offset=0, bytes=secrets[7])
    assert heard.kind == "Done", heard
    # Of those asked for, the answer lists what is missing.
    fields = {f"digests[{i}]": digest for i, digest in enumerate(digests)}

    def missing(speaker):
        heard = speaker.ask("AskContents", **{"digests.size": 10}, **fields)
        assert heard.kind == "MissingContents", heard
        return {digests.index(digest) for digest in heard.fields.values()}
    assert missing(owner) == set(range(10)) - {7}
    assert missing(other) == set(range(10))
    for n, (secret, digest) in enumerate(zip(secrets, digests)):
        heard = other.ask("Gexec", session=1, grain=n, **{
            "spec.argv.size": 1, "spec.argv[0]": "/bin/cat", "spec.files.size": 1, "spec.files[0].role": 0, "spec.files[0].name": "guess", "spec.files[0].binary_class": "", "spec.directory": "",
            "spec.files[0].digest": digest, "spec.files[0].size": len(secret)})
        assert heard.error() == CODES["NOT_FOUND"], heard
    # Who has the bytes may name them; it costs him the transfer.
    heard = other.ask("PutContent", digest=digests[7], total=len(secrets[7]), offset=0, bytes=secrets[7])
    assert heard.kind == "Done", heard
    assert missing(other) == set(range(10)) - {7}


# Data at a depth that no path reaches: one folder after the other, from inside.
DEEP = """
import os, sys
for _ in range(int(sys.argv[1])):
    os.mkdir("d")
    os.chdir("d")
with open("much", "wb") as file:
    file.write(bytes(30 << 20))
if len(sys.argv) > 2: import time; time.sleep(30)
"""


def depth_hides_nothing():
    """What lies deep counts for the limit, and goes with its grain."""
    with UsersHost("--max-disk-mb", "10") as host, Hurry(host):
        result = host.run(PYTHON, "-c", DEEP, "100", "stay", uid=ATTACKER, check=False, options=ROOM)
        assert result.returncode != 0 and tells(result.stderr, "cannot counted limit 10 MB"), result
        result = host.run(PYTHON, "-c", DEEP, "400", "stay", uid=ATTACKER, check=False, options=ROOM)
        assert result.returncode != 0, result
        host.dcs("session", "clean", "--all", uid=ATTACKER, check=False)
        wait_for("what the grains left to go", lambda: not grain_directories(host.server_dir))
        assert "nested too deeply" not in host.text("server.log")


def holes_are_no_gift():
    """Files of holes count as what a library needs to keep them."""
    with UsersHost("--max-disk-mb", "10") as host, Hurry(host):
        place = os.path.join(host.base, "outputs")
        os.mkdir(place)
        os.chown(place, ATTACKER, ATTACKER)
        result = host.run("/bin/sh", "-c", "truncate -s 500M a b; echo fine >c; exec truncate -s 8M d", uid=ATTACKER, check=False,
                          options=[word for name in "abcd" for word in ("--output", f"{name}={place}/{name}")])
        kept = 0
        for top in (host.server_dir, host.scheduler_dir):
            for directory, _, names in os.walk(top):
                kept = max([kept, *(os.path.getsize(os.path.join(directory, name)) for name in names)])
        assert kept < 64 << 20, (kept, result)
        assert tells(host.text("server.log"), "exceed disk limit grain"), result


LEAVE = """
import ctypes, os
for place in ("/dev/shm", "/var/tmp", "/tmp"):
    with open(f"{place}/dcs-left-{os.getuid()}", "wb") as file:
        file.write(bytes(5 << 20))
    os.makedirs(f"{place}/dcs-left-tree-{os.getuid()}/a/b", exist_ok=True)
assert ctypes.CDLL(None).shmget(0, 5 << 20, 0o1600) >= 0
"""


def owner_of(path):
    try:
        return os.lstat(path).st_uid
    except FileNotFoundError:  # it went meanwhile
        return None


def left_on(uids):
    files = [path for place in ("/dev/shm", "/var/tmp", "/tmp") for path in glob.glob(f"{place}/dcs-left-*")
             if owner_of(path) in uids]
    segments = [line for line in open("/proc/sysvipc/shm").read().splitlines()[1:] if int(line.split()[9]) in uids]
    return files + segments


def nothing_is_left_outside():
    """Memory and disk in the places of all go when the last grain of a made-up uid has gone."""
    with UsersHost() as host, Hurry(host):
        uids = range(FIRST, LAST + 1)
        host.run(PYTHON, "-c", LEAVE + "import sys; sys.stdout.write(str(os.getuid()))", uid=ATTACKER)
        wait_for("what the grain left to go", lambda: not left_on(uids))


def nothing_is_left_by_a_dead_launcher():
    """Its grain ends with it, and the next launcher removes what that left."""
    uids = range(FIRST, LAST + 1)
    with UsersHost() as host, Hurry(host):
        words = (PYTHON, "-c", LEAVE + "import time; time.sleep(100000)")
        grain = threading.Thread(target=host.run, args=words, kwargs=dict(uid=ATTACKER, check=False))
        grain.start()
        wait_for("the grain to have all there", lambda: len(left_on(uids)) == 7)
        host.stop_server()
        os.kill(host.launcher(), signal.SIGKILL)
        wait_for("the end of the launcher", lambda: not host.launcher())
        host.slots = 0  # so that the grain does not start again
        host.write_table("")
        host.start_server()
        wait_for("what the grain left to go", lambda: not left_on(uids))
        grain.join()


FIRST_OF_TWO = """
import os, sys, time
top, flag = sys.argv[1:]
os.mkdir(top)
os.chmod(top, 0o777)
with open(top + "/made", "wb") as file:
    file.write(bytes(5 << 20))
os.rename(top + "/made", top + "/own")
while not os.path.exists(flag): time.sleep(0.05)
"""
SECOND_OF_TWO = """
import os, sys, time
top, flag = sys.argv[1:]
while not os.path.exists(top + "/own"): time.sleep(0.05)
os.mkdir(top + "/made", 0o700)
with open(top + "/made/much", "wb") as file:
    file.write(bytes(5 << 20))
os.rename(top + "/made", top + "/within")
while not os.path.exists(flag): time.sleep(0.05)
"""


def nothing_is_left_in_anothers_directory():
    """Two users' grains, one's closed directory within the other's open one. What is of the one that ends goes at once,
    the rest when the other has ended."""
    with UsersHost() as host, Hurry(host), tempfile.TemporaryDirectory(prefix="dcs-flags-") as flags:
        os.chmod(flags, 0o755)
        for order in (("own", "within"), ("within", "own")):
            top = f"/dev/shm/dcs-left-two-{os.getpid()}-{order[0]}"
            grains = {}
            ends = {mine: f"{flags}/{order[0]}-{mine}" for mine in order}
            for mine, text, uid in (("own", FIRST_OF_TWO, ATTACKER), ("within", SECOND_OF_TWO, VICTIM)):
                words = (PYTHON, "-c", text, top, ends[mine])
                grains[mine] = threading.Thread(target=host.run, args=words, kwargs=dict(uid=uid))
                grains[mine].start()
            try:
                wait_for("both to have files there", lambda: os.path.exists(f"{top}/within"))
                for mine in order:
                    assert os.path.exists(f"{top}/{mine}"), f"{mine} is of a grain that runs"
                    open(ends[mine], "w").close()
                    grains[mine].join()
                    wait_for(f"{mine} to go", lambda: not os.path.exists(f"{top}/{mine}"))
            finally:
                for mine in order:
                    open(ends[mine], "w").close()
                    grains[mine].join()
            wait_for("all to go", lambda: not os.path.exists(top) and not left_on(range(FIRST, LAST + 1)))


def no_daemon_leaves_a_core_file():
    """Keys and all users' data are in the memory of these."""
    with UsersHost() as host, Hurry(host):
        def limits_of(pid):
            return re.search(r"^Max core file size +(\S+) +(\S+)", open(f"/proc/{pid}/limits").read(), re.M).groups()
        seen = set()
        for daemon in (host.scheduler, host.server):
            children = open(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read().split()
            for pid in [daemon.pid, *children]:
                name = open(f"/proc/{pid}/comm").read().strip()
                if name in ("dcs_scheduler", "dcs_keeper", "dcs_grainserver"):
                    seen.add(name)
                    assert limits_of(pid) in (("1", "1"), ("0", "0")), (name, limits_of(pid))
        # comm has 15 bytes
        seen = {name[:15] for name in seen}
        for name in ("dcs_scheduler", "dcs_keeper"):
            assert name in seen, seen


def programs_are_hardened():
    """By the linker's own words: positions, stack, relocations; and calls that are there only if the compiler checks."""
    def says(*words):
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    for name in ("dcs_scheduler", "dcs_grainserver", "dcs_launcher", "dcs_backupd", "dcs", "dcs_begin", "dcs_lock"):
        path = program(name)
        header, segments, dynamic = says("readelf", "-hW", path), says("readelf", "-lW", path), says("readelf", "-dW", path)
        assert "GNU_RELRO" in segments and re.search(r"GNU_STACK.* RW ", segments), (name, segments)
        if name == "dcs_lock":  # static: at fixed addresses, and without symbols
            continue
        assert re.search(r"Type: +DYN", header), (name, "no position-independent program")
        assert re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic), (name, "symbols are bound late")
        symbols = says("nm", "-D", path)
        assert "__stack_chk_fail" in symbols, (name, "no guard of the stack")
        assert re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", "")), (name, "no bounds of buffers")
    for name in ("dcs_scheduler", "dcs_grainserver"):
        assert "__glibcxx_assert_fail" in says("nm", "-D", program(name)), (name, "no assertions of the library")


CASES = (programs_are_hardened, no_daemon_leaves_a_core_file, depth_hides_nothing, holes_are_no_gift, nothing_is_left_outside,
         nothing_is_left_by_a_dead_launcher, nothing_is_left_in_anothers_directory, digests_find_no_secret)
PLANTS = {"launcher.any_depth": depth_hides_nothing, "server.holes_are_free": holes_are_no_gift,
          "launcher.leave_it": nothing_is_left_outside,
          "starter.own_directories_only": nothing_is_left_in_anothers_directory, "turn.a_digest_is_enough": digests_find_no_secret}


def attack(*cases):
    for case in cases:
        print(case.__name__, flush=True)
        if case is digests_find_no_secret:
            with SpeakersPool() as pool:
                case(pool)
        else:
            case()


def planted_bugs_are_found():
    with tempfile.TemporaryDirectory(prefix="dcs-traces-") as base:
        os.chmod(base, 0o711)
        os.symlink(TOOLS, os.path.join(base, "tests"))
        bins = bin_directory(os.path.join(base, "bin"), ("dcs_scheduler", "dcs_grainserver", "dcs_launcher"))
        for plant, case in PLANTS.items():
            result = subprocess.run([sys.executable, os.path.abspath(__file__), case.__name__], capture_output=True, text=True,
                                    env=dict(os.environ, DCS_BIN=bins, DCS_PLANTED=plant))
            assert result.returncode == 1 and "Error" in result.stderr, (plant, result.returncode, result.stderr[-2000:])
            print(f"{plant}: found by {case.__name__}", flush=True)


def main():
    need_root()
    if len(sys.argv) > 1:
        return attack(*(case for case in CASES if case.__name__ in sys.argv[1:]))
    attack(*CASES)
    print(f"{len(CASES)} attacks failed", flush=True)
    if FULL:
        planted_bugs_are_found()


if __name__ == "__main__":
    main()
