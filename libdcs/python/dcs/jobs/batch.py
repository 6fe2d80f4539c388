"""What is submitted: one job, or an array of tasks that differ in their numbers."""
from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from dataclasses import asdict, dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

from ..errors import Error
from ..pool import default_pool, login_name
from ..spec import Grain
from .words import Wrong, expand

# Runs on the host, in the grain's own directory: puts the script there, and becomes it in the job's directory with
# its outputs in the job's files. What cannot be done is written to the grain's own standard error. It goes in a
# variable, so that the words of the grain are readable.
WRAPPER = r"""
dir=$1 out=$2 err=$3 mode=$4 in=$5 name=$6 shell=$7
shift 7
room=$PWD
host=$(uname -n)
if [ -n "$name" ]; then cat >"$room/$name" && chmod 700 "$room/$name" || exit 1; fi
cd "$dir" || exit 1
[ "$TMPDIR" != @room ] || export TMPDIR="$room"
if [ -n "$SLURM_JOB_ID" ]; then
    export SLURMD_NODENAME="$host" SLURM_JOB_NODELIST="$host" SLURM_NODELIST="$host"
elif [ -n "$JOB_ID" ]; then
    export HOSTNAME="$host" SGE_STDOUT_PATH="$out" SGE_STDERR_PATH="${err:-$out}"
fi
exec <"$in"
if [ "$mode" != append ] && [ ! -p "$out" ]; then : >"$out"; fi
exec >>"$out"
if [ "$mode" != append ] && [ -n "$err" ] && [ ! -p "$err" ]; then : >"$err"; fi
if [ -z "$err" ]; then exec 2>&1; else exec 2>>"$err"; fi
if [ -n "$DCS_JOB_SIGNAL" ]; then
    # SIGNAL SECONDS WHOM: to the script alone, or to all processes of the job but the script
    (set -- $DCS_JOB_SIGNAL; trap "" "$1"; sleep "$2"; case $3 in
    script) kill -s "$1" $$ ;;
    *) for one in $(ps -s $$ -o pid=); do [ "$one" = $$ ] || kill -s "$1" "$one"; done ;; esac) </dev/null >/dev/null 2>&1 &
fi
unset DCS_JOB_KEY DCS_JOB_START DCS_JOB_SIGNAL
if [ -z "$name" ]; then exec "$@"
elif [ -n "$shell" ]; then exec "$shell" "$room/$name" "$@"
else exec "$room/$name" "$@"; fi
"""
OWN = "DCS_GRAIN_DIR DCS_GRAIN_SEQUENCE DCS_AUTH_FD DCS_PATIENCE_S DCS_RESUME_FAILED DCS_UMASK DCS_JOB_KEY DCS_JOB_START DCS_JOB_SIGNAL DCS_JOBS_IGNORE".split()


