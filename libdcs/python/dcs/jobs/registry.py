"""The user's jobs in one pool: their numbers and what was submitted, in a file of their own; how they are, by the pool."""
from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any, ContextManager, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from ..errors import Error, GrainDiffers, GrainExists, GrainUnknown, SessionClosed, SessionTaken, SessionUnknown, Unreachable
from ..pool import default_pool, login_name
from ..session import Session
from ..spec import GrainRow
from .batch import Batch, append
from .words import Wrong, dcs_command

IDENT, LABEL = "dcs-jobs", "jobs of sbatch and qsub"
AGE_S = 3600  # a session of this age takes no new jobs: they would go before all younger sessions of the pool
KEPT_S = 90 * 86400  # that jobs which have ended stay known here
MANY = 512

TABLES = """
create table if not exists batch(leader integer primary key, text text not null);
create table if not exists job(number integer primary key, leader integer not null, task integer, name text not null,
    session integer not null, state text not null, submitted real not null, hold text, ended text, mark text);
create table if not exists current(session integer not null, since real not null, elders text not null);
create index if not exists job_state on job(state);
create index if not exists job_leader on job(leader);
create index if not exists job_mark on job(mark);
"""


@dataclass
class Job:
    """A row. `state`: held (with a session: perhaps it is there), sent, ended, cancelled. `now`, as the pool knows it: PENDING,
    RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY, or UNKNOWN when the pool no longer has it."""
    number: int
    leader: int
    task: Optional[int]
    name: str
    session: int
    state: str
    submitted: float
    hold: Optional[Dict[str, Any]]
    ended: Dict[str, Any]
    now: str = "PENDING"
    host: str = ""
    limit: str = ""  # that ended it, in words
    row: Optional[GrainRow] = field(default=None, repr=False)

    @property
    def over(self) -> bool:
        return self.now not in ("PENDING", "RUNNING")

    @property
    def code(self) -> int:
        return int(self.ended.get("code", 0))

    @property
    def signal(self) -> int:
        return int(self.ended.get("signal", 0))

    @property
    def good(self) -> bool:
        return self.now == "COMPLETED"


