#!/usr/bin/python3
"""docs/BRIDGES.md; sbatch, squeue, sacct and scancel on a pool: a script's options, outputs in the files that it names, arrays, dependencies, what
ends how; jobs outlive the shell that submitted them, and kills of the scheduler, of a host and of the process that holds jobs."""
import contextlib
import os
import re
import signal
import sqlite3
import subprocess

from facade import Facade
from hurry import Hurry
from pool import Pool, about, wait_for

SCRIPT = """#!/bin/sh
#SBATCH --job-name=first   # a comment
#SBATCH -c 2 --time=10
#SBATCH --output="%x-%j.out"

#SBATCH --mem=20M
echo "$SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_CPUS_PER_TASK $SLURM_SUBMIT_DIR $PWD $0 $*"
#SBATCH --job-name=too-late
cat
echo to-stderr >&2
umask
"""


def state(slurm, job):
    return slurm.run("sacct", "-nPX", "-j", job, "-o", "State").split("\n")


def ended(slurm, job, wanted):
    slurm.until(f"{wanted} of job {job}", lambda: set(state(slurm, job)) == {wanted})


def scripts(slurm):
    path = slurm.write("job.sh", SCRIPT)
    job = slurm.run("sbatch", "--parsable", path, "a b", "c", env={"OF_CALLER": "1"})
    os.unlink(path)  # sbatch has read it
    ended(slurm, job, "COMPLETED")
    lines = slurm.read(f"first-{job}.out").split("\n")
    first = lines[0].split(" ", 6)
    assert first[:3] == [job, "first", "2"] and first[3] == first[4] == slurm.work, lines
    assert first[5].endswith("/slurm_script") and first[6] == "a b c", lines
    assert lines[1:] == ["to-stderr", "0022", ""], lines
    # The command line goes before the script; streams apart; append; a script of standard input.
    text = "#!/bin/bash\n#SBATCH -o wrong\necho out $OF_CALLER $NEW; echo err >&2; exit 3\n"
    for _ in range(2):
        said = slurm.run("sbatch", "-J", "second", "-oout.txt", "--error=err.txt", "--open-mode=append", "--wait",
                         "--export=ALL,NEW=5", code=3, data=text, env={"OF_CALLER": "1"})
    job = said.split()[-1]
    assert said == f"Submitted batch job {job}" and slurm.read("out.txt") == "out 1 5\n" * 2 and slurm.read("err.txt") == "err\n" * 2
    assert not slurm.exists("wrong")
    assert slurm.run("sacct", "-nP", "-j", job, "-o", "JobID,JobName,State,ExitCode") == f"{job}|second|FAILED|3:0"
    started, over = slurm.run("sacct", "-nP", "-j", job, "-o", "Start,End").split("|")
    assert started[:2] == over[:2] == "20" and started <= over
    for words in ("-Q",), ("--quiet", "--parsable"):  # errors only, as Slurm
        assert slurm.run("sbatch", *words, "--wait", "-p", "nosuch", "--wrap", "true") == slurm.said == ""
    assert "nosuchoption" in slurm.refused("sbatch", "-Q", "--nosuchoption", "--wrap", "true", code=None) != ""
    # Steps of a job.
    text = "#!/bin/sh\nsrun -n 1 --cpu-bind=none sh -c 'echo step of $SLURM_JOB_NAME; exit 4'; echo $?; srun -n 2 true; echo $?; srun --exact nosuch; echo $?\n"
    slurm.run("sbatch", "--wait", "-J", "steps", "-o", "steps", "-e", "said", data=text)
    assert slurm.read("steps") == "step of steps\n4\n1\n1\n"
    assert about(slurm.read("said"), "--cpu-bind no effect --ntasks=2 one task --array nosuch No such file"), slurm.read("said")
    assert about(slurm.refused("srun", "true"), "step of a job dcs run")
    text = "#!/bin/sh\necho $SLURM_NTASKS $SLURM_CPUS_PER_TASK $SLURM_CPUS_ON_NODE; srun true; echo $?; srun -n1 echo one\n"
    slurm.run("sbatch", "--wait", "-n", "2", "-o", "steps", "-e", "said", data=text)
    assert slurm.read("steps") == "2 1 2\n1\none\n" and about(slurm.read("said"), "--ntasks=2 one task")
    # A directory, an input, a command without a script.
    os.mkdir(os.path.join(slurm.work, "below"))
    slurm.write("below/in", "from a file\n")
    slurm.run("sbatch", "--wait", "--chdir=below", "-i", "in", "-o", "o", "--wrap", "cat; echo 'it is' \"$SLURM_JOB_NAME\"")
    assert slurm.read("below/o") == "from a file\nit is wrap\n"