@dataclass
class Batch:
    """`tasks`: the numbers of an array, empty for a single job. `script`: its text; without one `words` is the command,
    otherwise its arguments. `most`: so many tasks run at a time. `out` and `err` (None: with out) are patterns."""
    dialect: str
    name: str
    directory: str
    out: str
    err: Optional[str] = None
    mode: str = ""  # "append", "truncate", or "": truncate a file whose name has the job's number in it, else append
    stdin: str = "/dev/null"
    script: Optional[str] = None
    script_name: str = ""
    shell: str = ""
    words: List[str] = field(default_factory=list)
    env: Dict[str, str] = field(default_factory=dict)
    tasks: List[int] = field(default_factory=list)
    most: int = 0
    cores: int = 0
    memory_mb: int = 0
    wall_s: int = 0
    host_class: int = 0
    queue: str = ""
    umask: str = "0022"
    key: str = ""  # makes two equal submissions different ones
    host: str = ""
    resources: Dict[str, int] = field(default_factory=dict)  # named ones of the pool
    path: str = ""  # of the script, when it was submitted
    signal: str = ""  # before the time limit: its name, after how many seconds, and "script" or "steps"

    def text(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of(text: str) -> "Batch":
        return Batch(**json.loads(text))

    def grain(self, leader: int, number: int, task: Optional[int]) -> Grain:
        """The grain `number` of the batch whose first one is `leader`."""
        out, err = self.paths(leader, number, task)
        env = {name: value for name, value in self.env.items() if name not in OWN}
        env.update((_slurm_variables if self.dialect == "slurm" else _sge_variables)(self, leader, number, task))
        env.update(DCS_UMASK=self.umask, DCS_JOB_KEY=self.key, DCS_JOB_START=WRAPPER)
        if self.signal:
            env["DCS_JOB_SIGNAL"] = self.signal
        mode = self.mode
        if not mode:
            mode = "truncate" if str(leader) in os.path.basename(out) or str(number) in os.path.basename(out) else "append"
        argv = ["/bin/sh", "-c", 'eval "$DCS_JOB_START"', "job", self.directory, out, err or "", mode, self.stdin, self.script_name, self.shell,
                *self.words]
        script = b"" if self.script is None else self.script.encode("utf-8", "surrogateescape")
        return Grain(argv, input=script, env=env, attempts=1, host_class=self.host_class, cores=self.cores,
                     memory_mb=self.memory_mb, wall_s=self.wall_s, label=self.name[:200],
                     resources=self.resources or None)

    def paths(self, leader: int, number: int, task: Optional[int]) -> Tuple[str, Optional[str]]:
        """Its outputs; None: the second goes with the first."""
        return (_slurm_paths if self.dialect == "slurm" else _sge_paths)(self, leader, number, task)

    def error_file(self, leader: int, number: int, task: Optional[int]) -> str:
        out, err = self.paths(leader, number, task)
        return err or out


def _slurm_paths(batch: Batch, leader: int, number: int, task: Optional[int]) -> Tuple[str, Optional[str]]:
    def letter(which: str, width: int) -> Optional[str]:
        if which in "jJ":
            return str(number).rjust(width, "0")
        if which == "A":
            return str(leader).rjust(width, "0")
        if which == "a":
            return str(4294967294 if task is None else task).rjust(width, "0")
        return {"x": batch.name, "u": login_name(), "n": "0", "t": "0", "s": "batch", "b": str((task or 0) % 10)}.get(which)

    if re.search(r"%\d*N", batch.out + (batch.err or "")):
        raise Wrong("%N: the host is not known yet when the job is submitted; %j and %x make names that differ")
    out, err = (None if pattern is None else absolute(expand(pattern, letter), batch.directory) for pattern in (batch.out, batch.err))
    return out or "/dev/null", None if err == out else err


def _slurm_variables(batch: Batch, leader: int, number: int, task: Optional[int]) -> Dict[str, str]:
    cores = max(1, batch.cores)
    found = {"SLURM_JOB_ID": str(number), "SLURM_JOBID": str(number), "SLURM_JOB_NAME": batch.name, "SLURM_SUBMIT_HOST": batch.host,
             "SLURM_SUBMIT_DIR": batch.directory, "SLURM_JOB_USER": login_name(), "SLURM_JOB_PARTITION": batch.queue or "dcs",
             "SLURM_CPUS_ON_NODE": str(cores), "SLURM_JOB_CPUS_PER_NODE": str(cores),
             "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1", "SLURM_PROCID": "0",
             "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_CLUSTER_NAME": "dcs", "ENVIRONMENT": "BATCH"}
    if batch.memory_mb:
        found["SLURM_MEM_PER_NODE"] = str(batch.memory_mb)
    if task is not None:
        step = batch.tasks[1] - batch.tasks[0] if len(batch.tasks) > 1 else 1
        found.update(SLURM_ARRAY_JOB_ID=str(leader), SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_COUNT=str(len(batch.tasks)),
                     SLURM_ARRAY_TASK_MIN=str(min(batch.tasks)), SLURM_ARRAY_TASK_MAX=str(max(batch.tasks)),
                     SLURM_ARRAY_TASK_STEP=str(step))
    return found


def _sge_paths(batch: Batch, leader: int, number: int, task: Optional[int]) -> Tuple[str, Optional[str]]:
    known = {"JOB_ID": str(leader), "PBS_JOBID": str(leader), "JOB_NAME": batch.name, "USER": login_name(), "HOME": batch.env.get("HOME", ""),
             "TASK_ID": str(task or 1)}

    def one(pattern: str, letter: str) -> str:
        if "$HOSTNAME" in pattern:
            raise Wrong("$HOSTNAME: the host is not known yet when the job is submitted; $JOB_ID makes names that differ")
        path = re.sub(r"\$\{?(\w+)\}?", lambda found: known.get(found[1], found[0]), pattern)
        if path.endswith("/") or os.path.isdir(path):
            path = os.path.join(path, f"{batch.name}.{letter}{leader}" + ("" if task is None else f".{task}"))
        return os.path.normpath(path)

    out, err = one(batch.out, "o"), None if batch.err is None else one(batch.err, "e")
    return out, None if err == out else err


def _sge_variables(batch: Batch, leader: int, number: int, task: Optional[int]) -> Dict[str, str]:
    cores = str(max(1, batch.cores))
    if batch.dialect == "pbs":
        found = {"PBS_JOBID": str(leader), "PBS_JOBNAME": batch.name, "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_NP": cores, "NCPUS": cores,
                 "PBS_NUM_PPN": cores, "PBS_NUM_NODES": "1", "PBS_QUEUE": batch.queue or "dcs"}
        return found if task is None else {**found, "PBS_ARRAYID": str(task), "PBS_ARRAY_INDEX": str(task)}
    many = len(batch.tasks) > 1
    found = {"JOB_ID": str(leader), "JOB_NAME": batch.name, "NSLOTS": cores, "NHOSTS": "1", "NQUEUES": "1", "QUEUE": batch.queue or "dcs.q",
             "ENVIRONMENT": "BATCH", "REQUEST": batch.name, "SGE_TASK_ID": "undefined" if task is None else str(task), "RESTARTED": "0",
             "SGE_CWD_PATH": batch.directory, "SGE_CELL": "default", "SGE_TASK_FIRST": "undefined", "SGE_TASK_LAST": "undefined",
             "SGE_TASK_STEPSIZE": "undefined"}
    if task is not None:
        found.update(SGE_TASK_FIRST=str(batch.tasks[0]), SGE_TASK_LAST=str(batch.tasks[-1]),
                     SGE_TASK_STEPSIZE=str(batch.tasks[1] - batch.tasks[0] if many else 1))
    return found


def absolute(path: str, directory: str) -> str:
    return os.path.normpath(os.path.join(directory, path))


def login_environment(environment: Mapping[str, str]) -> Dict[str, str]:
    """What a job starts with that does not take over the submitter's variables."""
    kept = {name: environment[name] for name in ("HOME", "SHELL", "TZ", "DCS_DIR") if name in environment}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "USER": login_name(), "LOGNAME": login_name(), **kept}


