#!/usr/bin/python3
"""Sessions and grains as people tell them apart: what was typed, labels, times, failures, inputs; the word last; how a map ends
on a terminal; colours; places among one's own sessions; old ones that go."""
import os
import pty
import re
import subprocess
import time

from clocks import HOUR, Clocks
from pool import Pool, program, wait_for
from live_output import Grain, Reader

DCS = program("dcs")


def listing(pool):
    began = time.time()
    pool.dcs("map", "--session", "100", "--label", "night", "--", "test", "{}", "-lt", "3", ":::", "1", "2", "3", check=False)
    pool.dcs("map", "--session", "50", "--", "echo", ":::", "a b", "c")
    text = pool.dcs("session", "ls").stdout.decode()
    first, second = (re.search(rf"^ *{n}  .*$", text, re.M).group() for n in (50, 100))
    assert "dcs map --session 50 -- echo ::: 'a b' c" in first and "[night] dcs map --session 100" in second, text
    rows = {row["session"]: row for row in pool.json("session", "ls")["sessions"]}
    assert rows[100]["label"] == "night" and rows[100]["failed"] == 1 and rows[50]["failed"] == 0, rows
    assert rows[100]["command"].startswith("dcs map --session 100 --label night -- test"), rows
    for row in rows.values():
        assert began - 1 <= row["submitted_s"] <= row["settled_s"] <= time.time() + 1, row
    headings = text.splitlines()[0].split()
    assert headings == "SESSION STATE SUBMITTED TIME READY RUNNING FINISHED KILLED STORED COMMAND".split(), headings
    assert re.match(r" *100  terminated  .*\d\d:\d\d  .* 0 +0 +3 \(1 failed\) +0 +\d+\.\d K  \[night\] dcs map ", second), second
    stored = pool.json("session", "ls", "all")["stored"]
    assert [row["user"] for row in stored] == [rows[50]["user"]], stored
    assert stored[0]["sessions_bytes"] == sum(row["stored_bytes"] for row in rows.values()) > 0, (stored, rows)
    assert re.search(rf"^{rows[50]['user']} stores \d.*: \d.* of sessions, \d.* of programs and files$", text, re.M), text
    assert re.search(r"^stored +\d.* on the scheduler's disk$", pool.dcs("session", "show", "50").stdout.decode(), re.M)

    # Numbers that programs name do not move those of commands, which would then take the next programs' numbers.
    assert pool.dcs("map", "--detach", "--", "true", ":::", "1").stdout == b"1\n"
    pool.dcs("session", "wait", "1")
    pool.dcs("session", "close", "1")
    pool.dcs("session", "clean", "1")
    # The last one is the one that was opened last, whatever its number.
    assert pool.json("session", "show")["session"]["session"] == 50
    assert pool.dcs("grain", "cat", "last:1").stdout == b"a b\n"
    shown = pool.dcs("session", "show", "100").stdout.decode()
    assert re.search(r"^label +night$", shown, re.M) and re.search(r"^grains .*3 finished \(1 failed\)", shown, re.M), shown
    assert "opened last" in pool.dcs("session", "ls", "--help").stdout.decode()

    items = pool.dcs("grain", "ls", "50").stdout.decode()
    assert re.search(r"^ *50:1  finished .*  a b$", items, re.M) and re.search(r"^ *50:2  finished .*  c$", items, re.M), items
    show = pool.dcs("grain", "show", "50:1").stdout.decode()
    assert re.search(r"^command +/\S*/echo 'a b'$", show, re.M), show  # as a shell takes it
    failed = pool.dcs("grain", "ls", "100", "--state", "failed").stdout.decode()
    assert re.search(r"^ *100:3  failed .*  3$", failed, re.M), failed
    for words in (("100", "--failed"), ("100",), ("100:1-3",)):  # for programs, too, whatever was asked for
        rows = {row["grain"]: row for row in pool.json("grain", "ls", *words)["grains"]}
        assert rows[3]["label"] == "3" and rows[3]["argv"] and os.path.isdir(rows[3]["directory"]), (words, rows)
    when(pool)

    pool.dcs("session", "set", "50", "--label", "second")
    assert "[second] dcs map" in pool.dcs("session", "ls").stdout.decode()
    assert pool.json("session", "ls")["sessions"][0]["command"], "the command stays"
    for words, code in ((("set", "50"), 2), (("set", "50", "--nice", "20"), 2), (("set", "50", "--nice", "1"), 1),
                        (("set", "9", "--label", "x"), 3)):
        result = pool.dcs("session", *words, check=False)
        assert result.returncode == code, (words, result)


