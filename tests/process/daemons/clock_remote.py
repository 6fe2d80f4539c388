#!/usr/bin/python3
"""Clocks that are set, for control programs of another host than the scheduler's: its wall clock, and theirs, jump by
an hour and by ten years, forth and back. Connections that stand go on, whatever the clocks say. A process that has to
connect again is judged by certificates, so an hour changes nothing, and with years no process is believed: both sides say
why, a program that worked for the pool before waits as for a scheduler that is away (a blocking wait for ever, other
calls for their patience), one that begins now fails at once. When the clock is right again it goes on: no session
ends, nothing runs twice, nothing is missing. The clocks are the processes' own (stepped_clock.c). Exit code 77: no
such clocks in this build."""
import os
import re
import signal
import subprocess
import sys

from clock_steps import BAD_TIME, LONG, PATIENT, PROGRAM, ran_once
from clocks import HOUR, STEPS, YEARS, Clocks
from hurry import Hurry
from pool import BIN, FULL, ROOT, bin_directory, program, wait_for
from remote_peer import RemotePool, sealed

DAYS = 48 * HOUR  # a program's certificate has expired by then, a scheduler's not
ISSUED = "issued to control program ann/desk1/steady"
SMALL, LARGE = (HOUR, -HOUR), (YEARS, -YEARS)
HASTY = r"""
import sys
import dcs
for line in sys.stdin:
    try:
        print("known", sorted(row.ident for row in dcs.sessions()), flush=True)
    except dcs.Error as error:
        print(type(error).__name__, error, flush=True)
"""