def folder() -> str:
    """A private pool has its jobs in its own directory, so that they go with it."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    pool = os.environ.get("DCS_DIR") or os.path.join(state, "dcs")
    if default_pool.on_this_host():
        return os.path.join(pool, "jobs")
    return os.path.join(state, "dcs-jobs", os.environ.get("DCS_DIR", "").replace("/", "_") or "pool")


class Registry:
    def __init__(self, path: Optional[str] = None):
        self.folder = path or folder()
        self.file = os.path.join(self.folder, "jobs.db")
        if not os.path.exists(self.file):
            default_pool.system()  # nothing is made for a pool that is not there
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        self.db = sqlite3.connect(self.file, timeout=120, isolation_level=None)
        self.db.execute("pragma synchronous = full")
        self.db.executescript(TABLES)
        self._session: Optional[Session] = None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Of all commands of this user only one is in such a block: numbers and the session belong to it, and the next one
        takes the session over."""
        self.db.execute("begin immediate")
        try:
            yield
            self.db.execute("commit")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("rollback")
            raise
        finally:
            self._session = None

    def _in_block(self) -> ContextManager[None]:
        return contextlib.nullcontext() if self.db.in_transaction else self.alone()

    # ---- submitting

    def add(self, batch: Batch, hold: Optional[Dict[str, Any]] = None, mark: Optional[str] = None) -> List[Job]:
        """Durable when it returns: in the pool, or held here until its conditions are met and the pool answers. Jobs are found
        by `mark` again."""
        batch.key = os.urandom(8).hex()
        tasks: List[Optional[int]] = list(batch.tasks) or [None]
        waits = hold is not None or 0 < batch.most < len(tasks)
        while True:
            with self.alone():
                session = 0 if waits else self._open().number
                first = self._next_number()
                jobs = [Job(first + i, first, task, batch.name, session, "held", time.time(), hold, {}) for i, task in enumerate(tasks)]
                self.db.execute("insert into batch values (?, ?)", (first, batch.text()))
                self.db.executemany("insert into job values (?, ?, ?, ?, ?, ?, ?, ?, null, ?)",
                                    [(j.number, j.leader, j.task, j.name, j.session, j.state, j.submitted,
                                      json.dumps(hold) if waits else None, mark) for j in jobs])
            if waits:
                return jobs
            try:
                self.send(jobs)
                return jobs
            except Error as error:
                if isinstance(error, ConnectionError) and (error.taken or not isinstance(error, Unreachable)):
                    return jobs  # perhaps in the pool: the keeper sends the same again
                with self.alone():  # the beginning of an array is in the pool, and what is not there must not get there
                    self.db.execute("update job set state = 'cancelled' where leader = ? and state = 'held'", (first,))
                _killed(self.jobs("leader = ? and state = 'sent'", first))
                given = isinstance(error, (GrainExists, GrainDiffers))  # the numbers, by a registry that is gone, or elsewhere
                with self.alone():
                    self.db.execute("delete from job where leader = ?", (first,))
                    self.db.execute("delete from batch where leader = ?", (first,))
                    if given:
                        self._reserve(self._greatest_of_pool())
                if not given:
                    raise

    def send(self, jobs: Sequence[Job]) -> None:
        """Those that are still held, to the pool. Their session is durable before: after any end in between the same is sent
        there again, which changes nothing."""
        while jobs:
            with self.alone():
                jobs = self._held(jobs)
                for job in jobs:
                    job.session = job.session or self._open().number
                self._write(jobs)
            failure: Optional[Error] = None
            with self.alone():
                jobs = self._held(jobs)
                for number in sorted({job.session for job in jobs}):
                    failure = self._submit(number, [job for job in jobs if job.session == number]) or failure
                self._write(jobs)
            if failure:
                raise failure

    def _submit(self, session: int, jobs: Sequence[Job]) -> Optional[Error]:
        batches = {leader: self.batch(leader) for leader in {job.leader for job in jobs}}
        came, failure = len(jobs), None
        try:
            Session(IDENT, session).submit_many([(job.number, batches[job.leader].grain(job.leader, job.number, job.task)) for job in jobs])
        except (SessionClosed, SessionTaken) as error:  # since it was chosen
            for job in jobs:
                there = isinstance(error, SessionClosed) and _row_of(job) is not None
                job.session, job.state = (session, "sent") if there else (0, "held")
            return None
        except Error as error:
            came, failure = error.taken, error
        for job in jobs[:came]:
            job.state = "sent"
        return failure

    def _held(self, jobs: Sequence[Job]) -> List[Job]:  # with the sessions that the table has
        held = dict(row for leader in {job.leader for job in jobs}
                    for row in self.db.execute("select number, session from job where leader = ? and state = 'held'", (leader,)))
        for job in jobs:
            job.session = held.get(job.number, job.session)
        return [job for job in jobs if job.number in held]

    def _write(self, jobs: Sequence[Job]) -> None:
        self.db.executemany("update job set session = ?, state = ? where number = ?", [(j.session, j.state, j.number) for j in jobs])

    def _next_number(self) -> int:
        (most,) = self.db.execute("select max(number) from job").fetchone()
        return (self._greatest_of_pool() if most is None else most) + 1

    def _reserve(self, number: int) -> None:
        self.db.execute("insert or ignore into job values (?, ?, null, '', 0, 'cancelled', 0, null, null, null)", (number, number))

    def _greatest_of_pool(self) -> int:
        greatest = 0
        for row in default_pool.sessions(login_name()):
            if row.ident == IDENT:
                greatest = max([greatest, *[grain.grain for grain in default_pool.grains(row.session)]])
        return greatest

    def _open(self) -> Session:
        """The session that takes new jobs. Work that the user began after it goes before them: then, and after a while, it
        is another one. Sessions that have nothing left to do are closed."""
        if self._session is None:
            rows = [row for row in default_pool.sessions(login_name()) if row.state == "active"]
            others = [f"{row.session} {row.ident}" for row in rows if row.ident != IDENT and row.ready + row.running > 0]
            current = self._usable([row.session for row in rows if row.ident == IDENT], others)
            for row in rows:
                if row.ident == IDENT and row.session != current and row.ready + row.running == 0:
                    default_pool.close_session(login_name(), row.session)
                    self._forget()
            self._session = Session(IDENT, current) if current is not None else Session(IDENT, mode="open")
            if current is None:
                self.db.execute("delete from current")
                self.db.execute("insert into current values (?, ?, ?)", (self._session.number, time.time(), json.dumps(others)))
                subprocess.run([dcs_command(), "session", "set", str(self._session.number), "--label", LABEL], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=False)
        return self._session

    def _usable(self, ours: Sequence[int], others: Sequence[str]) -> Optional[int]:
        """The session that was opened last, if new jobs may go into it. `others`: sessions in which the user has work."""
        found = self.db.execute("select session, since, elders from current").fetchone()
        if found is None or found[0] not in ours or time.time() - found[1] > AGE_S:
            return None
        return int(found[0]) if set(json.loads(found[2])).issuperset(others) else None

    def _forget(self) -> None:
        """Jobs that ended long ago; the last number stays, so that none comes twice."""
        self.look(self.jobs("state = 'sent'"))
        self.db.execute("delete from job where submitted < ? and state in ('ended', 'cancelled') and number < (select max(number) from job)",
                        (time.time() - KEPT_S,))
        self.db.execute("delete from batch where leader not in (select leader from job)")

    # ---- looking

    def batch(self, leader: int) -> Batch:
        found = self.db.execute("select text from batch where leader = ?", (leader,)).fetchone()
        if found is None:
            raise Wrong(f"job {leader} is not in {self.file}")
        return Batch.of(found[0])

    def jobs(self, where: str = "1", *values: Any) -> List[Job]:
        """Rows as they are here; look() asks the pool."""
        rows = self.db.execute("select number, leader, task, name, session, state, submitted, hold, ended from job "
                               f"where submitted > 0 and ({where}) order by number", values)
        return [Job(*row[:7], json.loads(row[7]) if row[7] else None, json.loads(row[8]) if row[8] else {}) for row in rows]

    def of_word(self, word: str) -> List[Job]:
        """12: a job, or an array with all its tasks; 12_3, 12_[1-5]: tasks of an array; none: there is no such job."""
        base, _, tasks = word.partition("_")
        if not base.isdigit() or len(base) > 9:
            raise Wrong(f"{word!r} is not the number of a job")
        if not tasks:
            return self.jobs("leader = ?", int(base)) or self.jobs("number = ?", int(base))
        from .words import task_list
        wanted = set(task_list(tasks.strip("[]").split("%")[0], word))
        return [job for job in self.jobs("leader = ?", int(base)) if job.task in wanted]

    def look(self, jobs: Iterable[Job]) -> List[Job]:
        """The same jobs, with what the pool says of them."""
        jobs = list(jobs)
        sent = [job for job in jobs if job.state == "sent" or job.state == "held" and job.session]
        live: Dict[Tuple[int, int], GrainRow] = {}
        if len(sent) > 4:  # otherwise each is asked for by itself
            for session in {job.session for job in sent}:
                for state in ("ready", "running"):
                    live.update(_rows(session, state))
        if len(sent) - len(live) > 50:
            for session in {job.session for job in sent}:
                live.update(_rows(session, "finished"))
        for job in jobs:
            if job.state == "ended":
                job.now, job.host = job.ended["now"], job.ended["host"]
            elif job.state == "cancelled":
                job.now = "CANCELLED"
            elif job.state == "sent" or job.session:
                self._see(job, live.get((job.session, job.number)))
        self._see_closed([job for job in sent if not job.over])
        unsure = [job for job in sent if job.state == "held"]
        for job in unsure:
            job.state, job.now = ("sent", job.now) if job.row is not None else ("held", "PENDING")
        if unsure:
            with self._in_block():
                self._write([job for job in self._held(unsure) if job.state == "sent"])
        self.end([job for job in sent if job.over and job.now != "UNKNOWN"])
        return jobs

    def end(self, over: Sequence[Job]) -> None:
        """How they ended stays known when the pool has removed their session."""
        if over:
            with self._in_block():
                for job in over:
                    changed = self.db.execute("update job set state = 'ended', ended = ? where number = ? and state in ('sent', 'held')",
                                              (json.dumps(job.ended), job.number))
                    if job.limit and changed.rowcount == 1:
                        self._say_limit(job)

    def _say_limit(self, job: Job) -> None:
        """Where the job's errors are, or would be if it had come to write some."""
        path = self.batch(job.leader).error_file(job.leader, job.number, job.task)
        append(path, f"dcs: ended on {job.host}: {job.limit}\n", os.O_CREAT)

    def _see(self, job: Job, row: Optional[GrainRow]) -> None:
        row = row or _row_of(job)
        if row is None:
            job.now = "UNKNOWN"
            return
        job.row, job.host = row, row.host
        job.now = {"ready": "PENDING", "running": "RUNNING", "killed": "CANCELLED"}.get(row.state, "COMPLETED")
        if row.state == "finished":
            job.now, job.limit = _end_of(row)
        if job.over:
            self._note(job, row)

    def _see_closed(self, jobs: Sequence[Job]) -> None:
        """What did not end in a session that was closed will not; some ended between the look at them and the close."""
        closed = {row.session for row in default_pool.sessions(login_name()) if row.state == "terminated"} if jobs else set()
        for job in jobs:
            if job.session in closed:
                self._see(job, None)
            if job.session in closed and job.row is not None and not job.over:
                job.now = "CANCELLED"
                self._note(job, job.row)

    def _note(self, job: Job, row: GrainRow) -> None:
        job.ended = {"now": job.now, "host": row.host or _last_host(row), "code": row.exit_code, "signal": row.signal,
                     "cpu": row.user_s + row.system_s, "user": row.user_s, "system": row.system_s, "rss": row.max_rss_kb}
        job.host = job.ended["host"]

    # ---- ending

    def cancel(self, jobs: Sequence[Job]) -> List[Job]:
        """Those that were not over yet."""
        named = "number in (%s)" % ",".join(str(job.number) for job in jobs)
        with self.alone():
            self.look(self.jobs(f"{named} and state = 'held' and session > 0"))
            held = {job.number for job in self.jobs(f"{named} and state = 'held'")}
            self.db.execute(f"update job set state = 'cancelled' where {named} and state = 'held'")
        ended = [job for job in jobs if job.number in held]
        rest = [job for job in self.look(self.jobs(named)) if job.state == "sent" and not job.over]
        waiting = [job for job in rest if job.now == "PENDING"]  # first: else they take slots of those that run
        return ended + _killed(waiting) + _killed([job for job in rest if job.now != "PENDING"])

    def wait(self, jobs: Sequence[Job]) -> List[Job]:
        """Until all are over."""
        pause = 0.05
        while True:
            try:
                found = self.look(self.jobs("leader = ?", jobs[0].leader))
                if all(job.over for job in found):
                    return found
            except ConnectionError:  # the scheduler is away for a while
                pass
            time.sleep(pause)
            pause = min(1.0, pause * 1.3)


