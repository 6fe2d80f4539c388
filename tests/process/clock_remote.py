"""The clock of a host from which control programs call. A program there, connected over TLS, works on while its wall clock, or that of
the scheduler, is set by an hour and by ten years, and while its host sleeps for an hour. When the connection breaks in between, an
hour changes nothing. Ten years do: all certificates are of another time then. The program waits, and goes on when the clock is
right; one that begins meanwhile ends and says why. Exit code 77: no clocks that can be set in this build."""
import collections
import os
import re
import signal
import subprocess
import sys

from clock_steps import BAD_TIME, LONG, PATIENT, PROGRAM
from clocks import HOUR, STEPS, YEARS, Clocks
from hurry import Hurry
from pool import BIN, ROOT, program, wait_for
from remote_peer import RemotePool, sealed


class FarPool(RemotePool):
    def __init__(self):
        self.clocks, self.process = None, None
        super().__init__()
        self.journal, self.enough = os.path.join(self.base, "journal"), os.path.join(self.base, "enough")
        self.out, self.said = os.path.join(self.base, "program.out"), os.path.join(self.base, "program.log")
        self.env.update(PYTHONPATH=os.path.join(ROOT, "libdcs/python"), DCS_PATIENCE_S="600",
                        DCS_LIBRARY=os.path.join(os.path.dirname(BIN), "lib/libdcs.so"))

    def table(self, *hosts, sources=None):
        with open(os.path.join(self.directory, "hosts"), "w") as file:
            file.writelines(f"{host} class=0x1 slots=2 {PATIENT}\n" for host in hosts)
            file.write(self.sources if sources is None else sources)

    def start(self, name, what, *arguments):
        self.clocks = self.clocks or Clocks(self.base)
        with open(os.path.join(self.base, name + ".log"), "a") as log:
            self.running[name] = subprocess.Popen([program(what), *arguments], stderr=log,
                                                  env=dict(self.env, **self.clocks.variables(name)))

    # ---- the program on desk1 ---------------------------------------------------------------
    def run_again(self):
        """As its user does: by dcs_begin, which asks for a token and a certificate."""
        credentials = self.begin("desk1", "ann", "steady")
        fd = sealed(credentials.data())
        environment = dict(self.env, DCS_AUTH_FD=str(fd), **self.clocks.variables("desk1"))
        environment.pop("DCS_DIR")
        with open(self.out, "wb") as out, open(self.said, "wb") as err:
            self.process = subprocess.Popen([sys.executable, "-B", "-c", PROGRAM, self.journal, self.enough], stdout=out, stderr=err,
                                            env=environment, cwd="/", pass_fds=[fd])
        os.close(fd)
        self.programs.append(self.process)

    def results(self):
        with open(self.out) as file:
            return len(file.read().splitlines())

    def work_goes_on(self, count=3):
        before = self.results()
        def more():
            assert self.process.poll() is None, self.text("program.log")
            return self.results() >= before + count
        wait_for(f"{count} results after {before}", more, LONG)

    def break_the_line(self):
        self.stop("scheduler", signal.SIGKILL)
        self.start_scheduler()

    def clean_end(self):
        open(self.enough, "w").close()
        assert self.process.wait(timeout=LONG) == 0, self.text("program.log")
        with open(self.out) as file:
            taken = [int(line) for line in file]
        assert sorted(taken) == list(range(1, len(taken) + 1)), taken
        runs = collections.Counter(open(self.journal).read().split())
        assert sorted(map(int, runs)) == sorted(taken)
        again = {grain: count for grain, count in runs.items() if count > 1}
        assert not again, f"grains ran again: {again}"
        sessions = [s for s in self.json("session", "ls", "all")["sessions"] if s["ident"] == "steady"]
        assert len(sessions) == 1 and sessions[0]["state"] != "active", sessions
        return len(taken)


def form(pool):
    pool.join("h1")
    pool.start_server("h1")
    pool.wait_active("h1")
    pool.join_client("desk1")
    pool.run_again()
    pool.work_goes_on()


def steps_while_connected(pool):
    for who in ("desk1", "scheduler"):
        for seconds in STEPS:
            pool.clocks.set(who, seconds)
            pool.work_goes_on()
            pool.clocks.set(who, 0)
            pool.work_goes_on(2)


def an_hour_off_and_a_broken_line(pool):
    for who in ("desk1", "scheduler"):
        for seconds in (HOUR, -HOUR):
            pool.clocks.set(who, seconds)
            pool.break_the_line()
            pool.work_goes_on()
            pool.clocks.set(who, 0)
            pool.work_goes_on(2)


def ten_years_off_and_a_broken_line(pool):
    for who in ("desk1", "scheduler"):
        for seconds in (YEARS, -YEARS):
            fresh = pool.begin("desk1", "ann", "dcs")  # its certificate is of the right time
            pool.clocks.set(who, seconds)
            pool.break_the_line()
            before = pool.results()
            another = pool.run(fresh, "session", "ls", check=False, env=pool.clocks.variables("desk1"))
            assert another.returncode != 0 and re.search(BAD_TIME, another.stderr), (who, seconds, another)
            print(f"  {who} {seconds // (365 * 24 * HOUR):+d} years: {another.stderr.splitlines()[0]}", flush=True)
            assert pool.process.poll() is None and pool.results() == before
            pool.clocks.set(who, 0)
            pool.work_goes_on()


def an_hour_asleep(pool):
    os.kill(pool.process.pid, signal.SIGSTOP)
    pool.clocks.set("desk1", HOUR, HOUR)
    os.kill(pool.process.pid, signal.SIGCONT)
    pool.work_goes_on()
    pool.break_the_line()
    pool.work_goes_on()


def main():
    if not Clocks.exist:
        print("SKIPPED: this build has no clocks that can be set")
        return 77
    with FarPool() as pool, Hurry(pool):
        for part in (form, steps_while_connected, an_hour_off_and_a_broken_line, ten_years_off_and_a_broken_line, an_hour_asleep):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)
        print(f"{pool.clean_end()} grains, each ran once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
