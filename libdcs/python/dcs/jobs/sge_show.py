"""qstat, qacct and qdel."""
from __future__ import annotations

import fnmatch
import sys
import time
from typing import List, Optional, Sequence

from ..pool import login_name
from . import times
from .batch import Batch
from .holding import keep_going, reason_of
from .registry import Job, Registry
from .slurm_show import lines_of
from .words import Option, Options, Wrong, last, ranges, task_list

QSTAT = (
    Option("-j", "LIST"), Option("-u", "NAMES"), Option("-s", "STATES"), Option("-g", "d"), Option("-r"), Option("-help"),
    Option("-pri", note="all jobs have one priority"), Option("-ext", note="the usual columns are shown"),
    Option("-f", refusal="`dcs host ls` shows hosts"), Option("-xml", refusal="`dcs grain ls SES -o json`"),
    Option("-q", "LIST"), Option("-explain", "HOW", refusal="`qstat -j JOB` says why it waits"),
    Option("-F", "[LIST]", refusal="`dcs host show HOST`"), Option("-t", refusal="-g d shows each task"),
)
QACCT = (Option("-j", "JOB"), Option("-t", "TASKS"), Option("-o", "[NAME]"), Option("-help"),
         Option("-d", "DAYS", refusal="-j JOB, or `sacct -S now-2days`"), Option("-b", "TIME", refusal="`sacct -S TIME`"))
QDEL = (Option("-t", "TASKS"), Option("-u", "NAME"), Option("-help"), Option("-f", note="a job gets SIGTERM and ten seconds later SIGKILL"))


def letters(job: Job) -> str:
    if job.now == "RUNNING":
        return "r"
    return "hqw" if job.state == "held" else "qw"


def one_line(job: Job, tasks: Sequence[Job], batch: Batch, began: Optional[float]) -> str:
    at = time.strftime("%m/%d/%Y %H:%M:%S", time.localtime(began or job.submitted))
    queue = f"{batch.queue or 'dcs.q'}@{job.host}" if job.now == "RUNNING" else ""
    numbers = [task.task for task in tasks if task.task is not None]
    steps = {b - a for a, b in zip(numbers, numbers[1:])}
    shown = f"{numbers[0]}-{numbers[-1]}:{steps.pop()}" if len(steps) == 1 else ranges(numbers) if numbers else ""
    return (f"{job.leader:7d} 0.50000 {job.name[:10]:<10} {login_name()[:12]:<12} {letters(job):<5} {at} {queue[:30]:<30} "
            f"{max(1, batch.cores):5d} {shown}").rstrip()


HEAD = ("job-ID  prior   name       user         state submit/start at     queue                          slots ja-task-ID \n" + "-" * 111)


def details(registry: Registry, jobs: Sequence[Job]) -> None:
    job, batch = jobs[0], registry.batch(jobs[0].leader)
    out, err = batch.paths(job.leader, job.number, job.task) if batch.dialect != "slurm" else (batch.out, batch.err)
    rows = [("job_number", job.leader), ("submission_time", time.ctime(job.submitted)), ("owner", login_name()), ("sge_o_host", batch.host),
            ("cwd", batch.directory), ("stdout_path_list", f"NONE:NONE:{out}"), ("stderr_path_list", f"NONE:NONE:{err or out}"),
            ("job_name", batch.name), ("jobshare", 0), ("job_args", ",".join(batch.words)), ("script_file", batch.script_name or "NONE")]
    if batch.cores > 1:
        rows.append(("parallel environment", f"smp range: {batch.cores}"))
    if batch.tasks:
        rows.append(("job-array tasks", f"{batch.tasks[0]}-{batch.tasks[-1]}:1"))
    print("=" * 62)
    for name, value in rows:
        print(f"{name + ':':<27} {value}")
    for waiting in [job for job in jobs if job.now == "PENDING"][:20]:
        task = "" if waiting.task is None else f" (task {waiting.task})"
        print(f"{'scheduling info:':<27} waits{task}: {reason_of(waiting)}")


def qstat(words: Sequence[str]) -> int:
    options = Options("qstat", QSTAT, "-")
    _, values = options.read(words, "qstat [OPTIONS]", "Shows the jobs that wait or run; -j shows one in detail.", "-j {} names a job")
    options.say_notes()
    if any(name not in ("*", login_name()) for text in values.get("u", []) for name in text.split(",")):
        raise Wrong(f"-u {values['u'][-1]}: qstat shows your own jobs only; `dcs session ls` lists the sessions of all users")
    registry = Registry()
    keep_going(registry)
    jobs = [job for job in registry.look(registry.jobs("state in ('held', 'sent')")) if not job.over]
    if "j" in values:
        return tell(registry, jobs, [word for text in values["j"] for word in text.split(",")])
    wanted = last(values, "s") or "a"
    jobs = [job for job in jobs if {"r": job.now == "RUNNING", "p": job.now == "PENDING", "h": job.state == "held"}.get(wanted[0], wanted[0] != "z")]
    if "q" in values:
        queues = [name.split("@")[0] for text in values["q"] for name in text.split(",")]
        jobs = [job for job in jobs if any(fnmatch.fnmatchcase(registry.batch(job.leader).queue or "dcs.q", name) for name in queues)]
    clock = times.Times(jobs)
    if jobs:
        print(HEAD)
    for job, tasks in lines_of(jobs, "g" in values):
        print(one_line(job, tasks, registry.batch(job.leader), clock.of(job)[0]))
    return 0