def when(pool):
    """A grain's times, those of its last run: submitted, started, ended; and for how long it ran."""
    row = pool.json("grain", "show", "100:3")["grain"]
    assert 0 < row["submitted_s"] <= row["started_s"] <= row["ended_s"] <= time.time(), row
    assert abs(row["elapsed_s"] - (row["ended_s"] - row["started_s"])) < 0.01, row
    text = pool.dcs("grain", "show", "100:3").stdout.decode()
    for name in ("submitted", "started", "ended"):
        assert re.search(rf"^{name} +\d+-\d\d-\d\d \d\d:\d\d:\d\d\.\d+$", text, re.M), text
    assert re.search(r"^elapsed +\d", text, re.M), text
    pool.dcs("host", "drain", *(host["name"] for host in pool.json("host", "ls")["hosts"]))
    pool.dcs("map", "--detach", "--session", "101", "--", "true", ":::", "waits")
    row = pool.json("grain", "show", "101:1")["grain"]
    assert row["submitted_s"] > 0 and row["started_s"] is None and row["ended_s"] is None and row["elapsed_s"] == 0, row
    pool.dcs("session", "close", "101")
    pool.dcs("session", "clean", "--yes", "101")
    pool.dcs("host", "undrain", *(host["name"] for host in pool.json("host", "ls")["hosts"]))


def survives(pool):
    before = pool.json("session", "ls")["sessions"]
    pool.kill("scheduler", "scheduler")
    pool.up()
    assert pool.json("session", "ls")["sessions"] == before, "a restart of the scheduler changes a session's row"