class DeskPool(RemotePool):
    """Of RemotePool, whose hosts' clocks can be set; hosts are patient."""

    def __init__(self, plant=""):
        self.plant, self.clocks, self.bin = {"DCS_PLANTED": plant} if plant else {}, None, None
        super().__init__()
        self.journal, self.enough = os.path.join(self.base, "journal"), os.path.join(self.base, "enough")

    def table(self, *hosts, sources=None):
        super().table(sources=sources)
        with open(os.path.join(self.directory, "hosts"), "a") as file:
            file.writelines(f"{host} class=0x1 slots=2 {PATIENT}\n" for host in hosts)

    def start(self, name, what, *arguments):
        """The test builds, in which bugs can be planted."""
        if self.bin is None:
            self.clocks = Clocks(self.base)
            self.bin = bin_directory(os.path.join(self.base, "bin"), ("dcs_scheduler",))
        env = dict(self.env, **self.clocks.variables(name), **self.plant)
        with open(os.path.join(self.base, name + ".log"), "a") as log:
            self.running[name] = subprocess.Popen([os.path.join(self.bin, what), *arguments], stderr=log, env=env)

    def popen(self, ident, *words, name="program", patience=600, **more):
        """A control program of desk1, by that host's clock."""
        credentials = self.begin("desk1", "ann", ident)
        fd = sealed(credentials.data())
        env = dict(self.env, **self.clocks.variables("program"), **self.plant, DCS_AUTH_FD=str(fd),
                   DCS_PATIENCE_S=str(patience), PYTHONPATH=os.path.join(ROOT, "libdcs/python"), HOME=self.base,
                   DCS_LIBRARY=os.path.join(BIN, "../tests/planted/libdcs.so"))
        for variable in ("DCS_DIR", "XDG_STATE_HOME"):
            env.pop(variable, None)
        with open(os.path.join(self.base, name + ".log"), "ab") as log:
            process = subprocess.Popen(words, env=env, pass_fds=[fd], stderr=log, cwd="/", **more)
        os.close(fd)
        self.programs.append(process)
        return process

    def restart_scheduler(self, seconds=0):
        self.stop("scheduler", signal.SIGKILL)
        self.clocks.set("scheduler", seconds)
        self.start_scheduler()

    # ---- the programs -----------------------------------------------------------------------
    def begin_work(self):
        out = os.path.join(self.base, "steady.out")
        with open(out, "wb") as file:
            words = [sys.executable, "-B", "-c", PROGRAM, self.journal, self.enough]
            self.steady = self.popen("steady", *words, stdout=file)
        self.hasty = self.popen("hasty", sys.executable, "-B", "-c", HASTY, name="hasty", patience=6, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def results(self):
        assert self.steady.poll() is None, self.text("program.log")
        return len(self.text("steady.out").splitlines())

    def work_goes_on(self, count=3):
        before = self.results()
        wait_for(f"{count} results after {before}", lambda: self.results() >= before + count, LONG)

    def ask(self):
        """Another program, that gives up soon: what it gets to know, or why not."""
        self.hasty.stdin.write("?\n")
        self.hasty.stdin.flush()
        return self.hasty.stdout.readline()

    def known(self):
        said = self.ask()
        assert said.startswith("known [") and "'steady'" in said, (said, self.text("hasty.log"))

    def connections(self):
        """Of the steady program, as the kernel numbers them."""
        found = set()
        for fd in os.listdir(f"/proc/{self.steady.pid}/fd"):
            try:
                found.add(os.readlink(f"/proc/{self.steady.pid}/fd/{fd}"))
            except FileNotFoundError:
                pass
        return {name for name in found if name.startswith("socket:")}

    def end(self):
        open(self.enough, "w").close()
        assert self.steady.wait(timeout=LONG) == 0, self.text("program.log")
        count = ran_once(self, [int(line) for line in self.text("steady.out").split()])
        self.hasty.stdin.close()
        assert self.hasty.wait(timeout=LONG) == 0
        return count


def form(pool):
    for name in ("h1", "h2"):
        pool.join(name)
        pool.start_server(name)
    pool.wait_active("h1", "h2")
    pool.join_client("desk1")
    pool.begin_work()
    pool.work_goes_on()
    pool.known()


def connections_that_stand_go_on(pool):
    before = pool.connections()
    assert before
    for who in ("program", "scheduler"):
        for seconds in STEPS:
            pool.clocks.set(who, seconds)
            pool.work_goes_on()
            pool.known()
            assert before <= pool.connections(), (who, seconds, before, pool.connections())
            pool.clocks.set(who, 0)
            pool.work_goes_on(1)


def a_wait_that_stands_is_not_left(pool):
    """Its certificate seems to have expired, and no new one is to be had, repeatedly. As soon as one is, by a clock
    that is off by less, it waits on with that."""
    hold = pool.journal + ".hold"
    pool.clocks.set("program", YEARS)
    pool.work_goes_on()
    open(hold, "w").close()
    wait_for("all grains to be held", lambda: len(pool.text("journal").splitlines()) == pool.results() + 4, LONG)
    before, refusals = pool.connections(), pool.text("scheduler.log").count("the peer refuses our certificate")
    wait_for("the program to ask for a certificate beside it", lambda: pool.text("scheduler.log").count(
        "the peer refuses our certificate") > refusals, LONG)
    assert before <= pool.connections(), (before, pool.connections())
    issued = pool.text("scheduler.log").count(ISSUED)
    pool.clocks.set("program", 10 * HOUR)
    wait_for("a new certificate", lambda: pool.text("scheduler.log").count(ISSUED) > issued, LONG)
    wait_for("another connection with it", lambda: not before <= pool.connections(), LONG)
    os.unlink(hold)
    pool.work_goes_on()
    pool.clocks.set("program", 0)
    pool.work_goes_on()


def who_begins_is_told(pool):
    """An hour off: nothing is different. Years: at once, and not after its patience."""
    for seconds in STEPS:
        pool.clocks.set("program", seconds)
        process = pool.popen("new", program("dcs"), "session", "ls", name="new", text=True, stdout=subprocess.PIPE)
        out, _ = process.communicate(timeout=LONG)
        said = pool.text("new.log")
        if seconds in SMALL:
            assert process.returncode == 0 and "  active  " in out, (out, said)
        else:
            assert process.returncode == 5 and re.search(BAD_TIME, said), (process.returncode, said)
        os.unlink(os.path.join(pool.base, "new.log"))
    pool.clocks.set("program", 0)


def an_hour_off_connects_anew(pool):
    for who in ("program", "scheduler"):
        for seconds in SMALL:
            pool.clocks.set(who, seconds)
            pool.proxy.cut()
            pool.work_goes_on()
            pool.known()
            pool.restart_scheduler(seconds if who == "scheduler" else 0)
            pool.work_goes_on()
            pool.known()
            pool.clocks.set(who, 0)
            pool.work_goes_on(1)


def not_believed(pool, why, what):
    """A waiting process keeps waiting; the hasty one prints the refusal, and the scheduler's log has it too."""
    before = len(pool.text("scheduler.log"))
    pool.proxy.cut()
    said = pool.ask()
    assert said.startswith(("Unreachable", "Broken")) and re.search(why, said), said
    wait_for("the scheduler to say whom it refuses", lambda: re.search(what, pool.text("scheduler.log")[before:]), LONG)
    assert pool.steady.poll() is None, pool.text("program.log")


def set_clock(pool, who, seconds):
    before = len(pool.text("scheduler.log"))
    pool.clocks.set(who, seconds)
    if who == "scheduler":
        wait_for("the scheduler to certify itself by its new clock", lambda: "own certificate was renewed" in
                 pool.text("scheduler.log")[before:], LONG)


def years_off_waits(pool):
    """A program does not believe the scheduler, whosever clock is wrong."""
    for who in ("program", "scheduler"):
        for seconds in LARGE:
            set_clock(pool, who, seconds)
            not_believed(pool, BAD_TIME, "the peer refuses our certificate")
            set_clock(pool, who, 0)
            pool.work_goes_on()
            pool.known()
            print(f"  {who} {seconds // (365 * 24 * HOUR):+d} years", flush=True)
    pool.wait_active("h1", "h2")


def days_off_waits(pool):
    """The scheduler's own certificate is good for both; it holds the program's for one that has expired."""
    pool.clocks.set("scheduler", DAYS)
    not_believed(pool, r"the scheduler refuses our certificate: it has expired \(or a clock is wrong\)",
                 "ann/desk1/hasty expired on")
    pool.clocks.set("scheduler", 0)
    pool.work_goes_on()
    pool.known()


PARTS = [connections_that_stand_go_on, who_begins_is_told, an_hour_off_connects_anew, years_off_waits, days_off_waits]
PLANTS = {"turn.end_by_wall_clock": connections_that_stand_go_on, "client.rejected_for_time": days_off_waits}
if FULL:  # it takes minutes: a program asks for a certificate once in a minute
    PARTS.append(a_wait_that_stands_is_not_left)
    PLANTS["client.leave_to_renew"] = a_wait_that_stands_is_not_left


def what_is_found(pool):
    try:
        PLANTS[pool.plant["DCS_PLANTED"]](pool)
    except AssertionError as error:
        return str(error).strip().splitlines()[-1][:200]
    return None


def drill(plant=""):
    global LONG
    LONG = 20 if plant else LONG  # where nothing comes any more the planted bug is found
    with DeskPool(plant) as pool, Hurry(pool):
        form(pool)
        if plant:
            return what_is_found(pool)
        for part in PARTS:
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)
        return pool.end()


def main():
    if not Clocks.exist:
        print("SKIPPED: this build has no clocks that can be set")
        return 77
    print(f"{drill()} grains, each ran once", flush=True)
    missed = 0
    for plant in PLANTS:
        found = drill(plant)
        missed += not found
        print(f"{plant}: {found or 'NOT FOUND'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
