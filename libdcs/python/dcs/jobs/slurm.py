"""sbatch: a script, or a command, as a job."""
from __future__ import annotations

import os
import re
import signal
import sys
import time
from typing import Dict, List, Optional, Sequence, Tuple

from ..errors import Error
from ..pool import default_pool
from . import holding
from .batch import Batch, absolute, class_mask, here, script_at, umask, without, working_directory
from .registry import Job, Registry
from .words import Option, Options, Values, Wrong, directives, last, megabytes, task_list, whole

ONE_HOST = "a job runs on one host; --cpus-per-task=N is the number of its cores"
RERUN = "a job whose host dies starts again on another"
OPTIONS = (
    Option("-a --array", "TASKS"), Option("-c --cpus-per-task", "N"), Option("-C --constraint", "CLASS"),
    Option("-d --dependency", "LIST"), Option("-D --chdir", "DIR"), Option("-e --error", "FILE"), Option("--export", "NAMES"),
    Option("-b --begin", "TIME"), Option("-h --help"), Option("-i --input", "FILE"), Option("-J --job-name", "NAME"),
    Option("--mem", "SIZE"), Option("--mem-per-cpu", "SIZE"), Option("-n --ntasks", "N"), Option("-N --nodes", "1"),
    Option("--ntasks-per-node", "N"), Option("--open-mode", "append|truncate"), Option("-o --output", "FILE"),
    Option("-p --partition", "CLASS"), Option("--parsable"), Option("-Q --quiet"), Option("--requeue"),
    Option("-t --time", "LIMIT"), Option("-v --verbose"), Option("-V --version"), Option("-W --wait"), Option("--wrap", "COMMAND"),
    Option("-A --account", "NAME", note="a pool has no accounts"), Option("-q --qos", "NAME", note="a pool has no classes of service"),
    Option("--comment", "TEXT", note="no command shows it"), Option("--mail-type", "WHEN", note="no mail is sent"),
    Option("--mail-user", "NAME", note="no mail is sent"), Option("--no-requeue", note=RERUN),
    Option("--signal", "SIGNAL@SECONDS"),
    Option("--nice", "[N]", note="jobs start in the order of their submission"),
    Option("-s --oversubscribe", "[WHAT]", note="a host may run as many jobs as it has slots, cores and memory"),
    Option("--cpu-bind", "HOW", note="the host's kernel places processes"), Option("--hint", "HOW", note="the host's kernel places processes"),
    Option("-H --hold", refusal="submit it later, or after another job by --dependency"),
    Option("--exclusive", "[WHO]", refusal="--cpus-per-task=N with all cores of a host, or a pool with one slot on it"),
    Option("-G --gpus", "N"), Option("--gres", "LIST"), Option("--gpus-per-node", "N"), Option("-L --licenses", "LIST"),
    Option("-w --nodelist", "HOSTS", refusal="--constraint=CLASS takes hosts of a class"),
    Option("-x --exclude", "HOSTS", refusal="--constraint=CLASS takes hosts of a class"),
    Option("--reservation", "NAME", refusal="a pool has no reservations"), Option("--time-min", "LIMIT", refusal="--time=LIMIT is exact"),
    Option("--tmp", "SIZE", refusal="the host's owner limits what a job keeps on disk"),
    Option("-M --clusters", "NAMES", refusal="DCS_DIR names the pool"), Option("--test-only", refusal="`dcs host ls` shows the hosts", firm=True),
    Option("--uid", "USER", refusal="a job belongs to the user who submits it"), Option("--kill-on-invalid-dep", "yes|no"),
)
ABOUT = """Submits a script as a job of the pool, as Slurm's sbatch does, and prints its number. squeue shows the job,
scancel ends it, sacct says how it ended. Lines #SBATCH at the beginning of the script are options, too."""