def tell(registry: Registry, jobs: Sequence[Job], words: Sequence[str]) -> int:
    missing = []
    for word in words:
        found = [job for job in jobs if str(job.leader) == word.split(".")[0] or fnmatch.fnmatchcase(job.name, word)]
        if found:
            details(registry, found)
        else:
            missing.append(word)
    if missing:
        print("Following jobs do not exist: \n" + ", ".join(missing), file=sys.stderr)
    return 1 if missing else 0


def account(job: Job, batch: Batch, clock: times.Times) -> None:
    began, ended = clock.of(job)
    date = [time.ctime(at) if at else "-/-" for at in (job.submitted, began, ended)]
    end = job.ended
    rows = [("qname", batch.queue or "dcs.q"), ("hostname", job.host), ("owner", login_name()), ("project", "NONE"), ("jobname", job.name),
            ("jobnumber", job.leader), ("taskid", "undefined" if job.task is None else job.task), ("account", "sge"), ("priority", 0),
            ("qsub_time", date[0]), ("start_time", date[1]), ("end_time", date[2]), ("granted_pe", "smp" if batch.cores > 1 else "NONE"),
            ("slots", max(1, batch.cores)), ("failed", "100 : assumedly after job" if job.signal or job.now == "CANCELLED" else 0),
            ("exit_status", 137 if job.now == "CANCELLED" else 1 if job.now == "UNKNOWN" else 128 + job.signal if job.signal else job.code),
            ("ru_wallclock", f"{(ended or 0) - (began or 0):.3f}" if began else 0), ("ru_utime", f"{end.get('user', 0):.3f}"),
            ("ru_stime", f"{end.get('system', 0):.3f}"), ("ru_maxrss", end.get("rss", 0)), ("cpu", f"{end.get('cpu', 0):.3f}")]
    print("=" * 62)
    for name, value in rows:
        print(f"{name:<12} {value}".rstrip())


def qacct(words: Sequence[str]) -> int:
    options, values = Options("qacct", QACCT, "-"), {}
    rest = options.take(words, values)
    if "help" in values or "j" not in values or rest:
        print(options.help("qacct -j JOB [-t TASKS]", "Says how a job, or each task of an array, ended."), file=sys.stdout if "help" in values else sys.stderr)
        return 0 if "help" in values else 1
    options.say_notes()
    registry, word = Registry(), values["j"][-1]
    jobs = registry.of_word(word) if word.isdigit() else registry.jobs("name = ?", word)
    tasks = task_list(last(values, "t") or "0", "-t") if "t" in values else None
    jobs = [job for job in registry.look(jobs) if job.over and (tasks is None or job.task in tasks)]
    if not jobs:
        print(f"error: job {'id' if word.isdigit() else 'name'} {word} not found", file=sys.stderr)
        return 1
    clock = times.Times(jobs)
    for job in jobs:
        account(job, registry.batch(job.leader), clock)
    return 0


def qdel(words: Sequence[str]) -> int:
    options = Options("qdel", QDEL, "-")
    lists, values = options.read(words, "qdel [OPTIONS] JOB...", "Ends jobs: numbers, NUMBER.TASKS, or names with * and ?.")
    rest = [job for word in lists for job in word.split(",")]
    if "u" in values:
        if last(values, "u") not in (login_name(), "*"):
            raise Wrong(f"-u {last(values, 'u')}: qdel ends your own jobs only; `dcs session close USER/NUM` ends another user's")
        rest += ["*"]
    if not rest:
        raise Wrong("no job is named: give numbers, or -u " + login_name())
    registry, failed = Registry(), 0
    keep_going(registry)
    unfinished = [job for job in registry.look(registry.jobs("state in ('held', 'sent')")) if not job.over]
    for word in rest:
        jobs = meant(unfinished, word, last(values, "t"))
        if not jobs and word != "*":
            failed = 1
            print(f'denied: job "{word}" does not exist')
        for job in registry.cancel(jobs):
            number = str(job.leader) if job.task is None else f"{job.leader}.{job.task}"
            print(f"{login_name()} has registered the job {number} for deletion" if job.now == "RUNNING" else
                  f"{login_name()} has deleted job {number}")
    return failed


def meant(jobs: Sequence[Job], word: str, tasks: Optional[str]) -> List[Job]:
    number, _, of_word = word.partition(".")
    if not number.isdigit():
        return [job for job in jobs if fnmatch.fnmatchcase(job.name, word)]
    wanted = task_list(tasks or of_word, word) if tasks or of_word else None
    return [job for job in jobs if str(job.leader) == number and (wanted is None or job.task in wanted)]