def without(environment: Mapping[str, str], *prefixes: str) -> Dict[str, str]:
    """A job that submits jobs does not pass on what it is itself."""
    return {name: value for name, value in environment.items() if not name.startswith(prefixes)}


def class_mask(name: str) -> Optional[int]:
    """Of a host class; None: the pool has none of this name."""
    try:
        return default_pool.host_class(name)
    except (Error, ValueError) as error:
        if isinstance(error, ConnectionError):
            raise
        return None


def script_at(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Wrong(f"the script {path} cannot be read: {error.strerror}") from error


def umask() -> str:
    mask = os.umask(0o077)
    os.umask(mask)
    return f"{mask:04o}"


def here() -> str:
    return os.uname().nodename


def working_directory() -> str:
    """As the shell names it, when that is this directory."""
    told, true = os.environ.get("PWD", ""), os.getcwd()
    try:
        return told if told.startswith("/") and os.path.samefile(told, true) else true
    except OSError:
        return true


def append(path: str, text: str, more: int = 0) -> None:
    """To an output of a job, if there is such a file here. Where others may write, as in /tmp, it may be none of the job: a link, or
    a pipe that no process reads."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | more, 0o666)
        with os.fdopen(descriptor, "w") as file:
            now = os.fstat(descriptor)
            if stat.S_ISREG(now.st_mode) and now.st_nlink == 1:
                file.write(text)
