"""The profile for Snakemake 7: submit, status and cancel, as its options --cluster, --cluster-status and --cluster-cancel call them."""
from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import sys
import time
from typing import Any, Dict, Sequence

from .._fields import printable
from ..errors import Error
from ..pool import default_pool
from . import holding
from .batch import Batch, here, umask, working_directory
from .registry import Job, Registry
from .words import Wrong

LOGS = ".snakemake/dcs"
STATES = LOGS + "/states"  # which the script `status` reads
LATEST = 2000  # steps whose states it has
ENDING_S = 12  # after SIGTERM a job has ten seconds
AWAY_S = "600"  # for which a submission waits for a scheduler that is being started again


def properties(script: str) -> Dict[str, Any]:
    found = re.search(r"^# properties = (\{.*\})$", script, re.M)
    if not found:
        raise Wrong("this is no job script of Snakemake: it has no line `# properties = {...}`")
    return json.loads(found[1])


def amount(resources: Dict[str, Any], name: str) -> int:
    value = resources.get(name, 0)
    try:
        return max(0, math.ceil(float(value)))
    except (TypeError, ValueError) as error:
        raise Wrong(f"the resource {name}={value!r} is not a number") from error


def mark_of(job: Dict[str, Any], directory: str) -> str:
    """The same for the same step of the same workflow, in each run of Snakemake."""
    same = {name: value for name, value in job.items() if name not in ("jobid", "cluster")}
    return hashlib.sha256(json.dumps([directory, same], sort_keys=True).encode()).hexdigest()


def submit(words: Sequence[str]) -> int:
    """Prints the number of the job. Threads, mem_mb, runtime (minutes) and dcs_class are what the step needs. A step that
    was submitted before Snakemake was killed, and still waits, is not submitted again. One that runs is ended first:
    Snakemake has just removed what it wrote."""
    if len(words) != 1:
        raise Wrong("the job script is missing; `snakemake --profile DIR` calls this command")
    os.environ.setdefault("DCS_PATIENCE_S", AWAY_S)
    with open(words[0], encoding="utf-8", errors="surrogateescape") as file:
        script = file.read()
    job, registry = properties(script), Registry()
    where = working_directory()
    mark = mark_of(job, where)
    hold = None
    for earlier in registry.look(registry.jobs("mark = ? and state in ('held', 'sent')", mark)):
        if earlier.now == "PENDING":
            print(earlier.number)
            return 0
        if not earlier.over:
            registry.cancel([earlier])
            forget_states(where)
            hold = holding.condition([], False, time.time() + ENDING_S)
    resources = job.get("resources", {})
    name = job.get("rule") or job.get("groupid") or "snakemake"
    os.makedirs(os.path.join(where, LOGS), exist_ok=True)
    classes = str(resources.get("dcs_class", ""))
    batch = Batch("slurm", name, where, f"{LOGS}/{name}-%j.log", script=script, script_name="snakejob", env=dict(os.environ),
                  cores=int(job.get("threads", 1)), memory_mb=amount(resources, "mem_mb"), wall_s=60 * amount(resources, "runtime"),
                  host_class=default_pool.host_class(classes) if classes else 0, umask=umask(), host=here())
    jobs = registry.add(batch, hold, mark)
    print(jobs[0].leader, flush=True)
    holding.attend("submit", registry, jobs)
    return 0


def status_of_pool(words: Sequence[str]) -> int:
    """Prints running, success or failed, and leaves the states of all steps for the next questions. A scheduler that is away for a while
    is no reason to give a step up."""
    if len(words) != 1:
        raise Wrong("the number of the job is missing; `snakemake --profile DIR` calls this command")
    registry = Registry()
    try:
        jobs = registry.look(registry.of_word(words[0]))
        steps = registry.look(registry.jobs("mark is not null and number > (select max(number) from job) - ?", LATEST))
    except ConnectionError as error:
        print(f"status: {error}", file=sys.stderr)
        print("running")
        return 0
    leave_states(steps)
    holding.keep_going(registry)
    for job in jobs:
        if job.over and not job.good:
            print(f"job {job.number}: {job.now}{why(job)}", file=sys.stderr)
    print("running" if any(not job.over for job in jobs) else "success" if jobs and all(job.good for job in jobs) else "failed")
    return 0


def leave_states(steps: Sequence[Job]) -> None:
    """In the directory of the workflow; without it each question is answered by a look of its own."""
    states = " ".join(f"{job.number}={'running' if not job.over else 'success' if job.good else 'failed'}" for job in steps)
    part = f"{STATES}.{os.getpid()}"
    try:
        with open(part, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{int(time.time())} {states}\n{os.environ.get('DCS_DIR', '')}\n")
        os.replace(part, STATES)
    except OSError:
        pass


def forget_states(directory: str) -> None:
    """Some of them are no longer so."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(directory, STATES))


def why(job: Job) -> str:
    """What the step itself could not write into its log: that it did not begin."""
    try:
        with default_pool.grain_stream(job.session, job.number, "err") as stream:
            text = stream.read(2000).decode(errors="replace").strip()
        return f": {printable(text)}" if text else ""
    except (Error, OSError):
        return ""


def cancel(words: Sequence[str]) -> int:
    """Goes on by itself: Snakemake gives this command two seconds for all of its jobs."""
    if os.fork() == 0:
        os.setsid()
        registry = Registry()
        registry.cancel([job for word in words for job in registry.of_word(word)])
        forget_states(working_directory())
    return 0
