#!/usr/bin/python3
"""Debian's clients of DRMAA, under --full: python3-drmaa, the example programs of gridengine-drmaa-dev, compiled with the drmaa.h of
DCS and with that of Grid Engine, and Snakemake's option --drmaa."""
import gzip
import os
import re
import shutil
import subprocess
import sys

from cases import counted
from drmaa_library import LIBRARY
from hurry import Hurry
from pool import FULL, ROOT, Pool

EXAMPLES = "/usr/share/doc/gridengine-drmaa-dev/examples"
HEADERS = (os.path.join(ROOT, "libdcs/drmaa"), "/usr/lib/gridengine-drmaa/include")
SLEEPER = "#!/bin/sh\necho I sleep $1\nsleep $(($1 / 5))\n"
TOUR = """
import os, sys, time
import drmaa
from drmaa import JobControlAction as Do, JobState, JobTemplate, Session

def refused(error, call, *arguments):
    try:
        call(*arguments)
    except error as found:
        return str(found)
    raise AssertionError((error, call, arguments))

with Session() as s:
    assert s.contact.startswith('session=') and str(s.version) == '1.0'
    assert s.drmsInfo.startswith('DCS') and s.drmaaImplementation.startswith('DCS')
    jt = s.createJobTemplate()
    for name, value in (('remoteCommand', 'sh'), ('jobSubmissionState', drmaa.JobSubmissionState.HOLD_STATE),
                        ('workingDirectory', JobTemplate.HOME_DIRECTORY), ('jobName', 'tour'), ('blockEmail', False), ('joinFiles', True),
                        ('outputPath', ':' + JobTemplate.WORKING_DIRECTORY + '/tour.' + JobTemplate.PARAMETRIC_INDEX),
                        ('nativeSpecification', '-shell yes --cores 1'), ('hardWallclockTimeLimit', None), ('inputPath', ':/dev/null'),
                        ('startTime', '00:00'), ('jobCategory', ''), ('args', ['-c', 'echo $A $SGE_TASK_ID; exit $SGE_TASK_ID']),
                        ('email', ['a@b', 'c@d']), ('jobEnvironment', {'A': 'of the job=', 'PATH': os.environ['PATH']})):
        if value is not None:
            setattr(jt, name, value)
            assert getattr(jt, name) == value, name
    jt.startTime = time.strftime('%Y/%m/%d %H:%M:%S')
    assert {'drmaa_remote_command', 'drmaa_wd'} <= set(jt.attributeNames), jt.attributeNames
    refused(drmaa.InvalidAttributeFormatException, setattr, jt, 'errorPath', 'no-colon')
    refused(drmaa.InvalidArgumentException, setattr, jt, 'transferFiles', 'io')
    jobs = s.runBulkJobs(jt, 1, 3, 2)
    assert [s.jobStatus(job) for job in jobs] == [JobState.USER_ON_HOLD] * 2
    for job in jobs:
        s.control(job, Do.RELEASE)
    s.synchronize(jobs, Session.TIMEOUT_WAIT_FOREVER, False)
    assert [s.jobStatus(job) for job in jobs] == [JobState.FAILED] * 2
    for job, code in zip(jobs, (1, 3)):
        info = s.wait(job)
        assert info.jobId == job and info.hasExited and not info.hasSignal and not info.wasAborted and not info.hasCoreDump
        assert info.exitStatus == code and float(info.resourceUsage['ru_utime']) >= 0, info
        assert open(f'tour.{code}').read() == f'of the job= {code}\\n'
        refused(drmaa.InvalidJobException, s.wait, job)
    jt.delete()
    with s.createJobTemplate() as jt:
        jt.remoteCommand, jt.args = 'sleep', ['1000']
        job = s.runJob(jt)
        refused(drmaa.ExitTimeoutException, s.wait, job, 1)
        refused(drmaa.ExitTimeoutException, s.synchronize, [Session.JOB_IDS_SESSION_ALL], Session.TIMEOUT_NO_WAIT)
        while s.jobStatus(job) != JobState.RUNNING:
            time.sleep(0.1)
        refused(drmaa.SuspendInconsistentStateException, s.control, job, Do.SUSPEND)
        refused(drmaa.HoldInconsistentStateException, s.control, job, Do.HOLD)
        s.control(Session.JOB_IDS_SESSION_ALL, Do.TERMINATE)
        info = s.wait(Session.JOB_IDS_SESSION_ANY)
        assert info.jobId == job and info.hasSignal and info.terminatedSignal == 'SIGKILL' and not info.hasExited
        jt.nativeSpecification = '-q all.q'
        assert '--class' in refused(drmaa.DeniedByDrmException, s.runJob, jt)
    refused(drmaa.AlreadyActiveSessionException, s.initialize)
refused(drmaa.NoActiveSessionException, Session.exit)
refused(drmaa.InvalidContactStringException, Session.initialize, 'session=999')
print('the tour is over')
"""
SNAKEFILE = """
rule all:
    input: "sum.txt"
rule part:
    output: "part/{n}.txt"
    threads: 2
    shell: "echo {wildcards.n} >{output}"
rule sum:
    input: expand("part/{n}.txt", n=range(3))
    output: "sum.txt"
    shell: "cat {input} >{output}"
rule bad:
    output: "bad.txt"
    shell: "echo this is why >&2; exit 3"
"""


