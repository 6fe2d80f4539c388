"""squeue, sacct and scancel."""
from __future__ import annotations

import os
import re
import sys
import time
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from ..pool import login_name
from . import times
from .batch import Batch, append
from .holding import keep_going, reason_of
from .registry import Job, Registry
from .slurm import shown
from .words import Option, Options, Values, Wrong, last, ranges

SHORT = {"PENDING": "PD", "RUNNING": "R", "COMPLETED": "CD", "FAILED": "F", "CANCELLED": "CA", "TIMEOUT": "TO", "OUT_OF_MEMORY": "OOM",
         "UNKNOWN": "UN"}
OTHERS = "it shows your own jobs only; `dcs session ls` lists the sessions of all users"
OF_OTHERS = "scancel ends your own jobs only; `dcs session close USER/NUM` ends another user's"

SQUEUE = (
    Option("-h --noheader"), Option("-j --jobs", "LIST"), Option("-n --name", "LIST"), Option("-o --format", "FORMAT"), Option("-r --array"),
    Option("-t --states", "LIST"), Option("--me"), Option("-u --user", "NAMES"), Option("-p --partition", "NAMES"), Option("--help"),
    Option("-l --long", note="-o FORMAT selects columns"), Option("-a --all", note="nothing is hidden"),
    Option("-O --Format", "FORMAT", refusal="-o FORMAT selects columns"), Option("--json", refusal="`sacct -P` or `dcs grain ls SES -o json`"),
    Option("-i --iterate", "SECONDS", refusal="`watch -n SECONDS squeue`"), Option("--start", refusal="DCS does not forecast starts"),
    Option("-S --sort", "LIST", refusal="jobs come in the order of their numbers"), Option("-A --account", "LIST", refusal="a pool has no accounts"),
    Option("-w --nodelist", "HOSTS", refusal="the column %N has the host"),
)
SACCT = (
    Option("-j --jobs", "LIST"), Option("-n --noheader"), Option("-o --format", "FIELDS"), Option("-P --parsable2"), Option("-p --parsable"),
    Option("-X --allocations"), Option("-s --state", "LIST"), Option("--name", "LIST"), Option("-u --user", "NAMES"), Option("-b --brief"),
    Option("-D --duplicates"), Option("--delimiter", "TEXT"), Option("-S --starttime", "TIME"), Option("--help"),
    Option("--units", "UNIT", note="MaxRSS is in KB, ReqMem in MB"), Option("-a --allusers", note=OTHERS),
    Option("-E --endtime", "TIME"), Option("-l --long", refusal="-o FIELDS selects columns"),
    Option("--json", refusal="-P prints fields with | between"),
)
SCANCEL = (
    Option("-n --name --jobname", "NAME"), Option("-t --state", "STATE"), Option("-u --user", "NAME"), Option("--me"), Option("-Q --quiet"),
    Option("-v --verbose"), Option("-p --partition", "NAME"), Option("--help"), Option("-f --full", note="all processes of a job end with it"),
    Option("-b --batch", note="all processes of a job end with it"),
    Option("-s --signal", "SIGNAL", refusal="a job gets SIGTERM and ten seconds later SIGKILL"),
    Option("-i --interactive", refusal="name the jobs"), Option("-A --account", "NAME", refusal="a pool has no accounts"),
)


def names(values: Values, key: str) -> List[str]:
    return [word for text in values.get(key, []) for word in text.split(",") if word]


def state_names(values: Values, key: str) -> Optional[List[str]]:
    found = []
    for word in names(values, key):
        word = word.upper()
        word = {short: long for long, short in SHORT.items()}.get(word, word)
        if word == "ALL":
            return list(SHORT)
        found.append(word)
        if word not in (*SHORT, "COMPLETING", "SUSPENDED", "CONFIGURING", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"):
            raise Wrong(f"--{key}={word}: not a state; the states are {', '.join(SHORT)}")
    return found or None


def chosen(registry: Registry, values: Values, words: Sequence[str], always: str, others: str = OTHERS) -> List[Job]:
    """The jobs of -j, -n, -p and -u. Without a list of jobs: those of the condition `always`."""
    if any(name not in (login_name(), str(os.getuid())) for name in names(values, "user")):
        raise Wrong(f"--user={','.join(names(values, 'user'))}: {others}")
    jobs: List[Job] = []
    for word in words:
        found = registry.of_word(word)
        if not found:
            raise Wrong(f"Invalid job id specified: there is no job {word}")
        jobs += [job for job in found if job.number not in {other.number for other in jobs}]
    if not words:
        jobs = registry.jobs(always)
    if "name" in values or "jobname" in values:
        wanted = names(values, "name") + names(values, "jobname")
        jobs = [job for job in jobs if job.name in wanted]
    if "partition" in values:
        batches = {leader: registry.batch(leader) for leader in {job.leader for job in jobs}}
        jobs = [job for job in jobs if (batches[job.leader].queue or "dcs") in names(values, "partition")]
    return registry.look(jobs)


def seconds(value: Optional[float]) -> str:
    if value is None:
        return "INVALID"
    days, rest = divmod(int(value), 86400)
    hours, rest = divmod(rest, 3600)
    clock = f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours or days else f"{rest // 60}:{rest % 60:02}"
    return f"{days}-{hours:02}:{rest // 60:02}:{rest % 60:02}" if days else clock


def moment(value: Optional[float], otherwise: str = "N/A") -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(value)) if value else otherwise


