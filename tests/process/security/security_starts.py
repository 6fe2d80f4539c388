#!/usr/bin/python3
"""What a user's grain can do to the process that starts all grains of a host, between its fork and its exec: exceed its
limit of memory there, hold the exec up, and use its descriptors. Needs root."""
import os
import subprocess
import sys
import tempfile

from hurry import Hurry
from pool import FULL, bin_directory, program, wait_for
from users_host import GAMES, UsersHost, need_root

OTHER = 7  # lp
# Makes a program and holds a lease on it, again and again; each process that executes it has to wait.
LEASE = """
import fcntl, os, shutil, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
shutil.copy("/bin/true", sys.argv[1])
os.chmod(sys.argv[1], 0o755)
held = os.open(sys.argv[1], os.O_RDONLY)
while True:
    try:
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        pass
    time.sleep(0.2)
"""


def starter(host):
    launcher = host.launcher()
    children = open(f"/proc/{launcher}/task/{launcher}/children").read().split()
    return [int(pid) for pid in children if open(f"/proc/{pid}/comm").read() == "dcs_starter\n"][0]


def detached(host, *words):
    return host.dcs("run", "--detach", *words, uid=GAMES).stdout.decode().strip()


def little_memory(host):
    """Arguments and environment are the grain's when it executes its program, and a limit of 1 MB is less."""
    before = starter(host)
    much = [word for i in range(8) for word in ("--env", f"B{i}=" + "x" * 129_000)]
    session = detached(host, "--memory", "1", *much, "--", "/bin/true")

    def has_ended():
        assert "starter was killed" not in host.text("h1/launcher.log"), "the starter was ended with the grain"
        return "more than its 1 MB of memory" in host.dcs("grain", "show", session + ":1", uid=GAMES, check=False).stdout.decode()
    wait_for("the end of the grain", has_ended)
    assert starter(host) == before


def held_up(host):
    """Another user's grain starts, though a program cannot be opened."""
    with tempfile.TemporaryDirectory(prefix="dcs-lease-", dir="/var/tmp") as place:
        os.chmod(place, 0o1777)
        leased = os.path.join(place, "program")
        detached(host, "--", "/usr/bin/python3", "-c", LEASE, leased)
        wait_for("the lease", lambda: any("LEASE" in line and "WRITE" in line for line in open("/proc/locks")))
        session = detached(host, "--", leased)
        wait_for("the start of the other", lambda: "could not be opened within" in host.text("server.log"))
        assert host.run("/bin/echo", "served", uid=OTHER).stdout == b"served\n"
        explain = host.dcs("session", "log", session, uid=GAMES).stdout.decode()
        assert "another process has a lease on it" in explain, explain


def no_way_out(host):
    """A working directory by a descriptor of the process that becomes the grain: of the server's directories, say."""
    for number in range(3, 24):
        done = host.run("/bin/pwd", "-P", options=("--cwd", f"/proc/self/fd/{number}"), check=False)
        assert done.returncode != 0 and "working directory" in done.stderr.decode(), (number, done)


CASES = (little_memory, held_up, no_way_out)
PLANTS = {"starter.keeps_descriptors": no_way_out, "starter.shares_memory": little_memory, "starter.no_exec_limit": held_up}


def attack(*cases):
    for case in cases:
        print(case.__name__, flush=True)
        with UsersHost() as host, Hurry(host):
            case(host)


def planted_bugs_are_found():
    with tempfile.TemporaryDirectory(prefix="dcs-starts-") as base:
        os.chmod(base, 0o711)
        os.symlink(os.path.join(os.path.dirname(os.path.dirname(program("dcs"))), "tests"), os.path.join(base, "tests"))
        bins = bin_directory(os.path.join(base, "bin"), ("dcs_launcher",))
        for plant, case in PLANTS.items():
            result = subprocess.run([sys.executable, os.path.abspath(__file__), case.__name__], capture_output=True, text=True,
                                    env=dict(os.environ, DCS_BIN=bins, DCS_PLANTED=plant))
            assert result.returncode == 1 and "Error" in result.stderr, (plant, result.returncode, result.stderr[-2000:])
            print(f"{plant}: found by {case.__name__}", flush=True)


def main():
    need_root("users of a host")
    if len(sys.argv) > 1:
        return attack(*(case for case in CASES if case.__name__ in sys.argv[1:]))
    attack(*CASES)
    if FULL:
        planted_bugs_are_found()


if __name__ == "__main__":
    main()
