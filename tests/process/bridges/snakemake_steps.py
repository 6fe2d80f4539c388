#!/usr/bin/python3
"""The profile for Snakemake: submit, status and cancel as Snakemake calls them. Under --full Snakemake itself, with workflows of
which Snakemake, the scheduler and a host are killed, and that are run again: each step runs once, with the right output. Steps
that fail, that are tried again, and an interrupted workflow; 200 steps and ten kills.

    snakemake_steps [STEPS KILLS]    only a workflow of so many steps, with so many kills"""
import os
import re
import signal
import subprocess
import sys
import time

from facade import Facade
from hurry import Hurry
from pool import FULL, Pool, about, seeded, wait_for

SNAKEMAKE = "/usr/bin/snakemake"
SCRIPT = """#!/bin/sh
# properties = {"type": "single", "rule": "part", "threads": 2, "resources": {"mem_mb": 100, "runtime": 5, "tmpdir": "<TBD>"}, "jobid": 3}
cd "$1" 2>/dev/null; echo begun; while [ ! -e go ]; do sleep 0.1; done; exit $(cat go)
"""
SNAKEFILE = """
N = range(%d)
rule all:
    input: "sum.txt"
rule part:
    output: "part/{n}.txt"
    shell: "echo run >>runs-{wildcards.n}; while [ -e stop ]; do sleep 0.2; done; echo $(({wildcards.n} * 3)) >{output}"
rule sum:
    input: expand("part/{n}.txt", n=N)
    output: "sum.txt"
    threads: 2
    resources: runtime=60
    shell: "cat {input} | sort -n >{output}"
rule flaky:
    output: "flaky.txt"
    retries: 2
    resources: runtime=lambda wildcards, attempt: 10 * attempt
    shell: "echo $SLURM_JOB_ID >>tries; [ $(wc -l <tries) = 2 ] && touch {output}"
rule bad:
    output: "bad.txt"
    shell: "echo this is why >&2; exit 3"
rule long:
    output: "long.txt"
    shell: "touch begun; sleep 1000"
"""


def scripts(smk):
    for code, wanted in ((0, "success"), (4, "failed")):
        job = smk.run("submit", smk.write("snakejob.sh", SCRIPT))
        smk.until("the step's beginning", lambda: smk.exists(f".snakemake/dcs/part-{job}.log") and
                  smk.read(f".snakemake/dcs/part-{job}.log") == "begun\n")
        row = smk.pool.json("grain", "show", f"1:{job}")["grain"]
        assert (row["cores"], row["memory_mb"], row["wall_s"]) == (2, 100, 300), row
        assert smk.run("status", job) == "running"
        smk.write("go", str(code))
        smk.until("its end", lambda: smk.run("status", job) == wanted)
        os.unlink(os.path.join(smk.work, "go"))
    job = smk.run("submit", "snakejob.sh")
    smk.until("its run", lambda: smk.run("squeue", "-h", "-t", "R", "-j", job))
    again = smk.run("submit", "snakejob.sh")  # the same step, while it runs
    assert again != job and smk.run("status", job) == "failed" and smk.run("status", again) == "running"
    assert smk.run("submit", "snakejob.sh") == (job := again), "the same step, while it waits"
    smk.run("cancel", job, "99999")  # goes on behind Snakemake's back
    smk.until("its end", lambda: smk.run("status", job) == "failed")
    assert smk.run("status", "99999") == "failed"
    wide = smk.run("submit", smk.write("wide.sh", SCRIPT.replace('"threads": 2', '"threads": 999')))  # it would wait in silence
    assert about(smk.said, f"no host job {wide} part fewer cores"), smk.said
    smk.run("cancel", wide)
    now = int(time.time())  # the states of all steps, which one look at the pool left: only while they are new, and of this pool
    for line, wanted in ((f"{now} 99999=success 99998=running", "success"), (f"{now - 60} 99999=success", "failed"),
                         (f"{now + 60} 99999=success", "failed"), (f"{now} 9999=success 99999=failed", "failed")):
        smk.write(".snakemake/dcs/states", f"{line}\n{smk.pool.env.get('DCS_DIR', '')}\n")
        assert smk.run("status", "99999") == wanted, line
    smk.write(".snakemake/dcs/states", f"{now} 99999=success\n/of/another/pool\n")
    assert smk.run("status", "99999") == "failed"
    states, pool = smk.read(".snakemake/dcs/states").splitlines()
    assert f" {job}=failed" in states and pool == smk.pool.env.get("DCS_DIR", ""), states
    smk.write("other.sh", "#!/bin/sh\n")
    assert about(smk.refused("submit", "other.sh"), "no job script of Snakemake properties")


def start(smk, *targets):
    with open(os.path.join(smk.work, "said"), "a") as said:
        return subprocess.Popen([SNAKEMAKE, "--profile", smk.folder, *targets], cwd=smk.work, env=smk.env, stdout=said, stderr=said,
                                stdin=subprocess.DEVNULL, start_new_session=True)


