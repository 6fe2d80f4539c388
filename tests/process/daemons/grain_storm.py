#!/usr/bin/python3
"""Grains in C, C++, Python and shell, checkpointing and not, on 3 servers while grains, servers, hosts and the
scheduler are killed with -9, hosts are evicted and grains restarted by command.

    grain_storm.py [--seed N] [--events N] [--interval S] [--large BYTES]

What each grain prints carries the numbers of the lines that it read and a sum over all of them, so a byte of input
read twice or never shows to the end. Output must equal, byte for byte, that of the same program run by hand.
"""
import argparse
import json
import os
import re
import random
import signal
import subprocess
import time

from pool import BIN, FULL, ROOT, Pool, program, wait_for

GRAINS = os.path.join(os.path.dirname(BIN), "tests", "grains")
SOURCES = os.path.join(ROOT, "tests/process/client")
PYTHON = ["/usr/bin/python3", "-B", os.path.join(SOURCES, "ledger.py")]
SHELL = ["/bin/sh", os.path.join(SOURCES, "ledger.sh")]
SECONDS = 8  # what an undisturbed grain rests in all; the events must find it running
HOSTS = ("local1", "local2", "local3")


def lines(rng, size):
    """About `size` bytes of lines, the last one without an end."""
    made, length = [], 0
    while length < size:
        width = rng.choice((0, 3, 20, 60, 60, 200, 4000 if size > 100000 else 60))
        made.append("".join(rng.choices("abcdefgh ijkl\\mn%$'\"", k=width)).lstrip("#"))
        length += len(made[-1]) + 1
    return "\n".join(made)[:size] if size < 100 else "\n".join(made)


