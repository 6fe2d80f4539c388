#!/usr/bin/python3
"""What one grain is asked about: its resource usage, its directory and its environment, in `dcs grain show`, in JSON and in
Python; and the umask, which is its submitter's."""
import os
import re
import signal
import stat
import subprocess
import sys

from pool import ROOT, Pool, lock_holder, tells, wait_for

WORK = "x = bytearray(50 << 20); n = sum(i * i for i in range(100000)); open('made', 'w'); print(n)"


def usage(pool, folder):
    pool.dcs("map", "--cwd", folder, "--env", "COLOUR=blue", "--", sys.executable, "-c", WORK, ":::", "1")
    row = pool.json("grain", "show", "last:1")["grain"]
    assert row["directory"] == folder and "COLOUR=blue" in row["env"] and f"PWD={folder}" in row["env"], row
    assert row["max_rss_kb"] > 50 << 10 and row["user_s"] > 0 and row["minor_faults"] > 0, row
    assert abs(row["user_s"] + row["system_s"] - row["cpu_s"]) < 1e-5, row
    assert row.pop("uid") == os.getuid(), row
    listed = pool.json("grain", "ls", "last")["grains"][0]
    assert listed["max_rss_kb"] == row["max_rss_kb"] and listed["env"] == row["env"] and listed["directory"] == row["directory"], listed
    text = pool.dcs("grain", "show", "last:1").stdout.decode()
    assert re.search(r"^usage .* in user mode, .* in the kernel; at most \d+\.\d M resident; ", text, re.M), text
    assert re.search(rf"^account +uid {os.getuid()} on {row['host']}$", text, re.M), text
    assert re.search(rf"^directory +{folder}$", text, re.M) and "COLOUR=" not in text, text
    assert "  COLOUR=blue\n" in pool.dcs("grain", "show", "last:1", "--env").stdout.decode()
    code = f"import dcs; r = dcs.grain_row({row['session']}, 1); print(r.directory, 'COLOUR=blue' in r.env, r.max_rss_kb)"
    env = dict(pool.env, PYTHONPATH=os.path.join(ROOT, "libdcs/python"))
    said = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, check=True, timeout=120).stdout.decode()
    assert said == f"{folder} True {row['max_rss_kb']}\n", said
    alone(pool, row["session"])
    return row


def alone(pool, session):
    """A session of one grain names it, but not where a grain loses something; one of several does not."""
    for verb in "show", "cat", "explain":
        assert pool.dcs("grain", verb, "last").stdout == pool.dcs("grain", verb, f"{session}:1").stdout, verb
    for verb, name in ("kill", "last"), ("restart", str(session)), ("show", "all"):
        refused = pool.dcs("grain", verb, name, check=False)
        assert refused.returncode == 2 and tells(refused.stderr.decode(), f"{name} does not name a grain"), refused


def kept(pool, row):
    """All of it is recorded."""
    pool.kill("scheduler", "scheduler")
    pool.up()
    assert pool.json("grain", "show", "last:1")["grain"] == {**row, "uid": None}  # its host has not told it again


def many(pool, folder):
    """More than one question asks about: in the list each has what it has alone."""
    pool.dcs("map", "--new", "--cwd", folder, "--env", "COLOUR=red", "--", "true", ":::", *map(str, range(300)))
    listed = pool.json("grain", "ls", "last")["grains"]
    assert [row["label"] for row in listed] == [str(i) for i in range(300)], listed
    for row in (listed[0], listed[128], listed[129], listed[299]):
        alone = pool.json("grain", "show", f"last:{row['grain']}")["grain"]
        assert row.items() <= alone.items() and "COLOUR=red" in row["env"], (row, alone)
    assert tells(pool.dcs("grain", "show", "last", check=False).stderr.decode(), "last does not name a grain: last:G")
    table = pool.dcs("grain", "ls", "last").stdout.decode().splitlines()
    assert [line.split()[-1] for line in table[1:301]] == [row["label"] for row in listed], table
    pool.dcs("map", "--detach", "--cwd", folder, "--", "true", ":::", *map(str, range(2002)))
    table = pool.dcs("grain", "ls", "last").stdout.decode().splitlines()
    assert [line.split()[-1] for line in table[1:2003]] == [*map(str, range(2000)), "-", "-"], table[1990:]
    assert "items of the first 2000 grains; -o json has all" in table, table[2000:]