def _killed(jobs: Sequence[Job]) -> List[Job]:
    """Those that the pool still knew. Many at a time, which share the scheduler's commits."""
    def kill(job: Job) -> bool:
        with contextlib.suppress(SessionUnknown, GrainUnknown):
            default_pool.kill_grain(login_name(), job.session, job.number)
            return True
        return False

    if len(jobs) < 2:
        return [job for job in jobs if kill(job)]
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(min(16, len(jobs))) as threads:
        return [job for job, known in zip(jobs, threads.map(kill, jobs)) if known]


def _row_of(job: Job) -> Optional[GrainRow]:
    with contextlib.suppress(SessionUnknown, GrainUnknown):
        return default_pool.grain_row(job.session, job.number)
    return None


def _rows(session: int, state: str) -> Dict[Tuple[int, int], GrainRow]:
    try:
        return {(session, row.grain): row for row in default_pool.grains(session, state)}
    except SessionUnknown:
        return {}


def _end_of(row: GrainRow) -> Tuple[str, str]:
    """And the limit that ended it."""
    if row.exit_code == 0 and row.signal == 0:
        return "COMPLETED", ""
    told = default_pool.grain_row(row.session, row.grain).moves if not row.moves else row.moves
    limit = told[-1].detail if told and told[-1].reason == "over_limit" else ""
    return ("OUT_OF_MEMORY" if "MB of memory" in limit else "TIMEOUT" if "longer than" in limit else "FAILED"), limit


def _last_host(row: GrainRow) -> str:
    return row.moves[-1].host if row.moves else ""
