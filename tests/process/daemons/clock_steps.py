"""Clocks that are set, and hosts that sleep: the wall clock of the scheduler, the backup, a grain server with its launcher, and a
control program jumps by an hour and by ten years, forth and back, while they are connected and over a restart, and an hour passes
in which a daemon is suspended. No process is given up, nothing runs twice, no session ends, no process has to join again. The clocks are
the processes' own (stepped_clock.c); no process sets the machine's. Exit code 77: no such clocks in this build.

Ten years off, a daemon that has to connect again fails on the validity of certificates, as it should, and says so; when its clock
is right again it comes back, by itself or started by its service."""
import collections
import os
import re
import signal
import subprocess
import sys

from backup_remote import BackupPool
from clocks import HOUR, STEPS, YEARS, Clocks
from hurry import Hurry
from pool import BIN, FULL, bin_directory, grain_directories, lock_holder, program, wait_for

LONG = 600  # s for whatever is waited for, on however busy a machine
PATIENT = "interval=0.5 alert=300 limit=600 extended=1200"  # less than the hour, more than any test
GIVEN_UP = "is dead: it was silent for its limit"
BAD_TIME = r"is not valid before|not valid yet|expired"  # what is said about a certificate
PROGRAM = r"""
import os
import sys
import dcs
journal, enough = sys.argv[1:]
with dcs.Session("steady") as session:
    submitted = taken = 0
    while True:
        while submitted - taken < 4 and not os.path.exists(enough):
            submitted += 1
            session.submit(submitted, ["/bin/sh", "-c", 'echo "$0" >>"$1"; while test -e "$1.hold"; do sleep 0.1; done; '
                                       'sleep 0.1; echo "out $0"', str(submitted), journal])
        if submitted == taken:
            break
        result = session.wait().check()
        assert result.output == b"out %d\n" % result.grain, result
        taken += 1
        print(result.grain, flush=True)
"""


def ran_once(pool, taken):
    """The program's grains, by the results that it took: each ran once, and its one session came to its end."""
    assert sorted(taken) == list(range(1, len(taken) + 1)), taken
    runs = collections.Counter(pool.text("journal").split())
    assert sorted(map(int, runs)) == sorted(taken)
    again = {grain: count for grain, count in runs.items() if count > 1}
    assert not again, f"grains ran again, so their host was given up: {again}"
    sessions = [s for s in pool.json("session", "ls", "all")["sessions"] if s["ident"] == "steady"]
    assert len(sessions) == 1 and sessions[0]["state"] != "active", sessions
    return len(taken)


class ClockPool(BackupPool):
    def __init__(self, plant=""):
        self.plant, self.bin, self.clocks = plant, BIN, None
        super().__init__()
        self.journal, self.enough = os.path.join(self.base, "journal"), os.path.join(self.base, "enough")
        self.out = os.path.join(self.base, "program.out")

    def table(self, *hosts):
        with open(os.path.join(self.directory, "hosts"), "w") as file:
            file.write(self.backup_line)
            file.writelines(f"{host} class=0x1 slots=2 {PATIENT}\n" for host in hosts)

    def start(self, name, what, *arguments):
        self.clocks = self.clocks or Clocks(self.base)
        if self.plant and self.bin == BIN:
            self.bin = bin_directory(os.path.join(self.base, "bin"), ("dcs_scheduler",))
        env = dict(self.env, **self.clocks.variables(name), **({"DCS_PLANTED": self.plant} if self.plant else {}))
        with open(os.path.join(self.base, name + ".log"), "a") as log:
            self.running[name] = subprocess.Popen([os.path.join(self.bin, what), *arguments], stderr=log, env=env)

    def start_anew(self, name):
        {"scheduler": self.start_scheduler, "backup": self.start_backup}.get(name, lambda: self.start_server(name))()

    def restart(self, name):
        self.stop(name, signal.SIGKILL)
        self.start_anew(name)

    # ---- the program ------------------------------------------------------------------------
    def begin(self):
        with open(self.out, "wb") as out, open(os.path.join(self.base, "program.log"), "wb") as err:
            self.children.append(subprocess.Popen([sys.executable, "-B", "-c", PROGRAM, self.journal, self.enough], stdout=out,
                                                  stderr=err, env=dict(self.env, **self.clocks.variables("program")), cwd="/"))

    def results(self):
        assert self.children[0].poll() is None, self.text("program.log")
        with open(self.out) as file:
            return len(file.read().splitlines())

    def work_goes_on(self, count=3):
        before = self.results()
        wait_for(f"{count} results after {before}", lambda: self.results() >= before + count, LONG)

    def another_program(self):
        """That one begins is when the scheduler looks who is old."""
        done = subprocess.run([program("dcs"), "map", "--new", "--", "/bin/echo", "hello", "{}"], input="1\n", text=True, timeout=LONG,
                              capture_output=True, env=dict(self.env, **self.clocks.variables("program")), cwd="/")
        assert (done.returncode, done.stdout) == (0, "hello 1\n"), done

    def end(self):
        open(self.enough, "w").close()
        process = self.children[0]
        assert process.wait(timeout=LONG) == 0, self.text("program.log")
        with open(self.out) as file:
            return ran_once(self, [int(line) for line in file])


def form(pool):
    pool.list_backup()
    line = pool.dcs("token", "create", "--role", "backup", "--host", "bk").stdout.split()
    pool.dcs(*line[1:3], pool.proxy.address, *line[4:], "--dir", os.path.join(pool.base, "backup"))
    pool.start_backup()
    for name in ("h1", "h2"):
        pool.join(name)
        pool.start_server(name)
    pool.wait_active("h1", "h2")
    for name in ("h1", "h2"):
        pool.logged(f"{name}.log", "the passive backup is bk")
    pool.begin()
    pool.work_goes_on()