def arrays(slurm):
    text = "#!/bin/sh\necho $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MAX\nexit $((SLURM_ARRAY_TASK_ID == 5))\n"
    job = slurm.run("sbatch", "--parsable", "--array=1-9:2,20", "--wait", data=text, code=1)
    for task in (1, 3, 5, 7, 9, 20):
        assert slurm.read(f"slurm-{job}_{task}.out") == f"{job} {task} 6 20\n"
    rows = slurm.run("sacct", "-nP", "-j", job, "-o", "JobID,State").split("\n")
    assert [r for r in rows if "COMPLETED" not in r] == [f"{job}_5|FAILED"] and len(rows) == 6, rows
    assert slurm.run("sacct", "-nP", "-j", f"{job}_[1-5]", "-o", "State").split("\n") == ["COMPLETED", "COMPLETED", "FAILED"]
    # Those with the lowest numbers first.
    job = slurm.run("sbatch", "--parsable", "--array=3,1,2%1", "--wait", "--wrap", "echo $SLURM_ARRAY_TASK_ID >>in_turn")
    assert slurm.read("in_turn") == "1\n2\n3\n"
    # No more than two tasks of this one run at a time, though four slots are free.
    text = "#!/bin/sh\nmkdir run.$SLURM_ARRAY_TASK_ID; ls -d run.* 2>/dev/null | wc -l; sleep 0.3; rmdir run.$SLURM_ARRAY_TASK_ID\n"
    job = slurm.run("sbatch", "--parsable", "-a", "0-5%2", "-o", "two-%a", data=text)
    ended(slurm, job, "COMPLETED")
    assert {int(slurm.read(f"two-{task}")) for task in range(6)} <= {1, 2}
    slurm.until("the end of the keeper", lambda: not slurm.keeper())


def others_submit(slurm):
    """Jobs that are submitted meanwhile disturb no held ones, and go behind what the user began before them."""
    gate = "while [ ! -e %s ]; do sleep 0.1; done"
    job = slurm.run("sbatch", "--parsable", "-a", "1-3%1", "--wrap", gate % "open")
    slurm.until("a task", lambda: slurm.run("squeue", "-h", "-t", "R", "-o", "%i") == f"{job}_1")
    slurm.run("sbatch", "--wait", "--wrap", "true")
    slurm.write("open", "")
    ended(slurm, job, "COMPLETED")
    active = lambda: [s["session"] for s in slurm.pool.json("session", "ls")["sessions"] if s["ident"] == "dcs-jobs" and s["state"] == "active"]  # noqa: E731
    assert len(active()) == 1
    first = slurm.run("sbatch", "--parsable", "--wrap", gate % "end")
    slurm.pool.dcs("run", "--detach", "--cwd", slurm.work, "--", "sh", "-c", gate % "end")
    later = [slurm.run("sbatch", "--parsable", "--wrap", gate % "end") for _ in range(2)]
    assert len(active()) == 2
    slurm.write("end", "")
    for job in (first, *later):
        ended(slurm, job, "COMPLETED")
    slurm.run("sbatch", "--wait", "--wrap", "true")
    assert len(active()) == 1