def end_of(batch: Batch, began: Optional[float], ended: Optional[float]) -> Optional[float]:
    """Of a job that runs, when its limit ends it."""
    return ended or (began + batch.wall_s if began and batch.wall_s else None)


def left_of(batch: Batch, began: Optional[float], ended: Optional[float]) -> str:
    if not batch.wall_s:
        return "UNLIMITED"
    return seconds(0 if ended else max(0.0, began + batch.wall_s - time.time()) if began else batch.wall_s)


class Line:
    """What the columns of squeue say of a job, or of the waiting tasks of an array."""

    def __init__(self, registry: Registry, job: Job, tasks: Sequence[Job], clock: times.Times):
        self.job, self.batch = job, registry.batch(job.leader)
        self.tasks, self.clock = [t.task for t in tasks if t.task is not None], clock
        self.limit = seconds(self.batch.wall_s) if self.batch.wall_s else "UNLIMITED"

    def number(self) -> str:
        if len(self.tasks) > 1:
            most = f"%{self.batch.most}" if self.batch.most else ""
            return f"{self.job.leader}_[{ranges(self.tasks)}{most}]"
        return shown(self.job)

    def column(self, letter: str) -> str:
        job, batch = self.job, self.batch
        began, ended = self.clock.of(job)
        texts: Dict[str, Callable[[], str]] = {
            "i": self.number, "A": lambda: str(job.number), "F": lambda: str(job.leader), "a": lambda: "(null)",
            "K": lambda: "N/A" if job.task is None else ranges(self.tasks), "j": lambda: job.name, "t": lambda: SHORT[job.now],
            "T": lambda: job.now, "u": login_name, "U": lambda: str(os.getuid()), "P": lambda: batch.queue or "dcs",
            "M": lambda: seconds((ended or time.time()) - began) if began else "0:00", "l": lambda: self.limit, "D": lambda: "1",
            "C": lambda: str(max(1, batch.cores)), "m": lambda: f"{batch.memory_mb}M", "N": lambda: job.host if job.now != "PENDING" else "",
            "B": lambda: job.host or "n/a", "r": lambda: reason_of(job) if job.now == "PENDING" else "None", "Z": lambda: batch.directory,
            "o": lambda: " ".join(batch.words) or "(null)", "V": lambda: moment(job.submitted), "S": lambda: moment(began),
            "e": lambda: moment(end_of(batch, began, ended)), "Q": lambda: "1", "q": lambda: "normal", "L": lambda: left_of(batch, began, ended),
            "R": lambda: f"({reason_of(job)})" if job.now == "PENDING" else job.host, "h": lambda: "OK", "y": lambda: "0", "E": lambda: "(null)",
        }
        if letter not in texts:
            raise Wrong(f"-o: unknown column %{letter}; the columns are {' '.join(sorted(texts))}")
        return texts[letter]()


TITLES = {"i": "JOBID", "A": "JOBID", "F": "ARRAY_JOB_ID", "K": "ARRAY_TASK_ID", "j": "NAME", "t": "ST", "T": "STATE", "u": "USER", "U": "UID",
          "P": "PARTITION", "M": "TIME", "l": "TIME_LIMIT", "D": "NODES", "C": "CPUS", "m": "MIN_MEMORY", "N": "NODELIST", "B": "EXEC_HOST",
          "r": "REASON", "Z": "WORK_DIR", "o": "COMMAND", "V": "SUBMIT_TIME", "S": "START_TIME", "e": "END_TIME", "R": "NODELIST(REASON)",
          "Q": "PRIORITY", "q": "QOS", "L": "TIME_LEFT", "a": "ACCOUNT", "h": "OVER_SUBSCRIBE", "y": "NICE", "E": "DEPENDENCY"}
