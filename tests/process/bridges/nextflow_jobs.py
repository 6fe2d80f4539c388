#!/usr/bin/python3
"""The commands that Nextflow calls with `executor = 'slurm'` and `'sge'`, word by word, with its lines of options, and its reading of
what they print (SlurmExecutor, SgeExecutor and GridTaskHandler of its sources; Nextflow itself is not in Debian): tasks that
succeed, fail, exceed a limit, are cancelled, and a scheduler that is killed."""
import os
import re
import subprocess
import time

from facade import LIBEXEC, Facade
from hurry import Hurry
from pool import Pool

STATES = {"slurm": {"PD": "pending", "R": "running", "CD": "done", "CA": "error", "F": "error", "TO": "error", "NF": "error", "S": "hold"},
          "sge": {"r": "running", "qw": "pending", "hqw": "hold", "Eqw": "error"}}
WRAPPER = """#!/bin/bash
%s
set -e
set -u
on_exit() {
    exit_status=${nxf_main_ret:=$?}
    printf -- $exit_status > %s/.exitcode
    exit $exit_status
}
on_term() {
    set +e
    [[ "${pid:-}" ]] && kill -TERM $pid
}
trap on_exit EXIT
trap on_term TERM INT USR2
trap '' USR1
[[ "${NXF_CHDIR:-}" ]] && cd "$NXF_CHDIR"
cd %s
: > .command.begin
set +e
bash -ue .command.sh > .command.out 2> .command.err &
pid=$!
wait $pid
nxf_main_ret=$?
cat .command.out
"""


class Task:
    def __init__(self, grid, name, script, cpus=1, time="", memory="", queue=""):
        self.grid, self.queue, self.work = grid, queue, os.path.join(grid.work, "work", re.sub(r"\W", "_", name))
        os.makedirs(self.work)
        job = "nf-" + re.sub(r"[ /:@*?\n\t\r]", "_", name)
        log = os.path.join(self.work, ".command.log")
        if grid.kind == "slurm":
            lines = [f"-J {job}", f"-o {log}", "--no-requeue", "--signal B:USR2@30"]
            lines += [f"-c {cpus}"] * (cpus > 1) + [f"-t {time}"] * bool(time) + [f"--mem {memory}"] * bool(memory) + [f"-p {queue}"] * bool(queue)
        else:
            lines = [f"-wd {self.work}", f"-N {job}", f"-o {log}", "-j y", "-terse", "-notify"] + [f"-q {queue}"] * bool(queue)
            lines += [f"-l slots={cpus}"] * (cpus > 1) + [f"-l h_rt={time}"] * bool(time) + [f"-l h_rss={memory},mem_free={memory}"] * bool(memory)
        token = {"slurm": "#SBATCH ", "sge": "#$ "}[grid.kind]
        for file, text in ((".command.run", WRAPPER % ("\n".join(token + line for line in lines), self.work, self.work)), (".command.sh", script)):
            with open(os.path.join(self.work, file), "w") as stream:
                stream.write(text)
        self.job = grid.submit(self)

    def read(self, name):
        with open(os.path.join(self.work, name)) as file:
            return file.read()

    def exit(self):
        """The status in .exitcode, or the queue's word when there is none and none comes."""
        def written():
            return os.path.exists(os.path.join(self.work, ".exitcode")) and self.read(".exitcode")

        def look():
            if written():
                return written()
            state = self.grid.queue(self.queue).get(self.job)
            return None if state in ("pending", "running", "hold") else written() or state or "gone"
        return self.grid.until(f"the end of job {self.job}", look)


