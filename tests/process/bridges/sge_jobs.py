#!/usr/bin/python3
"""qsub, qstat, qacct and qdel on a pool: Grid Engine's options and lines #$, PBS's lines #PBS, outputs as name.oJOB, array tasks,
-hold_jid and -sync, exit facts, and what is refused."""
import os

from facade import Facade
from hurry import Hurry
from pool import Pool, about

SCRIPT = """#!/bin/bash
#$ -N first -cwd
echo "$JOB_ID $JOB_NAME $SGE_TASK_ID $NSLOTS $PWD $*"; echo "${OF_CALLER:-none} $NEW" >&2
#$ -v NEW=5
[ -d "$TMPDIR" ] && [ "$TMPDIR" != /tmp ] && : >"$TMPDIR/scratch"
"""


def facts(sge, job, *words):
    """Of qacct: a dictionary for each task."""
    blocks = sge.run("qacct", "-j", job, *words).split("=" * 62 + "\n")[1:]
    return [dict(line.split(None, 1) for line in block.splitlines() if len(line.split(None, 1)) == 2) for block in blocks]


def scripts(sge):
    sge.write("job.sh", SCRIPT)
    said = sge.run("qsub", "-sync", "y", "job.sh", "a b", "c", env={"OF_CALLER": "1"})
    job = said.split()[2]
    assert said == f'Your job {job} ("first") has been submitted\nJob {job} exited with exit code 0.', said
    assert sge.read(f"first.o{job}") == f"{job} first undefined 1 {sge.work} a b c\n" and sge.read(f"first.e{job}") == "none 5\n"
    job = sge.run("qsub", "-terse", "-V", "-j", "y", "-N", "other", "-sync", "y", "-pe", "smp", "2", "job.sh", env={"OF_CALLER": "1"}).split("\n")[0]
    assert sorted(sge.read(f"other.o{job}").splitlines()) == sorted([f"{job} other undefined 2 {sge.work} ", "1 5"])
    assert not sge.exists(f"other.e{job}")
    # A command; its exit status; a file that many jobs write is appended to.
    for _ in range(2):
        sge.run("qsub", "-b", "y", "-cwd", "-o", "all", "-j", "y", "-sync", "y", "echo", "$JOB_NAME", ";", "exit", "7", code=7)
    assert sge.read("all") == "echo\n" * 2
    found = facts(sge, "echo")[-1]
    assert found["exit_status"] == "7" and found["failed"] == "0" and found["jobname"] == "echo", found
    assert found["hostname"] in sge.pool.host_names() and found["start_time"] <= found["end_time"], found
    # Without -cwd in the home, from a script of standard input without an interpreter.
    home = os.path.join(sge.work, "home")
    os.mkdir(home)
    job = sge.run("qsub", "-terse", "-sync", "y", data="pwd\n", env={"HOME": home}).split("\n")[0]
    assert sge.read(f"home/STDIN.o{job}") == home + "\n"


def arrays(sge):
    text = "#$ -t 2-8:2 -tc 2 -cwd -N many\necho $SGE_TASK_ID $SGE_TASK_FIRST $SGE_TASK_LAST $SGE_TASK_STEPSIZE\nexit $((SGE_TASK_ID == 4))\n"
    said = sge.run("qsub", "-sync", "y", data=text, code=1)
    job = said.split()[2].split(".")[0]
    assert said.startswith(f'Your job-array {job}.2-8:2 ("many")'), said
    for task in (2, 4, 6, 8):
        assert sge.read(f"many.o{job}.{task}") == f"{task} 2 8 2\n"
    assert [(f["taskid"], f["exit_status"]) for f in facts(sge, job)] == [("2", "0"), ("4", "1"), ("6", "0"), ("8", "0")]
    assert [f["taskid"] for f in facts(sge, job, "-t", "4-6:2")] == ["4", "6"]


def held(sge):
    wait = "while [ ! -e go ]; do sleep 0.1; done; echo first >>order"
    first = sge.run("qsub", "-terse", "-cwd", "-N", "gate", "-b", "y", wait)
    by_number = sge.run("qsub", "-terse", "-cwd", "-hold_jid", first, "-N", "second", "-b", "y", "echo second >>order")
    by_name = sge.run("qsub", "-terse", "-cwd", "-hold_jid", "gate,sec*", "-b", "y", "echo third >>order")
    sge.until("the first one to run", lambda: f"{first:>7}" in sge.run("qstat", "-s", "r"))
    lines = {line.split()[0]: line.split() for line in sge.run("qstat").splitlines()[2:]}
    assert [lines[job][4] for job in (first, by_number, by_name)] == ["r", "hqw", "hqw"], lines
    assert lines[first][7].startswith("dcs.q@local") and lines[first][8] == "1"
    assert about(sge.run("qstat", "-j", by_number), f"job_number: {by_number} job_name: second waits: Dependency")
    assert about(sge.refused("qacct", "-j", by_number), f"job id {by_number} not found")
    sge.write("go", "")
    sge.until("the last one", lambda: sge.run("qacct", "-j", by_name, code=None))
    assert sge.read("order") == "first\nsecond\nthird\n"
    assert about(sge.refused("qstat", "-j", first), f"do not exist {first}") and sge.run("qstat") == ""