STEP = (
    Option("-n --ntasks", "1"), Option("-N --nodes", "1"), Option("-c --cpus-per-task", "N", note="a step has the cores of its job"),
    Option("--mem", "SIZE", note="a step has the memory of its job"), Option("-J --job-name", "NAME", note="no command shows it"),
    Option("--mpi", "KIND", note="there is one task"), Option("-u --unbuffered", note="outputs go to the job's files at once"),
    Option("--exclusive", note="steps that run at once share the cores of their job"), Option("--overlap", note="steps share the cores of their job"),
    Option("--exact", note="steps share the cores of their job"),
    Option("--cpu-bind", "HOW", note="the host's kernel places processes"), Option("-h --help"),
    Option("-l --label", refusal="there is one task"), Option("-o --output", "FILE", refusal="`srun COMMAND >FILE`"),
    Option("--pty", refusal="`dcs run -- COMMAND`, or the host's own shell"),
)


def limit(text: str) -> int:
    """Minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S as seconds."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if not found:
        raise Wrong(f"--time={text}: the limit must be MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS")
    days, a, b, c = (None if part is None else int(part) for part in found.groups())
    if days is not None:
        return ((days * 24 + (a or 0)) * 60 + (b or 0)) * 60 + (c or 0)
    if c is not None:
        return ((a or 0) * 60 + (b or 0)) * 60 + c
    return (a or 0) * 60 + (b or 0)


def begin(text: str) -> float:
    """now+1hour, HH:MM, YYYY-MM-DD[THH:MM[:SS]] as seconds since 1970."""
    units = {"": 1, "seconds": 1, "second": 1, "minutes": 60, "minute": 60, "hours": 3600, "hour": 3600, "days": 86400, "day": 86400}
    found = re.fullmatch(r"now(?:\+(\d+)([a-z]*))?", text)
    if found and found[2] in (None, *units):
        return time.time() + int(found[1] or 0) * units[found[2] or ""]
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"):
        try:
            told = time.strptime(text, form)
        except ValueError:
            continue
        if "%Y" in form:
            return time.mktime(told)
        today = time.localtime()
        at = time.mktime(today[:3] + told[3:6] + today[6:8] + (-1,))
        return at if at > time.time() else at + 86400
    raise Wrong(f"--begin={text}: not a time such as now+2hours, 18:30 or 2026-03-01T06:00")


def warning(text: str, limit_s: int, notes: Options) -> str:
    """[B:]SIGNAL[@SECONDS] before the time limit, as Batch.signal."""
    found = re.fullmatch(r"(?:(B):)?(?:SIG)?([A-Z]+[12]?|\d+)(?:@(\d+))?", text)
    name = found[2] if found else ""
    try:
        name = signal.Signals(int(name)).name[3:] if name.isdigit() else signal.Signals["SIG" + name].name[3:]
    except (KeyError, ValueError):
        raise Wrong(f"--signal={text}: it must be [B:]SIGNAL[@SECONDS], as B:USR1@120") from None
    if limit_s == 0:
        notes.noted["--signal"] = "the job has no time limit (--time)"
        return ""
    return f"{name} {max(0, limit_s - int(found[3] or 60))} {'script' if found[1] else 'steps'}"


def yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise Wrong(f"--kill-on-invalid-dep={text}: it must be yes or no")
    return text == "yes"


def host_class(values: Values, notes: Options) -> Tuple[int, str]:
    """A constraint is a class of the pool; a partition is one if the pool has it."""
    mask = 0
    if (constraint := last(values, "constraint")) is not None:
        try:
            mask = default_pool.host_class(constraint)
        except (Error, ValueError) as error:
            raise Wrong(f"--constraint={constraint}: {error}") from error
    partition = last(values, "partition") or ""
    if partition:
        if (of_partition := class_mask(partition)) is not None:
            mask = of_partition
        else:
            notes.noted[f"--partition={partition}"] = "the pool has no host class of this name, so any host may run the job"
    return mask, partition


def cores_and_memory(values: Values) -> Tuple[int, int]:
    if last(values, "nodes") not in (None, "1", "1-1"):
        raise Wrong(f"--nodes={last(values, 'nodes')}: {ONE_HOST}")
    tasks = max(whole(last(values, key) or "1", "--" + key, 1) for key in ("ntasks", "ntasks-per-node"))
    cores = tasks * whole(last(values, "cpus-per-task") or "1", "--cpus-per-task", 1)
    memory = 0
    if (text := last(values, "mem")) is not None:
        if text == "0":
            raise Wrong("--mem=0: give the memory of the job, or omit --mem for no limit")
        memory = megabytes(text, "--mem")
    elif (text := last(values, "mem-per-cpu")) is not None:
        memory = megabytes(text, "--mem-per-cpu") * cores
    return cores, memory


def resources(values: Values) -> Dict[str, int]:
    """--gpus=[TYPE:]N, --gres=NAME[:TYPE][:N],..., --licenses=NAME[:N],... as named resources of the pool."""
    found: Dict[str, int] = {}

    def take(name: str, parts: Sequence[str], option: str) -> None:
        name = name[len("gres/"):] if name.startswith("gres/") else name
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name):
            raise Wrong(f"{option}: {name!r} is no name of a resource: a-z, 0-9 and _, at most 32")
        amount = whole(parts[-1], option) if parts and parts[-1][:1].isdigit() else 1
        if amount:
            found[name] = max(amount, found.get(name, 0))

    for key in ("gpus", "gpus-per-node"):
        if (text := last(values, key)) is not None:
            take("gpu", text.split(":"), "--" + key)
    for key in ("gres", "licenses"):
        for word in (last(values, key) or "").split(","):
            if word and word != "none":
                name, *parts = word.split(":")
                take(name, parts, "--" + key)
    return found


def exported(values: Values) -> Dict[str, str]:
    """--export=ALL, NONE, or names and NAME=VALUE, with ALL among them or not."""
    environment = without(os.environ, "SLURM_", "SLURMD_", "SBATCH_")
    words = [word for word in (last(values, "export") or "ALL").split(",") if word]
    if words == ["NONE"] or "ALL" not in words:
        kept = {name: environment[name] for name in ("HOME", "SHELL", "TZ", "DCS_DIR", "PATH", "USER", "LOGNAME") if name in environment}
    else:
        kept = environment
    for word in words:
        name, equals, value = word.partition("=")
        if name not in ("ALL", "NONE") and (equals or name in environment):
            kept[name] = value if equals else environment[name]
    return kept


def read_script(rest: Sequence[str], values: Values) -> Tuple[Optional[bytes], List[str], str]:
    """The script's text, its arguments, and a name for the job."""
    if (command := last(values, "wrap")) is not None:
        if rest:
            raise Wrong(f"{rest[0]}: with --wrap there is no script")
        return b"#!/bin/sh\n" + os.fsencode(command) + b"\n", [], "wrap"
    if rest:
        text = script_at(rest[0])
    elif sys.stdin.isatty():
        raise Wrong("the script is missing; --wrap=COMMAND runs a command")
    else:
        text = sys.stdin.buffer.read()
    if not text.startswith(b"#!"):
        raise Wrong(f"{rest[0] if rest else 'standard input'} is not a script: its first line must name its interpreter, as #!/bin/sh "
                    "does (--wrap=COMMAND runs a command)")
    if b"\r\n" in text:
        raise Wrong("the script has the line ends of DOS; `sed -i 's/\\r$//' FILE` changes them")
    return text, list(rest[1:]), os.path.basename(rest[0]) if rest else "sbatch"


