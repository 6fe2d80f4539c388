#!/usr/bin/python3
"""What commands say when the socket of a running scheduler was removed, and of a scheduler whose hosts have worked for a later
epoch. And logs are rotated as OPERATING.md says."""
import fnmatch
import glob
import os
import re
import shutil
import signal
import subprocess
import textwrap

from pool import ROOT, Pool, program, start_time, tells, wait_for


def removed_socket(pool):
    """Status and doctor name the socket, the process to end, and how to start it; that helps."""
    socket = os.path.join(pool.dir, "scheduler/user.sock")
    pid = pool.pid("scheduler", "scheduler")
    os.unlink(socket)
    for command in ("status", "doctor"):
        said = pool.dcs(command, check=False)
        assert said.returncode == 5 and tells(said.stderr, f"socket {socket} was removed end process {pid} dcs up"), said
    os.unlink(os.path.join(pool.dir, "scheduler/server.sock"))  # one that is starting has neither
    said = pool.dcs("status", check=False)
    assert b"removed" not in said.stderr and tells(said.stderr, f"process {pid} may answer later"), said
    os.kill(pid, signal.SIGTERM)
    wait_for("its end", lambda: start_time(pid) is None)
    pool.up()
    assert pool.dcs("run", "--", "echo", "back").stdout == b"back\n"


def slots_that_were_set(pool):
    """`dcs up` tells those that there are."""
    assert tells(pool.up().stdout, "1 grain server of 1 slot")
    pool.dcs("host", "set", "local1", "--slots", "3")
    assert tells(pool.up().stdout, "1 grain server with 3 slots in all dcs host set")
    pool.dcs("host", "set", "local1", "--slots", "1")


def later_epoch(pool):
    """A scheduler that was replaced by a promoted copy says so in its status."""
    assert not pool.json("status")["problems"], pool.json("status")
    pool.down()
    (path,) = glob.glob(os.path.join(pool.dir, "servers/local1/**/configured"), recursive=True)
    text = open(path).read()
    changed = re.sub(r"^(\d+ \d+) \d+", r"\1 1000", text)  # interval, slots, epoch
    assert changed != text, text
    with open(path, "w") as file:
        file.write(changed)
    pool.up(check=False)
    words = "problem host local1: refuses this scheduler epoch 1000 promoted stop this scheduler"
    wait_for("the status to say so", lambda: tells(pool.dcs("status").stdout, words))
    (row,) = pool.json("status")["problems"]
    assert row["entity"] == "host local1" and tells(row["advice"], "stop this scheduler disk not mounted mount"), row
    pool.down()
    with open(path, "w") as file:
        file.write(text)
    pool.up()


def example():
    """Of OPERATING.md: the patterns of files, and the text."""
    page = open(os.path.join(ROOT, "docs/OPERATING.md")).read()
    text = textwrap.dedent(re.search(r"\n((?:    [^\n]*\n)*)\n## 6", page)[1])
    return text[:text.index("{")].split(), text


def logs_of(pool):
    found = [os.path.join(folder, name) for folder, _, names in os.walk(pool.dir) for name in names if name in ("log", "launcher.log")]
    assert len(found) >= 4, found
    return found


def rotate(pool, text):
    """By logrotate, or as it does."""
    if not shutil.which("logrotate") or os.geteuid() != 0:
        for path in logs_of(pool):
            shutil.copy(path, path + ".1")
            os.truncate(path, 0)
        return
    rules = os.path.join(pool.base, "rules")
    with open(rules, "w") as file:
        file.write(re.sub(r"(?m)^ +su .*\n", "", text).replace("/home/ann/.local/state/dcs", pool.dir))
    subprocess.run(["logrotate", "-f", "-s", os.path.join(pool.base, "rotated"), rules], check=True)


def rotated(pool):
    """All logs are named; the daemons go on at the beginning of the files that were truncated."""
    patterns, text = example()
    for path in logs_of(pool):
        names = [p.replace("/home/ann/.local/state/dcs", pool.dir) for p in patterns]
        assert any(fnmatch.fnmatch(path, name) for name in names), (path, names)
    log = os.path.join(pool.dir, "scheduler/log")
    size = os.path.getsize(log)
    assert size > 0
    rotate(pool, text)
    assert os.path.getsize(log + ".1") >= size and os.path.getsize(log) < size
    pool.dcs("log-level", "debug")
    pool.dcs("run", "--", "true")
    wait_for("the log to go on", lambda: os.path.getsize(log) > 0)
    assert b"\0" not in open(log, "rb").read(), "the file has a hole"


def few_files(pool):
    """A scheduler that could open no connection does not start, and says why."""
    line = f"ulimit -n 32; exec {program('dcs_scheduler')} --dir {pool.base}/few --hosts {pool.dir}/scheduler/hosts"
    low = subprocess.run(["/bin/sh", "-c", line], capture_output=True, timeout=300, check=False)
    assert low.returncode != 0 and tells(low.stderr, "may open 32 files 64 are needed raise ulimit -Hn"), low


def main():
    with Pool(1, 1, 1) as pool:
        removed_socket(pool)
        slots_that_were_set(pool)
        later_epoch(pool)
        rotated(pool)
        few_files(pool)
    print("commands name the removed socket and the replaced scheduler, and logs are rotated")


if __name__ == "__main__":
    main()
