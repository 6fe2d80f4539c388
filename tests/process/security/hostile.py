#!/usr/bin/python3
"""Grains that no host wants: the host and its server survive, nothing of them stays, and their user learns what happened."""
import os
import shutil
import signal
import subprocess
import time

from pool import BIN, Pool, start_time, tells, wait_for


class Host:
    def __init__(self, pool):
        self.pool = pool
        self.grain = os.path.join(pool.base, "hostile")  # a name that no other peer's processes have
        shutil.copy2(os.path.join(os.path.dirname(BIN), "tests", "hostile"), self.grain)
        self.daemons = self.pids()

    def pids(self):
        return {key: daemon["pid"] for key, daemon in self.pool.daemons().items()}

    def processes(self):
        """Of our program, whatever they call themselves."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/exe").startswith(self.grain) and start_time(pid):
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def run(self, *words, options=(), cwd=None):
        return self.pool.dcs("run", *options, "--", self.grain, *words, check=False, cwd=cwd)

    def ended(self, result, signal_number, words):
        text = result.stderr.decode(errors="replace")
        assert result.returncode == 128 + signal_number, (result.returncode, text[-2000:])
        assert tells(text, "dcs: ended on") and words in text, text[-2000:]

    def survives(self):
        wait_for("the end of what the grain left", lambda: not self.processes())
        answer = self.pool.dcs("run", "--", "/bin/echo", "fine")
        assert answer.stdout == b"fine\n", answer
        assert self.pids() == self.daemons, "a daemon died of it"


def fork_bomb(host):
    host.ended(host.run("bomb"), signal.SIGKILL, "more than its 512 processes")


def memory_hog(host):
    host.ended(host.run("hog", options=("--memory", "64")), signal.SIGKILL, "more than its 64 MB of memory")


def flood(host):
    host.ended(host.run("flood"), signal.SIGXFSZ, "wrote more than 64 MiB")


def disk_filler(host):
    """Its own directory is full: that is between the program and the file system, and its user sees its words."""
    small = os.path.join(host.pool.base, "small")
    os.mkdir(small)
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", small], stderr=subprocess.DEVNULL).returncode == 0
    if not mounted:
        return print("SKIPPED: a small file system cannot be mounted here")
    try:
        full = host.run("fill", os.path.join(small, "all"))
        assert full.returncode == 8 and b"No space left on device" in full.stderr, full
    finally:
        subprocess.run(["umount", small], check=True)


def closed_streams(host):
    quiet = host.run("mute")
    assert quiet.returncode == 3 and not quiet.stdout, quiet


def deaf_to_signals(host):
    """A kill order ends it, though it ignores whatever can be ignored."""
    process = host.pool.start([os.path.join(host.pool.bin, "dcs"), "run", "--", host.grain, "deaf"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for("the grain", host.processes)
    session = host.pool.json("session", "ls")["sessions"][-1]["session"]
    def show():
        return host.pool.json("grain", "show", f"{session}:1")["grain"]

    first = host.processes()
    where = wait_for("its host", lambda: show()["host"])
    host.pool.dcs("host", "set", where, "--slots", "0")  # withdrawn: asked, TERM, ten seconds, KILL
    wait_for("its end there", lambda: not set(first) & set(host.processes()))
    wait_for("its next start", host.processes)
    moved = show()
    assert moved["host"] != where and moved["moves"][-1]["reason"] == "host_closed", moved
    host.pool.dcs("host", "set", where, "--slots", "1")
    process.send_signal(signal.SIGINT)  # dcs run kills its grain
    assert process.wait(timeout=300) == -signal.SIGINT


def hidden_process(host):
    hidden = host.run("hide", host.grain)
    assert hidden.returncode == 0, hidden


def main():
    cases = (fork_bomb, memory_hog, flood, disk_filler, closed_streams, deaf_to_signals, hidden_process)
    with Pool(2, 1, 1.0) as pool:
        host = Host(pool)
        for case in cases:
            began = time.monotonic()
            case(host)
            host.survives()
            print(f"{case.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(cases)} passed, 0 failed")


if __name__ == "__main__":
    main()
