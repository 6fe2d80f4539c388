#!/usr/bin/python3
"""A scheduler that ends while its commits wait for the backup's copy leaves the turn in its journal. The next one sends it: the
copy is not made from scratch, for which all calls would wait."""
import os
import signal
import subprocess

from mirror import MirroredPool, Test
from pool import lock_holder, program, start_time, wait_for

FROM_SCRATCH = "copying the store to the backup"


def ends_while_it_waits(test, number):
    pool = test.pool
    test.current()
    assert test.session(["a", "b"]) == ["a", "b"]
    test.current()
    copies, waits = test.log().count(FROM_SCRATCH), test.log().count("commits wait")
    test.kill("backup")
    caller = pool.start([program("dcs"), "run", "--", "/bin/echo", "after"], stdout=subprocess.PIPE)
    wait_for("commits that wait", lambda: test.log().count("commits wait") > waits, timeout=120)
    pid = lock_holder(os.path.join(test.scheduler, "lock"))
    os.kill(pid, number)
    wait_for("the scheduler's end", lambda: start_time(pid) is None, timeout=120)
    pool.up()
    test.current()
    out, _ = caller.communicate(timeout=300)
    assert caller.returncode == 0 and out == b"after\n", (caller.returncode, out)
    assert test.log().count(FROM_SCRATCH) == copies, test.log()[-4000:]
    assert test.session(["c", "d"]) == ["c", "d"]


def main():
    with MirroredPool(1, 1, 1.0) as pool:
        test = Test(pool)
        for number in (signal.SIGKILL, signal.SIGTERM):
            ends_while_it_waits(test, number)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