def steps_while_connected(pool):
    for who in ("scheduler", "backup", "h1", "program"):
        for seconds in STEPS:
            pool.clocks.set(who, seconds)
            pool.another_program()
            pool.work_goes_on()
            pool.clocks.set(who, 0)
            pool.another_program()
            pool.work_goes_on(2)


def lose_scheduler(pool):
    """Killed while its hosts have something to report, which goes to the backup."""
    def reports():
        return (pool.backup() or {}).get("reports", 0)

    def held():
        return [entry for name in ("h1", "h2") for entry in grain_directories(os.path.join(pool.base, name))]

    while True:
        pool.stop("scheduler", signal.SIGKILL)
        wait_for("reports at the backup", lambda: reports() or not held(), LONG)
        if reports():
            return
        pool.start_scheduler()  # what ran had just been reported
        pool.work_goes_on(1)


def restarts_an_hour_off(pool):
    for seconds in (HOUR, -HOUR):
        for who in ("scheduler", "h1", "backup"):
            pool.clocks.set(who, seconds)
            pool.restart(who)
            pool.work_goes_on()
            pool.wait_active("h1", "h2")
        # All three are; the servers find the backup, and it hands over.
        lose_scheduler(pool)
        pool.start_scheduler()
        pool.work_goes_on()
        for who in ("scheduler", "h1", "backup"):
            pool.clocks.set(who, 0)
        pool.work_goes_on()


def said(pool, name, before):
    wait_for(f"{name} to say why it cannot", lambda: re.search(BAD_TIME, pool.text(name + ".log")[before:]), LONG)


def restarts_ten_years_off(pool):
    for seconds in (YEARS, -YEARS):
        for who in ("scheduler", "h1", "backup"):
            before = len(pool.text(who + ".log"))
            if who == "scheduler":
                lose_scheduler(pool)
            else:
                pool.stop(who, signal.SIGKILL)
            pool.clocks.set(who, seconds)
            pool.start_anew(who)
            said(pool, who, before)
            if who == "scheduler":  # for its hosts it is away still
                assert (pool.backup() or {}).get("reports", 0) > 0
            else:  # its own certificate does not count either, so it does not start
                assert pool.running[who].wait(timeout=LONG) == 1
                pool.work_goes_on()
            pool.clocks.set(who, 0)
            if who != "scheduler":
                pool.start_anew(who)  # as its service does
            wait_for(f"{who} to be back", lambda: all((pool.host(h) or {}).get("connected") for h in ("h1", "h2")), LONG)
            wait_for("the backup to be back", lambda: (pool.backup() or {}).get("scheduler"), LONG)
            pool.work_goes_on()
            print(f"  {who} {seconds // (365 * 24 * HOUR):+d} years", flush=True)


def an_hour_passes(pool, hosts=("scheduler", "backup", "h1")):
    for who in hosts:
        pids = [pool.running[who].pid] + [lock_holder(os.path.join(pool.base, who, "launcher.lock"))] * (who == "h1")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        pool.clocks.set(who, HOUR, HOUR)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        if who == "scheduler":
            pool.logged("scheduler.log", "the scheduler stood still for ")
        pool.work_goes_on()
        pool.clocks.set(who, 0)  # right for all others
        pool.work_goes_on()


def an_hour_of_silence(pool):
    """The scheduler is suspended for an hour while its hosts say nothing: when it looks again it has heard nothing of them, and it
    is to blame. Each step waits for what the one before it must have brought about, so it is the same on every machine."""
    hold, servers = pool.journal + ".hold", [pool.running[name].pid for name in ("h1", "h2")]
    open(hold, "w").close()
    wait_for("all grains to be held", lambda: len(pool.text("journal").splitlines()) == pool.results() + 4, LONG)
    try:
        for pid in servers:
            os.kill(pid, signal.SIGSTOP)
        # What they had said is heard before the pause, as nothing but that can make the silence longer than their interval.
        wait_for("the silence", lambda: all(pool.host(name)["last_call_in_s"] >= 2 for name in ("h1", "h2")), LONG)
        os.kill(pool.running["scheduler"].pid, signal.SIGSTOP)
        pool.clocks.set("scheduler", HOUR, HOUR)
        os.kill(pool.running["scheduler"].pid, signal.SIGCONT)
        if pool.plant:
            pool.logged("scheduler.log", GIVEN_UP)
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)
    os.unlink(hold)
    pool.clocks.set("scheduler", 0)
    pool.work_goes_on()
    assert GIVEN_UP not in pool.text("scheduler.log"), "hosts were given up for the scheduler's own pause"


def what_is_found(pool):
    try:
        an_hour_of_silence(pool)
    except AssertionError as error:
        return str(error) if "were given up" in str(error) else None
    return None


def drill(plant=""):
    with ClockPool(plant) as pool, Hurry(pool):
        form(pool)
        if plant:
            return what_is_found(pool)
        identity = os.path.join(pool.base, "h1/pki/certificate.pem")
        before = open(identity).read()
        for part in (steps_while_connected, restarts_an_hour_off, restarts_ten_years_off, an_hour_passes):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)
        assert open(identity).read() == before, "the host got another certificate"
        return pool.end()


def main():
    if not Clocks.exist:
        print("SKIPPED: this build has no clocks that can be set")
        return 77
    print(f"{drill()} grains, each ran once", flush=True)
    if not FULL:
        return 0
    found = drill("turn.no_grace")
    print(f"a scheduler without grace after a pause: {found or 'NOT FOUND'}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