def dependencies(slurm):
    wait = "while [ ! -e go ]; do sleep 0.1; done; "
    first = slurm.run("sbatch", "--parsable", "-o", "first", "--wrap", wait + "echo first >>order")
    good = slurm.run("sbatch", "--parsable", f"--dependency=afterok:{first}", "--wrap", "echo second >>order; exit 1")
    never = slurm.run("sbatch", "--parsable", f"--dep=afterok:{good}", "--wrap", "echo never >>order")
    after = slurm.run("sbatch", "--parsable", "-d", f"afterany:{first}:{good},afternotok:{good}", "--wrap", "echo third >>order")
    table = slurm.run("squeue", "-h", "-o", "%i %t %r")
    slurm.until("the first one to run", lambda: f"{first} R None" in slurm.run("squeue", "-h", "-o", "%i %t %r"))
    assert f"{good} PD Dependency" in table and f"{after} PD Dependency" in table, table
    # Who holds the jobs is killed, and the scheduler: any command starts the one again, `dcs up` the other.
    (keeper,) = wait_for("the keeper", slurm.keeper)
    os.kill(keeper, signal.SIGKILL)
    wait_for("the end of the keeper", lambda: not slurm.keeper())
    slurm.pool.kill("scheduler", "scheduler")
    assert about(slurm.refused("squeue"), "no scheduler dcs up")
    slurm.write("go", "")
    slurm.pool.up()
    assert slurm.run("squeue", "-h", "-j", after, "-o", "%i") == after
    ended(slurm, after, "COMPLETED")
    assert slurm.read("order") == "first\nsecond\nthird\n"
    assert slurm.run("squeue", "-h", "-j", never, "-o", "%t %R") == "PD (DependencyNeverSatisfied)"
    show = lambda job: slurm.run("scontrol", "-o", "show", "job", job)  # noqa: E731
    assert f"Dependency=afterok:{good}(unfulfilled) " in show(never) + " " and "Dependency=(null)" in show(after) and "Command=(null)" in show(after)
    gone = slurm.run("sbatch", "--parsable", f"--dependency=afterok:{good}", "--kill-on-invalid-dep=yes", "--wrap", "echo never >>order")
    ended(slurm, gone, "CANCELLED")
    assert about(slurm.refused("sbatch", "--kill-on-invalid-dep=perhaps", "--wrap", "true"), "--kill-on-invalid-dep=perhaps yes or no")
    slurm.run("scancel", never)
    assert state(slurm, never) == ["CANCELLED"] and slurm.run("squeue", "-h") == ""
    slurm.run("sbatch", "--begin=now+1", "--wait", "-o", "late", "--wrap", "echo late")
    assert slurm.read("late") == "late\n"


