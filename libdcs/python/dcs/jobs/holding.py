"""Held jobs: those that wait for other jobs, for a time, or for a place among the running tasks of their array. A process of the
user's own, the keeper, submits them when their conditions are met. It keeps nothing in itself: when it is killed, the next
command of a job starts another. `dcs down` ends it, and `dcs up` starts it again."""
from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sqlite3
import subprocess
import sys
import time
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ..errors import CannotRun, Error, GrainDiffers, GrainExists, Invalid, Refused
from ..pool import default_pool
from .batch import Batch
from .registry import MANY, Job, Registry
from .words import Wrong, say

PAUSE_S, AWAY_S = 1.0, 3600.0
RELATIONS = ("after", "afterany", "afterok", "afternotok", "aftercorr")  # and afteranycorr, of qsub
Condition = Dict[str, Any]


def condition(after: Sequence[Tuple[str, Sequence[str]]], any_of_them: bool, begin: float, kill: bool = False) -> Optional[Condition]:
    """None: nothing to wait for. `kill`: a job that can never run is cancelled."""
    if not after and begin <= time.time():
        return None
    return {"after": [[relation, list(words)] for relation, words in after], "any": any_of_them, "begin": begin, "kill": kill}


def slurm_dependency(text: str, registry: Registry) -> Tuple[List[Tuple[str, List[str]]], bool]:
    """afterok:12:13,afterany:14, or with ? for one of several."""
    if "?" in text and "," in text:
        raise Wrong(f"--dependency={text}: it mixes , (all of them) and ? (any of them)")
    found = []
    for part in re.split(r"[,?]", text):
        relation, *words = part.split(":")
        if relation.isdigit() or "_" in relation:
            relation, words = "afterany", [relation, *words]
        if relation not in RELATIONS or not words:
            raise Wrong(f"--dependency={part}: write RELATION:JOB[:JOB...], with one of {', '.join(RELATIONS)}")
        for word in words:
            if not registry.of_word(word):
                raise Wrong(f"--dependency={part}: there is no job {word}")
        found.append((relation, words))
    return found, "?" in text


def _met(relation: str, others: List[Job], task: Optional[int]) -> Optional[bool]:
    """None: not yet."""
    if relation.endswith("corr") and task is not None:
        others = [other for other in others if other.task in (None, task)]
    if relation == "after":
        return True if all(other.now != "PENDING" for other in others) else None
    if relation in ("afterok", "aftercorr") and any(other.over and not other.good for other in others):
        return False
    if not all(other.over for other in others):
        return None
    if relation == "afternotok":
        return any(not other.good for other in others)
    return True


class Conditions:
    """What the conditions of held jobs come to, with one look at each job that they name."""

    def __init__(self, registry: Registry):
        self.registry = registry
        self.seen: Dict[str, List[Job]] = {}

    def others(self, word: str) -> List[Job]:
        if word not in self.seen:
            self.seen[word] = self.registry.look(self.registry.of_word(word))
        return self.seen[word]

    def of(self, job: Job) -> Tuple[Optional[bool], str]:
        """Whether it may run (False: never), and why not."""
        hold = job.hold or {}
        results = [_met(relation, [other for word in words for other in self.others(word)], job.task)
                   for relation, words in hold.get("after", [])]
        if results and (all(r is False for r in results) if hold["any"] else False in results):
            return False, "DependencyNeverSatisfied"
        if results and not (any(results) if hold["any"] else all(results)):
            return None, "Dependency"
        return (None, "BeginTime") if hold.get("begin", 0) > time.time() else (True, "None" if job.task is None else "JobArrayTaskLimit")


def release(registry: Registry) -> int:
    """Submits what may run now, and cancels what never will where that was asked for; returns how many jobs are still held."""
    conditions = Conditions(registry)
    held = registry.jobs("state = 'held'")
    if never := [job for job in held if (job.hold or {}).get("kill") and conditions.of(job)[0] is False]:
        registry.cancel(never)
    due = [job for job in held if conditions.of(job)[0]]
    for leader in sorted({job.leader for job in due}):
        _send(registry, leader, [job for job in due if job.leader == leader])
    return len(registry.jobs("state = 'held'"))


def _send(registry: Registry, leader: int, tasks: List[Job]) -> None:
    try:
        most = registry.batch(leader).most
        if most:
            unfinished = registry.look(registry.jobs("leader = ? and state = 'sent'", leader))
            tasks = tasks[:max(0, most - sum(not job.over for job in unfinished))]
        for i in range(0, len(tasks), MANY):
            registry.send(tasks[i:i + MANY])
    except (CannotRun, GrainDiffers, GrainExists, Invalid, Refused, Wrong) as error:  # and would be refused again
        note(f"job {leader}: {error}")
        refused = [job for job in tasks if job.state == "held"]
        for job in refused:
            job.ended = {"now": "FAILED", "host": "", "code": 1, "signal": 0, "text": str(error)}
        registry.end(refused)


