#!/usr/bin/python3
"""Toil (Debian's) on the commands of Grid Engine and on those of Slurm, under --full: its own cases of these batch systems, and a workflow
whose leader is killed and that is restarted."""
import os
import re
import signal
import subprocess
import sys

from cases import counted
from facade import Facade
from hurry import Hurry
from pool import FULL, Pool, wait_for

PYTHON = "/usr/bin/python3"
CASES = "/usr/lib/python3/dist-packages/toil/test/batchSystems/batchSystemTest.py"
# Those that fail, and why.
APART = {"slurm": {}, "sge": {name: "it sends a script as words with ; and $ in them, which qsub -b y here gives to a shell; Toil itself sends no such words"
         for name in ("test_set_env", "test_set_job_env")}}
SYSTEMS = {"sge": "grid_engine", "slurm": "slurm"}
CLASSES = {"sge": "GridEngineBatchSystemTest", "slurm": "SlurmBatchSystemTest"}
WORKFLOW = """
import os, time
from toil.common import Toil
from toil.job import Job

class Square(Job):
    def __init__(self, n):
        super().__init__(memory="300M", cores=1, disk="10M")
        self.n = n

    def run(self, store):
        with open(os.path.join(WORK, f"runs-{self.n}"), "a") as file:
            file.write("run\\n")
        while os.path.exists(os.path.join(WORK, "stop")):
            time.sleep(0.2)
        return self.n ** 2

class Sum(Job):
    def __init__(self, parts):
        super().__init__(memory="300M", cores=1, disk="10M")
        self.parts = parts

    def run(self, store):
        return sum(self.parts)

class All(Job):
    def __init__(self):
        super().__init__(memory="300M", cores=1, disk="10M")

    def run(self, store):
        parts = [self.addChild(Square(n)) for n in range(4)]
        return self.addFollowOn(Sum([part.rv() for part in parts])).rv()

WORK = os.path.dirname(os.path.abspath(__file__))
if __name__ == "__main__":
    options = Job.Runner.getDefaultArgumentParser().parse_args()
    options.disableAutoDeployment = False
    with Toil(options) as toil:
        print("sum", toil.restart() if options.restart else toil.start(All()))
"""


def cases(jobs):
    tools = os.path.join(jobs.work, "tools")
    os.mkdir(tools)
    with open(os.path.join(tools, "qhost"), "w") as file:  # by which the cases find out that Grid Engine is there
        file.write("#!/bin/sh\n")
    os.chmod(os.path.join(tools, "qhost"), 0o755)
    name, apart = CLASSES[jobs.kind], APART[jobs.kind]
    done = subprocess.run([PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q", "--tb=short", CASES, "-k", name],
                          env=dict(jobs.env, PATH=f"{tools}:{jobs.env['PATH']}", TOIL_GRIDENGINE_PE="smp"), cwd=jobs.work, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, timeout=1500)
    seen = re.findall(rf"^(PASSED|FAILED|ERROR|SKIPPED) \S*::{name}::(\w+)", done.stdout, re.M)
    failed = {case for how, case in seen if how in ("FAILED", "ERROR")}
    for how, case in seen:
        print(f"{case}: {apart.get(case, how.lower())}")
    assert failed == set(apart) and len(seen) > 3, done.stdout[-8000:]
    assert counted(f"toil on the commands of {jobs.kind}") == (len(seen) - len(failed), len(seen))
    print(f"{len(seen) - len(failed)} of {len(seen)} cases of toil pass", flush=True)


def start(jobs, *words):
    with open(os.path.join(jobs.work, "said"), "a") as said:
        return subprocess.Popen([PYTHON, "workflow.py", "--batchSystem", SYSTEMS[jobs.kind], "--statePollingWait", "1", "--maxLocalJobs", "4", *words, "file:" + os.path.join(jobs.work, "store")],
                                env=jobs.env, cwd=jobs.work, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)


def workflow(jobs):
    jobs.write("workflow.py", WORKFLOW)
    jobs.write("stop", "")
    process = start(jobs)
    wait_for("its jobs", lambda: process.poll() is not None or all(jobs.exists(f"runs-{n}") for n in range(4)), timeout=300)
    assert process.poll() is None, jobs.read("said")
    jobs.pool.kill("scheduler", "scheduler")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    jobs.pool.up()
    os.unlink(os.path.join(jobs.work, "stop"))
    process = start(jobs, "--restart")
    assert process.wait(timeout=600) == 0 and "sum 14" in jobs.read("said"), jobs.read("said")[-8000:]
    print("a workflow whose leader and scheduler were killed: seen", flush=True)


def main():
    if not FULL:
        print("SKIPPED: tests/run --full runs it")
        return 77
    if not os.path.exists(CASES):
        print("SKIPPED: deploy/install-packages --full installs toil")
        return 77
    with Pool(servers=2, slots=2, interval=1) as pool, Hurry(pool):
        for kind in SYSTEMS:
            for part in (workflow, cases):
                part(Facade(pool, kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
