#!/usr/bin/python3
"""Toil (Debian's) with `--batchSystem grid_engine` on qsub, qstat, qacct and qdel, under --full: its own cases of that batch system, and a
workflow whose leader is killed and that is restarted."""
import os
import re
import signal
import subprocess
import sys

from facade import Facade
from hurry import Hurry
from pool import FULL, Pool, wait_for

PYTHON = "/usr/bin/python3"
CASES = "/usr/lib/python3/dist-packages/toil/test/batchSystems/batchSystemTest.py"
# Those that fail, and why.
APART = {name: "it sends a script as words with ; and $ in them, which qsub -b y here gives to a shell; Toil itself sends no such words"
         for name in ("test_set_env", "test_set_job_env")}
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


def cases(sge):
    tools = os.path.join(sge.work, "tools")
    os.mkdir(tools)
    with open(os.path.join(tools, "qhost"), "w") as file:  # by which the cases find out that Grid Engine is there
        file.write("#!/bin/sh\n")
    os.chmod(os.path.join(tools, "qhost"), 0o755)
    done = subprocess.run([PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q", "--tb=short", CASES, "-k", "GridEngineBatchSystemTest"],
                          env=dict(sge.env, PATH=f"{tools}:{sge.env['PATH']}", TOIL_GRIDENGINE_PE="smp"), cwd=sge.work, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, timeout=1500)
    seen = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) \S*::GridEngineBatchSystemTest::(\w+)", done.stdout, re.M)
    failed = {name for how, name in seen if how in ("FAILED", "ERROR")}
    for how, name in seen:
        print(f"{name}: {APART.get(name, how.lower())}")
    assert failed == set(APART) and len(seen) > 3, done.stdout[-8000:]
    print(f"{len(seen) - len(failed)} of {len(seen)} cases of toil pass", flush=True)


def start(sge, *words):
    with open(os.path.join(sge.work, "said"), "a") as said:
        return subprocess.Popen([PYTHON, "workflow.py", "--batchSystem", "grid_engine", "--statePollingWait", "1", "--maxLocalJobs", "4", *words, "file:" + os.path.join(sge.work, "store")],
                                env=sge.env, cwd=sge.work, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)


def workflow(sge):
    sge.write("workflow.py", WORKFLOW)
    sge.write("stop", "")
    process = start(sge)
    wait_for("its jobs", lambda: process.poll() is not None or all(sge.exists(f"runs-{n}") for n in range(4)), timeout=300)
    assert process.poll() is None, sge.read("said")
    sge.pool.kill("scheduler", "scheduler")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    sge.pool.up()
    os.unlink(os.path.join(sge.work, "stop"))
    process = start(sge, "--restart")
    assert process.wait(timeout=600) == 0 and "sum 14" in sge.read("said"), sge.read("said")[-8000:]
    print("a workflow whose leader and scheduler were killed: seen", flush=True)


def main():
    if not FULL:
        print("SKIPPED: tests/run --full runs it")
        return 77
    if not os.path.exists(CASES):
        print("SKIPPED: deploy/install-packages --full installs toil")
        return 77
    with Pool(servers=2, slots=2, interval=1) as pool, Hurry(pool):
        sge = Facade(pool, "sge")
        for part in (workflow, cases):
            part(sge)
    return 0


if __name__ == "__main__":
    sys.exit(main())
