#!/usr/bin/python3
"""dcs grain tail: the last lines, however many and however long; and -f follows a grain that checkpoints, over a kill of the
scheduler, until it has ended: what it printed is the grain's output, nothing twice."""
import os
import subprocess

from pool import Pool, about, program, wait_for

GEXEC = os.path.join(os.path.dirname(program("dcs")), "../tests/gexec")
STEPS = os.path.join(os.path.dirname(program("dcs")), "../tests/steps")


def last_lines(pool):
    pool.dcs("map", "--session", "1", "--", "sh", "-c", "{}", ":::", "seq 200000", "printf 'a\\nb\\nc'", "true",
             "echo wrong >&2", "printf '%01000000d\\nend\\n' 7")

    def tail(*words):
        return pool.dcs("grain", "tail", *words).stdout.decode()
    assert tail("1:1") == "".join(f"{n}\n" for n in range(199991, 200001))
    assert tail("-n", "150000", "1:1") == "".join(f"{n}\n" for n in range(50001, 200001)), "over several pieces"
    assert tail("-n", "1000000", "1:1") == "".join(f"{n}\n" for n in range(1, 200001))
    assert tail("-n", "0", "1:1") == "" and tail("1:3") == ""
    assert tail("-n", "2", "1:2") == "b\nc" and tail("-n", "1", "1:2") == "c"
    assert tail("--err", "1:4") == "wrong\n" and tail("1:4") == ""
    assert tail("-n", "1", "1:5") == "end\n" and len(tail("-n", "2", "1:5")) == 1000005
    assert tail("-f", "last:2") == "a\nb\nc", "following what has ended ends at once"
    for words, code in (((), 2), (("1:1-2",), 2), (("-n", "x", "1:1"), 2), (("1:99",), 3), (("9:1",), 3)):
        assert pool.dcs("grain", "tail", *words, check=False).returncode == code, words


def follows(pool):
    steps = 150
    control = pool.start([GEXEC, "follow", "2", "0", STEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    control.stdin.write(f"1 {steps} 20\n".encode())
    control.stdin.close()
    wait_for("the grain", lambda: pool.dcs("grain", "show", "2:1", check=False).returncode == 0)
    path = os.path.join(pool.base, "followed")
    with open(path, "wb") as out:
        follower = pool.start([program("dcs"), "grain", "tail", "-f", "-n", "0", "2:1"], stdout=out)
    try:
        wait_for("some output before the end", lambda: pool.hurry() or os.path.getsize(path) > 0, timeout=300)
        pool.kill("scheduler", "scheduler")
        pool.up()
        wait_for("the end", lambda: pool.hurry() or follower.poll() is not None, timeout=300)
    finally:
        follower.kill()
        code = follower.wait()
        if code != 0:
            control.kill()
    assert code == 0
    text = open(path).read()
    assert text == "".join(f"step {n}\n" for n in range(1, steps + 1)), text[:200]
    assert control.stdout.read().decode() == text and control.wait(timeout=300) == 0


def of_a_closed_session(pool):
    pool.dcs("map", "--new", "--detach", "--", "sleep", ":::", "300", "301", "302")
    pool.dcs("session", "close", "last")
    for grain in (1, 3):  # one that ran, and one that did not
        done = pool.dcs("grain", "tail", "-f", f"last:{grain}")
        assert about(done.stderr.decode(), "session closed not continue"), done


def main():
    with Pool(1, 2, 1.0) as pool:
        last_lines(pool)
        follows(pool)
        of_a_closed_session(pool)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
