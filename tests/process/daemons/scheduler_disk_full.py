#!/usr/bin/python3
"""The scheduler's disk is quite full: what frees space or ends work is done all the same, with the store's reserve, and
what is new is refused until there is space; the reserve is then made again."""
import os
import subprocess
import sys

from pool import Pool, tells, wait_for


def main():
    if os.geteuid() != 0:
        print("needs root, to mount a small file system")
        sys.exit(77)
    with Pool(1, 2, 1) as pool:
        pool.dcs("down")
        disk = os.path.join(pool.dir, "scheduler/state")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m,mode=700", "none", disk], check=False)
        if mounted.returncode != 0:
            print("file systems cannot be mounted here")
            sys.exit(77)
        try:
            full(pool, disk)
        finally:
            pool.dcs("down", check=False)
            subprocess.run(["umount", "-l", disk], check=True)
    print("a full disk was emptied by the scheduler's own commands")


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
    for command in (["host", "drain", "local1"], ["host", "undrain", "local1"], ["grain", "kill", "2:1"],
                    ["session", "close", "3"], ["session", "clean", "1", "--yes"], ["session", "clean", "3", "--yes"]):
        pool.dcs(*command)
    assert [s["session"] for s in pool.json("session", "ls")["sessions"]] == [2]
    os.unlink(filler)
    pool.dcs("run", "--", "true")
    assert os.path.getsize(reserve) == size, "the reserve was not made again"


main()
