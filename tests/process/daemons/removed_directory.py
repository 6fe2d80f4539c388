#!/usr/bin/python3
"""The directory of a running private pool is removed: all its daemons and grains end by themselves, whether or not another pool is made in
its place meanwhile."""
import os
import shutil

from pool import Pool, start_time, wait_for


def processes(pool):
    """(pid, start time) of those that name the pool's directory: its daemons and grains."""
    found = set()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            text = open(f"/proc/{pid}/cmdline", "rb").read() + open(f"/proc/{pid}/environ", "rb").read()
        except OSError:
            continue
        if pid != os.getpid() and pool.dir.encode() + b"/" in text:
            found.add((pid, start_time(pid)))
    return found


def running(pool):
    return [row for row in pool.json("grain", "ls", "last")["grains"] if row["state"] == "running"]


def main():
    with Pool(servers=2, slots=1) as pool:
        for again in (False, True):
            pool.dcs("map", "--new", "--detach", "--", "sleep", ":::", "100000", "100001")
            wait_for("two grains", lambda: len(running(pool)) == 2)
            orphans = processes(pool)
            assert len(orphans) >= 8, orphans  # scheduler, backup, two servers, two launchers, two grains
            launchers = {p for p in orphans if b"/dcs_launcher\0" in open(f"/proc/{p[0]}/cmdline", "rb").read()}
            assert launchers
            os.rename(pool.dir, pool.dir + ".old")  # at once: nothing is made in it while it is being removed
            shutil.rmtree(pool.dir + ".old", ignore_errors=True)
            wait_for("its removal", lambda: not shutil.rmtree(pool.dir + ".old", ignore_errors=True) and not os.path.exists(pool.dir + ".old"))
            if again:
                pool.up()
            if not again:
                said = pool.dcs("down").stdout
                ended = not [p for p, start in orphans if start_time(p) == start]  # all of them, before they were looked for
                assert ended or b"directory was removed end by themselves" in said, said
                for words in (("status",), ("doctor",)):
                    said = pool.dcs(*words, check=False).stderr
                    ended = not [p for p in launchers if start_time(p[0]) == p[1]]
                    assert ended or b"the directory of this pool was removed: process" in said, said
            wait_for("their end", lambda: not [p for p, start in orphans if start_time(p) == start], timeout=120)
            if not again:
                assert b"Nothing was running" in pool.down().stdout
                pool.up()
        assert pool.dcs("map", "--new", "--", "echo", data=b"1\n2\n").stdout == b"1\n2\n"
    print("a pool whose directory is removed ends")


if __name__ == "__main__":
    main()