def umasks(pool, folder):
    made = os.path.join(folder, "made")
    for mask in (0o022, 0o002, 0o077, 0o027):
        for words in (("run", "--cwd", folder, "--"), ("map", "--new", "--cwd", folder, "--")):
            if os.path.exists(made):
                os.unlink(made)
            out = subprocess.run([os.path.join(pool.bin, "dcs"), *words, "sh", "-c", "umask; >made"], env=pool.env, umask=mask,
                                 input=b"x\n", stdout=subprocess.PIPE, check=True, timeout=120).stdout
            assert int(out, 8) == mask and stat.S_IMODE(os.stat(made).st_mode) == 0o666 & ~mask, (words, oct(mask), out)
    out = pool.dcs("run", "--env", "DCS_UMASK=0007", "--", "sh", "-c", "umask").stdout
    assert int(out, 8) == 0o007, out
    out = pool.dcs("run", "--env", "DCS_UMASK=what", "--", "sh", "-c", "umask").stdout
    assert int(out, 8) == 0o077, out


def drained(pool, row):
    """The grains of a host, and why it is drained, which is kept."""
    host = row["host"]
    every = pool.json("grain", "ls", "all")["grains"]
    assert pool.json("grain", "ls", "--host", host)["grains"] == every and every
    assert pool.json("grain", "ls", "--host", host, "--state", "running")["grains"] == []
    unknown = pool.dcs("grain", "ls", "--host", "nowhere", check=False)
    assert unknown.returncode == 3 and b"there is no host nowhere" in unknown.stderr, unknown
    pool.dcs("host", "drain", host, "--reason", "new disk on Friday")
    pool.kill("scheduler", "scheduler")
    pool.up()
    pool.dcs("map", "--detach", "--session", "900", "--", "true", ":::", "1")
    assert "drained (new disk on Friday)" in pool.dcs("host", "ls").stdout.decode()
    assert re.search(r"^drained +new disk on Friday$", pool.dcs("host", "show", host).stdout.decode(), re.M)
    assert "is drained and starts no new grains: new disk on Friday" in pool.dcs("grain", "explain", "900:1").stdout.decode()
    assert pool.json("grain", "ls", "--host", host)["grains"] == every  # 900:1 is nowhere
    pool.dcs("host", "undrain", host)
    pool.dcs("session", "wait", "900")
    assert pool.json("host", "show", host)["host"]["drain_reason"] == ""


def ending(pool, host):
    """A killed grain whose processes have not ended, since its launcher does not come to it, is shown with its host."""
    def row():
        return pool.json("host", "ls", host)["hosts"][0]
    session = pool.dcs("run", "--detach", "--", "sleep", "1000").stdout.decode().split()[0]
    wait_for("the grain to run", lambda: row()["running"] == 1)
    wait_for("its process", lambda: pool.grain_processes(host))
    assert row()["ending"] == 0 and "ENDING" not in pool.dcs("host", "ls").stdout.decode()
    launcher = lock_holder(os.path.join(pool.dir, "servers", host, "launcher.lock"))
    os.kill(launcher, signal.SIGSTOP)
    try:
        pool.dcs("session", "close", session)
        shown = wait_for("the grain to be ending", lambda: row()["ending"] and row())
        assert shown["running"] == 0 and shown["ending"] == 1, shown
        head, line, *_ = pool.dcs("host", "ls").stdout.decode().splitlines()
        assert head.split()[-1] == "ENDING" and line.split()[-1] == "1", (head, line)
        assert "0 running, 1 ending" in pool.dcs("host", "ls").stdout.decode()
        assert "0 running, 1 killed and still ending" in pool.dcs("host", "show", host).stdout.decode()
    finally:
        os.kill(launcher, signal.SIGCONT)
    wait_for("its end", lambda: row()["ending"] == 0)


def main():
    with Pool(servers=1) as pool:
        folder = os.path.join(pool.base, "work")
        os.mkdir(folder)
        row = usage(pool, folder)
        kept(pool, row)
        drained(pool, row)
        ending(pool, row["host"])
        many(pool, folder)
        umasks(pool, folder)
    print("a grain's usage, directory, environment and umask: as it was submitted, and kept")


if __name__ == "__main__":
    main()
