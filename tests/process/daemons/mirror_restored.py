#!/usr/bin/python3
"""Mode sync. The scheduler's directory is restored from a copy that is older than what was acknowledged since. Nothing is
acknowledged any more, `dcs backup detach` is refused, also after a restart, and the promoted copy has all sessions."""
import glob
import os
import shutil

from hurry import Hurry
from mirror import MirroredPool, Test
from pool import program, tells, wait_for


def restored(test):
    pool, before = test.pool, os.path.join(test.pool.base, "before")
    pool.dcs("map", "--new", "--", "/bin/echo", "{}", ":::", "kept")
    test.current()
    test.kill("scheduler")
    shutil.copytree(test.scheduler, before, symlinks=True, ignore=lambda path, names: [n for n in names if n.endswith(".sock")])
    pool.up()
    test.current()
    pool.dcs("map", "--new", "--", "/bin/echo", "{}", ":::", "acknowledged")
    test.current()
    sessions = pool.json("session", "ls", "all")["sessions"]
    turn = test.copy()["turn"]
    test.kill("scheduler")
    shutil.rmtree(test.scheduler)
    shutil.copytree(before, test.scheduler, symlinks=True)
    callers = []
    for start in range(2):
        os.remove(os.path.join(test.scheduler, "log"))  # what is waited for is of this start
        pool.dcs("up", "--dir", pool.dir, "--mirror", "sync", check=False)
        wait_for("the scheduler to see the copy", lambda: tells(test.log(), "copy is ahead turn"), timeout=120)
        callers.append(pool.start([program("dcs"), "run", "--", "/bin/true"]))
        wait_for("commits that wait", lambda: tells(test.log(), "commits wait backup's copy store copy is ahead"), timeout=120)
        refused = pool.dcs("backup", "detach", check=False)
        assert refused.returncode == 4 and tells(refused.stderr, "only copy has ahead dcs backup promote move `mirror`"), refused
        doctor = pool.dcs("doctor", check=False)
        for words in ("copy is ahead", "dcs backup promote"):
            assert tells(doctor.stderr, words), doctor
        assert b"detach" not in doctor.stderr, doctor
        assert test.copy()["state"] == "ahead", test.copy()
        shown = pool.dcs("backup", "status").stdout.decode()
        assert "ahead" in shown and "behind" not in shown, shown
        assert test.copy()["turn"] == turn, (test.copy(), turn, start)
        test.kill("scheduler")
    for caller in callers:
        caller.kill()
        caller.wait()
    pool.dcs("backup", "promote")
    now = [(s["user"], s["session"]) for s in pool.json("session", "ls", "all")["sessions"]]
    for session in sessions:
        assert (session["user"], session["session"]) in now, (session, now)
    test.current()


def file_from_copy(test):
    """A damaged file of a session is taken from the copy, as BACKUP.md says."""
    pool, mirror = test.pool, os.path.join(test.pool.dir, "backup/mirror")
    number = pool.dcs("run", "--detach", "--", "/bin/echo", "intact").stdout.decode().strip().split(":")[0]
    pool.dcs("session", "wait", number)
    test.current()
    pool.down()
    (status,) = glob.glob(os.path.join(test.state, f"sessions/*/{number}/status"))
    with open(status, "r+b") as file:
        file.seek(os.path.getsize(status) // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0x10]))
    pool.up()
    doctor = pool.dcs("doctor", check=False).stdout
    assert f"{number}/status: a checksum".encode() in doctor and b"restore the file" in doctor, doctor
    test.current()
    pool.down()
    with open(os.path.join(mirror, "current")) as current:
        copy = os.path.join(mirror, current.read().strip())
    shutil.copy(os.path.join(copy, os.path.relpath(status, test.state)), status)
    pool.up()
    assert pool.dcs("grain", "cat", f"{number}:1").stdout == b"intact\n"
    test.current()


def main():
    with MirroredPool(1, 1, 1.0) as pool, Hurry(pool):
        restored(Test(pool))
        file_from_copy(Test(pool))
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
