#!/usr/bin/python3
"""dcs top: what it shows is what runs. On a terminal it has five screens, drawn to the terminal's size and without flicker; it
says when the scheduler is away and goes on when it is back, and leaves the terminal as it was, by q, by a signal, and while it
is stopped."""
import os
import re
import signal
import termios

from pool import Pool, program, wait_for
from terminal import Terminal

GRAIN = """
. dcs_grain.sh
dcs_grain_handler
n=0
while :; do
    n=$((n + 1)); sleep 0.2
    if dcs_grain_time_to_checkpoint; then dcs_grain_checkpoint "at $n" "$n"; fi
done
"""


def start(pool, terminal, **environment):
    pool.env.update(environment)
    return pool.start([program("dcs"), "top", "--interval", "0.5"], stdin=terminal.slave, stdout=terminal.slave,
                      stderr=terminal.slave, start_new_session=True)


def once(pool):
    text = pool.dcs("top", "--once").stdout.decode()
    for pattern in (r"^2 of 2 hosts active, 3 of 4 slots busy, 0 grains ready; scheduler up ", r"^ +1 .*0/3 +3 +0 +0 +.* dcs map ",
                    r"^local1 +active +[12]/2 ", r"^ +1:1 +local", r"^ +1:2 +local"):
        assert re.search(pattern, text, re.M), (pattern, text)
    top = pool.json("top")
    assert top["schema"] == "dcs.top/1" and top["running"] == 3 and top["ready"] == 0, top
    assert [h["name"] for h in top["hosts"]] == ["local1", "local2"] and [s["session"] for s in top["sessions"]] == [1]
    assert sorted(g["grain"] for g in top["grains"]) == [1, 2, 3] and top["grains"][0]["host"].startswith("local"), top
    assert pool.dcs("top", "much", check=False).returncode == 2
    assert pool.dcs("top", "--interval", "0", check=False).returncode == 2


def screens(pool):
    """Each screen has what it is for; what does not change is not drawn again."""
    terminal = Terminal(40, 120)
    process = start(pool, terminal, TERM="dumb")
    terminal.shows(r"\A2 of 2 hosts active, 3 of 4 slots busy.*\[1 Hosts\].*^local1 +active +\[#.*q quits\Z")
    terminal.type("2")
    terminal.shows(r"\[2 Sessions\].*^1 +active +\[=+\] +0/3 +3 .*dcs map.*^Your running grains.*^ +1:[123] +local[12] .* ago ")
    terminal.type("3")
    terminal.shows(r"\[3 Time line\].*now\|$.*^local1 +.*\[1+.*\^.*^\[ start")
    terminal.type("4")
    terminal.shows(r"\[4 Events\].*1  grain \d handed to local")
    terminal.type("\t")
    terminal.shows(r"\[5 Dataflow\].*^Session 1: .*^begin$.*^ +grains 1-3: running")
    terminal.type("\t")
    terminal.shows(r"\[1 Hosts\]")
    terminal.sent = ""
    head = terminal.screen().splitlines()[0]
    wait_for("a look", lambda: terminal.read() or terminal.screen().splitlines()[0] != head)
    assert "\x1b[2J" not in terminal.sent and "\x1b[J" not in terminal.sent, "the screen is wiped: it flickers"
    assert "HOST" not in terminal.sent, "what has not changed is drawn again"
    assert "\x1b[3" not in terminal.sent, "colours on a dumb terminal"
    return terminal, process


def sizes(terminal, process):
    """Long screens scroll; a new size is taken at once, and nothing is drawn outside."""
    terminal.resize(6, 60)
    terminal.lines = {}
    process.send_signal(signal.SIGWINCH)
    terminal.shows(r"\[1 Hosts\]")
    terminal.type("4")
    first = terminal.shows(r"\[4 Events\].*q quits; lines 1-3 of \d+").splitlines()[2]
    terminal.type("\x1b[B")
    terminal.shows(r"lines 2-4 of")
    assert first not in terminal.screen()
    terminal.type("\x1b[15~x\x1b[6~G")  # F5 and x mean nothing
    terminal.shows(r"lines \d+-(\d+) of \1,")
    terminal.type("g")
    terminal.shows(r"lines 1-3 of")
    terminal.resize(30, 120)
    terminal.lines = {}
    process.send_signal(signal.SIGWINCH)
    terminal.shows(r"\[4 Events\].*q quits\Z")


def stopped(terminal, process):
    """While it is stopped the terminal is the shell's."""
    process.send_signal(signal.SIGTSTP)
    wait_for("the stop", lambda: " T " in open(f"/proc/{process.pid}/stat").read())
    assert termios.tcgetattr(terminal.slave) == terminal.before
    terminal.read()
    terminal.lines = {}
    process.send_signal(signal.SIGCONT)
    terminal.shows(r"\[4 Events\].*q quits\Z")


def scheduler_away(pool, terminal, process):
    pool.kill("scheduler", "scheduler")
    terminal.shows(r"\AThe scheduler does not answer; below as of \d.*: no scheduler")
    terminal.type("1")
    terminal.shows(r"\[1 Hosts\].*^local1")  # as it was
    pool.up()
    terminal.shows(r"\A2 of 2 hosts active, 3 of 4 slots busy", timeout=120)
    terminal.type("q")
    assert process.wait(timeout=300) == 0
    terminal.close()


def departure(pool):
    """A host dies: it comes first, the time line has the end of its grains there, and says why."""
    terminal = Terminal(40, 120)
    process = start(pool, terminal, TERM="xterm")
    pool.kill_host("local2")
    terminal.shows(r"^HOST .*\n^local2 +dead", timeout=120)
    assert "\x1b[31mdead\x1b[0m" in terminal.sent, "no colour"
    terminal.type("3")
    terminal.shows(r"^local2.*x.*^Grains that left a host.*1:\d left local2: host_dead")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 0
    terminal.close()


def main():
    with Pool(2, 2, 0.5) as pool:
        pool.env["PATH"] = os.path.dirname(program("dcs")) + ":" + pool.env["PATH"]
        bag = pool.start([program("dcs"), "map", "--", "sh", "-c", GRAIN, ":::", "1", "2", "3"],
                         stdout=open(os.path.join(pool.base, "out"), "wb"), stderr=open(os.path.join(pool.base, "err"), "wb"))
        wait_for("three grains to run", lambda: pool.json("top")["running"] == 3 and
                 sum(h["running"] for h in pool.json("host", "ls")["hosts"]) == 3)
        once(pool)
        terminal, process = screens(pool)
        sizes(terminal, process)
        stopped(terminal, process)
        scheduler_away(pool, terminal, process)
        departure(pool)
        bag.kill()
        bag.wait()
        pool.dcs("session", "close", "1")
        wait_for("nothing to run", lambda: pool.json("top")["sessions"] == [])
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