def understand(words: Sequence[str], options: Options) -> Tuple[Batch, Values]:
    of_command: Values = {}
    rest = options.take(words, of_command)
    if "help" in of_command or "version" in of_command:
        return Batch("slurm", "", "", ""), of_command
    script, arguments, name = read_script(rest, of_command)
    values: Values = {}
    if script is not None and "wrap" not in of_command:
        left = options.take(directives(script, b"#SBATCH", False), values)
        if left:
            raise Wrong(f"a line #SBATCH contains {left[0]!r}, which is not an option")
    values.update(of_command)
    directory = absolute(last(values, "chdir") or ".", working_directory())
    cores, memory = cores_and_memory(values)
    mask, partition = host_class(values, options)
    tasks, most = [], 0
    if (array := last(values, "array")) is not None:
        ranges, percent, number = array.partition("%")
        tasks, most = task_list(ranges, "--array"), whole(number, "--array", 1) if percent else 0
    default = "slurm-%A_%a.out" if tasks else "slurm-%j.out"
    mode = last(values, "open-mode") or "truncate"
    if mode not in ("append", "truncate"):
        raise Wrong(f"--open-mode={mode}: it must be append or truncate")
    batch = Batch("slurm", last(values, "job-name") or name, directory, last(values, "output") or default, last(values, "error"),
                  mode, last(values, "input") or "/dev/null", None if script is None else script.decode("utf-8", "surrogateescape"),
                  "slurm_script", "", arguments, exported(values), tasks, most, cores, memory,
                  limit(last(values, "time") or "0") if last(values, "time") not in ("infinite", "UNLIMITED") else 0, mask, partition,
                  umask(), host=here(), resources=resources(values), path=absolute(rest[0], working_directory()) if rest else "")
    if (text := last(values, "signal")) is not None:
        batch.signal = warning(text, batch.wall_s, options)
    each = whole(last(values, "cpus-per-task") or "1", "--cpus-per-task", 1)
    batch.env.update(SLURM_CPUS_PER_TASK=str(each), SLURM_NTASKS=str(cores // each), SLURM_NPROCS=str(cores // each))
    return batch, values


def shown(job: Job) -> str:
    return str(job.number) if job.task is None else f"{job.leader}_{job.task}"


def worst(jobs: Sequence[Job]) -> int:
    return max(128 + job.signal if job.signal else job.code if job.over and job.now not in ("CANCELLED", "UNKNOWN") else 1 for job in jobs)


def srun(words: Sequence[str]) -> int:
    """Within a job: becomes the command. There is one task, which has all of the job."""
    options, values = Options("srun", STEP), {}
    command = options.take(words, values)
    if "help" in values:
        print(options.help("srun [OPTIONS] COMMAND [ARG...]", "Within a script of sbatch: runs the command."))
        return 0
    if "SLURM_JOB_ID" not in os.environ:
        raise Wrong("srun runs a step of a job, in a script of sbatch; here `dcs run -- COMMAND` runs a command on the pool")
    if not command:
        raise Wrong("the command is missing")
    for key, of_job in (("ntasks", os.environ.get("SLURM_NTASKS", "1")), ("nodes", "1")):
        if (last(values, key) or of_job) not in ("1", "1-1"):
            raise Wrong(f"{'' if last(values, key) else 'of the job: '}--{key}={last(values, key) or of_job}: a job runs one task on one host; sbatch --array=1-N makes N jobs of a script")
    options.say_notes()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Wrong(f"{command[0]}: {error.strerror}") from error


def sbatch(words: Sequence[str]) -> int:
    options = Options("sbatch", OPTIONS)
    batch, values = understand(words, options)
    if "help" in values:
        print(options.help("sbatch [OPTIONS] SCRIPT [ARG...]", ABOUT))
        return 0
    if "version" in values:
        print("slurm 22.05 (options and outputs; a pool of DCS)")
        return 0
    registry = Registry()
    after, any_of_them = holding.slurm_dependency(last(values, "dependency") or "", registry) if last(values, "dependency") else ([], False)
    hold = holding.condition(after, any_of_them, begin(last(values, "begin") or "now"),
                             yes_or_no(last(values, "kill-on-invalid-dep") or "no"))
    if "quiet" not in values:
        options.noted.update((name, "options are given as words or in the script") for name in sorted(os.environ) if name.startswith("SBATCH_"))
        holding.warn_of_outputs("sbatch", batch.paths(1, 1, batch.tasks[0] if batch.tasks else None))
        options.say_notes()
    jobs = holding.submit("sbatch", registry, batch, hold)
    if "quiet" not in values:  # as Slurm, with --parsable too
        print(jobs[0].leader if "parsable" in values else f"Submitted batch job {jobs[0].leader}", flush=True)
    return worst(registry.wait(jobs)) if "wait" in values else 0
