#!/usr/bin/python3
"""The backup's directory is a link to another disk. `dcs backup promote` copies the copy, and whether it fails or is killed on
the way, what it says holds: the pool starts unchanged, or the same command, repeated, promotes the copy."""
import os
import shutil
import sys
import tempfile

from hurry import Hurry
from mirror import MirroredPool, Test
from pool import BIN, tells

POINTS = [f"mirror.promote.{step}" for step in ("staged", "set_aside", "noted", "committed", "forgotten", "library", "moved")]
REFUSE = os.path.join(os.path.dirname(BIN), "tests", "librefuse.so")


def promote(pool, check=True, **environment):
    before = dict(pool.env)
    pool.env.update(environment)
    try:
        return pool.dcs("backup", "promote", "--yes", check=check)
    finally:
        pool.env.clear()
        pool.env.update(before)


def sessions(pool):
    return sorted(s["session"] for s in pool.json("session", "ls", "all")["sessions"])


def serves_all(test, known, epoch):
    pool = test.pool
    assert sessions(pool) == known, (sessions(pool), known)
    assert pool.json("status")["epoch"] == epoch, (pool.json("status"), epoch)
    assert not os.path.exists(test.state + ".promoting")
    test.session(["served"])
    known[:] = sessions(pool)
    test.current()


def main():
    with (tempfile.TemporaryDirectory(dir="/dev/shm") as other,
          MirroredPool(1, 1, 1.0, test_builds=("dcs_backupd",)) as pool, Hurry(pool)):
        if os.stat(other).st_dev == os.stat(pool.dir).st_dev:
            print("there is only one file system here")
            sys.exit(77)
        test = Test(pool)
        pool.down()
        backup, moved = os.path.join(pool.dir, "backup"), os.path.join(other, "backup")
        shutil.rmtree(backup)
        os.mkdir(moved, 0o700)
        os.symlink(moved, backup)
        pool.up()
        pool.dcs("map", "--new", "--", "/bin/echo", "{}", ":::", "kept")
        test.current()
        known = sessions(pool)

        for refused in ("rename:before-epoch:EBUSY", "open,openat,openat2:promote.probe:EROFS",
                        "mkdir:state.promoting:ENOSPC"):
            said = promote(pool, False, LD_PRELOAD=REFUSE, DCS_REFUSE=refused)
            assert said.returncode == 4 and tells(said.stderr, "nothing was promoted dcs up starts unchanged"), (refused, said)
            pool.up()
            serves_all(test, known, 1)
        said = promote(pool, False, LD_PRELOAD=REFUSE, DCS_REFUSE="rename:state.promoting/a:EIO rename:state.promoting/b:EIO")
        assert said.returncode != 0 and tells(said.stderr, "remove cause repeat command"), said
        assert pool.up(check=False).returncode != 0
        promote(pool)
        epoch = pool.json("status")["epoch"]
        serves_all(test, known, epoch)
        for point in POINTS:
            killed = promote(pool, False, DCS_FAILPOINTS=f"{point}=kill@1")
            assert killed.returncode != 0 and tells(killed.stderr, "repeat command"), (point, killed)
            promote(pool)
            later = pool.json("status")["epoch"]
            assert later in (epoch + 1, epoch + 2), (point, epoch, later)
            epoch = later
            serves_all(test, known, epoch)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
