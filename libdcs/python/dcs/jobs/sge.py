"""qsub: a script, or a command, as a job; with Grid Engine's options, or PBS's in scripts with lines #PBS."""
from __future__ import annotations

import fnmatch
import os
import re
import sys
import time
from typing import Dict, List, Optional, Sequence, Tuple

from ..pool import default_pool, login_name
from . import holding
from .batch import Batch, absolute, class_mask, here, login_environment, script_at, umask, without, working_directory
from .registry import Job, Registry
from .slurm import worst
from .words import Option, Options, Values, Wrong, directives, last, megabytes, task_list, whole

ORDER = "jobs start in the order of their submission"
OPTIONS = (
    Option("-a", "MMDDhhmm"), Option("-b", "y|n"), Option("-cwd"), Option("-wd -d", "DIR"), Option("-e", "FILE"), Option("-o", "FILE"),
    Option("-i", "FILE"), Option("-j", "y|n"), Option("-l", "LIST"), Option("-N", "NAME"), Option("-pe", "NAME"), Option("-q", "CLASS"),
    Option("-S", "SHELL"), Option("-shell", "y|n"), Option("-sync", "y|n"), Option("-J -t", "TASKS"), Option("-tc", "N"), Option("-terse"),
    Option("-v", "LIST"), Option("-V"), Option("-hold_jid", "LIST"), Option("-hold_jid_ad", "LIST"), Option("-W", "depend=LIST"),
    Option("-r", "y|n"), Option("-help"), Option("-clear"), Option("-hard"),
    Option("-p", "N", note=ORDER), Option("-js", "N", note=ORDER), Option("-R", "y|n", note=ORDER), Option("-P", "NAME", note="a pool has no projects"),
    Option("-A", "NAME", note="a pool has no accounts"), Option("-m", "WHEN", note="no mail is sent"), Option("-M", "NAME", note="no mail is sent"),
    Option("-notify", note="a job at its time limit ends without a warning"), Option("-w", "HOW", note="qstat shows a job that cannot run as waiting"),
    Option("-soft", note="-l says what a job must have"), Option("-now", "y|n", note="the job waits for its turn"),
    Option("-h", refusal="submit it later, or after another job by -hold_jid"), Option("-masterq", "LIST", refusal="a job runs on one host"),
    Option("-@", "FILE", refusal="the options of the file, on the command line"), Option("-I", refusal="`dcs run -- COMMAND` for one at the terminal"),
    Option("-dl", "TIME", refusal="jobs have no deadlines"), Option("-ckpt", "NAME", refusal="a program with checkpoints: docs/MAKE_A_GRAIN.md"),
    Option("-verify", refusal="-terse prints only the number"), Option("-C", "PREFIX", refusal="lines #$ are options"),
)
ABOUT = """Submits a script as a job of the pool, as Grid Engine's qsub does, or with -b y a command. qstat shows the job, qdel
ends it, qacct says how it ended. Lines #$ of the script are options, too; without any, its lines #PBS are, as in PBS."""


def yes(values: Values, key: str, otherwise: bool = False) -> bool:
    word = last(values, key)
    if word is None:
        return otherwise
    if word.lower() not in ("y", "yes", "n", "no", "oe", "eo"):
        raise Wrong(f"-{key} {word}: it must be y or n")
    return word.lower() not in ("n", "no")


def clock(text: str, what: str) -> int:
    if not re.fullmatch(r"\d+(:\d+){0,2}", text):
        raise Wrong(f"{what}={text}: the limit must be SECONDS or HOURS:MINUTES:SECONDS")
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


def moment(text: str) -> float:
    """[[CC]YY]MMDDhhmm[.SS]"""
    digits, _, second = text.partition(".")
    year = time.strftime("%Y")
    digits = {8: year, 10: year[:2]}.get(len(digits), "") + digits
    try:
        return time.mktime(time.strptime(digits + (second or "00"), "%Y%m%d%H%M%S"))
    except ValueError as error:
        raise Wrong(f"-a {text}: the time must be MMDDhhmm") from error


