"""sinfo and scontrol: hosts, and jobs in detail."""
from __future__ import annotations

import os
import re
import sys
import time
from typing import Dict, List, Sequence, Tuple

from ..pool import default_pool, login_name
from ..query import HostRow
from . import times
from .batch import here
from .holding import dependency_of, keep_going, reason_of
from .registry import Job, Registry
from .slurm import shown
from .slurm_show import end_of, formatted, moment, names, seconds
from .words import Option, Options, Values, Wrong, last

SINFO = (
    Option("-h --noheader"), Option("-N --Node"), Option("-o --format", "FORMAT"), Option("-n --nodes", "HOSTS"), Option("-p --partition", "NAMES"),
    Option("--help"), Option("-l --long", note="-o FORMAT selects columns"), Option("-a --all", note="nothing is hidden"),
    Option("-e --exact", note="hosts that differ have lines of their own"),
    Option("-s --summarize", refusal="`dcs status`"), Option("-R --list-reasons", refusal="`dcs doctor`"),
    Option("-i --iterate", "SECONDS", refusal="`watch -n SECONDS sinfo`"), Option("-O --Format", "FORMAT", refusal="-o FORMAT selects columns"),
    Option("--json", refusal="`dcs host ls -o json`"), Option("-t --states", "LIST", refusal="`dcs host ls active`"),
)
TITLES = {"P": "PARTITION", "R": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE", "N": "NODELIST", "n": "HOSTNAMES",
          "c": "CPUS", "m": "MEMORY", "e": "FREE_MEM", "O": "CPU_LOAD", "C": "CPUS(A/I/O/T)", "G": "GRES", "f": "AVAIL_FEATURES", "F": "NODES(A/I/O/T)"}
SCONTROL = (Option("-o --oneliner"), Option("-d --details", note="all is shown"), Option("--help"))
INSTEAD = {"hold": "a job that waits stays so until it can run; `scancel JOB` ends it", "release": "jobs are held by --dependency and --begin only",
           "requeue": "submit it again, with what depends on it", "update": "`scancel JOB`, and submit it again", "suspend": "the pool suspends no jobs",
           "resume": "the pool suspends no jobs", "ping": "`dcs status`", "reconfigure": "`dcs reload`"}
SHOW_INSTEAD = {"node": "`dcs host show HOST`", "nodes": "`dcs host ls`", "partition": "`sinfo`", "partitions": "`sinfo`",
                "reservation": "a pool has no reservations", "step": "a job has one step"}


def state_of(host: HostRow) -> str:
    if host.state == "dead" or not host.connected:
        return "down"
    if host.drained:
        return "drained" if host.running == 0 else "draining"
    return "idle" if host.running == 0 else "allocated" if host.running >= host.slots else "mixed"


