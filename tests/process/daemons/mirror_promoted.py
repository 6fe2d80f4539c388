#!/usr/bin/python3
"""A pool of several hosts whose backup, on a host of its own, keeps a running copy of the store, mode sync, over TLS.
The scheduler's host burns down with everything on it; on the backup's host the copy is promoted. Grain servers and a
control program of another host, begun by the real dcs_begin, know both addresses: they find the new scheduler and go
on, and so do programs begun after that. What was acknowledged is there, with the files that grains brought back. The
old scheduler comes back from a copy of its disk: the backup tells it, and it ends; a program that has seen the new
epoch would not believe it in any case."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys

from hurry import Hurry
from pool import BIN, ROOT, free_port, program, start_time, tells, wait_for
from remote_world import Desk, DeskPool, enter


# A control program of the scheduler's own host; its session stays. Files of several pieces, and an empty one.
FILES = r"""
import dcs
session = dcs.Session("files")
make = 'head -c "$0" /dev/urandom >body; sha256sum <body'
for number, size in enumerate((0, 100, 20_000_000), 1):
    session.submit(number, ["/bin/sh", "-c", make, str(size)], outputs=["body"])
for _ in range(3):
    result = session.wait().check()
    print(session.number, result.grain, result.output.split()[0].decode())
session.leave()
"""


class MirrorPool(DeskPool):
    options = ("--group", "dcs", "--mirror", "sync")
    backup_line = ""

    def __init__(self):
        self.second, self.backup_port = free_port(), free_port()
        super().__init__()
        self.vault = os.path.join(self.base, "vault")
        self.proxy.address = f"127.0.0.1:{self.port_number},127.0.0.1:{self.second}"

    def table(self, *hosts, sources=None):
        super().table(*hosts, sources=sources)
        with open(os.path.join(self.directory, "hosts"), "a") as file:
            file.write(self.backup_line)

    def backup_joins(self):
        self.backup_line = f"bk role=backup address=127.0.0.1:{self.backup_port}\n"
        self.table("h1", "h2")
        self.dcs("reload")
        words = self.dcs("token", "create", "--role", "backup", "--host", "bk").stdout.split()
        words[3] = self.proxy.address
        self.dcs(*words[1:], "--dir", os.path.join(self.vault, "backup"))
        self.start_backup()

    def start_backup(self):
        self.start("backup", "dcs_backupd", "--dir", os.path.join(self.vault, "backup"), "--scheduler", self.proxy.address,
                   "--tls", f"127.0.0.1:{self.backup_port}", "--log-level", "debug")

    def copy(self):
        return self.json("backup", "status")["copy"]

    def current(self):
        wait_for("a copy that is as far as the store", lambda: (lambda c: c["state"] == "current" and c["attached"])(self.copy()),
                 timeout=120)

    def bring_files(self):
        """{(session, grain): SHA-256 of its file, as the grain saw it}"""
        env = dict(self.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"),
                   DCS_LIBRARY=os.path.join(BIN, "../lib/libdcs.so"))
        done = subprocess.run([sys.executable, "-B", "-c", FILES], env=env, check=True, stdout=subprocess.PIPE, text=True,
                              timeout=300)
        rows = [line.split() for line in done.stdout.splitlines()]
        assert len(rows) == 3, rows
        return {(session, grain): digest for session, grain, digest in rows}

    def files_at_vault(self, wanted):
        for (session, grain), digest in wanted.items():
            words = ["grain", "cat", "--file", "body", f"root/{session}:{grain}", "--dir", self.vault]
            body = subprocess.run([program("dcs"), *words], env=self.env, check=True, stdout=subprocess.PIPE, timeout=300).stdout
            assert hashlib.sha256(body).hexdigest() == digest, (session, grain, len(body))

    def at_vault(self, *words, check=True):
        return self.dcs(*words, "--dir", self.vault, check=check)


def promoted(pool):
    """Everything of the old scheduler is gone, but what an operator keeps elsewhere: its authority and its host table."""
    safe = os.path.join(pool.base, "safe")
    shutil.copytree(os.path.join(pool.directory, "pki"), os.path.join(safe, "pki"))
    shutil.copy(os.path.join(pool.directory, "hosts"), safe)
    refused = pool.at_vault("backup", "promote", check=False)
    assert refused.returncode == 4 and "the backup of" in refused.stderr and "stop its service" in refused.stderr, refused
    pool.stop("scheduler", signal.SIGKILL)
    old = os.path.join(pool.base, "old")
    os.rename(pool.directory, old)
    os.mkdir(pool.directory)
    pool.stop("backup")
    said = pool.at_vault("backup", "promote").stdout
    assert "in epoch 2" in said and "dcs_scheduler --dir" in said, said
    scheduler = os.path.join(pool.vault, "scheduler")
    shutil.copy(os.path.join(safe, "hosts"), scheduler)
    start = [program("dcs_scheduler"), "--dir", scheduler, "--tls", f"127.0.0.1:{pool.second}", *pool.options]
    for _ in range(2):
        began = subprocess.run(start, env=pool.env, stderr=subprocess.PIPE, timeout=240, check=False)
        assert began.returncode == 4 and tells(began.stderr, "pki authority is missing h1 Restore it mkdir"), began
        assert not os.path.exists(os.path.join(scheduler, "pki"))
    shutil.copytree(os.path.join(safe, "pki"), os.path.join(scheduler, "pki"))
    pool.start("second", "dcs_scheduler", "--dir", scheduler, "--tls", f"127.0.0.1:{pool.second}", *pool.options)
    pool.start_backup()
    wait_for("the doctor to name the backup's place", lambda: tells(pool.at_vault("doctor", check=False).stdout,
                                                                    "backup: is on the disk of the scheduler"))
    return old


def old_one_comes_back(pool, old):
    if os.path.exists(old):
        os.rmdir(pool.directory)
        os.rename(old, pool.directory)
    began = subprocess.Popen([program("dcs_scheduler"), "--dir", pool.directory, "--tls", f"127.0.0.1:{pool.port_number}",
                              *pool.options], env=pool.env, stderr=open(os.path.join(pool.base, "old.log"), "w"))
    pool.programs.append(began)  # ended with the pool if no process ends it
    assert began.wait(timeout=240) != 0
    text = pool.text("old.log")
    assert "epoch 2" in text and "ends without answering" in text, text
    # It does not serve a second time, before the backup could tell it again.
    again = subprocess.run(began.args, env=pool.env, stderr=subprocess.PIPE, timeout=240, check=False)
    assert again.returncode == 4 and tells(again.stderr, "epoch 2 new scheduler Keep aside attached"), again
    assert b"serving in" not in again.stderr, again
    os.remove(os.path.join(pool.directory, "attached"))


def sessions_of(desk, user):
    rows = json.loads(desk.run(user, "dcs", "session", "ls", "-o", "json").stdout)["sessions"]
    return {row["session"]: row for row in rows}


def main():
    arguments = enter(__file__)
    if arguments is None:
        sys.exit(77)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with Desk(MirrorPool) as desk, Hurry(desk.pool):
        pool = desk.pool
        pool.backup_joins()
        desk.join()
        pool.current()
        table = pool.dcs("backup", "status").stdout
        assert "not on this host" in table and "sync, current" in table, table
        for word in ("one", "two"):
            assert desk.run("ann", "dcs", "run", "--", "/bin/echo", word).stdout == word + "\n"
        files = pool.bring_files()
        trace = os.path.join(desk.world.base, "trace")
        words = ("dcs", "map", "--", "/bin/sh", "-c", f"echo {{}} >>{trace}; sleep 1; echo result {{}}")
        run = desk.popen("ann", *words, stdin=subprocess.PIPE, env={"DCS_PATIENCE_S": "600"})
        run.stdin.write("".join(f"{i}\n" for i in range(12)))
        run.stdin.close()
        run.stdin = None
        wait_for("three grains", lambda: os.path.exists(trace) and len(open(trace).readlines()) >= 3, 240)
        before = sessions_of(desk, "ann")
        held = [g for g in pool.grain_processes() if start_time(g[2]) == g[3]]
        old = promoted(pool)
        out, err = run.communicate(timeout=300)
        assert run.returncode == 0 and out.splitlines() == [f"result {i}" for i in range(12)], (out, err)
        after = sessions_of(desk, "ann")  # begun again, at the second address
        for number, row in before.items():
            assert number in after and after[number]["finished"] >= row["finished"], (row, after.get(number))
        assert desk.run("ann", "dcs", "run", "--", "/bin/echo", "three").stdout == "three\n"
        status = json.loads(desk.run("ann", "dcs", "status", "-o", "json").stdout)
        assert status["epoch"] == 2, status
        pool.files_at_vault(files)
        ran = [int(line) for line in open(trace).read().split()]
        assert set(ran) == set(range(12)) and len(ran) <= 12 + len(held), ran
        old_one_comes_back(pool, old)
        # So it is with a backup on whose host nothing was promoted.
        pool.stop("backup")
        os.remove(os.path.join(pool.vault, "backup", "epoch"))
        pool.start_backup()
        wait_for("the copy", lambda: json.loads(pool.at_vault("backup", "status", "-o", "json").stdout)["copy"]["state"] == "current", timeout=120)
        old_one_comes_back(pool, old)
        assert desk.run("ann", "dcs", "run", "--", "/bin/echo", "four").stdout == "four\n"
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