class Needs:
    """What -l and -pe ask for."""

    def __init__(self) -> None:
        self.wall, self.memory, self.cores, self.mask = 0, 0, 0, 0
        self.resources: Dict[str, int] = {}

    def take(self, word: str) -> None:
        name, _, value = word.partition("=")
        name = name.strip()
        if name in ("h_rt", "s_rt", "walltime"):
            self.wall = clock(value, name)
        elif name in ("h_vmem", "s_vmem", "mem_free", "mf", "virtual_free", "vf", "vmem", "mem", "pmem", "h_rss"):
            self.memory = max(self.memory, megabytes(value, "-l " + name, "b"))
        elif name in ("ncpus", "ppn", "num_proc", "slots"):
            self.cores = whole(value, "-l " + name, 1)
        elif name in ("nodes", "select"):
            count, *parts = value.split(":")
            if count != "1":
                raise Wrong(f"-l {word}: a job runs on one host; -pe smp N or ppn=N is the number of its cores")
            for part in parts:
                self.take(part)
        elif name not in ("mpiprocs", "ompthreads", "arch", "place"):
            resource = {"gpus": "gpu", "ngpus": "gpu"}.get(name, name)
            if re.fullmatch(r"\d+", value) and re.fullmatch(r"[a-z][a-z0-9_]{0,31}", resource) and not self.is_class(name, resource):
                if (amount := whole(value, "-l " + name)):
                    self.resources[resource] = amount
                return
            if (mask := class_mask(name)) is None:
                raise Wrong(f"-l {word}: {name} is neither a resource nor a host class of the pool: use h_rt, h_vmem, mem_free, walltime, mem, "
                            f"nodes=1:ppn=N, or NAME=N of a resource (DCS_JOBS_IGNORE={name} ignores it)")
            self.mask |= mask

    @staticmethod
    def is_class(name: str, resource: str) -> bool:
        """A host class of that name, and no host has such a resource: -l gpu=1 was one before there were resources."""
        return class_mask(name) is not None and not any((resource + "=") in host.resources for host in default_pool.hosts())


def needs_of(values: Values, notes: Options) -> Needs:
    needs = Needs()
    for text in values.get("l", []):
        for word in text.split(","):
            name = word.partition("=")[0].strip()
            if name in notes.ignored:
                notes.noted[f"-l {name}"] = "DCS_JOBS_IGNORE names it"
            elif word:
                needs.take(word)
    per_slot = last(values, "pe")
    if per_slot is not None:
        needs.cores = whole(per_slot.split(" ")[1].split("-")[0], "-pe", 1)
        needs.memory *= needs.cores
    if (queue := last(values, "q")) is not None:
        if (mask := class_mask(queue.split("@")[0])) is not None:
            needs.mask |= mask
        else:
            notes.noted[f"-q {queue}"] = "the pool has no host class of this name, so any host may run the job"
    return needs


def take(options: Options, words: Sequence[str], values: Values) -> List[str]:
    """-pe has two values."""
    rest = list(words)
    if "-pe" in rest[:-2]:
        at = rest.index("-pe")
        rest[at + 1:at + 3] = [rest[at + 1] + " " + rest[at + 2]]
    return options.take(rest, values)


def environment(values: Values) -> Dict[str, str]:
    mine = without(os.environ, "SGE_", "JOB_", "PBS_")
    kept = mine if "V" in values else login_environment(mine)
    for text in values.get("v", []):
        for word in text.split(","):
            name, equals, value = word.partition("=")
            kept[name] = value if equals else mine.get(name, "")
    return {**kept, "TMPDIR": "@room"}


def read_script(rest: Sequence[str], values: Values) -> Tuple[Optional[bytes], List[str], str]:
    """The script's text or None, the words after it or the whole command, and a name."""
    if yes(values, "b"):
        if not rest:
            raise Wrong("-b y: the command is missing")
        shell = last(values, "S") or "/bin/sh"
        words = list(rest) if not yes(values, "shell", True) else [shell.split("=")[-1], "-c", " ".join(w or '""' for w in rest)]
        return None, words, os.path.basename(rest[0].split(" ")[0])
    if not rest and sys.stdin.isatty():
        raise Wrong("the script is missing; -b y COMMAND runs a command")
    if not rest or rest[0] == "-":
        return sys.stdin.buffer.read(), list(rest[1:]), "STDIN"
    return script_at(rest[0]), list(rest[1:]), os.path.basename(rest[0])