def ended(smk, process, code):
    if process.wait(timeout=3600) != code:
        said = smk.read("said").splitlines()
        for at, line in enumerate(said):
            if re.search("error|exception|FAILED|UNKNOWN|CANCELLED", line, re.I):
                print(*said[at:at + 12], "--", sep="\n")
        raise AssertionError(f"snakemake: exit code {process.returncode}")


def killed(smk, process):
    """kill -9 of Snakemake, which leaves its lock of the directory behind."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    smk.run(SNAKEMAKE, "--profile", smk.folder, "--unlock")


def right(smk, steps):
    assert smk.read("sum.txt") == "".join(f"{n * 3}\n" for n in range(steps))
    return [smk.read(f"runs-{n}").count("run") for n in range(steps)]


def submissions(smk):
    return re.findall("with external jobid '([0-9]+)'", smk.read("said"))


def interrupted(smk):
    """All steps are submitted and wait; then there is neither Snakemake nor scheduler. None runs twice."""
    smk.write("Snakefile", SNAKEFILE % 3)
    other = smk.run("sbatch", "--parsable", "-a", "1-4", "-o", "/dev/null", "--wrap", "while [ ! -e others ]; do sleep 0.1; done")
    smk.until("others on all slots", lambda: smk.run("squeue", "-h", "-t", "R").count("\n") == 3)
    first = start(smk)
    smk.until("all steps", lambda: len(submissions(smk)) == 3)
    smk.pool.kill("scheduler", "scheduler")
    killed(smk, first)
    smk.pool.up()
    again = start(smk)
    smk.until("all steps again", lambda: len(submissions(smk)) == 6)
    assert sorted(submissions(smk)[:3]) == sorted(submissions(smk)[3:]), submissions(smk)
    smk.write("others", "")
    ended(smk, again, 0)
    assert right(smk, 3) == [1, 1, 1], "a step ran twice"
    smk.until("the end of the others", lambda: smk.run("squeue", "-h", "-j", other) == "")
    # A step that runs when Snakemake is back has lost what it wrote, as Snakemake removes it: it is ended, and runs again.
    for name in ("sum.txt", "part/1.txt"):
        os.unlink(os.path.join(smk.work, name))
    smk.write("stop", "")
    first = start(smk)
    smk.until("the step's run", lambda: smk.read("runs-1").count("run") == 2)
    killed(smk, first)
    again = start(smk)
    smk.until("the step's next run", lambda: smk.read("runs-1").count("run") == 3)
    os.unlink(os.path.join(smk.work, "stop"))
    ended(smk, again, 0)
    assert right(smk, 3) == [1, 3, 1]


def ends(smk):
    ended(smk, start(smk, "--keep-going", "bad", "flaky"), 1)
    assert not smk.exists("bad.txt") and smk.read("tries").count("\n") == 2 and smk.exists("flaky.txt")
    logs = os.path.join(smk.work, ".snakemake/dcs")
    assert any("this is why" in open(os.path.join(logs, name)).read() for name in os.listdir(logs) if name.startswith("bad-"))
    long = start(smk, "long")
    smk.until("the long step", lambda: smk.exists("begun"))
    os.kill(long.pid, signal.SIGINT)
    assert long.wait(timeout=300) != 0
    states = [row["state"] for row in smk.pool.grains(1)]
    assert states[-1] == "killed" and not {"ready", "running"} & set(states), states


def many(pool, steps, kills):
    smk, random = Facade(pool, "snakemake"), seeded()
    smk.work = os.path.join(pool.base, "many")
    os.mkdir(smk.work)
    smk.env["PWD"] = smk.work
    smk.write("Snakefile", SNAKEFILE % steps)
    process = start(smk)
    for kill in range(kills):
        done = (kill + random.random()) * steps / kills
        wait_for(f"{done:.0f} steps", lambda: len([n for n in range(steps) if smk.exists(f"part/{n}.txt")]) >= done or process.poll() is not None,
                 timeout=7200)
        if process.poll() is not None:
            break
        what = ("snakemake", "scheduler", "host")[kill % 3]
        if what == "snakemake":
            killed(smk, process)
            process = start(smk)
        else:
            pool.kill("scheduler", "scheduler") if what == "scheduler" else pool.kill_host(random.choice(pool.host_names()))
            pool.up()
        print(f"kill {kill + 1}: {what}", flush=True)
    ended(smk, process, 0)
    runs = right(smk, steps)
    print(f"{steps} steps, {sum(runs)} runs, {max(runs)} of one step at most")


def main():
    with Pool(servers=2, slots=2, interval=1) as pool, Hurry(pool):
        if sys.argv[1:]:
            many(pool, int(sys.argv[1]), int(sys.argv[2]))
            return 0
        smk = Facade(pool, "snakemake")
        scripts(smk)
        if FULL:
            for part in (interrupted, ends):
                part(smk)
                print(f"{part.__name__}: seen", flush=True)
            many(pool, 200, 10)
    print("workflows of Snakemake run on a pool" if FULL else "the profile's commands do what Snakemake asks of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