def columns(rows: Sequence[HostRow], partition: str) -> Dict[str, str]:
    """Of hosts that are alike, in one line."""
    host, state = rows[0], state_of(rows[0])
    cores, used = sum(row.cores for row in rows), sum(row.cores_used for row in rows)
    up = state not in ("down", "drained")
    counts = f"{used}/{cores - used if up else 0}/{0 if up else cores}/{cores}"
    busy, count = sum(row.running > 0 for row in rows), len(rows)
    return {"P": partition + "*", "R": partition, "a": "up", "l": "infinite", "D": str(count), "t": {"allocated": "alloc", "mixed": "mix"}.get(state, state)[:5],
            "T": state, "N": ",".join(row.name for row in rows), "n": ",".join(row.name for row in rows), "c": str(host.cores), "m": str(host.memory_mb),
            "e": "N/A" if host.free_memory_kb < 0 else str(host.free_memory_kb // 1024), "O": "N/A" if host.load < 0 else f"{host.load:.2f}", "C": counts,
            "G": host.resources or "(null)", "f": host.class_names or "(null)", "F": f"{busy}/{count - busy if up else 0}/{0 if up else count}/{count}"}


def sinfo(words: Sequence[str]) -> int:
    options = Options("sinfo", SINFO)
    _, values = options.read(words, "sinfo [OPTIONS]", "Shows the hosts of the pool, those in the same state in one line, or with -N each.",
                             "-n {} names a host")
    options.say_notes()
    hosts = [host for host in default_pool.hosts() if not names(values, "nodes") or host.name in names(values, "nodes")]
    if "partition" in values:
        hosts = [host for host in hosts if {"dcs", *host.class_names.replace(",", " ").split()} & set(names(values, "partition"))]
    each = "Node" in values
    pattern = last(values, "format") or ("%N %.6D %.9P %T" if each else "%9P %.5a %.10l %.6D %.6t %N")
    if unknown := [letter for letter in re.findall(r"%\.?\d*([A-Za-z])", pattern) if letter not in TITLES]:
        raise Wrong(f"-o: unknown column %{unknown[0]}; the columns are {' '.join(sorted(TITLES))}")
    if "noheader" not in values:
        print(formatted(pattern, lambda letter: TITLES[letter]).rstrip())
    alike: Dict[Tuple[object, ...], List[HostRow]] = {}
    for host in hosts:
        alike.setdefault((host.name,) if each or re.search(r"%\.?\d*[eOn]", pattern) else (state_of(host), host.cores, host.memory_mb), []).append(host)
    for rows in alike.values():
        print(formatted(pattern, columns(rows, "dcs").__getitem__).rstrip())
    return 0


def details(registry: Registry, job: Job, clock: times.Times) -> List[List[str]]:
    batch = registry.batch(job.leader)
    began, ended = clock.of(job)
    out, err = batch.paths(job.leader, job.number, job.task)
    array = [] if job.task is None else [f"ArrayJobId={job.leader}", f"ArrayTaskId={job.task}"]
    return [[f"JobId={job.number}", *array, f"JobName={job.name}"], [f"UserId={login_name()}({os.getuid()})", "Account=(null)", "QOS=normal"],
            [f"JobState={job.now}", f"Reason={reason_of(job) if job.now == 'PENDING' else 'None'}", f"Dependency={dependency_of(job)}"],
            ["Requeue=1", f"ExitCode={job.code}:{job.signal}"],
            [f"RunTime={seconds((ended or time.time()) - began if began else 0)}", f"TimeLimit={seconds(batch.wall_s) if batch.wall_s else 'UNLIMITED'}"],
            [f"SubmitTime={moment(job.submitted)}", f"StartTime={moment(began, 'Unknown')}", f"EndTime={moment(end_of(batch, began, ended), 'Unknown')}"],
            [f"Partition={batch.queue or 'dcs'}", f"NodeList={job.host or '(null)'}"],
            ["NumNodes=1", f"NumCPUs={max(1, batch.cores)}", f"MinMemoryNode={batch.memory_mb}M"],
            [f"Command={' '.join(filter(None, (batch.path, *batch.words))) or '(null)'}"], [f"WorkDir={batch.directory}"], [f"StdErr={err or out}"], [f"StdIn={batch.stdin}"],
            [f"StdOut={out}"]]


def scontrol(words: Sequence[str]) -> int:
    options, values = Options("scontrol", SCONTROL), {}
    rest = options.take_all(words, values)
    if "help" in values or not rest:
        print(options.help("scontrol [OPTIONS] show job [JOB] | hostnames [LIST] | config", "Shows jobs in detail: those that wait or run, or one."),
              file=sys.stdout if "help" in values else sys.stderr)
        return 0 if "help" in values else 1
    if rest[0] in INSTEAD:
        raise Wrong(f"{rest[0]}: {INSTEAD[rest[0]]}")
    what, _, name = rest[1].partition("=") if len(rest) > 1 else ("", "", "")
    if rest[0] != "show" or len(rest) > 3 or what not in SHOW:
        raise Wrong(f"{' '.join(rest)}: " + SHOW_INSTEAD.get(what, "only `show job`, `show hostnames` and `show config` are there"))
    return SHOW[what](values, [word for word in (name, *rest[2:]) if word])


def show_hostnames(_: Values, words: Sequence[str]) -> int:
    """A job has one host, so there is nothing to expand."""
    for name in (words[0] if words else os.environ.get("SLURM_JOB_NODELIST", "")).split(","):
        if name:
            print(name)
    return 0


def show_config(_: Values, __: Sequence[str]) -> int:
    """What programs read of it: how often it is worth to ask."""
    print(f"Configuration data as of {moment(time.time())}")
    for name, value in (("ClusterName", "dcs"), ("SchedulerTimeSlice", "1 sec"), ("SlurmctldHost[0]", here())):
        print(f"{name:<23} = {value}")
    return 0


def show_jobs(values: Values, words: Sequence[str]) -> int:
    registry = Registry()
    keep_going(registry)
    jobs = registry.of_word(words[0]) if words else registry.jobs("state in ('held', 'sent')")
    if words and not jobs:
        raise Wrong(f"Invalid job id specified: there is no job {words[0]}")
    jobs = [job for job in registry.look(jobs) if words or not job.over]
    if not jobs:
        print("No jobs in the system")
    clock = times.Times(jobs)
    for job in jobs:
        lines = [" ".join(line) for line in details(registry, job, clock)]
        print(" ".join(lines) if "oneliner" in values else "\n   ".join(lines) + "\n")
    return 0


SHOW = {"job": show_jobs, "jobs": show_jobs, "jobid": show_jobs, "hostnames": show_hostnames, "hostname": show_hostnames, "config": show_config}