def dependency_of(job: Job) -> str:
    """As Slurm shows it: what is left of it."""
    hold = (job.hold or {}) if job.state == "held" else {}
    parts = [f"{relation}:{word}(unfulfilled)" for relation, words in hold.get("after", []) for word in words]
    return ("?" if hold.get("any") else ",").join(parts) or "(null)"


def note(text: str) -> None:
    """In the keeper's log, if its disk has room."""
    with contextlib.suppress(OSError):
        os.write(1, f"{time.strftime('%F %T')} {text}\n".encode())


def reason_of(job: Job) -> str:
    """Why a pending job does not run, in Slurm's words where it has them."""
    if job.state == "held":
        return Conditions(Registry()).of(job)[1]
    try:
        told = default_pool.explain(job.session, job.number)
    except Error:
        return "None"
    if told.can_run == 0:
        return "BadConstraints"
    word = told.reasons[0].reason if told.reasons else "None"
    return {"busy": "Resources", "cores_in_use": "Resources", "memory_in_use": "Resources", "resource_in_use": "Resources", "older_first": "Priority",
            "earlier_first": "Priority", "fewer_first": "Priority", "takes_it": "None"}.get(word, word)


def _lock(registry: Registry) -> Optional[int]:
    descriptor = os.open(os.path.join(registry.folder, "keeper.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    except BlockingIOError:
        os.close(descriptor)
        return None


def keep_going(registry: Registry) -> None:
    """Submits what is due, and sees that a keeper is there for the rest."""
    if not registry.jobs("state = 'held'"):
        return
    lock = _lock(registry)
    if lock is None:
        return
    os.close(lock)
    log = os.open(os.path.join(registry.folder, "keeper.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        subprocess.Popen([sys.executable, "-IS", os.path.realpath(sys.argv[0]), "keep"], stdin=subprocess.DEVNULL, stdout=log,
                         stderr=log, cwd="/", start_new_session=True, close_fds=True)
    finally:
        os.close(log)


def warn_of_outputs(command: str, files: Iterable[Optional[str]]) -> None:
    for directory in sorted({os.path.dirname(path) for path in files if path}):
        if not os.path.isdir(directory):
            say(command, f"there is no directory {directory} here for the job's output; the job fails if its host has none either")


def submit(command: str, registry: Registry, batch: Batch, hold: Optional[Condition]) -> List[Job]:
    jobs = registry.add(batch, hold)
    attend(command, registry, jobs)
    return jobs


def attend(command: str, registry: Registry, jobs: Sequence[Job]) -> None:
    """What is good for jobs that are submitted, whatever comes of it here."""
    with contextlib.suppress(Error, OSError, sqlite3.Error):
        keep_going(registry)
        if why := cannot_run(jobs):
            say(command, f"no host of the pool can run job {jobs[0].leader} ({jobs[0].name}): {why}")


def cannot_run(jobs: Sequence[Job]) -> Optional[str]:
    """Why no host of the pool could ever run what was just submitted."""
    if jobs[0].state != "sent":
        return None
    told = default_pool.explain(jobs[0].session, jobs[0].number)
    if told.can_run != 0:
        return None
    what = told.summary.partition("; ")[2]  # behind the counts of hosts: "no host offers gpu"
    never = [r for r in told.reasons if r.reason not in ("older_first", "fewer_first", "earlier_first")]  # those go away
    slots = "; in a private pool a host has as many as slots: `dcs up --slots N` gives it N"
    return "; ".join(what if r.reason == "no_resource" and what else r.text + slots * (r.reason == "too_few_cores") for r in never) or told.summary


def keep(registry: Registry) -> int:
    """The keeper: until no job is held. The last look and the end of the lock are one step for those who add jobs."""
    lock = _lock(registry)
    if lock is None:
        return 0
    os.environ.setdefault("DCS_PATIENCE_S", "5")
    away = 0.0
    while os.path.exists(registry.file):
        try:
            left, away = release(registry), 0.0
            if left == 0:
                with registry.alone():
                    if not registry.jobs("state = 'held'"):
                        os.close(lock)
                        return 0
        except (Error, OSError, sqlite3.Error) as error:  # the scheduler is away, or a disk is full, for a while
            away = away or time.monotonic()
            if isinstance(error, Error) and time.monotonic() - away > AWAY_S:
                note(str(error))
                return 1
        time.sleep(PAUSE_S)
    return 0
