#!/usr/bin/python3
"""A host whose disk is full: what ran there and could not write everything runs again elsewhere, the host accepts no grains
and says why, and takes work again when there is room."""
import os
import subprocess
import sys

from pool import Pool, wait_for

LINES = "".join(f"{n}\n" for n in range(20000)).encode()


def row(pool, host):
    (found,) = [h for h in pool.json("host", "ls")["hosts"] if h["name"] == host]
    return found


def main():
    if os.geteuid() != 0:
        print("needs root, to mount a small file system")
        sys.exit(77)
    with Pool(2, 1, 1) as pool:
        disk = os.path.join(pool.dir, "servers/local2/grains")
        pool.dcs("down")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=711", "none", disk], check=False).returncode != 0:
            print("file systems cannot be mounted here")
            sys.exit(77)
        try:
            full(pool, disk)
        finally:
            pool.dcs("down", check=False)
            subprocess.run(["umount", "-l", disk], check=True)
    print("no output was lost on a full disk")


def full(pool, disk):
    filler = os.path.join(disk, "..filler")
    pool.up()
    wait_for("both hosts", lambda: all(row(pool, h)["state"] == "active" for h in ("local1", "local2")))
    pool.dcs("host", "drain", "local1")
    # It runs on local2, whose disk fills before it writes.
    gate = os.path.join(pool.base, "gate")
    command = f"echo begun; while ! [ -e {gate} ]; do sleep 0.1; done; seq 0 19999; sleep 0"
    grain = pool.start([pool.bin + "/dcs", "run", "--", "sh", "-c", command], stdout=subprocess.PIPE)
    wait_for("the grain on local2", lambda: row(pool, "local2")["running"] == 1)
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass
    with open(gate, "w", encoding="ascii"):
        pass
    wait_for("the host to say that its disk is full", lambda: "disk" in row(pool, "local2")["note"])
    pool.dcs("host", "undrain", "local1")
    out, _ = grain.communicate(timeout=600)
    assert grain.returncode == 0 and out == b"begun\n" + LINES, (grain.returncode, out[:200], len(out))
    os.unlink(filler)
    wait_for("the host to accept grains again", lambda: row(pool, "local2")["note"] == "")


main()