def repeated(rng, size):
    """Fast for large ones: numbered copies of a block."""
    block = lines(rng, 50000)
    return "\n".join(f"{i} {block}" for i in range(size // 50000))


class Client:
    """One `dcs run`, and the same program by hand."""

    def __init__(self, pool, name, command, text, env):
        self.pool, self.name, self.command = pool, name, command
        self.base = os.path.join(pool.base, name.replace(" ", "_"))
        with open(self.base + ".in", "w") as file:
            file.write(text)
        self.env = env
        self.process = self.run([program("dcs"), "run", "--attempts", "255", "--", *command], ".out", ".err")

    def run(self, command, out, err):
        return subprocess.Popen(command, env=self.env, stdin=open(self.base + ".in"), stdout=open(self.base + out, "wb"),
                                stderr=open(self.base + err, "wb"))

    def check(self):
        code = self.process.wait(timeout=1200)
        quiet = [a if a not in ("again",) else "" for a in self.command]
        if "ledger" in " ".join(quiet):
            quiet[-3] = "0"  # PAUSE: the same without rests
        expected = self.run(quiet, ".quiet.out", ".quiet.err").wait(timeout=600)
        told = open(self.base + ".err", errors="replace").read()[-1000:]
        assert code == expected, f"{self.name}: exit {code}, by hand {expected}\n{told}"
        for stream in (".out", ".err"):
            got, wanted = (open(self.base + kind + stream, "rb").read() for kind in ("", ".quiet"))
            if stream == ".err":  # beside what the grain says, dcs run says that it waits, and that the grain moved
                got = re.sub(rb"^(dcs( run)?:|  hint:) .*\n", b"", got, flags=re.MULTILINE)
            if got != wanted:
                at = len(os.path.commonprefix([got, wanted]))
                raise AssertionError(f"{self.name}: {stream} differs at byte {at} of {len(got)}, by hand {len(wanted)}: "
                                     f"{got[max(0, at - 60):at + 60]!r} instead of {wanted[max(0, at - 60):at + 60]!r}")
        return os.path.getsize(self.base + ".out")


def start_all(pool, rng, large):
    env = dict(pool.env, PATH=BIN + ":" + pool.env["PATH"], LC_ALL="C")
    clients = []

    def add(name, command, text, how=None):
        if how is not None:
            pause = max(1, text.count("\n") * 10 // (SECONDS * 1000))
            command = [*command, str(pause), "0", how]
        clients.append(Client(pool, name, command, text, env))

    c, cc = [os.path.join(GRAINS, "ledger_c")], [os.path.join(GRAINS, "ledger_cc")]
    add("C large", c, repeated(rng, large), "")
    add("C again", c, lines(rng, 200000), "again")
    add("C++", cc, lines(rng, 200000), "")
    add("C++ own buffers", cc, lines(rng, 500000), "own")
    add("Python", PYTHON, lines(rng, 200000), "text")
    add("Python sys", PYTHON, lines(rng, 200000), "sys")
    add("shell", SHELL, lines(rng, 8000), "")
    add("shell again", SHELL, lines(rng, 4000), "again")
    add("unmodified", ["/bin/sh", "-c", "sleep 4; exec sort"], lines(rng, 100000))
    for name, command in (("C", c), ("C++", cc), ("Python", PYTHON), ("shell", SHELL)):
        for size in (0, 1):
            add(f"{name} {size} bytes", command, "x" * size, "")
    return clients


class Storm:
    def __init__(self, pool, rng):
        self.pool, self.rng = pool, rng
        self.counts = {"grain": 0, "server": 0, "host": 0, "scheduler": 0, "evict": 0, "close": 0, "restart": 0}
        self.next_kinds, self.incarnations, self.checkpointed = [], {}, set()

    def ask(self, *words):
        """Sessions end while they are looked at."""
        result = self.pool.dcs(*words, "-o", "json", check=False)
        return json.loads(result.stdout) if result.returncode == 0 else {}

    def look(self):
        """Notes each grain's highest incarnation, and whether it had a checkpoint."""
        rows = []
        for session in self.ask("session", "ls").get("sessions", []):
            rows += self.ask("grain", "ls", str(session["session"])).get("grains", [])
        for row in rows:
            self.incarnations[row["session"]] = max(row["incarnation"], self.incarnations.get(row["session"], 0))
            if row["checkpoint_length"] > 0:
                self.checkpointed.add(row["session"])
        return [row for row in rows if row["state"] == "running"]

    def kill_grain(self):
        alive = self.pool.grain_processes()
        if not alive:
            return False
        try:
            os.kill(self.rng.choice(alive)[2], signal.SIGKILL)
        except ProcessLookupError:  # it has ended by itself since
            return False
        return True

    def restart_grain(self):
        running = self.look()
        if not running:
            return False
        row = self.rng.choice(running)
        return self.pool.dcs("grain", "restart", f"{row['session']}:{row['grain']}", check=False).returncode == 0

    def away(self, host, arguments, back):
        """Its grains are withdrawn, with a checkpoint where they can, and go on elsewhere."""
        if self.pool.dcs("host", *arguments, check=False).returncode != 0:
            return False
        time.sleep(self.pool.interval * (0.5 + 2 * self.rng.random()))
        self.pool.dcs("host", *back)
        return True

    def kill_host(self, host):
        self.pool.kill_host(host)
        time.sleep(self.pool.interval * (7 if self.rng.random() < 0.3 else 0.3))  # past its limit, or not
        return True

    def happen(self, kind):
        host = self.rng.choice(HOSTS)
        if kind == "grain":
            return self.kill_grain()
        if kind == "restart":
            return self.restart_grain()
        if kind == "evict":
            return self.away(host, ("drain", "--evict", host), ("undrain", host))
        if kind == "close":
            return self.away(host, ("set", host, "--slots", "0"), ("set", host, "--reset"))
        if kind == "host":
            return self.kill_host(host)
        role, name = ("scheduler", "scheduler") if kind == "scheduler" else ("grainserver", host)
        killed = self.pool.kill(role, name)
        time.sleep(self.rng.random() * self.pool.interval)
        return killed

    def run(self, events, clients):
        done = 0
        while done < events and any(c.process.poll() is None for c in clients):
            if not self.next_kinds:  # every kind in each round, in random order
                self.next_kinds = list(self.counts)
                self.rng.shuffle(self.next_kinds)
            time.sleep(self.rng.random() * self.pool.interval * 0.5)
            kind = self.next_kinds.pop()
            happened = self.happen(kind)
            self.counts[kind] += happened
            done += happened
            self.pool.up()
            self.look()
        return done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("DCS_SEED", "1")))
    parser.add_argument("--events", type=int, default=200 if FULL else 20)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--large", type=int, default=100000000 if FULL else 8000000, help="bytes of the largest input")
    options = parser.parse_args()
    print(f"seed {options.seed} (--seed {options.seed} repeats it)", flush=True)
    rng = random.Random(options.seed)
    events = left = options.events
    total, kinds, moved, checkpoints, written = 0, {}, 0, 0, 0
    with Pool(3, 5, options.interval, patient=False) as pool:
        while left > 0:
            clients = start_all(pool, rng, options.large)
            wait_for("the grains to run", lambda: len(pool.grain_processes()) > 5)
            storm = Storm(pool, rng)
            try:
                left -= storm.run(left, clients)
                written += sum(client.check() for client in clients)
            finally:
                for client in clients:
                    if client.process.poll() is None:
                        client.process.kill()
            total += len(clients)
            kinds = {kind: kinds.get(kind, 0) + n for kind, n in storm.counts.items()}
            moved += sum(n - 1 for n in storm.incarnations.values())
            checkpoints += len(storm.checkpointed)
    print(f"{events} events {kinds}, {total} grains, begun again {moved} times, {written} bytes of output compared")
    assert moved >= events // 2 and checkpoints >= 5, f"a storm that moved nothing: {moved} moves, {checkpoints} checkpointed"
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