class Grid(Facade):
    def __init__(self, pool, kind):
        super().__init__(pool, kind)
        self.env["PATH"] = f"{LIBEXEC}/{kind}:{pool.env['PATH']}"

    def both(self, *words, cwd=None):
        """Standard output and error together, as Nextflow reads them."""
        done = subprocess.run(words, cwd=cwd or self.work, env=dict(self.env, PWD=cwd or self.work), text=True, timeout=300, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def submit(self, task):
        words = ["sbatch", ".command.run"] if self.kind == "slurm" else ["qsub", "-terse", ".command.run"]
        code, text = self.both(*words, cwd=task.work)
        assert code == 0, text
        if self.kind == "slurm":
            return next(found[1] for found in (re.search(r"Submitted batch job (\d+)", line) for line in text.splitlines()) if found)
        last = text.strip().splitlines()[-1].strip()
        assert last.isdigit(), text
        return last

    def queue(self, queue=""):
        words = ["squeue", "--noheader", "-o", "%i %t", "-t", "all"] if self.kind == "slurm" else ["qstat"]
        words += [{"slurm": "-p", "sge": "-q"}[self.kind], queue] * bool(queue) + ["-u", "root"] * (self.kind == "slurm")
        words = [self.pool.user if word == "root" else word for word in words]
        code, text = self.both(*words)
        assert code == 0, text  # it would take the job for active
        if self.kind == "slurm":
            rows = [line.split() for line in text.splitlines()]
            return {row[0]: STATES["slurm"].get(row[1]) for row in rows if len(row) == 2}
        rows = [line.split() for line in text.splitlines()[2:]]
        return {row[0]: STATES["sge"].get(row[4]) for row in rows if len(row) > 5}

    def kill(self, *jobs):
        return self.both({"slurm": "scancel", "sge": "qdel"}[self.kind], *jobs)[0]


def tasks(grid):
    good = [Task(grid, f"align (sample {n})", f"echo {n} $((n * 2))".replace("n *", f"{n} *"), cpus=1 + n % 2, time="01:00:00", memory="200M",
                 queue="long" if n == 2 else "") for n in range(4)]
    bad = Task(grid, "bad (1)", "echo so not >&2; exit 3")
    assert [task.exit() for task in good] == ["0"] * 4 and bad.exit() == "3", (bad.exit(), bad.read(".command.log"), bad.read(".command.run"))
    for n, task in enumerate(good):
        grid.until("the log", lambda: task.read(".command.log"))
        assert task.read(".command.out") == task.read(".command.log") == f"{n} {n * 2}\n"
    assert bad.read(".command.err") == "so not\n"
    session = max(row["session"] for row in grid.pool.json("session", "ls")["sessions"])  # each home directory has its own
    row = grid.pool.json("grain", "show", f"{session}:{good[1].job}")["grain"]
    assert (row["cores"], row["memory_mb"], row["wall_s"]) == (2, 200, 3600), row


def ended(grid):
    """Over its time; cancelled while it waits and while it runs; and one that runs on while the scheduler is away."""
    late = Task(grid, "late", "sleep 1000", time="00:00:02")
    assert late.exit() in ("error", "gone", "152", "143", "140"), late.exit()
    blockers = [Task(grid, f"long {n}", "while [ ! -e go ]; do sleep 0.1; done; echo on") for n in range(4)]
    for task in blockers:
        grid.until("its beginning", lambda: os.path.exists(os.path.join(task.work, ".command.begin")))
    waits = Task(grid, "waits", "echo never")
    wanted = {waits.job: "pending", **{task.job: "running" for task in blockers}}
    grid.until("one that waits for four that run", lambda: wanted.items() <= grid.queue().items())
    assert grid.kill(waits.job, blockers[0].job) == 0
    over = {"slurm": "error", "sge": None}[grid.kind]  # qstat does not show what is over
    grid.until("their ends", lambda: {grid.queue().get(job) for job in (waits.job, blockers[0].job)} == {over})
    assert not os.path.exists(os.path.join(waits.work, ".command.begin")), "it ran"
    assert blockers[0].exit() in ("143", over or "gone"), blockers[0].exit()  # 143 if its shell had the time to write it
    grid.pool.kill("scheduler", "scheduler")
    for task in blockers[1:]:
        with open(os.path.join(task.work, "go"), "w"):
            pass
    time.sleep(1)
    grid.pool.up()
    assert [task.exit() for task in blockers[1:]] == ["0"] * 3 and [task.read(".command.out") for task in blockers[1:]] == ["on\n"] * 3


def main():
    with Pool(servers=2, slots=2, interval=1) as pool, Hurry(pool):
        import pwd
        pool.user = pwd.getpwuid(os.geteuid()).pw_name
        for kind in ("slurm", "sge"):
            grid = Grid(pool, kind)
            for part in (tasks, ended):
                part(grid)
                print(f"{kind}: {part.__name__}: seen", flush=True)
    print("Nextflow's commands do what it expects of a cluster's")


if __name__ == "__main__":
    main()
