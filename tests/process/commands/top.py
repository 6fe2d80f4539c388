#!/usr/bin/python3
"""dcs top: what it shows is what runs; on a terminal it is drawn again, says when the scheduler is away and goes on when it is
back, and leaves the terminal as it was, by q and by a signal."""
import os
import pty
import re
import select
import signal
import termios
import time

from pool import Pool, wait_for


class Terminal:
    """dcs top on a terminal of its own."""

    def __init__(self, pool):
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.process = pool.start([os.path.join(pool.bin, "dcs"), "top", "--interval", "0.5"], stdin=self.slave,
                                  stdout=self.slave, stderr=self.slave, start_new_session=True)
        self.seen = ""

    def sees(self, pattern, timeout=60):
        end = time.monotonic() + timeout
        while not re.search(pattern, self.seen, re.S):
            assert time.monotonic() < end, f"no {pattern} in {self.seen[-2000:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536).decode()

    def ends(self, code=0):
        assert self.process.wait(timeout=60) == code
        self.sees(re.escape("\x1b[?1049l"))
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        os.close(self.master)
        os.close(self.slave)


def once(pool):
    text = pool.dcs("top", "--once").stdout.decode()
    for pattern in (r"^1 of 1 host active, 2 of 2 slots busy, 1 grain waiting; scheduler up ", r"^ +1 .*0/3 +2 +1 +0 +- +dcs map ",
                    r"^local1 +active +2/2 ", r"^ +1:1 +local1 ", r"^ +1:2 +local1 "):
        assert re.search(pattern, text, re.M), (pattern, text)
    top = pool.json("top")
    assert top["schema"] == "dcs.top/1" and top["running"] == 2 and top["ready"] == 1, top
    assert [h["name"] for h in top["hosts"]] == ["local1"] and [s["session"] for s in top["sessions"]] == [1]
    assert sorted(g["grain"] for g in top["grains"]) == [1, 2] and top["grains"][0]["host"] == "local1", top
    assert pool.dcs("top", "much", check=False).returncode == 2
    assert pool.dcs("top", "--interval", "0", check=False).returncode == 2


def terminal(pool):
    screen = Terminal(pool)
    screen.sees("2 of 2 slots busy.*q ends this")
    pool.kill("scheduler", "scheduler")
    screen.seen = ""
    screen.sees("no scheduler|does not answer|unreachable|cannot connect")
    pool.up()
    screen.seen = ""
    screen.sees("2 of 2 slots busy.*1:1")
    os.write(screen.master, b"q")
    screen.ends()
    screen = Terminal(pool)
    screen.sees("slots busy")
    screen.process.send_signal(signal.SIGTERM)
    screen.ends()


def main():
    with Pool(1, 2, 0.5) as pool:
        bag = pool.start([os.path.join(pool.bin, "dcs"), "map", "--", "sleep", ":::", "1000", "1001", "1002"],
                         stdout=open(os.path.join(pool.base, "out"), "wb"), stderr=open(os.path.join(pool.base, "err"), "wb"))
        wait_for("two grains to run", lambda: pool.json("top")["running"] == 2 and pool.json("host", "ls")["hosts"][0]["running"] == 2)
        once(pool)
        terminal(pool)
        bag.kill()
        bag.wait()
        pool.dcs("session", "close", "1")
        wait_for("nothing to run", lambda: pool.json("top")["sessions"] == [])
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
