#!/usr/bin/python3
"""A program of DRMAA on a host whose scheduler is elsewhere, started by an ordinary login by dcs_begin: killed while its jobs run, with the
scheduler or without, it finds them when it runs again, and each job runs once. Without dcs_begin an error says what to do."""
import os
import sys

from folders import FOLDERS
from hurry import Hurry
from pool import BIN, about, wait_for
from remote_world import Desk, enter

PROGRAM = """
import signal, sys
signal.alarm(600)
from drmaa_library import ANY, Library
library = Library()
print(library.init("nightly"), flush=True)
there = sys.argv[1]
print(*library.bulk(1, 3, 1, remote_command="sh", wd="/", v_argv=["-c",
      f"echo run >>{there}/runs; while [ ! -e {there}/go$SGE_TASK_ID ]; do sleep 0.1; done; exit $SGE_TASK_ID"]), flush=True)
for _ in range(3):
    print(*library.wait(ANY)[:2], flush=True)
library.exit()
"""


class Night:
    def __init__(self, desk):
        self.desk, self.there = desk, os.path.join(desk.world.base, "night")
        os.mkdir(self.there)
        self.program = os.path.join(desk.world.base, "nightly.py")
        with open(self.program, "w") as file:
            file.write(PROGRAM)
        self.env = {"PYTHONPATH": ":".join(FOLDERS), "PYTHONDONTWRITEBYTECODE": "1", "DCS_BIN": BIN}

    def start(self, *by):
        return self.desk.popen("ann", *by, "/usr/bin/python3", self.program, self.there, env=self.env)

    def go(self, number):
        open(os.path.join(self.there, f"go{number}"), "w").close()

    def runs(self):
        with open(os.path.join(self.there, "runs")) as file:
            return file.read().count("run")


def killed(night, with_scheduler):
    first = night.start("dcs_begin")
    said = [first.stdout.readline() for _ in range(2)]
    night.go(2)
    said.append(first.stdout.readline())
    first.kill()
    first.communicate()
    if with_scheduler:
        night.desk.pool.stop("scheduler", 9)
        night.desk.pool.start_scheduler()
    again = night.start("dcs_begin")
    assert [again.stdout.readline() for _ in range(3)] == said, (said, again.communicate())
    night.go(3)
    said.append(again.stdout.readline())
    night.go(1)
    said.append(again.stdout.readline())
    assert again.communicate(timeout=300)[0] == "" and again.returncode == 0
    session = said[1].split(":")[0]
    assert said[0] == "nightly\n" and said[1].split() == [f"{session}:{n}" for n in (1, 2, 3)], said
    assert [line.split()[0].split(":")[1] for line in said[2:]] == ["2", "3", "1"], said
    assert [line.split()[-1] for line in said[2:]] == ["2)", "3)", "1)"], said
    assert night.runs() == 3, "each job ran once"
    rows = night.desk.run("ann", "dcs", "grain", "ls", session, "-o", "json").stdout
    assert rows.count('"state":"finished"') == 3, rows
    for name in ("go1", "go2", "go3", "runs"):
        os.unlink(os.path.join(night.there, name))
    return session


def main():
    arguments = enter(__file__)
    if arguments is None:
        return 77
    with Desk() as desk, Hurry(desk.pool):
        desk.pool.table("h1", "h2")
        with open(os.path.join(desk.pool.directory, "hosts")) as file:
            hosts = file.read()
        with open(os.path.join(desk.pool.directory, "hosts"), "w") as file:
            file.write(hosts.replace("slots=1", "slots=3"))
        desk.pool.dcs("reload")
        desk.join()
        wait_for("its slots", lambda: desk.pool.host("h1")["slots"] == 3)
        night = Night(desk)
        _, said = (child := night.start("/usr/bin/env")).communicate(timeout=300)
        assert child.returncode != 0 and about(said, "dcs_begin"), said
        first = killed(night, False)
        assert killed(night, True) != first, "a program that reached drmaa_exit begins anew"
    print("programs of DRMAA on another host find their jobs again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