USUAL = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"


def formatted(pattern: str, column: Callable[[str], str]) -> str:
    """%[.][WIDTH]LETTER: the dot puts it to the right; what is longer is cut."""
    def one(found: "re.Match[str]") -> str:
        text, width = column(found[3]), int(found[2] or 0)
        return (text.rjust(width) if found[1] else text.ljust(width))[:width] if width else text
    return re.sub(r"%(\.?)(\d*)([A-Za-z])", one, pattern)


def squeue(words: Sequence[str]) -> int:
    options = Options("squeue", SQUEUE)
    _, values = options.read(words, "squeue [OPTIONS]", "Shows the jobs that wait or run, or those of -j or -t.", "-j {} names a job")
    options.say_notes()
    registry = Registry()
    keep_going(registry)
    states = state_names(values, "states")
    jobs = chosen(registry, values, names(values, "jobs"), "1" if states and set(states) - {"PENDING", "RUNNING"} else
                  "state in ('held', 'sent')")
    jobs = [job for job in jobs if (job.now in states if states else not job.over)]
    pattern = last(values, "format") or USUAL
    clock = times.Times(jobs if re.search(r"%\.?\d*[MSe]", pattern) else [])
    if "noheader" not in values:
        print(formatted(pattern, lambda letter: TITLES.get(letter, letter)).rstrip())
    for job, tasks in lines_of(jobs, "array" in values):
        print(formatted(pattern, Line(registry, job, tasks, clock).column).rstrip())
    return 0


def lines_of(jobs: Sequence[Job], each: bool) -> List[Tuple[Job, List[Job]]]:
    """A line for each job; the waiting tasks of an array share one."""
    found: List[Tuple[Job, List[Job]]] = []
    waiting: Dict[Tuple[int, str], List[Job]] = {}
    for job in jobs:
        key = (job.leader, job.state)
        if job.task is None or each or job.now != "PENDING":
            found.append((job, [job]))
        elif key in waiting:
            waiting[key].append(job)
        else:
            waiting[key] = [job]
            found.append((job, waiting[key]))
    return found


WIDTHS = {"JobID": 12, "JobIDRaw": 12, "JobName": 10, "Partition": 10, "Account": 10, "AllocCPUS": 10, "NCPUS": 10, "ReqCPUS": 8, "State": 10,
          "ExitCode": 8, "Elapsed": 10, "ElapsedRaw": 10, "Start": 19, "End": 19, "Submit": 19, "User": 9, "NodeList": 15, "MaxRSS": 10,
          "TotalCPU": 10, "UserCPU": 10, "SystemCPU": 10, "CPUTime": 10, "WorkDir": 20, "ReqMem": 10, "Timelimit": 10, "NNodes": 8,
          "DerivedExitCode": 15, "CPUTimeRAW": 10, "TimelimitRaw": 12, "UID": 6, "Cluster": 10, "QOS": 10, "AllocNodes": 10, "NTasks": 8,
          "Eligible": 19, "AveRSS": 10, "AveCPU": 10}
PROPER = {name.lower(): name for name in WIDTHS}