def terminal(pool, *words, **variables):
    ours, theirs = pty.openpty()
    process = pool.start([DCS, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    output = Reader(ours)
    wait_for("the end", lambda: output.more() is not None and process.poll() is not None, timeout=120)
    output.more(0.2)
    os.close(ours)
    return output.text


def ends_well(pool):
    text = terminal(pool, "map", "--progress", "bar", "--", "sh", "-c", "exit $1", "sh", "{}", ":::", "0", "0", "5", "0")
    last = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    bar = next(i for i, line in enumerate(last) if re.search(r"\[#+\]  4/4  1 failed\x1b\[K$", line))  # it stays
    assert re.match(r"dcs map: 4 grains in .*, 1 failed; .* of CPU; session \d+, `dcs session cat \d+` prints", last[bar + 1]), last
    assert re.match(r"dcs map: 1 of 4 grains failed \(exit code \d+\); `dcs grain ls \d+ --state failed` lists them", last[bar + 2]), last


def colours(pool):
    pool.env["TERM"] = "xterm"
    pool.env.pop("NO_COLOR", None)
    assert "\033[31mfailed" in terminal(pool, "grain", "ls", "100")
    assert "\033[" not in terminal(pool, "grain", "ls", "100", "--color", "never")
    pool.env["NO_COLOR"] = "1"
    assert "\033[" not in terminal(pool, "grain", "ls", "100")
    assert "\033[31mfailed" in terminal(pool, "grain", "ls", "100", "--color=always")
    del pool.env["NO_COLOR"]
    assert b"\033[" not in pool.dcs("grain", "ls", "100").stdout
    assert b"\033[31mfailed" in pool.dcs("grain", "ls", "100", "--color", "always").stdout


def places(pool):
    """One slot. What is nice lets later sessions go first; so it is from the beginning, and when it is set later."""
    for how in ("--nice", "set"):
        grain = Grain(pool, "nice" + how)
        line = ["sh", "-c", "echo a$1 >>order; until [ -e go ]; do sleep 0.05; done", "sh", "{}", ":::", "1", "2", "3"]
        first = grain.start("map", "--detach", *(["--nice", "5"] if how == "--nice" else []), "--", *line)
        old = first.communicate(timeout=120)[0].decode().strip()
        order = os.path.join(grain.directory, "order")
        wait_for("the first grain", lambda: os.path.exists(order), timeout=120)
        second = grain.start("map", "--detach", "--", "sh", "-c", "echo b >>order", ":::", "x")
        new = second.communicate(timeout=120)[0].decode().strip()
        if how == "set":
            pool.dcs("session", "set", old, "--nice", "1")
        assert {row["session"]: row["nice"] for row in pool.json("session", "ls", old, new)["sessions"]} == {
            int(old): 5 if how == "--nice" else 1, int(new): 0}
        grain.go()
        pool.dcs("session", "wait", old, new)
        # At the end of a time slice b may even take the place of a1, which then runs again.
        assert list(dict.fromkeys(open(order).read().split())) == ["a1", "b", "a2", "a3"], (how, open(order).read())
        pool.dcs("session", "close", old, new)


def ages_are_by_the_scheduler(pool):
    """By its clock, not by that of the host where the command is typed; and by its clock only while that is steady."""
    def clean(check=True):
        return pool.dcs("session", "clean", "--older", "30d", check=check)

    if not Clocks.exist:
        return
    sessions = pool.json("session", "ls")["sessions"]
    assert any(row["state"] == "terminated" for row in sessions), sessions
    clocks, env = Clocks(pool.base), dict(pool.env)
    pool.env.update(clocks.variables("client"))
    clocks.set("client", 400 * 24 * HOUR)
    assert clean().stdout == b""
    pool.stop_scheduler()
    pool.env = dict(env, **clocks.variables("scheduler"))
    pool.up()
    pool.env = env
    assert clean().stdout == b""
    clocks.set("scheduler", 400 * 24 * HOUR)
    refused = clean(check=False)
    assert refused.returncode != 0 and b"put forward by about 400 days" in refused.stderr, refused
    clocks.set("scheduler", 0)
    assert pool.json("session", "ls")["sessions"] == sessions
    pool.stop_scheduler()
    pool.up()


def old_ones_go(pool):
    count = len(pool.json("session", "ls")["sessions"])
    assert pool.dcs("session", "clean", "--older", "30d").stdout == b""
    assert len(pool.json("session", "ls")["sessions"]) == count
    bare = pool.dcs("session", "clean", "--older", "30", check=False)
    assert bare.returncode == 2 and b"--older 30d is in days" in bare.stderr, bare
    grain = Grain(pool, "old")
    number = grain.start("map", "--detach", "--", "true", ":::", "1").communicate(timeout=120)[0].decode().strip()
    pool.dcs("session", "wait", number)
    waits = grain.start("map", "--detach", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done", ":::", "1")
    busy = int(waits.communicate(timeout=120)[0])
    time.sleep(2.1)
    removed = pool.dcs("session", "clean", "--older", "1s").stdout.decode()
    assert f"session {number} removed" in removed and "session 100 removed" in removed, removed
    assert [row["session"] for row in pool.json("session", "ls")["sessions"]] == [busy], "what has work stays"
    grain.go()
    pool.dcs("session", "wait", str(busy))
    assert pool.dcs("session", "clean", check=False).returncode == 2


def main():
    with Pool(1, 1, 10.0) as pool:
        listing(pool)
        survives(pool)
        ends_well(pool)
        colours(pool)
        places(pool)
        ages_are_by_the_scheduler(pool)
        old_ones_go(pool)
    print("7 passed, 0 failed")


if __name__ == "__main__":
    main()
