#!/usr/bin/python3
"""The scheduler's disk is quite full: what frees space or ends work is done all the same, with the store's reserve, and
what is new is refused until there is space; the reserve is then made again. And the doctor names the backup's disk."""
import glob
import os
import re
import subprocess
import sys

from pool import Pool, program, tells, wait_for


def main():
    if os.geteuid() != 0:
        print("needs root, to mount a small file system")
        sys.exit(77)
    with Pool(1, 2, 1) as pool:
        pool.dcs("down")
        disk = os.path.join(pool.dir, "scheduler/state")
        for mark in glob.glob(os.path.join(pool.dir, "scheduler/start-*")):  # else an empty state is refused
            os.remove(mark)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m,mode=700", "none", disk], check=False)
        if mounted.returncode != 0:
            print("file systems cannot be mounted here")
            sys.exit(77)
        try:
            full(pool, disk)
        finally:
            pool.dcs("down", check=False)
            subprocess.run(["umount", "-l", disk], check=True)
        backup(pool)
        read_only(pool)
    no_room_to_start()
    print("a full disk was emptied by the scheduler's own commands")


def backup(pool):
    """`dcs doctor` warns of the disk of the copy before it is full."""
    disk = os.path.join(pool.dir, "backup/mirror")
    os.makedirs(disk, mode=0o700, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,mode=700", "none", disk], check=True)
    try:
        pool.dcs("up", "--mirror", "lagging")
        pool.dcs("run", "--", "true")
        wait_for("the doctor's word", lambda: tells(pool.dcs("doctor", check=False).stdout, "backup's copy its disk has only MiB free"),
                 timeout=120)
        for folder in ("scheduler", "backup"):
            log = os.path.join(pool.dir, folder, "log")
            wait_for(f"the log of the {folder}", lambda: tells(open(log).read(), "copy of store only MiB free when it is full"))
    finally:
        pool.dcs("down", check=False)
        subprocess.run(["umount", "-l", disk], check=True)


def read_only(pool):
    """The start on a disk that became read-only names that, not another scheduler."""
    place = os.path.join(pool.dir, "scheduler")
    subprocess.run(["mount", "--bind", place, place], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        start = subprocess.run([program("dcs_scheduler"), "--dir", place], capture_output=True, timeout=120, check=False)
        assert start.returncode != 0 and tells(start.stderr, "lock cannot be taken Read-only file system"), start
        assert b"another" not in start.stderr, start
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def no_room_to_start():
    """`dcs up` names the file system that is full, or has no inode left, and says when a pool is a new one: the old one may be
    on a file system that is not mounted."""
    pool = Pool(1, 1)
    os.mkdir(pool.dir, 0o700)
    try:
        for option, left in (("nr_inodes=16", "0 inodes"), ("size=1m,nr_inodes=20", "KiB and 0 inodes"), ("nr_inodes=80", "inodes"),
                             ("size=60m", "0 KiB")):
            subprocess.run(["mount", "-t", "tmpfs", "-o", option + ",mode=700", "none", pool.dir], check=True)
            if option == "size=60m":
                assert tells(pool.up().stdout, f"A new pool in {pool.dir} serves")
                pool.down()
                assert tells(pool.up().stdout, f"The pool in {pool.dir} serves")
                pool.down()
                with open(os.path.join(pool.dir, "servers", "filler"), "wb", buffering=0) as file:
                    space = os.statvfs(pool.dir)
                    os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize)
            said = pool.up(check=False)
            assert said.returncode == 1 and tells(said.stderr, f"the file system on {pool.dir} has only {left} left"), said
            assert tells(said.stderr, "hint: make room there new pool needs MiB inodes dcs up tries again"), said
            pool.down()
            subprocess.run(["umount", "-l", pool.dir], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=110,mode=700", "none", pool.dir], check=True)
        assert tells(pool.up().stderr, "warning scheduler little room only more files (free inodes) calls refused soon")
        pool.down()
        subprocess.run(["umount", "-l", pool.dir], check=True)
        assert tells(pool.up().stdout, f"A new pool in {pool.dir} serves")
        assert pool.json("up", "--dir", pool.dir)["new"] is False
    finally:
        pool.down()
        subprocess.run(["umount", "-l", pool.dir], check=False, capture_output=True)


def submit(pool, *command):
    pool.dcs("map", "--detach", "--", *command, data=b"1\n")


def full(pool, disk):
    reserve = os.path.join(disk, "reserve")
    filler = os.path.join(disk, "..filler")
    pool.up()
    size = os.path.getsize(reserve)
    submit(pool, "echo")
    pool.dcs("session", "wait", "1")
    pool.dcs("session", "close", "1")
    submit(pool, "sleep", "999")
    submit(pool, "sleep", "1000")
    wait_for("both grains to run", lambda: pool.json("host", "ls")["hosts"][0]["running"] == 2)
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 65536):
                pass
        except OSError:
            pass
    refused = pool.dcs("run", "--", "true", check=False)
    assert refused.returncode != 0 and tells(refused.stderr, "disk has bytes free needed"), refused
    assert tells(refused.stderr, "dcs session clean"), refused.stderr
    status = pool.dcs("status").stdout.decode()
    assert re.search("^problem +backing store: its disk, that of .*/scheduler, (is full|has only 0 MiB free): .*refused.*dcs session clean", status, re.M), status
    (row,) = [row for row in pool.json("status")["problems"] if not row["file"]]
    assert row["entity"] == "backing store" and row["problem"] and row["affects"] and row["advice"], row
    for command in (["host", "drain", "local1"], ["host", "undrain", "local1"], ["grain", "kill", "2:1"],
                    ["session", "close", "3"], ["session", "clean", "1", "--yes"], ["session", "clean", "3", "--yes"]):
        pool.dcs(*command)
    assert [s["session"] for s in pool.json("session", "ls")["sessions"]] == [2]
    os.unlink(filler)
    pool.dcs("run", "--", "true")
    assert "\nproblem   backing store: " in pool.dcs("status").stdout.decode(), "still nearly full"
    assert os.path.getsize(reserve) == size, "the reserve was not made again"
    wait_is_told(pool, disk, filler)


def wait_is_told(pool, disk, filler):
    """`dcs up` warns of the disk, and a map whose results have no room says why none comes."""
    assert tells(pool.up().stderr, "warning scheduler disk MiB free dcs doctor"), pool.up().stderr
    gate = os.path.join(pool.base, "gate")
    script = f"until test -e {gate}; do sleep 0.1; done; head -c 3000000 /dev/zero"
    child = pool.start([pool.bin + "/dcs", "map", "--new", "--", "sh", "-c", script, ":::", "1"], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    running = lambda: [s for s in pool.json("session", "ls")["sessions"] if s["session"] > 3 and s["running"]]
    wait_for("the grain to run", running)
    space = os.statvfs(disk)
    with open(filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - (2 << 20))
    open(gate, "w").close()
    assert any(tells(line, "no room for results disk free dcs doctor") for line in child.stderr)
    os.unlink(filler)
    out, _ = child.communicate(timeout=300)
    assert child.returncode == 0 and len(out) == 3000000, (child.returncode, len(out))


main()