def a_stopped_pool(slurm):
    """dcs down ends the process that holds jobs, and dcs up starts it again: no other command is needed."""
    slurm.run("sbatch", "--begin=now+20", "-o", "held", "--wrap", "echo held")
    wait_for("the keeper", slurm.keeper)
    said = slurm.pool.down().stdout.decode()
    assert not slurm.keeper() and about(said, "Jobs of sbatch held wait next dcs up"), said
    waits = subprocess.Popen(["sbatch", "--wrap", "true"], env=slurm.env, cwd=slurm.work, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert about(waits.stderr.readline(), "sbatch: waiting for the scheduler `dcs up` starts"), waits
    waits.kill()
    waits.communicate(timeout=120)
    slurm.pool.up()
    slurm.until("the held job to run", lambda: slurm.exists("held") and slurm.read("held") == "held\n")


def ends(slurm):
    job = slurm.run("sbatch", "--parsable", "-J", "long one", "--wrap", "echo begun; sleep 1000")
    slurm.until("the output of a running job", lambda: slurm.exists(f"slurm-{job}.out") and slurm.read(f"slurm-{job}.out") == "begun\n")
    head, line = slurm.run("squeue").split("\n")
    assert head.split() == "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)".split(), head
    assert line.split()[0] == job and " R " in line and line.split()[-1] in slurm.pool.host_names(), line
    assert slurm.run("squeue", "-h", "-n", "long one", "-o", "%A,%j,%T,%D,%C") == f"{job},long one,RUNNING,1,1"
    other = slurm.run("sbatch", "--parsable", "-J", "other", "--wrap", "sleep 1000")
    slurm.run("scancel", "--name=long one")
    ended(slurm, job, "CANCELLED")
    assert slurm.read(f"slurm-{job}.out").startswith(f"begun\nslurmstepd: error: *** JOB {job} ON local"), slurm.read(f"slurm-{job}.out")
    labels = {row["label"] for row in slurm.pool.json("session", "ls")["sessions"] if row["ident"] == "dcs-jobs"}
    assert labels == {"jobs of sbatch and qsub"}, labels
    assert slurm.run("squeue", "-h", "-o", "%i") == other
    slurm.run("scancel", "--me")
    ended(slurm, other, "CANCELLED")
    many = slurm.run("sbatch", "--parsable", "-a", "0-39", "--wrap", "touch ran.$SLURM_ARRAY_TASK_ID; sleep 1000")
    ran = lambda: [name for name in os.listdir(slurm.work) if name.startswith("ran.")]  # noqa: E731
    slurm.until("four that run", lambda: len(ran()) == 4)
    slurm.run("scancel", many)
    ended(slurm, many, "CANCELLED")
    assert len(ran()) == 4, ran()  # none took the slot of one that was cancelled before it
    assert about(slurm.refused("scancel", "99999"), "99999 Invalid job id")
    assert about(slurm.refused("squeue", "-j", "99999"), "Invalid job id specified no job 99999")
    assert slurm.run("squeue", "-h", "-j", job) == ""  # known, and over
    # What the pool ends: too long; no directory for the output.
    job = slurm.run("sbatch", "--parsable", "-t", "0:1", "--wrap", "sleep 1000")
    ended(slurm, job, "TIMEOUT")
    assert about(slurm.read(f"slurm-{job}.out"), "dcs: ended on ran longer than its 1 s"), "once, by the command that saw it first"
    assert slurm.read(f"slurm-{job}.out").count("ended on") == 1
    # A signal before that: to the script, or to its steps.
    slurm.write("saves", "#!/bin/sh\n#SBATCH --signal=B:USR1@599 -t 10\ntrap 'echo saved; exit 0' USR1\nsleep 1000 & wait\n")
    slurm.run("sbatch", "--wait", "-o", "saved", "saves")
    assert slurm.read("saved") == "saved\n" and "--signal" not in slurm.said, slurm.said
    slurm.run("sbatch", "--wait", "-t", "10", "--signal=SIGTERM@599", "-o", "saved", "--wrap", "sleep 1000; echo $?")
    assert slurm.read("saved").split("\n")[-2] == "143", slurm.read("saved")
    assert about(slurm.refused("sbatch", "--signal=LOUD", "--wrap", "true"), "--signal=LOUD B:USR1@120")
    slurm.run("sbatch", "--wait", "--signal=USR1", "--wrap", "true")
    assert about(slurm.said, "--signal no effect no time limit"), slurm.said
    job = slurm.run("sbatch", "--parsable", "-o", "nowhere/out", "--wrap", "true")
    assert about(slurm.said, "no directory nowhere fails")
    ended(slurm, job, "FAILED")


def closed_sessions(slurm):
    """sacct and squeue are not called before the session is removed: ends stay known, unfinished jobs are cancelled."""
    failed = slurm.run("sbatch", "--parsable", "-o", "failed", "--wrap", "echo out; exit 4")
    (session,) = [s["session"] for s in slurm.pool.json("session", "ls")["sessions"] if s["ident"] == "dcs-jobs" and s["state"] == "active"]
    wait_for("its end", lambda: slurm.pool.json("grain", "show", f"{session}:{failed}")["grain"]["state"] == "finished")
    runs = slurm.run("sbatch", "--parsable", "--wrap", "sleep 1000")
    slurm.until("its run", lambda: slurm.run("squeue", "-h", "-t", "R", "-j", runs))
    after = slurm.run("sbatch", "--parsable", "-d", f"afterany:{runs}", "-o", "after", "--wrap", "echo after")
    slurm.pool.dcs("session", "close", str(session))
    ended(slurm, after, "COMPLETED")
    with contextlib.closing(sqlite3.connect(os.path.join(slurm.pool.dir, "jobs/jobs.db"))) as db, db:
        assert db.execute("select state from job where number = ?", (failed,)).fetchone() == ("sent",)  # not asked for yet
    slurm.pool.dcs("session", "clean", str(session))
    assert slurm.run("sacct", "-nP", "-j", f"{failed},{runs}", "-o", "State,ExitCode") == "FAILED|4:0\nCANCELLED|0:0"
    assert slurm.run("squeue", "-h") == "" and slurm.run("scancel", runs) == ""
    # Removed by another program: how they ended is not known, and no guess is shown.
    with contextlib.closing(sqlite3.connect(os.path.join(slurm.pool.dir, "jobs/jobs.db"))) as db, db:
        db.execute("update job set state = 'sent' where number = ?", (failed,))
    assert state(slurm, failed) == ["UNKNOWN"]


def shells(slurm):
    """The shell is gone, with all its processes; then the host of the job: it starts again on another, its output once."""
    slurm.write("long.sh", "#!/bin/sh\necho on $SLURMD_NODENAME\nwhile [ ! -e on ]; do sleep 0.1; done\necho end\n")
    shell = subprocess.Popen(["/bin/sh", "-c", "sbatch --parsable long.sh >number; sleep 1000"], cwd=slurm.work, env=slurm.env, start_new_session=True)
    job = slurm.until("the number", lambda: slurm.exists("number") and slurm.read("number").strip())
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
    where = slurm.until("its start", lambda: slurm.run("squeue", "-h", "-t", "R", "-j", job, "-o", "%N"))
    slurm.until("its output", lambda: slurm.exists(f"slurm-{job}.out"))
    slurm.pool.kill_host(where)
    slurm.write("on", "")
    slurm.pool.up()
    ended(slurm, job, "COMPLETED")
    assert slurm.read(f"slurm-{job}.out").count("on ") == 1 and slurm.read(f"slurm-{job}.out").endswith("\nend\n")


def refusals(slurm):
    for words, wanted in ((["--nodes=2"], "--nodes=2 one host --cpus-per-task"), (["--gres=GPU:1"], "--gres GPU name"),
                          (["-H"], "-H --dependency DCS_JOBS_IGNORE=hold"), (["--nodesx"], "unknown option --nodesx --help"),
                          (["--dependency=afterok:99999"], "there is no job 99999"), (["--mem=lots"], "--mem lots 4G"),
                          (["-a", "5-1"], "--array 5-1 ends before it begins"), (["-C", "nosuch"], "--constraint=nosuch"), (["-o", "%N.out"], "%N")):
        assert about(slurm.refused("sbatch", *words, "--wrap", "true"), wanted), (words, slurm.said)
    assert about(slurm.refused("sbatch", data="echo no interpreter\n"), "first line interpreter")
    assert about(slurm.refused("sbatch", "nosuch.sh"), "nosuch.sh cannot be read")
    slurm.refused("sbatch", "--test-only", "--wrap", "true", env={"DCS_JOBS_IGNORE": "test-only"})  # it would run
    assert "DCS_JOBS_IGNORE" not in slurm.said
    assert slurm.run("squeue", "-h") == ""
    job = slurm.run("sbatch", "--parsable", "--account=x", "-p", "short", "--mail-type=END", "--mail-user=a", "-onosuch/o", "-enosuch/e", "-H", "--wrap", "true",
                    env={"DCS_JOBS_IGNORE": "hold", "SBATCH_TIMELIMIT": "1"})
    for words in ("SBATCH_TIMELIMIT has no effect: options are given", "--account no effect accounts", "--partition=short no host class", "--mail-type, --mail-user have no effect: no mail", "-H DCS_JOBS_IGNORE"):
        assert about(slurm.said, words), slurm.said
    assert slurm.said.count("no mail is sent") == slurm.said.count("there is no directory") == 1, slurm.said
    ended(slurm, job, "FAILED")
    for command in ("sbatch", "srun", "squeue", "sacct", "scancel", "sinfo", "scontrol"):
        assert about(slurm.run(command, "--help"), f"Usage: {command}")


def resources(slurm):
    """Devices and licences are named resources of the pool; what no host offers is said at once."""
    job = slurm.run("sbatch", "--parsable", "-n", "999", "--wrap", "true")
    assert about(slurm.said, f"no host job {job} fewer cores slots dcs up --slots N"), slurm.said
    slurm.run("scancel", job)
    job = slurm.run("sbatch", "--parsable", "--gpus=2", "--wrap", "true")
    assert about(slurm.said, f"no host job {job} gpu") and "earlier grains" not in slurm.said, slurm.said
    slurm.run("scancel", job)
    slurm.pool.dcs("up", "--resources", "gpu=[3,5],fpga=1,seat=4")
    for words, wanted in ((["--gpus=a100:2"], "3,5 no no"), (["--gres=gpu:1,fpga"], "3 1 no"), (["-L", "seat:2"], "no no 2")):
        job = slurm.run("sbatch", "--parsable", "--wait", *words, "--wrap",
                        "echo ${CUDA_VISIBLE_DEVICES-no} ${DCS_RESOURCE_FPGA-no} ${DCS_RESOURCE_SEAT-no}")
        assert slurm.read(f"slurm-{job}.out") == wanted + "\n", slurm.read(f"slurm-{job}.out")


def details(slurm):
    """sinfo and scontrol, as users and programs call them."""
    hosts = slurm.pool.host_names()
    assert slurm.run("sinfo", "-h", "-o", "%P %a %D %T %N") == f"dcs* up 2 idle {','.join(hosts)}"
    each = [line.split() for line in slurm.run("sinfo", "-h", "-N", "-o", "%N %c %m %t").split("\n")]
    assert [row[0] for row in each] == hosts and all(row[1].isdigit() and row[2].isdigit() and row[3] == "idle" for row in each), each
    assert slurm.run("sinfo").split("\n")[0].split() == "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST".split()
    job = slurm.run("sbatch", "--parsable", "-a", "7", "-J", "shown", "-t", "5", "-o", "at-%A_%a", "--wrap", "while [ ! -e shown ]; do sleep 0.1; done; exit 3")
    slurm.until("its run", lambda: slurm.run("squeue", "-h", "-t", "R", "-j", job))
    assert slurm.run("squeue", "-u", slurm.run("id", "-un"), "-h", "-o", "%U") == str(os.getuid())
    assert slurm.run("squeue", "-u", str(os.getuid()), "-h", "-o", "%T") == "RUNNING"
    assert about(slurm.refused("squeue", "-u", "nobody"), "your own jobs only dcs session ls")
    assert about(slurm.refused("scancel", "-u", "nobody"), "scancel ends your own jobs only dcs session close")
    show = lambda *words: dict(word.split("=", 1) for word in slurm.run("scontrol", "show", "job", *words).split() if "=" in word)  # noqa: E731
    left = slurm.run("squeue", "-h", "-j", job, "-o", "%L")
    assert re.fullmatch(r"[0-4]:\d\d|5:00", left), left
    assert slurm.run("squeue", "-h", "-j", job, "-o", "%S") < slurm.run("squeue", "-h", "-j", job, "-o", "%e").replace("N/A", "")
    slurm.write("named.sh", "#!/bin/sh\n")
    assert show(slurm.run("sbatch", "--parsable", "--begin=now+1hour", "named.sh", "1"))["Command"] == os.path.join(slurm.work, "named.sh")
    slurm.run("scancel", slurm.run("squeue", "-h", "-t", "PD", "-o", "%i"))
    facts = show(job)
    assert (facts["JobState"], facts["ArrayTaskId"], facts["JobName"], facts["TimeLimit"]) == ("RUNNING", "7", "shown", "5:00"), facts
    assert facts["StdOut"] == facts["StdErr"] == os.path.join(slurm.work, f"at-{job}_7") and facts["NodeList"] in hosts, facts
    slurm.write("shown", "")
    slurm.until("its end", lambda: show(job)["JobState"] == "FAILED")
    assert show("-o", job)["ExitCode"] == "3:0" and slurm.run("scontrol", "show", "jobs") == "No jobs in the system"
    slurm.run("sbatch", "--wait", "-o", "names", "--wrap", "scontrol show hostnames $SLURM_JOB_NODELIST; scontrol show hostnames")
    assert len(set(slurm.read("names").split())) == 1 and slurm.read("names").count("\n") == 2, slurm.read("names")
    row = slurm.run("sacct", "-nP", "-S", "now-1hour", "-E", "now", "-j", job, "--format=JobID%20,UID,CPUTimeRAW,TimelimitRaw,NTasks")
    assert re.fullmatch(rf"{job}_7\|{os.getuid()}\|\d+\|5\|1", row), row
    assert slurm.run("sacct", "-n", "-S", "now-2hours", "-E", "now-1hours") == "" and slurm.run("sacct", "-n", "-S", "today") != ""
    assert about(slurm.run("scontrol", "show", "config"), "SchedulerTimeSlice = 1 sec")
    for words, wanted in (("show job 99999", "no job 99999"), ("hold 1", "scancel"), ("requeue 1", "submit it again"), ("show node x", "dcs host show"),
                          ("show partition", "sinfo"), ("frobnicate", "show job")):
        assert about(slurm.refused("scontrol", *words.split()), wanted), (words, slurm.said)
    assert about(slurm.refused("sinfo", "-s"), "dcs status") and about(slurm.refused("sinfo", "-o", "%X"), "unknown column %X")


def ages(slurm):
    """A session takes no new jobs after an hour; jobs are forgotten after three months, and their numbers do not come again."""
    old = slurm.run("sbatch", "--parsable", "--wait", "--wrap", "true")
    with contextlib.closing(sqlite3.connect(os.path.join(slurm.pool.dir, "jobs/jobs.db"))) as db, db:
        ((session,),) = db.execute("select session from current")
        db.execute("update current set since = since - 3700")
        db.execute("update job set submitted = submitted - ? where number < ?", (91 * 86400, int(old)))
    new = slurm.run("sbatch", "--parsable", "--wait", "--wrap", "true")
    assert int(new) == int(old) + 1, (old, new)
    sessions = {row["session"]: row["state"] for row in slurm.pool.json("session", "ls", "all")["sessions"] if row["ident"] == "dcs-jobs"}
    assert sessions.pop(session) == "terminated" and list(sessions.values()).count("active") == 1, sessions
    assert state(slurm, old) == state(slurm, new) == ["COMPLETED"]
    assert about(slurm.refused("sacct", "-j", "1"), "no job 1")


def main():
    with Pool(servers=2, slots=2, interval=0.5) as pool, Hurry(pool):
        slurm = Facade(pool, "slurm")
        for part in (Facade.type_page, scripts, arrays, others_submit, dependencies, a_stopped_pool, ends, refusals, details, resources, closed_sessions, shells, ages):
            part(slurm)
            print(f"{part.__name__}: seen", flush=True)
    print("jobs of sbatch run, wait, end and are found as under Slurm")


if __name__ == "__main__":
    main()
