#!/usr/bin/python3
"""docs/MAKE_A_GRAIN.md cannot rot: every program on it is built as the page says, run by hand as a filter, and run on
a pool where it is killed and evicted in mid-run; the output is that of all the others, and of the undisturbed run."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from pool import BIN, ROOT, Pool, wait_for

PAGE = open(os.path.join(ROOT, "docs/MAKE_A_GRAIN.md")).read()
# Numbers up to which each is to look on the pool: a second or two of work, doubled until it is caught in mid-run.
PROGRAMS = {"collatz": 2000000, "collatz_streams": 2000000, "collatz.py": 60000, "collatz.sh": 6000}
PUBLISHED = ["27 takes 111 steps", "97 takes 118 steps", "871 takes 178 steps", "6171 takes 261 steps"]  # OEIS A006877


def blocks():
    return re.findall(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", PAGE, re.M | re.S)


def build(directory):
    env = dict(os.environ, DCS=ROOT)
    for kind, name, text in blocks():
        if name:
            with open(os.path.join(directory, name), "w") as file:
                file.write(text)
            os.chmod(os.path.join(directory, name), 0o755 if text.startswith("#!") else 0o644)
        elif kind == "build":
            if text.startswith("aarch64") and not shutil.which("aarch64-linux-gnu-gcc"):
                print("not built here, for want of the compiler:", text.split()[0])
                continue
            done = subprocess.run(["sh", "-ec", text], cwd=directory, env=env, capture_output=True)
            assert done.returncode == 0 and not done.stderr, f"{text}{done.stderr.decode()}"
    shutil.copy(os.path.join(ROOT, "libdcs/python/dcs_grain.py"), directory)


def by_hand(env, directory, name, last):
    done = subprocess.run([os.path.join(directory, name)], input=f"1 {last} 0\n".encode(), env=env, capture_output=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, f"{name}: exit {done.returncode}, {done.stderr.decode()}"
    return done.stdout.decode()


class Client:
    def __init__(self, pool, env, directory, name, last):
        self.out = os.path.join(pool.base, name + ".out")
        command = [os.path.join(BIN, "dcs"), "run", "--attempts", "255", "--", "./" + name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=open(self.out, "w"), env=env, cwd=directory)
        self.process.stdin.write(f"1 {last} 0\n".encode())
        self.process.stdin.close()
        self.name, self.incarnation, self.went_on = name, 0, 0


def rows(pool):
    """The grains by the names of their programs; some may just have ended."""
    found = {}
    for session in pool.json("session", "ls")["sessions"]:
        answer = pool.dcs("grain", "show", f"{session['session']}:1", "-o", "json", check=False)
        if answer.returncode == 0:
            row = json.loads(answer.stdout)["grain"]
            found[os.path.basename(row["argv"][0])] = row
    return found


def disturb(pool, clients):
    """Each grain is ended at least twice after a checkpoint: once by kill -9, once by eviction, or until it is done."""
    def note():
        pool.hurry()
        seen = rows(pool)
        for client in clients:
            row = seen.get(client.name)
            if row and row["checkpoint_length"] > 0 and row["incarnation"] > client.incarnation:
                client.went_on += client.incarnation > 0
                client.incarnation = row["incarnation"]
        return seen

    def all_checkpointed():
        note()
        return all(c.incarnation > 0 or c.process.poll() is not None for c in clients)
    wait_for("a checkpoint of each grain", all_checkpointed, timeout=120)
    for _, _, pid, _ in pool.grain_processes():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for host in pool.host_names():
        time.sleep(pool.interval)
        pool.dcs("host", "drain", "--evict", host)
        time.sleep(pool.interval)
        pool.dcs("host", "undrain", host)
        note()


def main():
    with Pool(2, 4, 1.0) as pool:
        directory = os.path.join(pool.base, "page")
        os.mkdir(directory)
        build(directory)
        env = dict(pool.env, PATH=BIN + ":" + pool.env["PATH"], PYTHONDONTWRITEBYTECODE="1")
        short = {name: by_hand(env, directory, name, 7000) for name in PROGRAMS}
        assert len(set(short.values())) == 1, "the programs on the page disagree"
        assert [line for line in short["collatz"].splitlines() if line in PUBLISHED] == PUBLISHED, short["collatz"]
        left = dict(PROGRAMS)
        while left:
            clients = [Client(pool, env, directory, name, last) for name, last in left.items()]
            try:
                disturb(pool, clients)
            except BaseException:
                for client in clients:
                    client.process.kill()
                raise
            for client in clients:
                wait_for("the end of " + client.name, lambda: pool.hurry() or client.process.poll() is not None, timeout=600, step=0.5)
                assert client.process.returncode == 0, f"{client.name}: exit {client.process.returncode}"
                wanted = by_hand(env, directory, "collatz", left[client.name])
                assert open(client.out).read() == wanted, f"{client.name}: {open(client.out).read()!r}, by hand {wanted!r}"
                if client.went_on:
                    print(f"{client.name}: went on from a checkpoint {client.went_on} times or more, output equal")
                    del left[client.name]
                else:  # too fast a machine to be caught in mid-run
                    left[client.name] *= 2
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