def deleted(sge):
    long, other = (sge.run("qsub", "-terse", "-cwd", "-N", name, "-b", "y", "sleep 1000") for name in ("long", "other"))
    task = sge.run("qsub", "-terse", "-cwd", "-t", "1-2", "-N", "tasks", "-b", "y", "sleep 1000").split(".")[0]
    sge.until("both to run", lambda: sge.run("qstat", "-s", "r").count(" r ") >= 2)
    assert about(sge.run("qdel", long), f"registered the job {long} for deletion")
    assert facts(sge, long)[0]["exit_status"] == "137"
    assert f"{task}.2" in sge.run("qdel", f"{task}.2") and sge.run("qstat").count("tasks") == 1
    assert other in sge.run("qdel", "oth*") and f"{task}.1" in sge.run("qdel", "-u", "*") and sge.run("qstat") == ""
    assert about(sge.run("qdel", "99999", code=1), '"99999" does not exist')


def portable_batch(sge):
    sge.write("pbs.sh", "#!/bin/sh\n#PBS -N portable\n#PBS -l nodes=1:ppn=2,walltime=1:00:00,mem=20mb -j oe\n#PBS -J 1-2\n"
                        'cd "$PBS_O_WORKDIR" && echo $PBS_JOBID $PBS_ARRAY_INDEX $PBS_NUM_PPN $PBS_JOBNAME\n')
    job = sge.run("qsub", "pbs.sh", env={"HOME": os.path.join(sge.work, "home")}).split(".")[0]
    after = sge.run("qsub", "-W", f"depend=afterok:{job}", "-N", "after", data="#PBS -q short\necho after\n")
    sge.until("the end of both", lambda: not sge.run("qstat"))
    assert [sge.read(f"portable.o{job}.{task}") for task in (1, 2)] == [f"{job} {task} 2 portable\n" for task in (1, 2)]
    assert sge.read(f"after.o{after}") == "after\n"


def resources(sge):
    """-l NAME=N is a resource of the pool."""
    sge.pool.dcs("up", "--resources", "gpu=[3,5],seat=4")
    job = sge.run("qsub", "-cwd", "-terse", "-sync", "y", "-l", "gpu=1,seat=2", "-j", "y", "-N", "with", "-b", "y",
                  "echo $DCS_RESOURCE_GPU $DCS_RESOURCE_SEAT").split()[0]
    assert sge.read(f"with.o{job}") == "3 2\n", sge.read(f"with.o{job}")
    job = sge.run("qsub", "-N", "portable", data="#PBS -l nodes=1:ppn=1:gpus=2 -j oe\necho $CUDA_VISIBLE_DEVICES\n").split(".")[0]
    sge.until("its end", lambda: not sge.run("qstat"))
    assert sge.read(f"portable.o{job}") == "3,5\n", sge.read(f"portable.o{job}")


def refusals(sge):
    for words, wanted in ((["-h"], "-h -hold_jid DCS_JOBS_IGNORE=h"), (["-l", "fpga"], "-l fpga host class h_rt"),
                          (["-xyz"], "unknown option -xyz -help"), (["-hold_jid", "99999"], "-hold_jid 99999 no job"),
                          (["-l", "nodes=2:ppn=2"], "one host"), (["-t", "0-x"], "-t 0-x")):
        assert about(sge.refused("qsub", *words, "-b", "y", "true"), wanted), (words, sge.said)
    assert sge.run("qstat") == ""
    sge.run("qsub", "-cwd", "-q", "all.q", "-m", "e", "-r", "n", "-P", "p", "-sync", "y", "-b", "y", "true")
    for words in ("-q all.q no host class", "-m no mail", "-r n starts again", "-P no projects"):
        assert about(sge.said, words), sge.said
    for command in ("qsub", "qstat", "qacct", "qdel"):
        assert about(sge.run(command, "-help"), f"Usage: {command}")


def main():
    with Pool(servers=2, slots=2, interval=0.5) as pool, Hurry(pool):
        sge = Facade(pool, "sge")
        for part in (scripts, arrays, held, deleted, portable_batch, resources, refusals):
            part(sge)
            print(f"{part.__name__}: seen", flush=True)
    print("jobs of qsub run, wait, end and are found as under Grid Engine")


if __name__ == "__main__":
    main()