def understand(words: Sequence[str], options: Options) -> Tuple[Batch, Values]:
    of_command: Values = {}
    rest = take(options, words, of_command)
    if "help" in of_command:
        return Batch("sge", "", "", ""), of_command
    script, arguments, name = read_script(rest, of_command)
    values: Values = {}
    dialect = "sge"
    if script is not None:
        lines = directives(script, b"#$", True)
        if not lines and (lines := directives(script, b"#PBS", False)):
            dialect = "pbs"
        left = take(options, lines, values)
        if left:
            raise Wrong(f"a line #$ or #PBS contains {left[0]!r}, which is not an option")
    for key, given in of_command.items():
        values[key] = values.get(key, []) + given
    if "W" in values:
        dialect = "pbs"
    submitted_in, home = working_directory(), os.environ.get("HOME") or "/"
    where = submitted_in if "cwd" in values else home
    directory = absolute(last(values, "d") or where, submitted_in)
    base = submitted_in if dialect == "pbs" else directory
    needs = needs_of(values, options)
    tasks, most = [], whole(last(values, "tc") or "0", "-tc")
    if (array := last(values, "t")) is not None:
        ranges, _, number = array.partition("%")
        tasks, most = task_list(ranges, "-t"), whole(number, "-t", 1) if number else most
    if "r" in values and not yes(values, "r"):
        options.noted["-r n"] = "a job whose host dies starts again on another"
    shell = (last(values, "S") or "").split("=")[-1]
    if script is not None and not shell and not script.startswith(b"#!"):
        shell = "/bin/sh"
    out, err = (None if text is None else os.path.join(base, text.split(":", 1)[-1]) for text in (last(values, "o"), last(values, "e")))
    batch = Batch(dialect, last(values, "N") or name, directory, out or base, None if yes(values, "j") else err or base, "",
                  last(values, "i") or "/dev/null", None if script is None else script.decode("utf-8", "surrogateescape"),
                  "" if script is None else "job_script", shell if script is not None else "", arguments, environment(values), tasks, most,
                  needs.cores, needs.memory, needs.wall, needs.mask, last(values, "q") or "", umask(), host=here(),
                  resources=needs.resources)
    batch.env.update({("PBS_O_" if dialect == "pbs" else "SGE_O_") + name: value for name, value in (
        ("WORKDIR", submitted_in), ("HOME", home), ("LOGNAME", login_name()), ("HOST", batch.host), ("PATH", os.environ.get("PATH", "")),
        ("SHELL", os.environ.get("SHELL", "/bin/sh")))})
    return batch, values


def numbered(registry: Registry, words: Sequence[str], option: str) -> List[str]:
    """The jobs of -hold_jid: numbers, or names with * and ?. A name that no unfinished job has holds nothing."""
    found: List[str] = []
    for word in words:
        if word.split(".")[0].isdigit():
            if not registry.of_word(word.split(".")[0]):
                raise Wrong(f"{option} {word}: there is no job {word}")
            found.append(word.split(".")[0])
        else:
            unfinished = registry.look(registry.jobs("state in ('held', 'sent')"))
            found += sorted({str(job.leader) for job in unfinished if not job.over and fnmatch.fnmatchcase(job.name, word)})
    return found


def hold_of(registry: Registry, values: Values, options: Options) -> Optional[holding.Condition]:
    after: List[Tuple[str, List[str]]] = []
    for key, relation in (("hold_jid", "afterany"), ("hold_jid_ad", "afteranycorr")):
        words = [word for text in values.get(key, []) for word in text.split(",") if word]
        if words := numbered(registry, words, "-" + key):
            after.append((relation, words))
    for text in values.get("W", []):
        name, _, value = text.partition("=")
        if name == "depend":
            after += holding.slurm_dependency(value, registry)[0]
        else:
            options.noted[f"-W {text}"] = "only depend=LIST is known"
    return holding.condition(after, False, moment(values["a"][-1]) if "a" in values else 0)


def title(jobs: Sequence[Job]) -> str:
    tasks = [job.task for job in jobs if job.task is not None]
    if not tasks:
        return str(jobs[0].leader)
    return f"{jobs[0].leader}.{tasks[0]}-{tasks[-1]}:{tasks[1] - tasks[0] if len(tasks) > 1 else 1}"


def qsub(words: Sequence[str]) -> int:
    options = Options("qsub", OPTIONS, "-")
    batch, values = understand(words, options)
    if "help" in values:
        print(options.help("qsub [OPTIONS] [SCRIPT | -b y COMMAND] [ARG...]", ABOUT))
        return 0
    registry = Registry()
    holding.warn_of_outputs("qsub", batch.paths(1, 1, batch.tasks[0] if batch.tasks else None))
    hold = hold_of(registry, values, options)
    options.say_notes()
    jobs = holding.submit("qsub", registry, batch, hold)
    kind = "job-array" if batch.tasks else "job"
    print(title(jobs) if "terse" in values or batch.dialect == "pbs" else
          f'Your {kind} {title(jobs)} ("{batch.name}") has been submitted', flush=True)
    if not yes(values, "sync"):
        return 0
    ended = registry.wait(jobs)
    for job in ended:
        number = f"{job.leader}" if job.task is None else f"{job.leader}.{job.task}"
        how = "was deleted" if job.now == "CANCELLED" else f"exited because of signal {job.signal}" if job.signal else \
            f"exited with exit code {job.code}"
        print(f"Job {number} {how}.")
    return worst(ended)