class World:
    def __init__(self, pool):
        self.pool, self.work = pool, os.path.join(pool.base, "work")
        os.mkdir(self.work)
        self.env = dict(pool.env, HOME=self.work, PWD=self.work, DRMAA_LIBRARY_PATH=LIBRARY, PATH=self.work + ":/usr/bin:/bin",
                        LD_LIBRARY_PATH=os.path.dirname(LIBRARY))
        for name in ("PYTHONPATH", "PYTHONHOME"):
            self.env.pop(name, None)

    def run(self, *words, code=0):
        done = subprocess.run(words, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=600)
        assert done.returncode == code, (words, done.returncode, done.stdout)
        return done.stdout

    def write(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def read(self, name):
        with open(os.path.join(self.work, name)) as file:
            return file.read()


def python(world):
    assert world.run("/usr/bin/python3", "-c", TOUR) == "the tour is over\n"


def sources():
    for name in sorted(os.listdir(EXAMPLES)):
        if re.fullmatch(r"\w+\.c(\.gz)?", name):
            with (gzip.open if name.endswith(".gz") else open)(os.path.join(EXAMPLES, name), "rt") as file:
                yield name.split(".")[0], file.read()


def said_by(program, said):
    """What a program has to say: the ids of its jobs, and their ends."""
    jobs = re.findall(r'"?(\d+:\d+)"?', said)
    assert program in ("howto1", "howto1_1", "howto6") or jobs, (program, said)
    ended = len(re.findall("finished regularly with exit status 0", said))
    wanted = {"howto1": "started successfully", "howto1_1": "restarted successfully", "howto2": "submitted with id", "howto2_1": "submitted with id",
              "howto3": "finished regularly", "howto3_1": "All job tasks have finished", "howto3_2": "finished regularly",
              "howto4": "has been deleted", "howto5": "Job finished normally", "howto6": 'Connected contact string: "session=',
              "example": "synchronized with all jobs"}[program]
    assert wanted in said and ended == {"howto3": 1, "howto3_2": 15, "example": 32}.get(program, 0), (program, ended, said)


def examples(world):
    world.write("sleeper.sh", SLEEPER)
    seen = 0
    for header in HEADERS:
        for program, text in sources():
            with open(os.path.join(world.work, program + ".c"), "w") as file:
                file.write(text)
            world.run("/usr/bin/gcc", "-I" + header, "-o", program, program + ".c", "-L" + os.path.dirname(LIBRARY), "-ldrmaa",
                      "-Wl,-rpath-link," + os.path.dirname(os.path.dirname(LIBRARY)))
            arguments = [os.path.join(world.work, "sleeper.sh")] if program == "example" else []
            said_by(program, world.run(os.path.join(world.work, program), *arguments))
            print(f"  {program}, with {header}", flush=True)
            seen += 1
    assert counted("gridengine-drmaa-dev, examples") == (seen, 22) and world.read("DRMAA_JOB.8") == "I sleep 5\n"


def snakemake(world):
    world.write("Snakefile", SNAKEFILE)
    arguments = ("/usr/bin/snakemake", "--jobs", "4", "--drmaa", " -V -cwd -pe smp {threads}", "--drmaa-log-dir", "logs", "--latency-wait", "5")
    world.run(*arguments)
    assert world.read("sum.txt") == "0\n1\n2\n"
    said = world.run(*arguments, "bad", code=1)
    assert "Error in rule bad" in said, said
    logs = os.path.join(world.work, "logs")
    assert any("this is why" in open(os.path.join(logs, name)).read() for name in os.listdir(logs) if ".bad." in name and ".e" in name)
    session = max(s["session"] for s in world.pool.json("session", "ls")["sessions"])
    assert len(world.pool.grains(session)) == 1, "the session of the second run"
    cores = [world.pool.json("grain", "show", f"{session - 1}:{n}")["grain"]["cores"] for n in (1, 2, 3)]
    assert cores == [2, 2, 2], cores


def main():
    if not FULL:
        print("SKIPPED: tests/run --full runs it")
        return 77
    missing = [path for path in (EXAMPLES, "/usr/lib/python3/dist-packages/drmaa", "/usr/bin/snakemake") if not os.path.exists(path)]
    if missing or not shutil.which("gcc"):
        print("SKIPPED: deploy/install-packages --full installs", *missing)
        return 77
    with Pool(servers=2, slots=4, interval=1) as pool, Hurry(pool):
        world = World(pool)
        for part in (python, snakemake, examples):
            part(world)
            print(f"{part.__name__}: seen", flush=True)
    print("Debian's clients of DRMAA run on a pool")
    return 0


if __name__ == "__main__":
    sys.exit(main())
