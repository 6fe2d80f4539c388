#!/usr/bin/python3
"""What another user gains from the commands of other batch systems and from the Python package: no file of the caller by a link or
a pipe in a directory that both may write, and no terminal by words of a host."""
import os
import stat
import subprocess
import sys

from facade import Facade
from pool import ROOT, Pool, wait_for

HOSTILE = "\x1b]0;mine\x07 \u202e \x9b31m \udcff"
WORDS = f"""
import sys
sys.path.insert(0, {os.path.join(ROOT, 'libdcs/python')!r})
from dcs.errors import CannotRun
from dcs.jobs.words import say
hostile = {HOSTILE!r}
error = CannotRun(15, "D_E_CANNOT_RUN", "on h2: " + hostile, "see the hosts\\nand wait")
assert error.text.endswith(hostile)  # for programs, as it came
say("sbatch", hostile)
raise error
"""


def words_of_hosts_drive_no_terminal():
    done = subprocess.run([sys.executable, "-B", "-c", WORDS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "CannotRun: on h2: ?]0;mine? ? ?31m ? (see the hosts\nand wait)" in done.stderr, done
    assert "sbatch: ?]0;mine? ? ?31m ?\n" in done.stderr and not any(c in done.stderr for c in "\x1b\x07\u202e\x9b"), done


def cancelled(slurm, replace):
    """A job whose output, once it runs, another user replaces by something else."""
    out = os.path.join(slurm.work, "shared-out")
    job = slurm.run("sbatch", "--parsable", "-o", out, "--wrap", "echo begun; sleep 1000")
    slurm.until("the job", lambda: os.path.exists(out) and stat.S_ISREG(os.stat(out).st_mode) and slurm.read("shared-out"))
    os.unlink(out)
    replace(out)
    slurm.run("scancel", job)
    slurm.until("its end", lambda: slurm.run("sacct", "-nPX", "-j", job, "-o", "State") == "CANCELLED")
    os.path.lexists(out) and os.unlink(out)


def scancel_writes_to_the_output_of_the_job_only(slurm):
    own = slurm.write("of-the-caller", "as it was\n")
    for replace in (lambda out: os.symlink(own, out), lambda out: os.link(own, out)):
        cancelled(slurm, replace)
        assert slurm.read("of-the-caller") == "as it was\n", slurm.read("of-the-caller")
    cancelled(slurm, os.mkfifo)  # no process reads it: to open it would wait for ever
    job = slurm.run("sbatch", "--parsable", "-o", "plain-out", "--wrap", "echo begun; sleep 1000")
    slurm.until("the job", lambda: slurm.exists("plain-out") and slurm.read("plain-out"))
    slurm.run("scancel", job)
    wait_for("the words of scancel", lambda: f"JOB {job} ON" in slurm.read("plain-out"))


def the_words_of_a_limit_go_to_no_other_file(slurm):
    """A job that its limit ended before it wrote: squeue says so in its file, which another user may have made a link by then."""
    own = slurm.write("beyond-the-limit", "as it was\n")
    out = os.path.join(slurm.work, "limit-out")
    job = slurm.run("sbatch", "--parsable", "-o", out, "-t", "0:05", "--wrap", "echo begun; sleep 1000")
    slurm.until("the job", lambda: os.path.exists(out) and slurm.read("limit-out"))
    os.unlink(out)
    os.symlink(own, out)
    slurm.until("its end", lambda: slurm.run("sacct", "-nPX", "-j", job, "-o", "State") == "TIMEOUT")
    assert slurm.read("beyond-the-limit") == "as it was\n", slurm.read("beyond-the-limit")


def main():
    words_of_hosts_drive_no_terminal()
    with Pool(1, 2, 0.5) as pool:
        slurm = Facade(pool, "slurm")
        scancel_writes_to_the_output_of_the_job_only(slurm)
        the_words_of_a_limit_go_to_no_other_file(slurm)


if __name__ == "__main__":
    sys.exit(main())
