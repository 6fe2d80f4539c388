"""The directory service that knows the users is away: it does not answer, or with errors. The scheduler goes on, callers wait, and
none gets another name. Exit code 77: no such library in this build."""
import errno
import os
import struct
import subprocess
import sys

from pool import BIN, Pool, program, wait_for

LIBRARY = os.path.join(os.path.dirname(BIN), "tests/libslow_users.so")
SAID = "the user database of the scheduler's host"


def log(pool):
    with open(os.path.join(pool.dir, "scheduler", "log"), errors="replace") as file:
        return file.read()


def turn(switch, number):
    with open(switch, "r+b" if os.path.exists(switch) else "wb") as file:
        file.write(struct.pack("i", number))


def problems(pool):
    return [row for row in pool.json("doctor", check=False)["problems"] if row["entity"] == "users"]


def away(pool, number):
    """From the start of the scheduler on; `number`: of the error, or -1 if there is no answer."""
    pool.dcs("map", "--", "echo", ":::", "a")
    before = pool.json("session", "ls")["sessions"]
    pool.stop_scheduler()
    switch, said = os.path.join(pool.base, "away"), len(log(pool))
    turn(switch, number)
    up = subprocess.Popen([program("dcs"), "up", "--local", "1", "--slots", "1", "--interval", "1", "--dir", pool.dir],
                          env=dict(pool.env, LD_PRELOAD=LIBRARY, DCS_SLOW_USERS=switch), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    wait_for("the log to say it", lambda: SAID in log(pool)[said:])
    begins = subprocess.run([program("dcs_begin"), "/bin/true"], env=dict(pool.env, DCS_PATIENCE_S="4"), stderr=subprocess.PIPE, timeout=300)
    assert begins.returncode == 125 and SAID.encode() in begins.stderr, begins
    ask = pool.dcs("session", "ls", check=False)
    assert ask.returncode != 0 and SAID.encode() in ask.stderr, ask
    begins = pool.start([program("dcs_begin"), "/bin/true"])
    turn(switch, 0)
    assert begins.wait(timeout=300) == 0
    said = up.communicate(timeout=300)[0]
    assert up.returncode == 0 or up.returncode == 5 and SAID.encode() in said, said  # 5: it did not wait so long
    assert pool.json("session", "ls")["sessions"] == before
    turn(switch, number)
    pool.dcs("reload")  # also the users are asked for again
    (row,) = wait_for("the doctor's word", lambda: problems(pool))
    assert SAID in row["problem"] and row["affects"] and row["advice"], row
    turn(switch, 0)


def main():
    if not os.path.exists(LIBRARY):
        print("SKIPPED: this build has no such library")
        return 77
    with Pool(1, 1) as pool:
        away(pool, -1)
        away(pool, errno.EIO)
    print("2 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
