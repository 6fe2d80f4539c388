#!/usr/bin/python3
"""Submissions by sbatch that end in the middle: killed before or after the scheduler took them, refused after a part of an array, without
an answer, interrupted, or while another program takes the number of their session. Each job is known and runs once, or it is not there."""
import contextlib
import os
import re
import signal
import sqlite3
import sys

from facade import LIBEXEC, Facade
from hurry import Hurry
from pool import Pool, ROOT, wait_for

# A command whose call of the pool, or whose look at the held jobs, goes as the test wants it.
HOOKED = """
import os, signal, sqlite3, subprocess, sys
sys.path.insert(0, {python!r})
sys.argv = sys.argv[1:]
import dcs.pool, dcs.session
from dcs.errors import error_of
from dcs.jobs import command, holding
submit, free, release, once = dcs.session.Session.submit_many, dcs.pool.Pool.free_number, holding.release, []
def kill_after(self, grains): submit(self, grains); os.kill(os.getpid(), 9)
def kill_before(self, grains): os.kill(os.getpid(), 9)
def no_answer(self, grains): submit(self, grains); raise error_of(2, "D_E_BROKEN", "no answer", "")
def refused(self, grains):
    submit(self, grains[:2])
    error = error_of(18, "D_E_LIMIT", "no more", "")
    error.taken = 2
    raise error
def taken(self, *words):
    number = free(self, *words)
    if not once: once.append(subprocess.run(["dcs", "run", "--", "true"], check=True))
    return number
def full_disk(registry):
    if not once: once.append(1); raise sqlite3.OperationalError("database or disk is full")
    return release(registry)
if {hook} is taken: dcs.pool.Pool.free_number = taken
elif {hook} is full_disk: holding.release = full_disk
else: dcs.session.Session.submit_many = {hook}
sys.exit(command.main(sys.argv))
"""


def hooked(slurm, hook, command, *words, code=0):
    path = os.path.join(slurm.folder, command) if command != "jobs" else os.path.join(LIBEXEC, "jobs")
    return slurm.run(sys.executable, "-c", HOOKED.format(python=os.path.join(ROOT, "libdcs/python"), hook=hook), path, *words, code=code)


def registry(slurm, query, *values):
    with contextlib.closing(sqlite3.connect(os.path.join(slurm.pool.dir, "jobs/jobs.db"), timeout=300)) as db, db:
        return db.execute(query, values).fetchall()


def newest(slurm):
    return registry(slurm, "select max(number) from job")[0][0]


def over(slurm, job, wanted="COMPLETED"):
    slurm.until(f"{wanted} of job {job}", lambda: set(slurm.run("sacct", "-nPX", "-j", str(job), "-o", "State").split("\n")) == {wanted})


def other_work(slurm, gate):
    """That began later than what was submitted: new jobs go into another session."""
    slurm.pool.dcs("run", "--detach", "--cwd", slurm.work, "--", "sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done")


def killed(slurm):
    for hook in ("kill_after", "kill_before"):
        hooked(slurm, hook, "sbatch", "-J", hook, "--wrap", f"echo $SLURM_JOB_ID >>{hook}; while [ ! -e on ]; do sleep 0.1; done", code=-signal.SIGKILL)
        job = newest(slurm)
        other_work(slurm, "on")
        slurm.until("the job to run", lambda: slurm.run("squeue", "-h", "-o", "%i %j %T").split("\n") == [f"{job} {hook} RUNNING"])
        slurm.write("on", "")
        over(slurm, job)
        assert slurm.run("sbatch", "--parsable", "--wait", "--wrap", "true") == str(job + 1)
        assert slurm.read(hook) == f"{job}\n", slurm.read(hook)
        os.unlink(os.path.join(slurm.work, "on"))


def cancelled(slurm):
    hooked(slurm, "kill_after", "sbatch", "--wrap", "sleep 1000", code=-signal.SIGKILL)
    ((job, session),) = registry(slurm, "select number, session from job where number = ?", newest(slurm))
    slurm.run("scancel", str(job))
    over(slurm, job, "CANCELLED")
    assert slurm.pool.json("grain", "show", f"{session}:{job}")["grain"]["state"] == "killed"


def without_an_answer(slurm):
    job = hooked(slurm, "no_answer", "sbatch", "--parsable", "--wrap", "echo >>answered")
    over(slurm, job)
    assert slurm.read("answered") == "\n"