def fields_of(job: Job, batch: Batch, clock: times.Times) -> Dict[str, str]:
    began, ended = clock.of(job)
    elapsed = (ended or time.time()) - began if began else 0.0
    cores, end = str(max(1, batch.cores)), job.ended
    clocks = {"elapsed": elapsed, "totalcpu": end.get("cpu", 0), "usercpu": end.get("user", 0), "systemcpu": end.get("system", 0),
              "cputime": elapsed * max(1, batch.cores), "timelimit": batch.wall_s}
    found = {name: time.strftime("%H:%M:%S", time.gmtime(value)) if value < 86400 else seconds(value) for name, value in clocks.items()}
    if not batch.wall_s:
        found["timelimit"] = "UNLIMITED"
    return {**found, "jobid": shown(job), "jobidraw": str(job.number), "jobname": job.name, "partition": batch.queue or "dcs", "account": "",
            "alloccpus": cores, "ncpus": cores, "reqcpus": cores, "state": job.now,
            "exitcode": f"{job.code}:{job.signal}", "derivedexitcode": f"{job.code}:0", "elapsedraw": str(int(elapsed)),
            "start": moment(began, "Unknown"), "end": moment(ended, "Unknown"), "submit": moment(job.submitted), "user": login_name(),
            "nodelist": job.host or "None assigned", "maxrss": f"{end['rss']}K" if end.get("rss") else "", "workdir": batch.directory,
            "reqmem": f"{batch.memory_mb}M", "nnodes": "1", "allocnodes": "1", "ntasks": "1", "uid": str(os.getuid()), "cluster": "dcs", "qos": "normal",
            "cputimeraw": str(int(clocks["cputime"])), "timelimitraw": str(batch.wall_s // 60) if batch.wall_s else "", "eligible": moment(job.submitted),
            "averss": f"{end['rss']}K" if end.get("rss") else "", "avecpu": found["totalcpu"]}


def sacct(words: Sequence[str]) -> int:
    options, values = Options("sacct", SACCT), {}
    rest = options.take(words, values)
    if "help" in values:
        print(options.help("sacct [OPTIONS]", "Shows the states and ends of jobs: today's, or those of -j.") +
              "\nFields: " + ", ".join(PROPER.values()))
        return 0
    if rest:
        raise Wrong(f"{rest[0]}: -j {rest[0]} names a job")
    options.say_notes()
    registry = Registry()
    fields = [field.split("%")[0].lower() for field in (last(values, "format") or ("JobID,State,ExitCode" if "brief" in values else
              "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode")).split(",")]
    wrong = [field for field in fields if field not in PROPER]
    if wrong:
        raise Wrong(f"-o: unknown field {wrong[0]}; the fields are {', '.join(PROPER.values())}")
    asked = [text.split("%")[1].lstrip("-") if "%" in text else "" for text in (last(values, "format") or ",".join(fields)).split(",")]
    widths = [int(width or 0) or WIDTHS[PROPER[field]] for field, width in zip(fields, asked)]
    since = times.since(last(values, "starttime"))
    until = times.since(last(values, "endtime") or "now")
    jobs = chosen(registry, values, [word.split(".")[0] for word in names(values, "jobs")], f"submitted >= {since} and submitted <= {until}")
    states = state_names(values, "state")
    clock = times.Times(jobs if {"elapsed", "elapsedraw", "start", "end", "cputime", "cputimeraw"} & set(fields) else [])
    mark = last(values, "delimiter") or "|"
    rows = [] if "noheader" in values else [[PROPER[field] for field in fields]]
    for job in jobs:
        if states is None or job.now in states:
            of_job = fields_of(job, registry.batch(job.leader), clock)
            rows.append([of_job[field] for field in fields])
    if "parsable2" not in values and "parsable" not in values and "noheader" not in values:
        rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        if "parsable2" in values or "parsable" in values:
            print(mark.join(row) + (mark if "parsable" in values else ""))
        else:
            print(" ".join(text[:width].rjust(width) for text, width in zip(row, widths)), "")
    return 0


def scancel(words: Sequence[str]) -> int:
    options = Options("scancel", SCANCEL)
    rest, values = options.read(words, "scancel [OPTIONS] [JOB[_TASK]...]", "Ends jobs: SIGTERM, and ten seconds later SIGKILL.")
    if not rest and not set(values) & {"jobname", "state", "user", "me", "partition"}:
        raise Wrong("no job is named: give numbers, or --me, --name=NAME, --state=PENDING")
    options.say_notes()
    registry = Registry()
    keep_going(registry)
    failed, jobs = 0, []
    for word in rest:
        if registry.of_word(word):
            jobs += chosen(registry, values, [word], "", OF_OTHERS)
        else:
            failed = 1
            if "quiet" not in values:
                print(f"scancel: error: Kill job error on job id {word}: Invalid job id specified", file=sys.stderr)
    if not rest:
        jobs = chosen(registry, values, [], "state in ('held', 'sent')", OF_OTHERS)
    states = state_names(values, "state")
    for job in registry.cancel([job for job in jobs if not job.over and (states is None or job.now in states)]):
        say_cancelled(registry, job)
    return failed


def say_cancelled(registry: Registry, job: Job) -> None:
    """In the file of a job that ran, as Slurm does, so that an empty one is not taken for its result."""
    batch = registry.batch(job.leader)
    if job.now != "RUNNING" or batch.dialect != "slurm":
        return
    out, err = batch.paths(job.leader, job.number, job.task)
    append(err or out, f"slurmstepd: error: *** JOB {job.number} ON {job.host} CANCELLED AT {time.strftime('%Y-%m-%dT%H:%M:%S')} ***\n")
