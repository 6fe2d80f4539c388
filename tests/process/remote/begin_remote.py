#!/usr/bin/python3
"""Control programs of another host with the real dcs_begin, setgid, and real accounts: `dcs` starts itself by it and
does what it does elsewhere; who is not of the group, or may not call from there, does not get in."""
import os
import re
import signal
import sys

from hurry import Hurry
from pool import tells, wait_for
from remote_world import Desk, DeskPool, enter


def the_host_joins(desk):
    result = desk.run("ann", "dcs", "session", "ls", check=False)
    assert result.returncode == 5 and "no scheduler answers" in result.stderr, result  # a host without a pool
    joined = desk.join()
    assert tells(joined.stdout, "host desk1 joined pool"), joined
    for path, mode in (("/etc/dcs", 0o755), ("/etc/dcs/pool.conf", 0o644), ("/etc/dcs/pki/key.pem", 0o600 if desk.world.old else 0o640)):
        st = os.stat(path)
        assert st.st_mode & 0o777 == mode and st.st_uid == 0, (path, oct(st.st_mode))
    assert desk.pool.proxy.address in open("/etc/dcs/pool.conf").read()
    key = open("/etc/dcs/pki/key.pem").read()
    desk.join()  # again, with the same key
    assert open("/etc/dcs/pki/key.pem").read() == key


def dcs_runs_itself(desk):
    assert desk.run("ann", "dcs", "run", "--", "/bin/echo", "hello").stdout == "hello\n"
    inputs = "".join(f"{i}\n" for i in range(10))
    out = desk.run("ann", "dcs", "map", "--", "/bin/sh", "-c", "echo x{}", data=inputs).stdout
    assert out.splitlines() == [f"x{i}" for i in range(10)], out
    big = "0123456789" * 300_000
    assert desk.run("ann", "dcs", "run", "--", "/bin/cat", data=big).stdout == big
    rows = re.findall(r'"user":"(\w+)"', desk.run("ann", "dcs", "session", "ls", "-o", "json").stdout)
    assert rows and set(rows) == {"ann"}, rows
    assert desk.pool.proxy.address in desk.run("ann", "dcs", "status").stdout
    result = desk.run("ann", "dcs", "run", "--", "/bin/sh", "-c", "exit 7", check=False)
    assert result.returncode == 7, result  # exit codes pass through both
    # A program of one's own, begun by hand: what it executes has no credentials any more.
    out = desk.run("ann", "dcs_begin", os.path.join(desk.bin, "dcs"), "run", "--", "/bin/echo", "by hand").stdout
    assert out == "by hand\n", out
    result = desk.run("ann", "dcs", "session", "ls", env={"DCS_DIR": "/nowhere"}, check=False)
    assert result.returncode == 5, result  # who names a pool means that one
    desk.pool.logged("scheduler.log", "ann begins control program dcs on host desk1")


def maps_outlive_everything(desk):
    trace = os.path.join(desk.world.base, "trace")
    ran = lambda: open(trace).read().splitlines() if os.path.exists(trace) else []
    words = ("dcs", "map", "--", "/bin/sh", "-c", f"echo {{}} >>{trace}; sleep 0.3; echo result {{}}")
    inputs = "".join(f"{i}\n" for i in range(8))
    first = desk.popen("ann", *words, stdin=-1)
    first.stdin.write(inputs)
    first.stdin.close()
    wait_for("a grain", ran, 240)
    desk.pool.stop("scheduler", signal.SIGKILL)
    first.send_signal(signal.SIGKILL)  # dcs_begin has become dcs: the very process
    first.wait()
    desk.pool.start_scheduler()
    out = desk.run("ann", *words, data=inputs).stdout
    assert out.splitlines() == [f"result {i}" for i in range(8)], out
    assert {int(line) for line in ran()} == set(range(8)) and len(ran()) <= 8 + 3, ran()


def others_do_not_get_in(desk):
    result = desk.run("eve", "dcs", "session", "ls", check=False)
    code, why = 125, "eve is not a member of the group dcs"
    if desk.world.old:  # release 0.1, whose program is for the members of the group alone
        code, why = 4, "dcs_begin is needed to get there: Permission denied"
    assert result.returncode == code and why in result.stderr, result
    desk.world.users(members=("ben", "od+d"))  # ann is taken out of the group, here and there
    result = desk.run("ann", "dcs", "session", "ls", check=False)
    assert result.returncode == 125 and tells(result.stderr, "ann not member group dcs"), result
    desk.world.users()
    desk.pool.options = ("--group", "more")  # a group of the scheduler's own choice, with ann in it and not ben
    desk.pool.stop("scheduler")
    desk.pool.start_scheduler()
    assert desk.run("ann", "dcs", "session", "ls").returncode == 0
    result = desk.run("ben", "dcs", "session", "ls", check=False)
    assert result.returncode == 125 and tells(result.stderr, "ben not member group more scheduler's host"), result
    desk.pool.options = DeskPool.options
    desk.pool.stop("scheduler")
    desk.pool.start_scheduler()
    assert desk.run("ben", "dcs", "session", "ls").returncode == 0
    desk.pool.table("h1", sources="desk1 role=client users=ben\n")
    desk.pool.dcs("reload")
    result = desk.run("ann", "dcs", "session", "ls", check=False)
    assert result.returncode == 125 and tells(result.stderr, "ann may not call host desk1"), result
    desk.pool.table("h1", sources="# none\n")
    desk.pool.dcs("reload")
    result = desk.run("ben", "dcs", "session", "ls", check=False)
    assert result.returncode == 125 and tells(result.stderr, "may not call host desk1"), result


def main():
    if enter(__file__) is None:
        return 77
    with Desk() as desk, Hurry(desk.pool):
        for part in (the_host_joins, dcs_runs_itself, maps_outlive_everything, others_do_not_get_in):
            part(desk)
            print(part.__name__.replace("_", " "), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