def refused_in_the_middle(slurm):
    before = newest(slurm)
    hooked(slurm, "refused", "sbatch", "-a", "1-5", "--wrap", "sleep 1000", code=1)
    assert "no more" in slurm.said and slurm.run("squeue", "-h") == "" and newest(slurm) == before, slurm.said
    sessions = [s for s in slurm.pool.json("session", "ls")["sessions"] if s["ident"] == "dcs-jobs" and s["state"] == "active"]
    assert sessions and not any(s["ready"] + s["running"] for s in sessions), sessions
    assert int(slurm.run("sbatch", "--parsable", "--wait", "--wrap", "true")) > before + 2  # those numbers are used


def number_taken(slurm):
    other_work(slurm, "end")
    job = hooked(slurm, "taken", "sbatch", "--parsable", "--wrap", "echo >>taken")
    over(slurm, job)
    slurm.write("end", "")
    assert slurm.read("taken") == "\n"


def held(slurm):
    """Neither a full disk nor a damaged job keeps the others from their start."""
    damaged, good = (slurm.run("sbatch", "--parsable", "--begin=now+1", "--wrap", "true") for _ in range(2))
    (keeper,) = wait_for("the keeper", slurm.keeper)
    os.kill(keeper, signal.SIGKILL)
    wait_for("the end of the keeper", lambda: not slurm.keeper())
    registry(slurm, "update job set state = 'held', session = 0 where number in (?, ?)", damaged, good)
    registry(slurm, "delete from batch where leader = ?", damaged)
    hooked(slurm, "full_disk", "jobs", "keep")
    over(slurm, good)
    assert registry(slurm, "select state from job where number = ?", damaged) == [("ended",)]


def ends(slurm):
    """A job whose end is not known has not succeeded, and one that a limit ended has nothing written but to its own files."""
    job = slurm.run("sbatch", "--parsable", "--wait", "--wrap", "true")
    registry(slurm, "update job set state = 'sent', session = 99999 where number = ?", job)
    look = f"import sys; sys.path.insert(0, {os.path.join(ROOT, 'libdcs/python')!r}); from dcs.jobs.registry import Registry; " \
           "from dcs.jobs.slurm import worst; r = Registry(); sys.exit(worst(r.wait(r.of_word(sys.argv[1]))))"
    slurm.run(sys.executable, "-c", look, job, code=1)
    slurm.write("other", "")
    job = slurm.run("sbatch", "--parsable", "-t", "0:1", "-e", "planted", "--wrap", "rm planted; ln -s other planted; sleep 1000")
    over(slurm, job, "TIMEOUT")
    assert slurm.read("other") == ""


# It imports itself long enough for Ctrl-C; what is imported, or called, then says so.
IMPORTED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('imported')\ndef main(argv): return 7\n"
STARTED = """
import os, signal, sys
sys.path.insert(0, {python!r})
from dcs.jobs import command
command.look_for_scheduler = lambda *_: os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.exit(command.main(["sbatch"]))
"""


def interrupted(slurm):
    """By Ctrl-C, while it still imports modules or at once after that: it ends without a traceback. An ignored one stays ignored."""
    for path in ("dcs/__init__.py", "dcs/jobs/__init__.py", "dcs/jobs/command.py"):
        os.makedirs(os.path.dirname(os.path.join(slurm.work, path)), exist_ok=True)
        slurm.write(path, IMPORTED if path.endswith("command.py") else "")
    with open(os.path.join(LIBEXEC, "jobs")) as file:
        text, count = re.subn(r'(?<=__file__\)\), )"[^"]*"', repr(slurm.work), file.read())
    assert count == 1, text
    command = slurm.write("sbatch", text)
    assert slurm.run("/usr/bin/python3", "-IS", command, code=-signal.SIGINT) == slurm.said == ""
    assert slurm.run("/bin/sh", "-c", 'trap "" INT; exec /usr/bin/python3 -IS "$0"', command, code=7) == "imported"
    assert slurm.run("/usr/bin/python3", "-c", STARTED.format(python=os.path.join(ROOT, "libdcs/python")), code=130) == slurm.said == ""


def main():
    with Pool(servers=2, slots=2, interval=0.5) as pool, Hurry(pool):
        slurm = Facade(pool, "slurm")
        slurm.run("sbatch", "--wait", "--wrap", "true")
        for part in (killed, cancelled, without_an_answer, refused_in_the_middle, number_taken, held, ends, interrupted):
            part(slurm)
            print(f"{part.__name__}: seen", flush=True)
    print("submissions that are cut off leave no job unknown, and none twice")


if __name__ == "__main__":
    main()
